import { beforeEach, describe, expect, it } from "vitest";
import { DRIFT_TYPES } from "../../../src/controller/drift-item.ts";
import { type DriftBody, type DriftItemBody, driftSchema } from "../../../src/api/drift-schema.ts";
import { writeController, writeInstance, writeUnclaimed, writeUnclaimedBackup } from "./rows.ts";
import { d1, NOW, openApi, pathOf, problemOf, startEmpty, type TestApi, testConfig, TOKENS, writeStatus } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const CANARY = "canary-91c2";
const put = (namespace: string, name: string, spec: unknown = {}) => api.send("PUT", pathOf(namespace, name), { json: { spec } });

async function drift(query = "", token: string = TOKENS.operator): Promise<DriftBody> {
  const response = await api.send("GET", `/v1/drift${query}`, { token });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return driftSchema.parse(await response.json());
}

const shortly = ({ type, workspace, instance }: DriftItemBody) =>
  `${type} ${workspace === undefined ? "-" : `${workspace.namespace}/${workspace.name}`} ${instance?.sandboxId ?? "-"}`;

describe("GET /v1/drift", () => {
  it.each([
    ["before the first tick", async () => {}],
    ["before the first inventory sweep", () => writeController({ inventory: null })],
  ])("is 503 NOT_READY %s", async (_sentence, write) => {
    await write();
    const response = await api.send("GET", "/v1/drift");
    expect(response.headers.get("Retry-After")).toBe("60");
    expect(await problemOf(response)).toMatchObject({ status: 503, code: "NOT_READY" });
  });

  it("is empty where everything is as wished", async () => {
    await writeController();
    await put("default", "rests", { operatingMode: "Suspended" });
    expect(await drift()).toEqual({
      asOf: "2026-11-30T12:00:00.000Z",
      complete: true,
      lastSweep: { time: "2026-11-30T11:59:50.000Z", ok: true, ageSeconds: 10 },
      summary: {},
      items: [],
      brake: { engaged: false, reason: null, eligible: 0, limit: 5, releasedUntilTime: null },
      unreachable: [],
      nextPageToken: null,
    });
  });

  it("shows a workspace that is missing, in full", async () => {
    await writeController();
    await put("default", "a");
    const doId = await writeInstance("default", "a", {
      running: false,
      observed: { kind: "Stopped", differences: [{ type: "Missing", firstSeenTime: NOW - 5500, timesSeen: 3 }] },
    });
    await writeStatus("a", 1, [{ status: "False", reason: "ContainerExited", message: "The container exited with code 1." }], "Pending");
    await d1
      .prepare("UPDATE workspaces SET next_retry_time = ?")
      .bind(NOW + 9000)
      .run();
    const { items, summary } = await drift();
    expect(summary).toEqual({ Missing: 1 });
    expect(items).toEqual([
      {
        type: "Missing",
        workspace: { namespace: "default", name: "a" },
        instance: { doId, sandboxId: expect.stringMatching(/-1$/) },
        differences: [{ field: "/spec/operatingMode", desired: "Running", observed: "Stopped" }],
        firstSeenTime: "2026-11-30T11:59:54.500Z",
        timesSeen: 3,
        ageSeconds: 5,
        plannedAction: "Start",
        blockedBy: "Backoff",
        reason: "ContainerExited",
        message: "The container exited with code 1.",
      },
    ]);
  });

  it("shows an orphan of nobody, in full, and leaves out what is not known", async () => {
    await writeController();
    const doId = await writeUnclaimed("orphan");
    const { items } = await drift();
    expect(items).toEqual([
      {
        type: "Orphaned",
        instance: { doId, sandboxId: "orphan" },
        differences: [{ field: "/instance/state", desired: "Stopped", observed: "Running" }],
        firstSeenTime: "2026-11-30T11:50:00.000Z",
        timesSeen: 20,
        ageSeconds: 600,
        plannedAction: "Destroy",
        reason: "Unattributed",
        message: "",
      },
    ]);
  });

  it("shows every type that the loop knows", async () => {
    await writeController();
    await put("default", "a-missing");
    await put("default", "b-unexpected", { operatingMode: "Suspended" });
    await writeInstance("default", "b-unexpected", { observed: {} });
    await put("default", "c-out-of-sync", { env: { SECRET: CANARY } });
    await writeInstance("default", "c-out-of-sync", { observed: { specHash: "v1:other" } });
    await put("default", "d-idle", { idle: { timeoutSeconds: 60 } });
    await writeInstance("default", "d-idle", { observed: { startedTime: NOW - 100_000, activityTime: NOW - 90_000 } });
    await put("default", "e-old", { maxLifetimeSeconds: 60 });
    await writeInstance("default", "e-old", { observed: { startedTime: NOW - 100_000 } });
    await put("default", "f-stalled");
    await writeStatus("f-stalled", 1, [{ type: "Stalled", reason: "Misconfigured" }], "Stalled");
    await put("default", "g-silent", { operatingMode: "Suspended" });
    await d1
      .prepare("UPDATE workspaces SET unreachable_time = ? WHERE name = 'g-silent'")
      .bind(NOW - 30_000)
      .run();
    await put("default", "h-overdue", { backup: { everySeconds: 60 } });
    await writeInstance("default", "h-overdue", { observed: {} });
    await d1
      .prepare("UPDATE workspaces SET ready_time = ? WHERE name = 'h-overdue'")
      .bind(NOW - 3_600_000)
      .run();
    await writeUnclaimedBackup(crypto.randomUUID());
    await writeUnclaimed("deaf", { destroyAttempts: 3, firstSeenTime: NOW - 900_000 });
    await writeUnclaimed("orphan");
    const report = await drift();
    expect(report.items.map(shortly).map((text) => text.replace(/ \S+$/, ""))).toEqual([
      "DestroyNotEffective -",
      "Orphaned -",
      "Missing default/a-missing",
      "Unexpected default/b-unexpected",
      "OutOfSync default/c-out-of-sync",
      "IdleOverrun default/d-idle",
      "LifetimeOverrun default/e-old",
      "Missing default/f-stalled",
      "Stalled default/f-stalled",
      "Unreachable default/g-silent",
      "BackupOverdue default/h-overdue",
      "BackupOrphaned -",
    ]);
    expect(Object.keys(report.summary).toSorted()).toEqual([...DRIFT_TYPES].toSorted());
    expect(report.unreachable).toEqual([{ namespace: "default", name: "g-silent" }]);
    expect(JSON.stringify(report)).not.toContain(CANARY);
  });

  it.each<[string, Parameters<typeof writeController>[0], boolean, boolean]>([
    ["a complete sweep", {}, true, true],
    ["a sweep of the ledger, where that is all there is", { inventory: { outcome: "LedgerOnly" } }, true, true],
    ["a failed sweep", { inventory: { outcome: "Failed", message: "Partial: page 2" } }, false, false],
    ["a sweep three intervals ago", { inventory: { time: NOW - 90_000 } }, true, true],
    ["a sweep before that", { inventory: { time: NOW - 90_001 } }, false, true],
  ])("after %s is complete or not, and says how the sweep went", async (_sentence, controller, complete, ok) => {
    await writeController(controller);
    await writeUnclaimed("orphan");
    const report = await drift();
    expect([report.complete, report.lastSweep.ok]).toEqual([complete, ok]);
    expect(report.items[0]?.blockedBy).toBe(complete ? undefined : "InventoryUntrusted");
  });

  it("names the brake, as long as nobody has released it", async () => {
    await writeController({ inventory: { eligible: 9, limit: 5, brake: "TooManyOrphans" } });
    await writeUnclaimed("orphan");
    const braked = await drift();
    expect(braked.brake).toEqual({ engaged: true, reason: "TooManyOrphans", eligible: 9, limit: 5, releasedUntilTime: null });
    expect(braked.items[0]?.blockedBy).toBe("TooManyOrphans");
    const until = "2026-11-30T13:00:00.000Z";
    await api.send("PUT", "/v1/controller", { json: { brakeReleasedUntilTime: until } });
    const released = await drift();
    expect(released.brake).toEqual({ engaged: false, reason: null, eligible: 9, limit: 5, releasedUntilTime: until });
    expect(released.items[0]?.blockedBy).toBeUndefined();
    api.time = Date.parse(until);
    expect((await drift()).brake).toMatchObject({ engaged: true, releasedUntilTime: null });
  });

  it("says what holds each back: the controller's settings, the mode, the start brake, the lane, the quota", async () => {
    await writeController();
    await put("default", "a");
    await writeUnclaimed("orphan");
    const blocks = async () => (await drift()).items.map(({ blockedBy }) => blockedBy);
    expect(await blocks()).toEqual([undefined, undefined]);
    await d1.prepare("UPDATE workspaces SET queued_time = 1").run();
    await api.send("PUT", "/v1/controller", { json: { gcMode: "Report" } });
    expect(await blocks()).toEqual(["ReportOnly", "StartLane"]);
    await writeController({ brakeUntilTime: NOW + 1 });
    expect(await blocks()).toEqual(["ReportOnly", "StartBrake"]);
    await api.send("PUT", "/v1/controller", { json: { paused: true } });
    expect(await blocks()).toEqual(["ControllerPaused", "ControllerPaused"]);
  });

  it("counts the quota as the loop does: without the workspace's own instance, with orphans", async () => {
    await writeController();
    api = await openApi({ config: { ...(await testConfig()), quotas: { "*": { maxWorkspaces: null, maxRunning: 2 } } } });
    await put("default", "a");
    await put("default", "b");
    await writeInstance("default", "b", { running: true, observed: { kind: "Unverified" } });
    const blocks = async () => (await drift("?type=Missing")).items.map(({ workspace, blockedBy }) => `${workspace?.name} ${blockedBy}`);
    expect(await blocks()).toEqual(["a undefined", "b undefined"]);
    await writeUnclaimed("orphan", { owner: { uid: "gone", namespace: "default", name: "gone", incarnation: 1 } });
    expect(await blocks()).toEqual(["a Quota", "b undefined"]);
  });

  it("takes no workspace whose deletion is under way for drift, and shows one whose stored spec is garbage only as what it is", async () => {
    await writeController();
    await put("default", "a");
    await api.send("DELETE", pathOf("default", "a"));
    await put("default", "b");
    await d1.prepare("UPDATE workspaces SET spec = 'garbage' WHERE name = 'b'").run();
    expect((await drift()).items).toEqual([]);
    await writeStatus("b", 1, [{ type: "Stalled", reason: "InvalidSpec" }], "Stalled");
    expect((await drift()).items.map(shortly)).toEqual(["Stalled default/b -"]);
  });

  it("does not show what a record has claimed since the sweep as an orphan", async () => {
    await writeController();
    await put("default", "a", { operatingMode: "Suspended" });
    const doId = await writeInstance("default", "a", { running: false });
    await writeUnclaimed("x", { doId });
    expect((await drift()).items).toEqual([]);
  });
});
