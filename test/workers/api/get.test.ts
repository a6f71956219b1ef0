import { beforeEach, describe, expect, it } from "vitest";
import { workspaceSchema } from "../../../src/api/schema.ts";
import { writeBackup } from "./rows.ts";
import { d1, footprint, NOW, openApi, PATH, problemOf, refusalOf, startEmpty, type TestApi, workspaceOf, writeStatus } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

describe("GET", () => {
  it("is 404 NOT_FOUND where there is no such workspace", async () => {
    expect(await refusalOf(await api.send("GET", PATH))).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
  });

  it("shows the controller's status, the live sandbox and every instant in RFC 3339", async () => {
    const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }));
    await writeStatus("alice-1", 1, [{ type: "Stalled", status: "Unknown", reason: "StartFailed", message: "exit 1" }], "Stalled");
    await d1
      .prepare("UPDATE workspaces SET incarnation = 2, failures = 3, next_retry_time = ?")
      .bind(NOW + 5000)
      .run();
    await d1
      .prepare(
        "INSERT INTO instances (do_id, sandbox_id, workspace_uid, namespace, name, incarnation, admitted_time) VALUES (?, ?, ?, ?, ?, ?, ?)",
      )
      .bind("do", "sandbox-2", metadata.uid, "default", "alice-1", 2, NOW)
      .run();
    await writeBackup({ requestedTime: NOW - 120_000 });
    const backup = await writeBackup();
    await writeBackup({ state: "Failed", requestedTime: NOW });
    await writeBackup({ uid: "of-another-life", requestedTime: NOW });
    const response = await api.send("GET", PATH);
    expect(response.headers.get("ETag")).toBe(metadata.etag);
    const workspace = await workspaceOf(response);
    expect(workspaceSchema.parse(workspace)).toEqual(workspace);
    expect(workspace.status).toEqual({
      observedGeneration: 1,
      phase: "Stalled",
      sandboxId: "sandbox-2",
      incarnation: 2,
      failures: 3,
      nextRetryTime: "2026-11-30T12:00:05.000Z",
      lastBackup: { id: backup, time: "2026-11-30T11:59:02.000Z" },
      conditions: [
        {
          type: "Stalled",
          status: "Unknown",
          reason: "StartFailed",
          message: "exit 1",
          observedGeneration: 1,
          lastTransitionTime: "2026-11-30T12:00:00.000Z",
        },
      ],
    });
  });

  it("shows a stored spec as it is, even one that no longer parses", async () => {
    await api.send("PUT", PATH, { json: { spec: {} } });
    await d1.prepare(`UPDATE workspaces SET spec = '{"old":[1]}'`).run();
    expect((await workspaceOf(await api.send("GET", PATH))).spec).toEqual({ old: [1] });
  });

  it("does not look at If-None-Match, since the status changes under the same tag", async () => {
    const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }));
    expect((await api.send("GET", PATH, { headers: { "If-None-Match": metadata.etag } })).status).toBe(200);
  });

  it("answers HEAD with the same headers and no body", async () => {
    await api.send("PUT", PATH, { json: { spec: {} } });
    const response = await api.send("HEAD", PATH);
    expect([response.status, await response.text()]).toEqual([200, ""]);
    expect(response.headers.get("ETag")).toMatch(/^"[0-9a-f]{8}-r1"$/);
  });
});

describe("GET with waitFor", () => {
  beforeEach(async () => {
    await api.send("PUT", PATH, { json: { spec: {} } });
  });

  it("answers at once when the condition is met", async () => {
    await writeStatus("alice-1", 1, [{}]);
    expect((await api.send("GET", `${PATH}?waitFor=Ready&timeoutSeconds=0`)).status).toBe(200);
    expect(api.time).toBe(NOW);
  });

  it("answers as soon as the controller reports the condition", async () => {
    api.onSleep = async () => {
      if (api.time >= NOW + 2000) await writeStatus("alice-1", 1, [{}]);
    };
    const response = await api.send("GET", `${PATH}?waitFor=Ready&timeoutSeconds=10`);
    expect((await workspaceOf(response)).status.phase).toBe("Ready");
    expect(api.time).toBe(NOW + 2500);
  });

  it.each([
    ["no condition at all", []],
    ["another condition", [{ type: "Reconciling" as const }]],
    ["the condition False", [{ status: "False" as const }]],
    ["the condition Unknown", [{ status: "Unknown" as const }]],
    ["the condition of an older generation", [{ observedGeneration: 0 }]],
  ])("is 504 WAIT_TIMEOUT after the timeout with %s", async (_sentence, conditions) => {
    await writeStatus("alice-1", 1, conditions);
    const before = await footprint();
    const response = await api.send("GET", `${PATH}?waitFor=Ready&timeoutSeconds=3`);
    expect(await refusalOf(response)).toEqual({ status: 504, code: "WAIT_TIMEOUT", pointers: [] });
    expect(api.time).toBe(NOW + 3000);
    expect(await footprint()).toEqual(before);
  });

  it("waits at most 25 seconds, which is also the default, and never beyond the deadline", async () => {
    expect((await problemOf(await api.send("GET", `${PATH}?waitFor=Stalled`))).code).toBe("WAIT_TIMEOUT");
    expect(api.time).toBe(NOW + 25_000);
    const sleeps: number[] = [];
    let reads = 0;
    const slept = () => sleeps.reduce((sum, ms) => sum + ms, 0);
    const slow = await openApi({ now: () => NOW + slept() + 70 * (reads += 1), sleep: async (ms) => void sleeps.push(ms) });
    await slow.send("GET", `${PATH}?waitFor=Ready&timeoutSeconds=1`);
    expect(slept()).toBeLessThan(1000);
  });

  it.each(["Ready", "Suspended", "Stalled", "Reconciling", "BackupCurrent"] as const)("knows the condition %s", async (type) => {
    await writeStatus("alice-1", 1, [{ type }]);
    expect((await api.send("GET", `${PATH}?waitFor=${type}`)).status).toBe(200);
  });

  it("is 404 as soon as the workspace is gone", async () => {
    api.onSleep = async () => {
      await d1.prepare("DELETE FROM workspaces").run();
    };
    const response = await api.send("GET", `${PATH}?waitFor=Ready`);
    expect((await problemOf(response)).code).toBe("NOT_FOUND");
    expect(api.time).toBe(NOW + 500);
  });

  it.each([
    ["waitFor=Gone", "query/waitFor"],
    ["waitFor=", "query/waitFor"],
    ["waitFor=Ready&waitFor=Stalled", "query/waitFor"],
    ["waitFor=Ready&timeoutSeconds=26", "query/timeoutSeconds"],
    ["waitFor=Ready&timeoutSeconds=-1", "query/timeoutSeconds"],
    ["waitFor=Ready&timeoutSeconds=1.5", "query/timeoutSeconds"],
    ["waitFor=Ready&timeoutSeconds=", "query/timeoutSeconds"],
    ["timeoutSeconds=5", "query/timeoutSeconds"],
    ["watch=true", "query/watch"],
    ["__proto__=1", "query/__proto__"],
  ])("?%s is 400 INVALID_QUERY", async (query, pointer) => {
    expect(await refusalOf(await api.send("GET", `${PATH}?${query}`))).toEqual({ status: 400, code: "INVALID_QUERY", pointers: [pointer] });
  });
});
