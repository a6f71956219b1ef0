/** What every controller store must do about backups: what a pass knows of them. */
import { describe, expect, it } from "vitest";
import { NOW, QUERY, admissionOf, goodBackup, specOf, uidOf } from "./store-world.ts";
import type { Begin } from "./store-writes.ts";

export function storeBackupsContract(begin: Begin): void {
  describe("what follows a backup under way", () => {
    it("is due after all else but silent sandboxes: they may be many, and are looked after often", async () => {
      const { store, create, putBackup } = await begin();
      const rows = {
        silent: { unreachableTime: NOW - 9000 },
        "busy-deleted": { deletionTime: NOW - 1, nextReconcileTime: NOW - 3 },
        deleted: { deletionTime: NOW - 1 },
        busy: { nextReconcileTime: NOW - 9000 },
        asked: { nextReconcileTime: NOW - 2 },
        idle: { nextReconcileTime: NOW - 1 },
      };
      for (const [index, [name, columns]] of Object.entries(rows).entries()) {
        const uid = await create(name, index, { nextReconcileTime: NOW, ...columns });
        const state = name.startsWith("busy") ? "InProgress" : name === "asked" ? "Requested" : null;
        if (state !== null) await putBackup(goodBackup(`of-${name}`, uid, NOW, { state, objectId: null, endedTime: null }));
      }
      expect((await store.loadDue(QUERY)).due.map(({ name }) => name).join(" ")).toBe("deleted busy-deleted asked idle busy silent");
    });
  });

  describe("the admission of a restore", () => {
    it.each([
      ["good", {}, true],
      ["to go by now", { state: "Deleting" }, false],
    ] as const)("of a backup that is %s", async (_name, columns, isAdmitted) => {
      const { store, create, record, lease, putBackup, row } = await begin();
      const epoch = await lease();
      await create("a", 1);
      await putBackup(goodBackup("old", "other", NOW - 9, columns));
      const read = await record("a");
      const admission = admissionOf(read, "s1", { restoredBackupId: "old", sourceBackupId: "old" });
      expect((await store.admitStart(epoch, read, admission, NOW)) !== null).toBe(isAdmitted);
      expect((await row("a"))?.sourceBackupId).toBe(isAdmitted ? "old" : null);
    });
  });

  describe("what a pass knows of backups", () => {
    it("is nothing where none are taken, and four times nothing where none was", async () => {
      const { store, create, record } = await begin();
      await create("a", 1);
      expect((await record("a")).backups).toEqual({ active: null, newest: null, last: null, source: null });
      const off = { ...QUERY, backups: false };
      expect((await store.loadDue(off)).due).toMatchObject([{ backups: null, unrestorable: false, finalBackup: "Skip" }]);
    });

    it("is that it has some, where they are of no use", async () => {
      const { store, create, record, putBackup } = await begin();
      const uid = await create("a", 1);
      const isUnrestorable = async () => (await store.loadDue({ ...QUERY, backups: false })).due[0]?.unrestorable;
      await putBackup(goodBackup("1", uid, NOW - 5, { state: "Failed", objectId: null }));
      await putBackup(goodBackup("2", "another-life", NOW - 5));
      expect(await isUnrestorable()).toBe(false);
      await putBackup(goodBackup("3", uid, NOW - 5));
      expect(await isUnrestorable()).toBe(true);
      expect((await record("a")).unrestorable).toBe(false);
    });

    it("is the newest good one by its end, of this life only, whether its objects are there or not", async () => {
      const { create, record, putBackup } = await begin();
      const uid = await create("a", 1);
      await putBackup(goodBackup("2", uid, NOW - 5));
      await putBackup(goodBackup("1", uid, NOW - 5));
      await putBackup(goodBackup("3", uid, NOW - 9));
      await putBackup(goodBackup("4", uid, NOW - 1, { state: "Deleting" }));
      await putBackup(goodBackup("5", "another-life", NOW - 1));
      expect((await record("a")).backups?.newest).toEqual({ id: "2", objectId: "object-2", endedTime: NOW - 5, lostTime: null });
      await putBackup(goodBackup("6", uid, NOW - 2, { lostTime: NOW }));
      expect((await record("a")).backups?.newest).toMatchObject({ id: "6", lostTime: NOW });
    });

    it("is the last claim that ended, whatever came of it, and no request that was never claimed", async () => {
      const { create, record, putBackup } = await begin();
      const uid = await create("a", 1);
      await putBackup(goodBackup("1", uid, NOW - 50));
      await putBackup(goodBackup("2", uid, NOW - 40, { state: "Failed", failures: 3, message: "no", objectId: null }));
      await putBackup(goodBackup("3", uid, NOW - 30, { state: "Skipped", startedTime: null, startId: null, objectId: null }));
      await putBackup(goodBackup("4", uid, NOW - 20, { state: "Deleting" }));
      expect((await record("a")).backups?.last).toEqual({
        trigger: "Schedule",
        state: "Failed",
        startId: "s1",
        generation: 1,
        startedTime: NOW - 49,
        endedTime: NOW - 40,
        failures: 3,
        message: "no",
      });
    });

    it("is the source: a backup by its id, good and of the same namespace", async () => {
      const { create, record, replace, putBackup } = await begin();
      const uid = await create("a", 1);
      const [good, foreign, bad, none] = [uidOf(11), uidOf(12), uidOf(13), uidOf(14)];
      await putBackup(goodBackup(good, "gone", NOW - 5, { name: "other", workspaceGoneTime: NOW }));
      await putBackup(goodBackup(foreign, "gone", NOW - 5, { namespace: "elsewhere" }));
      await putBackup(goodBackup(bad, "gone", NOW - 5, { state: "Failed", objectId: null }));
      for (const backup of [good, foreign, bad, none]) {
        await replace(uid, specOf("1", { source: { backup } }), NOW);
        expect((await record("a")).backups?.source?.id).toBe(backup === good ? good : undefined);
      }
    });

    it("is the source: the newest good one of a name, whichever life it is of, but not of this one", async () => {
      const { create, record, replace, putBackup } = await begin();
      const uid = await create("a", 1);
      await putBackup(goodBackup("1", "life-1", NOW - 9, { name: "other", workspaceGoneTime: NOW }));
      await putBackup(goodBackup("2", "life-2", NOW - 5, { name: "other" }));
      await putBackup(goodBackup("3", "life-3", NOW - 1, { name: "other", namespace: "elsewhere" }));
      await putBackup(goodBackup("4", "life-0", NOW - 7));
      await putBackup(goodBackup("5", uid, NOW - 2));
      await replace(uid, specOf("1", { source: { workspace: "other" } }), NOW);
      expect((await record("a")).backups?.source).toEqual({ id: "2", objectId: "object-2", endedTime: NOW - 5, lostTime: null });
      await replace(uid, specOf("1", { source: { workspace: "a" } }), NOW);
      expect((await record("a")).backups?.source).toMatchObject({ id: "4" });
      await replace(uid, specOf("1", { source: { workspace: "nobody" } }), NOW);
      expect((await record("a")).backups?.source).toBeNull();
    });

    it("is the source that its first start pinned, whatever the name stands for by now, until the spec has another", async () => {
      const { store, create, record, lease, replace, putBackup, row } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await putBackup(goodBackup("old", "other", NOW - 9, { name: "other" }));
      await replace(uid, specOf("1", { source: { workspace: "other" } }), NOW);
      const read = await record("a");
      await store.admitStart(epoch, read, admissionOf(read, "s1", { sourceBackupId: "old" }), NOW);
      await putBackup(goodBackup("new", "other", NOW - 1, { name: "other" }));
      expect(await record("a")).toMatchObject({ sourceBackupId: "old", backups: { source: { id: "old" } } });
      await replace(uid, specOf("2", { source: { workspace: "other" } }), NOW);
      expect(await row("a")).toMatchObject({ sourceBackupId: "old" });
      await replace(uid, specOf("2", { source: { backup: "new" } }), NOW);
      expect(await record("a")).toMatchObject({ sourceBackupId: null, backups: { source: { id: "new" } } });
    });
  });
}
