import { beforeEach, describe, expect, it } from "vitest";
import type { BackupBody } from "../../../src/api/backup-schema.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { reasons, row, writeBackup } from "./rows.ts";
import {
  d1,
  d1BeforeWrites,
  footprint,
  NOW,
  openApi,
  PATH,
  pathOf,
  problemOf,
  refusalOf,
  startEmpty,
  statusesOf,
  type TestApi,
  testConfig,
  TOKENS,
  workspaceOf,
} from "./support.ts";

const OF_NOBODY = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
  await api.send("PUT", PATH, { json: { spec: { directory: "/app" } } });
});

async function backupOf(response: Response): Promise<BackupBody> {
  if (!response.ok) throw new Error(`expected a backup, got ${response.status}: ${await response.text()}`);
  return await response.json();
}

const ask = () => api.send("POST", `${PATH}/backups`, { token: TOKENS.editor });
const stateOf = async (id: string) => (await backupOf(await api.send("GET", `${PATH}/backups/${id}`))).state;
const rest = () =>
  d1
    .prepare("UPDATE workspaces SET next_reconcile_time = ?")
    .bind(NOW + 300_000)
    .run();

describe("POST …/backups", () => {
  it("records a request, says where it is, and asks the controller; the workspace's tag stays", async () => {
    const { metadata } = await workspaceOf(await api.send("GET", PATH));
    await rest();
    const response = await ask();
    const backup = await backupOf(response);
    expect([response.status, response.headers.get("Location")]).toEqual([202, `${PATH}/backups/${backup.id}`]);
    expect(backup).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      workspace: { namespace: "default", name: "alice-1", uid: metadata.uid },
      state: "Requested",
      trigger: "Request",
      reason: "",
      message: "",
      directory: "/app",
      sizeBytes: null,
      requestedTime: "2026-11-30T12:00:00.000Z",
      startedTime: null,
      endedTime: null,
      lost: false,
    });
    expect(await backupOf(await api.send("GET", `${PATH}/backups/${backup.id}`))).toEqual(backup);
    expect(await d1.prepare("SELECT next_reconcile_time AS t FROM workspaces").first("t")).toBe(NOW);
    expect((await workspaceOf(await api.send("GET", PATH))).metadata.etag).toBe(metadata.etag);
    expect(await reasons()).toEqual(["Created by operator", "BackupRequested by editor"]);
  });

  it("answers the request that is there as often as it is repeated", async () => {
    const first = await backupOf(await ask());
    const before = (await footprint()).rows;
    api.time = NOW + 1000;
    const again = await ask();
    expect([again.status, again.headers.get("Location")]).toEqual([202, `${PATH}/backups/${first.id}`]);
    expect(await backupOf(again)).toEqual(first);
    expect((await footprint()).rows).toEqual(before);
  });

  it("is one request where several ask at once", async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await backupOf(await ask())).id));
    expect(new Set(ids).size).toBe(1);
    expect((await reasons()).filter((text) => text.startsWith("BackupRequested"))).toHaveLength(1);
  });

  it("is 409 while one is being taken, and says which", async () => {
    const id = await writeBackup({ state: "InProgress" });
    const problem = await problemOf(await ask());
    expect([problem.status, problem.code, problem.detail]).toEqual([409, "BACKUP_IN_PROGRESS", `The backup ${id} is being taken.`]);
  });

  it("is another request once the last has ended", async () => {
    const good = await writeBackup();
    expect((await backupOf(await ask())).id).not.toBe(good);
  });

  it("is taken for a workspace that does not run, and for one whose stored spec no longer parses: it wakes nothing", async () => {
    await d1.prepare("UPDATE workspaces SET spec = 'garbage'").run();
    expect((await backupOf(await ask())).directory).toBe("/workspace");
  });

  it("is 404 where there is no workspace, even where there are backups of one", async () => {
    await writeBackup();
    await d1.prepare("DELETE FROM workspaces").run();
    expect(await refusalOf(await ask())).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
  });

  it("is 409 while the workspace is being deleted, also where the deletion comes in between", async () => {
    api = await openApi({
      db: openDatabase(d1BeforeWrites(async () => void (await d1.prepare("UPDATE workspaces SET deletion_time = 1").run()))),
    });
    expect(await refusalOf(await ask())).toEqual({ status: 409, code: "BEING_DELETED", pointers: [] });
    expect(await refusalOf(await ask())).toEqual({ status: 409, code: "BEING_DELETED", pointers: [] });
    expect(await d1.prepare("SELECT count(*) AS n FROM backups").first("n")).toBe(0);
  });

  it("is 409 where the installation takes none", async () => {
    api = await openApi({ config: { ...(await testConfig()), backups: null } });
    const before = await footprint();
    expect(await refusalOf(await ask())).toEqual({ status: 409, code: "BACKUPS_DISABLED", pointers: [] });
    expect(await footprint()).toEqual(before);
  });

  it("takes an empty object for a body, and refuses one that says more", async () => {
    const post = (json: unknown) => api.send("POST", `${PATH}/backups`, { json });
    expect((await post({})).status).toBe(202);
    expect(await refusalOf(await post({ excludes: ["a"] }))).toEqual({ status: 422, code: "INVALID_BODY", pointers: ["/excludes"] });
  });
});

