import { beforeEach, describe, expect, it } from "vitest";
import { testDoIdOf } from "./do-id.ts";
import { events, row, writeInstance, writeUnclaimed } from "./rows.ts";
import { footprint, NOW, openApi, pathOf, problemOf, refusalOf, startEmpty, type TestApi, testConfig, workspaceOf } from "./support.ts";

let api: TestApi;
let doId: string;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const adopt = (json: Record<string, unknown> = {}, who: TestApi = api) =>
  who.send("POST", `/v1/instances/${doId}:adopt`, { json: { namespace: "default", name: "kept", ...json } });

describe(":adopt", () => {
  it("creates the workspace and its ledger row from the instance, which is unclaimed no longer", async () => {
    doId = await writeUnclaimed("sandbox-7");
    const response = await adopt({ metadata: { labels: { team: "a" } }, spec: { idle: { timeoutSeconds: 60 } } });
    expect(response.status).toBe(201);
    const { metadata, spec, status } = await workspaceOf(response);
    expect(response.headers.get("Location")).toBe(pathOf("default", "kept"));
    expect(response.headers.get("ETag")).toBe(metadata.etag);
    expect(metadata).toMatchObject({
      namespace: "default",
      name: "kept",
      generation: 1,
      revision: 1,
      labels: { team: "a" },
      annotations: {},
    });
    expect(spec).toMatchObject({ operatingMode: "Running", env: {}, idle: { timeoutSeconds: 60 } });
    expect(status).toMatchObject({ phase: "Pending", sandboxId: "sandbox-7", incarnation: 1, observedGeneration: 0 });
    expect(await workspaceOf(await api.send("GET", pathOf("default", "kept")))).toEqual({ metadata, spec, status });
    expect(await row("instances", doId)).toEqual({
      do_id: doId,
      sandbox_id: "sandbox-7",
      workspace_uid: metadata.uid,
      namespace: "default",
      name: "kept",
      incarnation: 1,
      admitted_time: NOW,
      running: 1,
      destroy_request_time: null,
      adopted: 1,
    });
    expect(await row("unclaimed", doId)).toBeNull();
    expect(await row("workspaces", "kept")).toMatchObject({ next_reconcile_time: NOW, incarnation: 1, queued_time: null, observed: null });
  });

  it("is in the history with who asked", async () => {
    doId = await writeUnclaimed("sandbox-7");
    const { metadata } = await workspaceOf(await adopt());
    expect(await events()).toMatchObject([
      { reason: "InstanceAdopted", actor: "operator", do_id: doId, namespace: "default", name: "kept", workspace_uid: metadata.uid },
    ]);
  });

  it("keeps the incarnation that the sandbox was last addressed under", async () => {
    doId = await writeUnclaimed("gone-3", { owner: { uid: "gone", namespace: "default", name: "old", incarnation: 3 } });
    expect((await workspaceOf(await adopt())).status.incarnation).toBe(3);
    expect(await row("instances", doId)).toMatchObject({ incarnation: 3 });
  });

  it("takes the sandbox's name from the body where nobody knows it, or what is known is not its name", async () => {
    doId = await writeUnclaimed("sandbox-7", { sandboxId: null });
    expect((await workspaceOf(await adopt({ sandboxId: "sandbox-7" }))).status.sandboxId).toBe("sandbox-7");
    doId = await writeUnclaimed("sandbox-8", { sandboxId: "an alias" });
    expect((await workspaceOf(await adopt({ name: "other", sandboxId: "sandbox-8" }))).status.sandboxId).toBe("sandbox-8");
  });

  it.each<[string, string | null, unknown]>([
    ["is required where nobody knows it", null, undefined],
    ["is required where what is known is not its name", "an alias", undefined],
    ["must be the one that the id is made from", null, "sandbox-8"],
    ["must be so also where the name is known", "sandbox-7", "sandbox-8"],
    ["must not be empty", null, ""],
    ["must not be very long", null, "x".repeat(257)],
    ["must be a text", null, 7],
  ])("sandboxId %s", async (_sentence, known, sandboxId) => {
    doId = await writeUnclaimed("sandbox-7", { sandboxId: known });
    const before = await footprint();
    expect(await refusalOf(await adopt({ sandboxId }))).toEqual({ status: 422, code: "INVALID_SPEC", pointers: ["/sandboxId"] });
    expect(await footprint()).toEqual(before);
  });

  it.each<[string, Record<string, unknown>, readonly string[]]>([
    ["an environment", { spec: { env: { A: "canary-1f" } } }, ["/spec/env"]],
    ["another mode", { spec: { operatingMode: "Suspended" } }, ["/spec/operatingMode"]],
    ["an expiry that is over", { spec: { expireTime: "2026-11-30T11:59:59Z" } }, ["/spec/expireTime"]],
    ["an unknown field of the spec", { spec: { image: "x" } }, ["/spec/image"]],
    ["an unknown field", { force: true }, ["/force"]],
    ["a name that is none", { name: "Kept" }, ["/name"]],
    ["a namespace that is none", { namespace: "" }, ["/namespace"]],
    ["a server's field", { metadata: { uid: "x" } }, ["/metadata/uid"]],
    ["a label that is none", { metadata: { labels: { a: "b c" } } }, ["/metadata/labels/a"]],
  ])("refuses %s", async (_sentence, json, pointers) => {
    doId = await writeUnclaimed("sandbox-7");
    const before = await footprint();
    const response = await adopt(json);
    expect(await response.clone().text()).not.toContain("canary");
    expect(await refusalOf(response)).toEqual({ status: 422, code: "INVALID_SPEC", pointers });
    expect(await footprint()).toEqual(before);
  });

  it.each(["namespace", "name"])("requires a %s, and a body", async (field) => {
    doId = await writeUnclaimed("sandbox-7");
    expect(await refusalOf(await adopt({ [field]: undefined }))).toMatchObject({ code: "INVALID_SPEC", pointers: [`/${field}`] });
    expect((await api.send("POST", `/v1/instances/${doId}:adopt`)).status).toBe(415);
  });

  it.each<[string, Parameters<typeof writeUnclaimed>[1], string]>([
    ["one that was ever told to go", { lastDestroyTime: NOW - 3_600_000, destroyAttempts: 1 }, "INSTANCE_BEING_DESTROYED"],
    ["one that is stopped", { state: "Stopped" }, "INSTANCE_NOT_RUNNING"],
    ["one that nobody has seen yet", { state: "Expected" }, "INSTANCE_NOT_RUNNING"],
  ])("is 409 for %s", async (_sentence, change, code) => {
    doId = await writeUnclaimed("sandbox-7", change);
    const before = await footprint();
    const problem = await problemOf(await adopt());
    expect([problem.status, problem.code]).toEqual([409, code]);
    expect(await footprint()).toEqual(before);
  });

  it("takes one to be destroyed, and one that is protected", async () => {
    const changes = [{ destroyRequested: true }, { protected: true }];
    for (const [index, change] of changes.entries()) {
      doId = await writeUnclaimed(`sandbox-${index}`, change);
      expect((await adopt({ name: `kept-${index}` })).status).toBe(201);
    }
  });

  it("takes one that a lost record ran, under the incarnation that its name tells", async () => {
    const sandboxId = "7f2c91aa-0000-4000-8000-000000000001-3";
    doId = await writeUnclaimed(sandboxId);
    expect((await workspaceOf(await adopt())).status.incarnation).toBe(3);
  });

  it("is 409 for one that a workspace has, now or under another incarnation, and 404 for an unknown one", async () => {
    const { metadata } = await workspaceOf(await api.send("PUT", pathOf("default", "a"), { json: { spec: {} } }));
    doId = await writeInstance("default", "a");
    expect(await refusalOf(await adopt())).toEqual({ status: 409, code: "INSTANCE_CLAIMED", pointers: [] });
    doId = await writeUnclaimed("older", { owner: { uid: metadata.uid, namespace: "default", name: "a", incarnation: 9 } });
    expect(await refusalOf(await adopt())).toEqual({ status: 409, code: "INSTANCE_CLAIMED", pointers: [] });
    doId = testDoIdOf("nobody");
    expect(await refusalOf(await adopt())).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
  });

  it("is 409 where the name is taken, also by what is being deleted", async () => {
    await api.send("PUT", pathOf("default", "kept"), { json: { spec: {} } });
    doId = await writeUnclaimed("sandbox-7");
    const before = await footprint();
    expect(await refusalOf(await adopt())).toEqual({ status: 409, code: "NAME_TAKEN", pointers: ["/name"] });
    expect(await footprint()).toEqual(before);
    await api.send("DELETE", pathOf("default", "kept"));
    expect((await refusalOf(await adopt())).code).toBe("NAME_TAKEN");
  });
});

describe("the quota", () => {
  it("of running instances counts the adopted one once, whether or not it was counted before", async () => {
    api = await openApi({ config: { ...(await testConfig()), quotas: { "*": { maxWorkspaces: null, maxRunning: 1 } } } });
    doId = await writeUnclaimed("gone-1", { owner: { uid: "gone", namespace: "default", name: "old", incarnation: 1 } });
    expect((await adopt()).status).toBe(201);
    doId = await writeUnclaimed("sandbox-7");
    expect(await refusalOf(await adopt({ name: "other" }))).toEqual({
      status: 403,
      code: "QUOTA_EXCEEDED",
      pointers: ["/spec/operatingMode"],
    });
  });
});
