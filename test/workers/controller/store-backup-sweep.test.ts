/** The sweep of the bucket in the real D1, whose statements take 100 parameters and no more; and what the drift report is given. */
import { beforeEach, describe, expect, it } from "vitest";
import { claimObjectRemoval, readBackupSweepView, recordBackupSweep } from "../../../src/store/backup-sweep.ts";
import { readController } from "../../../src/store/controller-reading.ts";
import { type DriftQuery, readDriftView } from "../../../src/store/drift-reading.ts";
import { acquireLease } from "../../../src/store/lease.ts";
import { bucketSweepOf, goodBackup, strayObjects } from "../../contract/store-world.ts";
import { create, db, epoch, loseLease, putBackup } from "./store-support.ts";
import { all, d1, emptyTables, NOW, uidOf } from "./support.ts";

beforeEach(emptyTables);

const QUERY: DriftQuery = { namespaces: null, now: NOW, backups: true, partSize: 2 };

describe("a sweep", () => {
  it("may see, miss, find and drop thousands at once", async () => {
    const held = await epoch();
    const ids = Array.from({ length: 1500 }, (_, n) => uidOf(n)).toSorted();
    await recordBackupSweep(db, held, bucketSweepOf({ unclaimed: ids.map((id) => strayObjects(id)) }), NOW);
    expect((await readBackupSweepView(db)).unclaimed.map(({ objectId }) => objectId)).toEqual(ids);
    await recordBackupSweep(db, held, bucketSweepOf({ gone: ids.slice(1), lost: ids, found: ids }), NOW);
    expect((await readBackupSweepView(db)).unclaimed).toHaveLength(1);
  });

  it("is shown by the controller and told to who takes the lease; a record that does not read is none", async () => {
    const held = await epoch();
    expect((await readController(db)).state?.backupSweep).toBeNull();
    await recordBackupSweep(db, held, bucketSweepOf({}, NOW + 5), NOW);
    const { record } = bucketSweepOf({}, NOW + 5);
    expect((await readController(db)).state?.backupSweep).toEqual({ ...record, completeTime: NOW + 5 });
    for (const garbage of ["", "{", "null", "7", '{"time":1}']) {
      await d1.prepare("UPDATE controller SET backup_sweep = ?, expires_time = 0").bind(garbage).run();
      expect(await acquireLease(db, "a", NOW, 1), garbage).toMatchObject({ backupSweep: null });
    }
  });

  it("that failed after a record that does not read knows nothing", async () => {
    const held = await epoch();
    await d1.exec("UPDATE controller SET backup_sweep = '{'");
    const record = { ...bucketSweepOf().record, outcome: "Failed", message: "no answer", brake: "EmptyDesired" } as const;
    await recordBackupSweep(db, held, bucketSweepOf({ record }), NOW);
    const expected = { ...record, completeTime: null, stored: 0, eligible: 0, limit: 0, brake: null };
    expect((await readController(db)).state?.backupSweep).toEqual(expected);
  });
});

describe("a removal of objects", () => {
  it("is told, since nobody else will know of them", async () => {
    const held = await epoch();
    await recordBackupSweep(db, held, bucketSweepOf({ unclaimed: [strayObjects("o1")] }), NOW);
    expect(await claimObjectRemoval(db, held, "o1", NOW + 3)).toBe(true);
    const event = { workspace_uid: null, time: NOW + 3, type: "Warning", reason: "RemovingBackupOrphan", actor: null };
    expect(await all("SELECT * FROM events")).toMatchObject([event]);
  });

  it("is not begun by who lost the lease, nor of what a row came to know meanwhile", async () => {
    const held = await epoch();
    await recordBackupSweep(db, held, bucketSweepOf({ unclaimed: [strayObjects("o1")] }), NOW);
    await putBackup(goodBackup(uidOf(1), "u", NOW, { objectId: "o1" }));
    expect(await claimObjectRemoval(db, held, "o1", NOW)).toBe(false);
    await d1.exec("DELETE FROM backups");
    await loseLease();
    expect(await claimObjectRemoval(db, held, "o1", NOW)).toBe(false);
    expect(await all("SELECT * FROM events")).toEqual([]);
  });
});

describe("the drift report", () => {
  async function prepare() {
    const held = await epoch();
    const { uid } = await create("a", 1);
    await create("b", 2);
    await create("c", 3);
    await putBackup(goodBackup(uidOf(11), uid, NOW - 9, { lostTime: NOW - 1 }));
    await putBackup(goodBackup(uidOf(12), uid, NOW - 7));
    await putBackup(goodBackup(uidOf(13), "gone", NOW - 7, { namespace: "elsewhere", lostTime: NOW - 2 }));
    await putBackup(goodBackup(uidOf(14), uid, NOW - 7, { state: "Deleting", lostTime: NOW - 2 }));
    await recordBackupSweep(db, held, bucketSweepOf({ unclaimed: [strayObjects("o2"), strayObjects("o1")] }), NOW);
    await putBackup(goodBackup(uidOf(15), "gone", NOW, { objectId: "o2" }));
  }

  it("is made from records with their backups, what was lost, and what nobody claims", async () => {
    await prepare();
    const view = await readDriftView(db, QUERY);
    expect(view.records.map(({ name, backups }) => [name, backups?.newest?.id])).toEqual([
      ["a", uidOf(12)],
      ["b", undefined],
      ["c", undefined],
    ]);
    const lost = [
      { id: uidOf(11), namespace: "default", name: "a", lostTime: NOW - 1, objectId: `object-${uidOf(11)}` },
      { id: uidOf(13), namespace: "elsewhere", name: "a", lostTime: NOW - 2, objectId: `object-${uidOf(13)}` },
    ];
    expect(view.lostBackups).toEqual(lost.toSorted((one, other) => (one.id < other.id ? -1 : 1)));
    expect(view.unclaimedBackups).toEqual([strayObjects("o1")]);
    expect(view.controller.state?.backupSweep).toMatchObject({ outcome: "Complete" });
  });

  it("shows a reader of some namespaces theirs, and nothing that belongs to none", async () => {
    await prepare();
    const view = await readDriftView(db, { ...QUERY, namespaces: ["elsewhere"] });
    expect(view.lostBackups.map(({ id }) => id)).toEqual([uidOf(13)]);
    expect(view.unclaimedBackups).toEqual([]);
  });

  it("knows of none where none are taken", async () => {
    await prepare();
    const view = await readDriftView(db, { ...QUERY, backups: false });
    expect(view.records.map(({ backups }) => backups)).toEqual([null, null, null]);
    expect([view.lostBackups, view.unclaimedBackups]).toEqual([[], []]);
  });

  it("is bounded", async () => {
    const held = await epoch();
    const unclaimed = Array.from({ length: 600 }, (_, n) => strayObjects(uidOf(n)));
    await recordBackupSweep(db, held, bucketSweepOf({ unclaimed }), NOW);
    expect((await readDriftView(db, QUERY)).unclaimedBackups).toHaveLength(500);
  });
});
