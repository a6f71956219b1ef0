/** What the API writes and reads of backups. */
import { beforeEach, describe, expect, it } from "vitest";
import { deleteBackup, requestBackup } from "../../../src/store/backup-intent.ts";
import { claimBackup } from "../../../src/store/backup-progress.ts";
import { listBackups, readBackup } from "../../../src/store/backup-reading.ts";
import { replaceWorkspace, requestDeletion, requestReconcile } from "../../../src/store/intent.ts";
import { admitStart, saveConclusion } from "../../../src/store/progress.ts";
import { getWorkspace, listWorkspaces } from "../../../src/store/reading.ts";
import { claimOf, goodBackup } from "../../contract/store-world.ts";
import { admissionOf, conclusionOf, create, db, dump, epoch, putBackup, record, workspace } from "./store-support.ts";
import { all, d1, emptyTables, NOW, SPEC, uidOf } from "./support.ts";

beforeEach(emptyTables);

const A = { namespace: "default", name: "a" };
const ASKED = uidOf(101);
const REQUEST = { id: ASKED, directory: "/workspace", now: NOW + 5 };
const EDIT = { labels: {}, annotations: {}, spec: SPEC, specChanged: true, now: NOW };

async function told(): Promise<readonly unknown[]> {
  return await all("SELECT workspace_uid, type, reason, message, actor, time FROM events WHERE reason LIKE 'Backup%' ORDER BY id");
}

describe("requestBackup", () => {
  it("leaves a request, makes the workspace due, and tells its history", async () => {
    const current = await create("a", 1);
    await d1.exec("UPDATE workspaces SET next_reconcile_time = NULL");
    const asked = await requestBackup(db, current, REQUEST, { actor: "alice" });
    const backup = { id: ASKED, workspaceUid: current.uid, ...A, trigger: "Request", state: "Requested", reason: "", message: "" };
    const times = { requestedTime: NOW + 5, startedTime: null, endedTime: null, sizeBytes: null, lostTime: null };
    expect(asked).toEqual({ created: true, backup: { ...backup, directory: "/workspace", ...times } });
    expect(await readBackup(db, A, ASKED)).toEqual(asked?.backup);
    expect((await record("a")).nextReconcileTime).toBe(NOW + 5);
    const event = { type: "Normal", reason: "BackupRequested", message: "", actor: "alice" };
    expect(await told()).toEqual([{ workspace_uid: current.uid, ...event, time: NOW + 5 }]);
  });

  it("leaves the ETag, but a pass that read the row before does not save over it", async () => {
    const held = await epoch();
    const current = await create("a", 1);
    const read = await record("a");
    await requestBackup(db, current, REQUEST);
    expect((await workspace("a")).revision).toBe(current.revision);
    expect(await saveConclusion(db, held, read, conclusionOf(read, { nextReconcileTime: null }), NOW + 6)).toBe(false);
    expect((await record("a")).nextReconcileTime).toBe(NOW + 5);
  });

  it("answers the one that is asked for, and the one under way, and then writes nothing", async () => {
    const held = await epoch();
    const current = await create("a", 1);
    await requestBackup(db, current, REQUEST);
    const rows = without(await dump());
    const again = await requestBackup(db, current, { ...REQUEST, id: uidOf(102), now: NOW + 9 });
    expect(again).toMatchObject({ created: false, backup: { id: ASKED, state: "Requested", requestedTime: NOW + 5 } });
    expect(without(await dump())).toEqual(rows);
    await claimBackup(db, held, await record("a"), claimOf(ASKED), NOW + 9);
    const third = await requestBackup(db, current, { ...REQUEST, id: uidOf(103) });
    expect(third).toMatchObject({ created: false, backup: { id: ASKED, state: "InProgress", startedTime: NOW + 9 } });
    expect(await told()).toHaveLength(1);
  });

  it("asks for none of a workspace that is gone, is being deleted, or has another life by now", async () => {
    const current = await create("a", 1);
    const deleted = await requestDeletion(db, current, NOW);
    const rows = without(await dump());
    expect(await requestBackup(db, deleted ?? current, REQUEST)).toBeNull();
    expect(await requestBackup(db, { ...current, uid: uidOf(9) }, REQUEST)).toBeNull();
    expect(without(await dump())).toEqual(rows);
  });

  it("answers none while the final one of a deletion is under way", async () => {
    const held = await epoch();
    const current = await create("a", 1);
    await requestDeletion(db, current, NOW, { finalBackup: { policy: "Require", deadlineTime: NOW + 60_000 } });
    await claimBackup(db, held, await record("a"), claimOf(uidOf(102), { trigger: "Final" }), NOW);
    expect(await requestBackup(db, current, REQUEST)).toBeNull();
  });
});

