import { beforeEach, describe, expect, it } from "vitest";
import { type InstanceBody, instanceSchema } from "../../../src/api/instance-schema.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { testDoIdOf } from "./do-id.ts";
import { events, reasons, row, writeInstance, writeUnclaimed } from "./rows.ts";
import { d1, footprint, NOW, openApi, pathOf, refusalOf, startEmpty, type TestApi } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const put = (namespace: string, name: string) => api.send("PUT", pathOf(namespace, name), { json: { spec: {} } });
const post = (doId: string, verb: string, json?: unknown) => api.send("POST", `/v1/instances/${doId}:${verb}`, { json });
const idOf = (digit: string) => digit.repeat(64);
const OWNER = { uid: "gone-1", namespace: "team-a", name: "gone", incarnation: 2 };

async function bodyOf(response: Response): Promise<InstanceBody> {
  if (!response.ok) throw new Error(await response.text());
  return instanceSchema.strict().parse(await response.json());
}

describe(":destroy", () => {
  it("of an unclaimed instance is recorded once, with who asked", async () => {
    const doId = await writeUnclaimed("orphan", { owner: OWNER, timesSeen: 0 });
    const first = await post(doId, "destroy");
    expect([first.status, (await bodyOf(first)).destroyRequested]).toEqual([202, true]);
    api.time = NOW + 1000;
    expect((await post(doId, "destroy", {})).status).toBe(202);
    expect(await row("unclaimed", doId)).toMatchObject({ destroy_request_time: NOW, times_seen: 0, destroy_attempts: 0 });
    expect(await events()).toMatchObject([
      { reason: "InstanceDestroyRequested", actor: "operator", do_id: doId, namespace: "team-a", name: "gone", workspace_uid: "gone-1" },
    ]);
  });

  it("of a workspace's instance makes the workspace due, and voids what a pass has read of it", async () => {
    await put("default", "a");
    const doId = await writeInstance("default", "a", { observed: {} });
    await d1.prepare("UPDATE workspaces SET next_reconcile_time = NULL").run();
    const before = await row("workspaces", "a");
    api.time = NOW + 1000;
    const response = await post(doId, "destroy");
    expect([response.status, await bodyOf(response)]).toMatchObject([202, { claimed: true, state: "Running", destroyRequested: true }]);
    expect(await row("instances", doId)).toMatchObject({ destroy_request_time: NOW + 1000 });
    const after = await row("workspaces", "a");
    expect(after).toMatchObject({ next_reconcile_time: NOW + 1000, revision: before?.["revision"], status: before?.["status"] });
    expect(Number(after?.["resource_version"])).toBeGreaterThan(Number(before?.["resource_version"]));
    await post(doId, "destroy");
    expect(await reasons()).toEqual(["Created by operator", "InstanceDestroyRequested by operator"]);
    expect((await events())[1]).toMatchObject({ do_id: doId, namespace: "default", name: "a" });
  });

  it("touches no other instance and no other workspace", async () => {
    for (const name of ["a", "b"]) await put("default", name);
    const doId = await writeInstance("default", "a");
    const other = await writeInstance("default", "b", { doId: idOf("b") });
    const orphan = await writeUnclaimed("orphan");
    const before = [await row("workspaces", "b"), await row("instances", other), await row("unclaimed", orphan)];
    await post(doId, "destroy");
    expect([await row("workspaces", "b"), await row("instances", other), await row("unclaimed", orphan)]).toEqual(before);
  });

  it("of a protected one is 409, of an unknown one 404, and with a body 422: nothing is written", async () => {
    const doId = await writeUnclaimed("orphan", { protected: true });
    const before = await footprint();
    expect(await refusalOf(await post(doId, "destroy"))).toEqual({ status: 409, code: "INSTANCE_PROTECTED", pointers: [] });
    expect(await refusalOf(await post(idOf("0"), "destroy"))).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
    expect(await refusalOf(await post(doId, "destroy", { force: true }))).toEqual({
      status: 422,
      code: "INVALID_BODY",
      pointers: ["/force"],
    });
    expect(await footprint()).toEqual(before);
  });

  it("that loses to a protection is 409", async () => {
    const doId = await writeUnclaimed("orphan");
    const late = await openLate(() => post(doId, "protect"));
    expect((await refusalOf(await late.send("POST", `/v1/instances/${doId}:destroy`))).code).toBe("INSTANCE_PROTECTED");
    expect(await row("unclaimed", doId)).toMatchObject({ destroy_request_time: null });
    expect(await reasons()).toEqual(["InstanceProtected by operator"]);
  });

  it("that loses to a sweep which found it gone is 404", async () => {
    const doId = await writeUnclaimed("orphan");
    const late = await openLate(() => d1.prepare("DELETE FROM unclaimed").run());
    expect((await late.send("POST", `/v1/instances/${doId}:destroy`)).status).toBe(404);
    expect(await reasons()).toEqual([]);
  });
});

