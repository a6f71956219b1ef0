/** What every controller store must do about backups: their claim, and how they and their workspaces end. */
import { describe, expect, it } from "vitest";
import { NOW, claimOf, endingOf, goodBackup, specOf, unchanged } from "./store-world.ts";
import type { Begin } from "./store-writes.ts";

const DAY = 86_400_000;

export function storeBackupWritesContract(begin: Begin): void {
  describe("a claim of a backup", () => {
    it("begins one of its own, without a touch of the workspace", async () => {
      const { store, create, record, lease, row, look } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      const read = await record("a");
      const before = await row("a");
      expect(await store.claimBackup(epoch, read, claimOf("b1", { trigger: "Suspend", failures: 2 }), NOW + 3)).toBe(true);
      expect(await row("a")).toEqual(before);
      const claimed = { state: "InProgress", trigger: "Suspend", startId: "s1", generation: 1, failures: 2, directory: "/workspace" };
      const times = { requestedTime: NOW + 3, startedTime: NOW + 3, deadlineTime: NOW + 600_000, endedTime: null };
      expect((await look()).backups).toMatchObject([
        { id: "b1", workspaceUid: uid, namespace: "default", name: "a", ...claimed, ...times },
      ]);
      expect((await record("a")).backups?.active).toEqual({
        id: "b1",
        state: "InProgress",
        trigger: "Suspend",
        startId: "s1",
        directory: "/workspace",
        startedTime: NOW + 3,
        deadlineTime: NOW + 600_000,
      });
    });

    it("takes up a request, which stays a request", async () => {
      const { store, create, record, lease, look, requestBackup } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      expect(await requestBackup(uid, "asked", NOW)).toEqual({ id: "asked", created: true });
      const read = await record("a");
      expect(read.backups?.active).toMatchObject({ id: "asked", state: "Requested", startId: null, deadlineTime: null });
      expect(await store.claimBackup(epoch, read, claimOf("asked", { startId: "s7", directory: "/app" }), NOW + 3)).toBe(true);
      const claimed = {
        state: "InProgress",
        trigger: "Request",
        startId: "s7",
        directory: "/app",
        requestedTime: NOW,
        startedTime: NOW + 3,
      };
      expect((await look()).backups).toMatchObject([{ id: "asked", ...claimed }]);
    });

    it("is made once, however often it is asked for", async () => {
      const { store, create, record, lease, look, requestBackup } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      const read = await record("a");
      await store.claimBackup(epoch, read, claimOf("b1"), NOW);
      const before = await look();
      expect(await store.claimBackup(epoch, read, claimOf("b1"), NOW + 1)).toBe(false);
      expect(await store.claimBackup(epoch, read, claimOf("b2"), NOW + 1)).toBe(false);
      expect(await store.claimBackup(epoch, await record("a"), claimOf("b1"), NOW + 1)).toBe(false);
      expect(await requestBackup(uid, "asked", NOW + 1)).toEqual({ id: "b1", created: false });
      expect(await look()).toMatchObject({ backups: before.backups, workspaces: before.workspaces });
    });

    it("is refused where the lease is lost, the row moved on, or a client asked meanwhile", async () => {
      const { store, create, record, lease, look, replace, requestBackup } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      const read = await record("a");
      expect(await store.claimBackup(epoch - 1, read, claimOf("b1"), NOW)).toBe(false);
      await replace(uid, specOf("2"), NOW);
      expect(await store.claimBackup(epoch, read, claimOf("b1"), NOW)).toBe(false);
      const again = await record("a");
      await requestBackup(uid, "asked", NOW);
      expect(await store.claimBackup(epoch, again, claimOf("b1"), NOW)).toBe(false);
      expect((await look()).backups).toMatchObject([{ id: "asked", state: "Requested" }]);
    });

    it("of a request that was withdrawn is refused, also once its row is gone", async () => {
      const { store, create, record, lease, look, requestBackup, deleteBackup } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await requestBackup(uid, "asked", NOW);
      const read = await record("a");
      expect(await deleteBackup("a", "asked", NOW + 1)).toBe("Deleted");
      expect((await look()).backups).toMatchObject([{ state: "Skipped", reason: "Cancelled", endedTime: NOW + 1, startedTime: null }]);
      expect(await store.claimBackup(epoch, read, claimOf("asked"), NOW)).toBe(false);
      expect(await deleteBackup("a", "asked", NOW + 1)).toBe("Deleted");
      expect(await store.forgetBackup(epoch, "asked")).toBe(true);
      expect(await store.claimBackup(epoch, read, claimOf("asked"), NOW)).toBe(false);
      expect((await look()).backups).toEqual([]);
    });
  });

  describe("the end of a backup", () => {
    it("is written with the conclusion, or not at all", async () => {
      const { store, create, record, lease, look, replace } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await store.claimBackup(epoch, await record("a"), claimOf("b1", { failures: 4 }), NOW);
      const read = await record("a");
      const conclusion = unchanged(read, { backup: endingOf("b1") });
      await replace(uid, specOf("2"), NOW);
      expect(await store.saveConclusion(epoch, read, conclusion, NOW + 7)).toBe(false);
      expect((await look()).backups).toMatchObject([{ state: "InProgress", endedTime: null }]);
      const again = await record("a");
      expect(await store.saveConclusion(epoch - 1, again, conclusion, NOW + 7)).toBe(false);
      expect((await look()).backups).toMatchObject([{ state: "InProgress" }]);
      expect(await store.saveConclusion(epoch, again, unchanged(again, { backup: endingOf("b1") }), NOW + 7)).toBe(true);
      const good = { state: "Completed", endedTime: NOW + 7, objectId: "object-b1", sizeBytes: 4096, failures: 0 };
      expect((await look()).backups).toMatchObject([good]);
      expect((await record("a")).backups).toMatchObject({ active: null, newest: { id: "b1" }, last: { state: "Completed", failures: 0 } });
    });

    it.each([
      ["Failed", 3],
      ["Abandoned", 3],
      ["Skipped", 2],
    ] as const)("as %s leaves %i failures in a row after 2", async (state, failures) => {
      const { store, create, record, lease } = await begin();
      const epoch = await lease();
      await create("a", 1);
      await store.claimBackup(epoch, await record("a"), claimOf("b1", { failures: 2 }), NOW);
      const read = await record("a");
      const ending = endingOf("b1", { state, reason: "Why", message: "because", objectId: null, sizeBytes: null });
      await store.saveConclusion(epoch, read, unchanged(read, { backup: ending }), NOW);
      expect((await record("a")).backups?.last).toMatchObject({ state, failures, message: "because" });
    });

    it("ends a request that nothing runs for", async () => {
      const { store, create, record, lease, look, requestBackup } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await requestBackup(uid, "asked", NOW);
      const read = await record("a");
      const skipped = { trigger: "Request", state: "Skipped", reason: "NotRunning", objectId: null, sizeBytes: null } as const;
      await store.saveConclusion(epoch, read, unchanged(read, { backup: endingOf("asked", skipped) }), NOW + 5);
      expect((await look()).backups).toMatchObject([{ state: "Skipped", reason: "NotRunning", endedTime: NOW + 5, startedTime: null }]);
      expect((await record("a")).backups).toMatchObject({ active: null, last: null });
    });

    it("does not end what ended before, nor another's", async () => {
      const { store, create, record, lease, look, requestBackup, deleteBackup } = await begin();
      const epoch = await lease();
      const [uid, other] = [await create("a", 1), await create("b", 2)];
      await requestBackup(uid, "asked", NOW);
      await requestBackup(other, "others", NOW);
      const read = await record("a");
      await deleteBackup("a", "asked", NOW);
      const { events } = await look();
      await store.saveConclusion(epoch, read, unchanged(read, { backup: endingOf("asked") }), NOW + 5);
      const again = await record("a");
      await store.saveConclusion(epoch, again, unchanged(again, { backup: endingOf("others") }), NOW + 5);
      expect(await look()).toMatchObject({ backups: [{ state: "Skipped" }, { id: "others", state: "Requested" }], events });
    });

    it.each([
      ["Schedule", "Completed", 0],
      ["Schedule", "Skipped", 0],
      ["Schedule", "Failed", 1],
      ["Schedule", "Abandoned", 1],
      ["Request", "Completed", 1],
      ["Suspend", "Skipped", 1],
      ["Final", "Failed", 1],
    ] as const)("of trigger %s as %s tells %i events", async (trigger, state, told) => {
      const { store, create, record, lease, look } = await begin();
      const epoch = await lease();
      await create("a", 1);
      await store.claimBackup(epoch, await record("a"), claimOf("b1", { trigger }), NOW);
      const read = await record("a");
      const { events } = await look();
      await store.saveConclusion(epoch, read, unchanged(read, { backup: endingOf("b1", { trigger, state }) }), NOW);
      expect((await look()).events).toBe(events + told);
    });
  });

  describe("the end of a workspace", () => {
    it.each([
      ["asked for", "Requested", { state: "Skipped", reason: "Cancelled" }],
      ["under way", "InProgress", { state: "Abandoned", reason: "WorkspaceDeleted" }],
    ])("ends the backup that is %s, and dates what is kept", async (_name, state, end) => {
      const { store, create, record, lease, look, putBackup } = await begin();
      const epoch = await lease();
      const [uid, other] = [await create("a", 1), await create("b", 2)];
      await putBackup(goodBackup("1", uid, NOW - DAY));
      await putBackup(goodBackup("2", uid, NOW, { state, endedTime: null, objectId: null }));
      await putBackup(goodBackup("3", other, NOW - DAY, { name: "b" }));
      const read = await record("a");
      expect(await store.forget(epoch - 1, read, NOW + 5)).toBe(false);
      expect(await look()).toMatchObject({ backups: [{ workspaceGoneTime: null }, { state }, {}] });
      expect(await store.forget(epoch, read, NOW + 5)).toBe(true);
      const good = { state: "Completed", endedTime: NOW - DAY };
      expect((await look()).backups).toMatchObject([
        { ...good, workspaceGoneTime: NOW + 5 },
        { ...end, endedTime: NOW + 5, workspaceGoneTime: NOW + 5 },
        { ...good, workspaceGoneTime: null },
      ]);
    });

    it("waits for the final backup that was asked for with it, until its deadline", async () => {
      const { create, record, row, delete: deleteWorkspace } = await begin();
      const [uid, other] = [await create("a", 1), await create("b", 2)];
      await deleteWorkspace(uid, NOW, { policy: "Require", deadlineTime: NOW + 60_000 });
      await deleteWorkspace(other, NOW);
      expect(await record("a")).toMatchObject({ finalBackup: "Require", finalBackupDeadlineTime: NOW + 60_000 });
      expect(await row("b")).toMatchObject({ finalBackup: "Skip", finalBackupDeadlineTime: NOW });
    });

    it("by expiry waits for the one of the spec", async () => {
      const { store, create, record, lease, replace } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await replace(uid, specOf("1", { deletion: { finalBackup: "BestEffort", deadlineSeconds: 90 } }), NOW);
      await store.expire(epoch, await record("a"), NOW + 5);
      expect(await record("a", NOW + 5)).toMatchObject({ finalBackup: "BestEffort", finalBackupDeadlineTime: NOW + 90_005 });
    });

    it("is when no more backups are asked for", async () => {
      const { create, requestBackup, delete: deleteWorkspace, look } = await begin();
      const uid = await create("a", 1);
      await deleteWorkspace(uid, NOW);
      expect(await requestBackup(uid, "asked", NOW)).toBeNull();
      expect(await requestBackup("nobody", "asked", NOW)).toBeNull();
      expect((await look()).backups).toEqual([]);
    });
  });
}