/** Without the versions, which may have gaps. */
function without({ workspaces, backups, events }: Awaited<ReturnType<typeof dump>>): unknown {
  return { workspaces, backups, events };
}

describe("deleteBackup", () => {
  it("marks what ended, once, and tells the history of its workspace, which may be gone", async () => {
    await putBackup(goodBackup(ASKED, "gone", NOW, { workspaceGoneTime: NOW }));
    expect(await deleteBackup(db, A, ASKED, NOW + 3, { actor: "alice" })).toBe("Deleted");
    expect(await deleteBackup(db, A, ASKED, NOW + 4, { actor: "bob" })).toBe("Deleted");
    expect(await readBackup(db, A, ASKED)).toMatchObject({ state: "Deleting" });
    const event = { workspace_uid: "gone", type: "Normal", reason: "BackupDeletionRequested", message: ASKED };
    expect(await told()).toEqual([{ ...event, actor: "alice", time: NOW + 3 }]);
  });

  it.each(["Completed", "Skipped", "Failed", "Abandoned"])("marks one that is %s", async (state) => {
    await putBackup(goodBackup(ASKED, "gone", NOW, { state, objectId: null }));
    expect(await deleteBackup(db, A, ASKED, NOW)).toBe("Deleted");
    expect(await all("SELECT state FROM backups")).toEqual([{ state: "Deleting" }]);
  });

  it("withdraws a request, which stays to be seen", async () => {
    await requestBackup(db, await create("a", 1), REQUEST);
    expect(await deleteBackup(db, A, ASKED, NOW + 9)).toBe("Deleted");
    expect(await readBackup(db, A, ASKED)).toMatchObject({ state: "Skipped", reason: "Cancelled", endedTime: NOW + 9 });
    expect(await told()).toHaveLength(2);
  });

  it.each([
    ["under way", "InProgress", () => putBackup(goodBackup(ASKED, "gone", NOW, { state: "InProgress", endedTime: null, objectId: null }))],
    ["named by a spec", "InUse", () => referredBy({ source: { backup: ASKED } })],
    ["what a first start would restore", "InUse", () => referredBy({ source: { workspace: "a" } })],
    ["of another name", "Missing", () => putBackup(goodBackup(ASKED, "gone", NOW, { name: "b" }))],
    ["of another namespace", "Missing", () => putBackup(goodBackup(ASKED, "gone", NOW, { namespace: "elsewhere" }))],
  ] as const)("leaves one that is %s: %s", async (_name, answer, happen) => {
    await happen();
    const rows = await dump();
    expect(await deleteBackup(db, A, ASKED, NOW)).toBe(answer);
    expect(await dump()).toEqual(rows);
  });

  async function referredBy(change: Pick<typeof SPEC, "source">): Promise<void> {
    await putBackup(goodBackup(ASKED, "gone", NOW));
    await replaceWorkspace(db, await create("b", 2), { ...EDIT, spec: { ...SPEC, ...change }, sourceChanged: true });
  }
});