describe(":protect", () => {
  it.each<[string, unknown, boolean]>([
    ["without a body protects", undefined, true],
    ["with an empty body protects", {}, true],
    ["with true protects", { protected: true }, true],
    ["with false ends the protection", { protected: false }, false],
  ])("%s", async (_sentence, json, value) => {
    const doId = await writeUnclaimed("orphan", { protected: !value });
    const response = await post(doId, "protect", json);
    expect([response.status, (await bodyOf(response)).protected]).toEqual([202, value]);
    expect(await reasons()).toEqual([`Instance${value ? "P" : "Unp"}rotected by operator`]);
    expect((await events())[0]).toMatchObject({ do_id: doId, namespace: null, name: null });
    await post(doId, "protect", json);
    expect(await events()).toHaveLength(1);
  });

  it("voids an earlier request to destroy it, and ending the protection does not bring that back", async () => {
    const doId = await writeUnclaimed("orphan");
    await post(doId, "destroy");
    expect((await bodyOf(await post(doId, "protect"))).destroyRequested).toBe(false);
    expect((await bodyOf(await post(doId, "protect", { protected: false }))).destroyRequested).toBe(false);
  });

  it("of one that runs on asks no earlier destroy off when it ends a protection that was not there", async () => {
    const doId = await writeUnclaimed("orphan", { destroyRequested: true });
    expect((await bodyOf(await post(doId, "protect", { protected: false }))).destroyRequested).toBe(true);
  });

  it("of a claimed one is 409, of an unknown one 404, and with another body 422", async () => {
    await put("default", "a");
    const doId = await writeInstance("default", "a");
    const before = await footprint();
    expect(await refusalOf(await post(doId, "protect"))).toEqual({ status: 409, code: "INSTANCE_CLAIMED", pointers: [] });
    expect(await refusalOf(await post(idOf("0"), "protect"))).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
    for (const [json, pointer] of [
      [{ protected: "yes" }, "/protected"],
      [{ protect: true }, "/protect"],
      [[], ""],
    ]) {
      expect(await refusalOf(await post(doId, "protect", json))).toEqual({ status: 422, code: "INVALID_BODY", pointers: [pointer] });
    }
    expect(await footprint()).toEqual(before);
  });

  it("that loses to a claim is 409", async () => {
    await put("default", "a");
    const doId = await writeUnclaimed("orphan");
    const late = await openLate(() => writeInstance("default", "a", { doId }));
    expect((await refusalOf(await late.send("POST", `/v1/instances/${doId}:protect`))).code).toBe("INSTANCE_CLAIMED");
    expect(await row("unclaimed", doId)).toMatchObject({ protected: 0 });
  });
});

it("a test's DO ids are names in hex", () => {
  expect(testDoIdOf("a")).toMatch(/^61(0{62})$/);
});

/** An API before whose first write, which follows one read, something else happens. */
async function openLate(happen: () => Promise<unknown>): Promise<TestApi> {
  let batches = 0;
  const binding = {
    prepare: (query: string) => d1.prepare(query),
    batch: async (statements: D1PreparedStatement[]) => {
      batches += 1;
      if (batches === 2) await happen();
      return await d1.batch(statements);
    },
  } as unknown as D1Database;
  return await openApi({ db: openDatabase(binding) });
}
