/** What every controller store must do about the removal of backups, and about the sweep of the bucket. */
import { describe, expect, it } from "vitest";
import { type BackupColumns, LEASE_MS, NOW, bucketSweepOf, claimOf, goodBackup, specOf, strayObjects } from "./store-world.ts";
import type { Begin } from "./store-writes.ts";

const UNREFERRED = { referred: false, workspaceGoneTime: null };
const KEPT = { keepLast: 3, keepForSeconds: null };

export function storeRemovalsContract(begin: Begin): void {
  /** A workspace with these backups, the older the higher its number, and one of a workspace that is gone. */
  async function withBackups(changes: readonly Partial<BackupColumns>[] = [{}, {}, {}]) {
    const world = await begin();
    const epoch = await world.lease();
    const uid = await world.create("a", 1);
    for (const [index, change] of changes.entries()) await world.putBackup(goodBackup(`b${index}`, uid, NOW - index, change));
    await world.putBackup(goodBackup("gone", "gone", NOW - 9, { name: "gone", workspaceGoneTime: NOW - 5 }));
    const stateOf = async (id: string) => (await world.look()).backups.find((row) => row.id === id)?.state;
    return { ...world, epoch, uid, stateOf };
  }

  describe("retention", () => {
    it("is asked about all but the newest good one of a workspace that lives, a page at a time", async () => {
      const { store, uid, replace } = await withBackups([{}, { state: "Failed" }, {}, { state: "Deleting" }, {}]);
      const backup = { everySeconds: null, onSuspend: "Skip", excludes: [], retention: KEPT } as const;
      await replace(uid, specOf("1", { backup }), NOW);
      const [b2, b4] = [
        { id: "b2", endedTime: NOW - 2, rank: 2, retention: KEPT, ...UNREFERRED },
        { id: "b4", endedTime: NOW - 4, rank: 3, retention: KEPT, ...UNREFERRED },
      ];
      const gone = { id: "gone", endedTime: NOW - 9, rank: 1, retention: null, referred: false, workspaceGoneTime: NOW - 5 };
      expect(await store.readRetentionCandidates(null, 10)).toEqual([b2, b4, gone]);
      expect(await store.readRetentionCandidates(null, 2)).toEqual([b2, b4]);
      expect(await store.readRetentionCandidates("b4", 2)).toEqual([gone]);
      expect(await store.readRetentionCandidates("gone", 2)).toEqual([]);
    });

    it("knows no rule of a workspace that wishes no backups", async () => {
      const { store } = await withBackups();
      expect(await store.readRetentionCandidates(null, 1)).toMatchObject([{ id: "b1", retention: null }]);
    });

    it("does not count what lost its objects", async () => {
      const { store, stateOf, epoch } = await withBackups([{ lostTime: NOW }, {}, { lostTime: NOW }, {}]);
      expect(await store.readRetentionCandidates(null, 10)).toMatchObject([{ id: "b2", rank: 2 }, { id: "b3", rank: 2 }, { id: "gone" }]);
      expect(await store.claimBackupDeletion(epoch, "b1")).toBe(false);
      expect(await stateOf("b1")).toBe("Completed");
    });

    it("marks what a newer one stands for, and what is of a workspace that is gone", async () => {
      const { store, epoch, stateOf } = await withBackups();
      for (const id of ["b1", "gone"]) {
        expect(await store.claimBackupDeletion(epoch, id)).toBe(true);
        expect(await stateOf(id)).toBe("Deleting");
        expect(await store.claimBackupDeletion(epoch, id)).toBe(false);
      }
      expect(await store.readDeletions(10)).toEqual([
        { id: "b1", objectId: "object-b1" },
        { id: "gone", objectId: "object-gone" },
      ]);
      expect(await store.readDeletions(1)).toHaveLength(1);
    });

    it.each<[string, (world: Awaited<ReturnType<typeof withBackups>>) => Promise<unknown>, string]>([
      ["is the newest good one", async () => {}, "b0"],
      ["is not good", async ({ putBackup, uid }) => putBackup(goodBackup("f", uid, NOW - 99, { state: "Failed" })), "f"],
      ["is pinned", ({ patch, uid }) => patch(uid, { sourceBackupId: "b1" }), "b1"],
      ["is named by a spec", ({ replace, uid }) => replace(uid, specOf("1", { source: { backup: "gone" } }), NOW), "gone"],
      [
        "is what a first start would restore by its name",
        ({ replace, uid }) => replace(uid, specOf("1", { source: { workspace: "gone" } }), NOW),
        "gone",
      ],
      ["is held back", ({ set }) => set({ paused: true }), "b1"],
      ["is another controller's to mark", ({ store }) => store.acquireLease("another", NOW + LEASE_MS, LEASE_MS), "b1"],
    ])("leaves what %s", async (_name, happen, id) => {
      const world = await withBackups();
      await happen(world);
      const before = await world.look();
      expect(await world.store.claimBackupDeletion(world.epoch, id)).toBe(false);
      expect(await world.look()).toEqual(before);
    });

    it("is told what a record refers to", async () => {
      const { store, patch, replace, uid, create } = await withBackups();
      await patch(uid, { sourceBackupId: "b2" });
      const other = await create("b", 2);
      await replace(other, specOf("1", { source: { workspace: "gone" } }), NOW);
      const referred = (await store.readRetentionCandidates(null, 10)).map((candidate) => [candidate.id, candidate.referred]);
      expect(referred).toEqual([
        ["b1", false],
        ["b2", true],
        ["gone", true],
      ]);
      await patch(other, { sourceBackupId: "b1" });
      expect((await store.readRetentionCandidates("b2", 10)).map((candidate) => candidate.referred)).toEqual([false]);
    });

    it("is held back by no record of another namespace", async () => {
      const { store, replace, uid, putBackup } = await withBackups();
      await putBackup(goodBackup("foreign", "gone", NOW - 9, { namespace: "elsewhere", workspaceGoneTime: NOW - 5 }));
      await replace(uid, specOf("1", { source: { backup: "foreign" } }), NOW);
      expect((await store.readRetentionCandidates("b9", 1)).map(({ id, referred }) => [id, referred])).toEqual([["foreign", false]]);
      expect(await store.claimBackupDeletion(1, "foreign")).toBe(true);
    });

    it("forgets a row once it is marked, and no other, and only with the lease", async () => {
      const { store, epoch, stateOf } = await withBackups();
      expect(await store.forgetBackup(epoch, "b1")).toBe(false);
      await store.claimBackupDeletion(epoch, "b1");
      expect(await store.forgetBackup(epoch - 1, "b1")).toBe(false);
      expect(await stateOf("b1")).toBe("Deleting");
      expect(await store.forgetBackup(epoch, "b1")).toBe(true);
      expect(await stateOf("b1")).toBeUndefined();
    });

    it("lets rows without objects go when they are old, but never the last attempt of a workspace that lives", async () => {
      const ended = { objectId: null, sizeBytes: null };
      const { store, epoch, look, putBackup } = await withBackups([
        { state: "Failed", ...ended },
        { state: "Abandoned", ...ended },
        { state: "Skipped", startedTime: null, ...ended },
        { state: "Requested", endedTime: null, ...ended },
        {},
      ]);
      await putBackup(goodBackup("gone-too", "gone", NOW - 9, { state: "Failed", workspaceGoneTime: NOW - 5, ...ended }));
      const idsOf = async () => (await look()).backups.map(({ id }) => id).join(" ");
      await store.expireBackupRecords(epoch - 1, NOW + 9);
      await store.expireBackupRecords(epoch, NOW - 9);
      expect(await idsOf()).toBe("b0 b1 b2 b3 b4 gone gone-too");
      await store.expireBackupRecords(epoch, NOW - 1);
      expect(await idsOf()).toBe("b0 b1 b3 b4 gone");
      await store.expireBackupRecords(epoch, NOW + 9);
      expect(await idsOf()).toBe("b0 b3 b4 gone");
    });
  });

  describe("a deletion by a client", () => {
    it("marks what ended, withdraws what was asked for, and leaves what is under way or referred to", async () => {
      const { store, epoch, record, patch, uid, deleteBackup, stateOf, requestBackup } = await withBackups([{}, { state: "Failed" }, {}]);
      await patch(uid, { sourceBackupId: "b2" });
      expect(await deleteBackup("a", "none", NOW)).toBe("Missing");
      expect(await deleteBackup("b", "b0", NOW)).toBe("Missing");
      expect(await deleteBackup("a", "b2", NOW)).toBe("InUse");
      for (const id of ["b0", "b0", "b1"]) expect(await deleteBackup("a", id, NOW)).toBe("Deleted");
      expect([await stateOf("b0"), await stateOf("b1"), await stateOf("b2")]).toEqual(["Deleting", "Deleting", "Completed"]);
      await requestBackup(uid, "asked", NOW);
      expect(await deleteBackup("a", "asked", NOW)).toBe("Deleted");
      expect(await stateOf("asked")).toBe("Skipped");
      await store.claimBackup(epoch, await record("a"), claimOf("b9"), NOW);
      expect(await deleteBackup("a", "b9", NOW)).toBe("InProgress");
      expect(await stateOf("b9")).toBe("InProgress");
    });
  });

  describe("a sweep of the bucket", () => {
    it("sees what is good, every id that a row knows, what nobody claims, and the oldest claim", async () => {
      const { store, create, record, epoch, putBackup } = await withBackups([{}, { state: "Deleting" }]);
      await create("x", 2);
      await create("y", 3);
      await store.claimBackup(epoch, await record("y"), claimOf("late"), NOW + 50);
      await store.claimBackup(epoch, await record("x"), claimOf("early"), NOW + 40);
      await store.recordBackupSweep(epoch, bucketSweepOf({ unclaimed: [strayObjects("o2"), strayObjects("o1")] }), NOW);
      const view = await store.readBackupSweepView();
      expect(view.stored).toEqual([
        { id: "b0", objectId: "object-b0", endedTime: NOW, lostTime: null },
        { id: "gone", objectId: "object-gone", endedTime: NOW - 9, lostTime: null },
      ]);
      expect([...view.known].toSorted()).toEqual(["object-b0", "object-b1", "object-gone"]);
      expect(view.unclaimed).toEqual([strayObjects("o1"), strayObjects("o2")]);
      expect(view.oldestClaimTime).toBe(NOW + 40);
      await putBackup(goodBackup("b7", "gone", NOW, { objectId: "o1" }));
      expect((await store.readBackupSweepView()).unclaimed).toEqual([strayObjects("o2")]);
    });

    it("remembers what it saw, and forgets what is gone or known by now", async () => {
      const { store, epoch, look, putBackup } = await withBackups();
      const seen = [strayObjects("o1"), strayObjects("o2"), strayObjects("o3"), strayObjects("object-b0")];
      expect(await store.recordBackupSweep(epoch, bucketSweepOf({ unclaimed: seen }), NOW)).toBe(true);
      expect((await look()).unclaimedBackups).toEqual(seen.slice(0, 3));
      await putBackup(goodBackup("b7", "gone", NOW, { objectId: "o3" }));
      const again = strayObjects("o1", { timesSeen: 2, lastSeenTime: NOW + 9, uploadedTime: NOW, sizeBytes: 7 });
      await store.recordBackupSweep(epoch, bucketSweepOf({ unclaimed: [again], gone: ["o2"] }), NOW + 9);
      expect((await look()).unclaimedBackups).toEqual([again]);
    });

    it("dates a loss once, and takes it back when the objects are found", async () => {
      const { store, epoch, look } = await withBackups([{}, { state: "Deleting" }, {}]);
      const lostTimes = async () => (await look()).backups.map(({ lostTime }) => lostTime);
      await store.recordBackupSweep(epoch, bucketSweepOf({ lost: ["b0", "b1"] }), NOW + 1);
      await store.recordBackupSweep(epoch, bucketSweepOf({ lost: ["b0", "b2"] }), NOW + 2);
      expect(await lostTimes()).toEqual([NOW + 1, null, NOW + 2, null]);
      await store.recordBackupSweep(epoch, bucketSweepOf({ found: ["b0"] }), NOW + 3);
      expect(await lostTimes()).toEqual([null, null, NOW + 2, null]);
    });

    it("that failed keeps what the last complete one knew, and that of a lost lease writes nothing", async () => {
      const { store, epoch, look } = await withBackups();
      const { record } = bucketSweepOf({}, NOW + 60_000);
      await store.recordBackupSweep(epoch, bucketSweepOf({ record: { ...record, time: NOW, eligible: 2, brake: "EmptyDesired" } }), NOW);
      const failed = { ...record, outcome: "Failed", message: "no", stored: 0, limit: 0 } as const;
      expect(await store.recordBackupSweep(epoch, bucketSweepOf({ record: failed }), NOW)).toBe(true);
      const expected = { ...failed, completeTime: NOW, stored: 1, eligible: 2, limit: 5, brake: "EmptyDesired" };
      expect((await look()).controller?.backupSweep).toEqual(expected);
      const before = await look();
      const change = { unclaimed: [strayObjects("o")], lost: ["b0"], gone: ["o"], found: ["b0"] };
      expect(await store.recordBackupSweep(epoch - 1, bucketSweepOf(change), NOW)).toBe(false);
      expect(await look()).toEqual(before);
      expect(await store.acquireLease("b", NOW + LEASE_MS, 1)).toMatchObject({ backupSweep: expected });
    });

    it("claims a removal where nothing has changed: lease, settings, and that no row knows the objects", async () => {
      const { store, epoch, look, set, putBackup } = await withBackups();
      await store.recordBackupSweep(epoch, bucketSweepOf({ unclaimed: [strayObjects("o1"), strayObjects("o2")] }), NOW);
      await putBackup(goodBackup("b7", "gone", NOW, { objectId: "o2", state: "Deleting" }));
      const { events } = await look();
      expect(await store.claimObjectRemoval(epoch - 1, "o1", NOW)).toBe(false);
      expect(await store.claimObjectRemoval(epoch, "o2", NOW)).toBe(false);
      expect(await store.claimObjectRemoval(epoch, "nobody-knows", NOW)).toBe(false);
      for (const change of [{ paused: true }, { paused: false, gcMode: "Report" }, { gcMode: "Off" }] as const) {
        await set(change);
        expect(await store.claimObjectRemoval(epoch, "o1", NOW)).toBe(false);
      }
      expect((await look()).events).toBe(events);
      await set({ gcMode: "Enforce" });
      expect(await store.claimObjectRemoval(epoch, "o1", NOW)).toBe(true);
      expect((await look()).events).toBe(events + 1);
    });
  });
}