describe("a reader", () => {
  it("sees every life of a name, newest first, a page at a time", async () => {
    for (const [index, n] of [3, 1, 2, 4].entries()) {
      const row = goodBackup(uidOf(n), `life-${n % 2}`, NOW, {
        requestedTime: NOW + Math.min(index, 2),
        state: n === 1 ? "Deleting" : "Completed",
      });
      await putBackup(row);
    }
    await putBackup(goodBackup(uidOf(9), "other", NOW, { name: "b" }));
    const [late, later] = [uidOf(2), uidOf(4)].toSorted();
    const expected = [later, late, uidOf(1), uidOf(3)];
    const whole = await listBackups(db, { ...A, after: null, limit: 10 });
    expect(whole.map(({ id }) => id)).toEqual(expected);
    const pages: string[] = [];
    for (let after: (typeof whole)[number] | null = null; ;) {
      const [next]: readonly (typeof whole)[number][] = await listBackups(db, { ...A, after, limit: 1 });
      if (next === undefined) break;
      pages.push(next.id);
      after = next;
    }
    expect(pages).toEqual(expected);
  });

  it("is shown no backup by the name of another workspace", async () => {
    await putBackup(goodBackup(ASKED, "gone", NOW));
    expect(await readBackup(db, A, ASKED)).toMatchObject({ id: ASKED, sizeBytes: 4096 });
    expect(await readBackup(db, { ...A, name: "b" }, ASKED)).toBeNull();
    expect(await readBackup(db, { ...A, namespace: "b" }, ASKED)).toBeNull();
  });

  it("sees the last good backup with the workspace, alone, in a list, and after a write", async () => {
    const { uid } = await create("a", 1);
    await create("b", 2);
    await putBackup(goodBackup(uidOf(11), uid, NOW - 9));
    await putBackup(goodBackup(uidOf(12), uid, NOW - 5));
    await putBackup(goodBackup(uidOf(13), uid, NOW - 1, { state: "Failed", objectId: null }));
    const lastBackup = { id: uidOf(12), time: NOW - 5 };
    const found = await workspace("a");
    expect(found).toMatchObject({ lastBackup });
    const { items } = await listWorkspaces(db, { namespaces: null, labels: [], after: null, limit: 9 });
    expect(items.map((item) => item.lastBackup)).toEqual([lastBackup, null]);
    expect(await requestReconcile(db, found, NOW)).toMatchObject({ lastBackup });
  });
});

describe("the source of a workspace", () => {
  async function pinned() {
    const held = await epoch();
    await create("a", 1);
    const read = await record("a");
    await admitStart(db, held, read, admissionOf(read, "s1", { sourceBackupId: ASKED }), NOW);
    return await workspace("a");
  }

  it("stays pinned with any other edit, and is pinned no more once it is another", async () => {
    const edited = await replaceWorkspace(db, await pinned(), { ...EDIT, spec: { ...SPEC, directory: "/app" } });
    expect(edited).not.toBeNull();
    expect((await record("a")).sourceBackupId).toBe(ASKED);
    await replaceWorkspace(db, await workspace("a"), { ...EDIT, sourceChanged: true });
    expect((await record("a")).sourceBackupId).toBeNull();
  });

  it("stays pinned where the edit met a conflict", async () => {
    const current = await pinned();
    expect(await replaceWorkspace(db, { ...current, revision: 7 }, { ...EDIT, sourceChanged: true })).toBeNull();
    expect((await record("a")).sourceBackupId).toBe(ASKED);
  });
});

it("a deletion says which final backup it waits for, and one that does not say waits for none", async () => {
  await requestDeletion(db, await create("a", 1), NOW, { actor: "x", finalBackup: { policy: "BestEffort", deadlineTime: NOW + 9 } });
  await requestDeletion(db, await create("b", 2), NOW + 1);
  expect(await record("a")).toMatchObject({ finalBackup: "BestEffort", finalBackupDeadlineTime: NOW + 9, deletionTime: NOW });
  expect(await record("b")).toMatchObject({ finalBackup: "Skip", finalBackupDeadlineTime: NOW + 1 });
  expect((await getWorkspace(db, A))?.deletionTime).toBe(NOW);
});