describe("DELETE …/backups/{id}", () => {
  const remove = (id: string) => api.send("DELETE", `${PATH}/backups/${id}`, { token: TOKENS.editor });

  it.each(["Completed", "Skipped", "Failed", "Abandoned", "Deleting"] as const)("asks for one that is %s to go", async (state) => {
    const id = await writeBackup({ state });
    const response = await remove(id);
    expect([response.status, (await backupOf(response)).state]).toEqual([202, "Deleting"]);
    const again = await remove(id);
    expect([again.status, (await backupOf(again)).state]).toEqual([202, "Deleting"]);
    expect(await reasons()).toEqual(["Created by operator", ...(state === "Deleting" ? [] : ["BackupDeletionRequested by editor"])]);
  });

  it("withdraws a request that nobody has taken up", async () => {
    const { id } = await backupOf(await ask());
    api.time = NOW + 1000;
    const response = await remove(id);
    expect(response.status).toBe(202);
    expect(await backupOf(response)).toMatchObject({ state: "Skipped", reason: "Cancelled", endedTime: "2026-11-30T12:00:01.000Z" });
    expect((await backupOf(await ask())).id).not.toBe(id);
  });

  it("is 409 while it is being taken, and says which", async () => {
    const id = await writeBackup({ state: "InProgress" });
    const problem = await problemOf(await remove(id));
    expect([problem.status, problem.code, problem.detail]).toEqual([409, "BACKUP_IN_PROGRESS", `The backup ${id} is being taken.`]);
    expect(await stateOf(id)).toBe("InProgress");
  });

  it("is 409 while a workspace restores from it: one that has, and one that will", async () => {
    const [pinned, named] = [await writeBackup(), await writeBackup()];
    await d1.prepare("UPDATE workspaces SET source_backup_id = ?").bind(pinned).run();
    await api.send("PUT", pathOf("default", "clone"), { json: { spec: { source: { backup: named } } } });
    for (const id of [pinned, named]) {
      expect(await refusalOf(await remove(id))).toEqual({ status: 409, code: "BACKUP_IN_USE", pointers: [] });
      expect(await stateOf(id)).toBe("Completed");
    }
  });

  it("works for a workspace that is gone, and where the installation takes none", async () => {
    const [first, second] = [await writeBackup(), await writeBackup()];
    await d1.prepare("DELETE FROM workspaces").run();
    expect((await remove(first)).status).toBe(202);
    api = await openApi({ config: { ...(await testConfig()), backups: null } });
    expect((await remove(second)).status).toBe(202);
  });

  it("answers what is asked for where the controller was quick, and the record is gone", async () => {
    const id = await writeBackup();
    const quick = {
      prepare: (query: string) => d1.prepare(query),
      batch: async (statements: D1PreparedStatement[]) => {
        const results = await d1.batch(statements);
        await d1.prepare("DELETE FROM backups").run();
        return results;
      },
    } as unknown as D1Database;
    api = await openApi({ db: openDatabase(quick) });
    const response = await remove(id);
    expect([response.status, await backupOf(response)]).toMatchObject([202, { id, state: "Deleting" }]);
    expect((await remove(id)).status).toBe(404);
  });

  it("is one deletion where several ask at once", async () => {
    const id = await writeBackup();
    expect(statusesOf(await Promise.all([1, 2, 3].map(() => remove(id))))).toEqual([202, 202, 202]);
    expect((await reasons()).filter((text) => text.startsWith("BackupDeletionRequested"))).toHaveLength(1);
    expect((await remove(OF_NOBODY)).status).toBe(404);
  });
});

describe("PUT with another source", () => {
  it("gives up the backup that the last source stood for, and with the same source keeps it", async () => {
    const id = await writeBackup();
    const put = (spec: object) => api.send("PUT", PATH, { json: { spec } });
    await put({ source: { workspace: "bob" } });
    await d1.prepare("UPDATE workspaces SET source_backup_id = ?").bind(id).run();
    await put({ source: { workspace: "bob" }, directory: "/tmp" });
    expect(await row("workspaces", "alice-1")).toMatchObject({ source_backup_id: id, generation: 3 });
    await put({ source: { workspace: "carol" }, directory: "/tmp" });
    expect(await row("workspaces", "alice-1")).toMatchObject({ source_backup_id: null, generation: 4 });
  });

  it("asks nobody whether there is such a backup", async () => {
    const response = await api.send("PUT", pathOf("default", "clone"), { json: { spec: { source: { backup: OF_NOBODY } } } });
    expect(response.status).toBe(201);
  });
});
