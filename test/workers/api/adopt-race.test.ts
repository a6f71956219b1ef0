import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { reasons, row, writeInstance, writeUnclaimed } from "./rows.ts";
import { d1, NOW, openApi, pathOf, refusalOf, startEmpty, statusesOf, type TestApi, testConfig } from "./support.ts";

let api: TestApi;
let doId: string;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const adopt = (json: Record<string, unknown> = {}, who: TestApi = api) =>
  who.send("POST", `/v1/instances/${doId}:adopt`, { json: { namespace: "default", name: "kept", ...json } });

describe("two at once", () => {
  it("adopt one instance under two names: one is 201, the other 409 or 404, and one workspace is there", async () => {
    doId = await writeUnclaimed("sandbox-7");
    const responses = await Promise.all(["a", "b", "c", "d"].map((name) => adopt({ name })));
    expect(statusesOf(responses)).toEqual([201, 409, 409, 409]);
    expect(await d1.prepare("SELECT (SELECT count(*) FROM workspaces) AS w, (SELECT count(*) FROM instances) AS i").first()).toEqual({
      w: 1,
      i: 1,
    });
    expect(await reasons()).toEqual(["InstanceAdopted by operator"]);
  });

  it("adopt two instances under one name: one keeps what it was", async () => {
    const ids = [await writeUnclaimed("sandbox-1"), await writeUnclaimed("sandbox-2")];
    const responses = await Promise.all(
      ids.map((id) => api.send("POST", `/v1/instances/${id}:adopt`, { json: { namespace: "default", name: "kept" } })),
    );
    expect(statusesOf(responses)).toEqual([201, 409]);
    expect(await d1.prepare("SELECT (SELECT count(*) FROM unclaimed) AS u, (SELECT count(*) FROM instances) AS i").first()).toEqual({
      u: 1,
      i: 1,
    });
  });
});

/** The workspace's own uid is known before the write; the writes of others come between the adoption's reads and its write. */
describe("if between its reads and its write", () => {
  async function late(happen: () => Promise<unknown>, overrides: Parameters<typeof openApi>[0] = {}): Promise<TestApi> {
    let batches = 0;
    const binding = {
      prepare: (query: string) => d1.prepare(query),
      batch: async (statements: D1PreparedStatement[]) => {
        batches += 1;
        if (batches === 2) await happen();
        return await d1.batch(statements);
      },
    } as unknown as D1Database;
    return await openApi({ db: openDatabase(binding), ...overrides });
  }

  it.each<[string, () => Promise<unknown>, number, string]>([
    [
      "the sweep tells it to go",
      () => d1.prepare("UPDATE unclaimed SET destroy_attempts = 1, last_destroy_time = ?").bind(NOW).run(),
      409,
      "INSTANCE_BEING_DESTROYED",
    ],
    ["it is confirmed gone", () => d1.prepare("DELETE FROM unclaimed").run(), 404, "NOT_FOUND"],
    ["it stops", () => d1.prepare("UPDATE unclaimed SET state = 'Stopped'").run(), 409, "INSTANCE_NOT_RUNNING"],
    ["another record claims it", () => claim(), 409, "INSTANCE_CLAIMED"],
    ["its owner comes to life", () => insertOwner(), 409, "INSTANCE_CLAIMED"],
    ["another takes the name", () => api.send("PUT", pathOf("default", "kept"), { json: { spec: {} } }), 409, "NAME_TAKEN"],
  ])("%s, nothing is adopted", async (_sentence, happen, status, code) => {
    doId = await writeUnclaimed("gone-1", { owner: { uid: "gone", namespace: "default", name: "old", incarnation: 1 } });
    const response = await adopt({}, await late(happen));
    expect(await refusalOf(response)).toMatchObject({ status, code });
    expect(await d1.prepare("SELECT count(*) AS n FROM instances WHERE adopted = 1").first("n")).toBe(0);
    expect((await reasons()).filter((text) => text.startsWith("InstanceAdopted"))).toEqual([]);
    if (code !== "NOT_FOUND") expect(await row("unclaimed", doId)).not.toBeNull();
  });

  it("another uses the last place, the quota holds", async () => {
    const config = { ...(await testConfig()), quotas: { "*": { maxWorkspaces: 1, maxRunning: null } } };
    doId = await writeUnclaimed("sandbox-7");
    const who = await late(() => api.send("PUT", pathOf("default", "other"), { json: { spec: {} } }), { config });
    expect(await refusalOf(await adopt({}, who))).toEqual({ status: 403, code: "QUOTA_EXCEEDED", pointers: ["path/namespace"] });
    expect(await row("unclaimed", doId)).not.toBeNull();
  });

  const claim = async () => {
    await api.send("PUT", pathOf("default", "other"), { json: { spec: {} } });
    await writeInstance("default", "other", { doId });
  };

  const insertOwner = () =>
    d1
      .prepare(
        `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version, status, resync_phase)
         VALUES ('gone', 'default', 'old', '{}', '{}', '{}', 1, 1, 0, 1, '{}', 0)`,
      )
      .run();
});
