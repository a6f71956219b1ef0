/** Which backups are kept, and what becomes of objects that nobody keeps: the sweep of the bucket over real D1 (invariant 6, field case 36). */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { deleteBackup, requestBackup } from "../../../src/store/backup-intent.ts";
import { all, conditionOf, Controller, emptyTables, Process, SPEC } from "./support.ts";

const MINUTE = 60_000;
const ENVIRONMENT = {
  BACKUP_MODE: "local",
  BACKUP_BUCKET: {},
  POLL_INTERVAL_MS: "5000",
  BACKUP_TIMEOUT_SECONDS: "60",
  BACKUP_SWEEP_INTERVAL_SECONDS: "60",
  BACKUP_ORPHAN_GRACE_SECONDS: "0",
  DELETED_BACKUP_RETENTION_SECONDS: "600",
};
/** Twice the timeout, two sightings, and the sweep that removes. */
const SWEPT_TICKS = 7;

const spec = { backup: { everySeconds: null, onSuspend: "Skip", excludes: [], retention: { keepLast: 2, keepForSeconds: 300 } } } as const;

const stranger = (n: number) => `99999999-0000-4000-8000-${String(n).padStart(12, "0")}`;

let controller: Controller;
let uid: string;

beforeEach(async () => {
  await emptyTables();
  controller = new Controller(ENVIRONMENT);
  ({ uid } = await controller.put("a", spec));
  await controller.untilReady(["a"], 5 * MINUTE);
});

async function take(files: string): Promise<string> {
  controller.world.write(uid, files);
  const now = controller.clock.now();
  const asked = await requestBackup(controller.db, await controller.get("a"), { id: crypto.randomUUID(), directory: SPEC.directory, now });
  await controller.tick();
  return asked?.backup.id ?? "";
}

const kept = async () => (await all<{ id: string }>("SELECT id FROM backups ORDER BY requested_time")).map(({ id }) => id);
const stored = () => [...controller.world.bucket.stored.values()].map(({ files }) => files);

describe("retention", () => {
  it("keeps the last ones, the young ones, and in any case the newest", async () => {
    for (const files of ["1", "2", "3", "4"]) await take(files);
    expect(stored()).toEqual(["1", "2", "3", "4"]);
    await controller.ticks(10);
    expect(stored()).toEqual(["3", "4"]);
    expect(await kept()).toHaveLength(2);
    await controller.put("a", { backup: { ...spec.backup, retention: { keepLast: 1, keepForSeconds: null } } });
    await controller.ticks(4);
    expect(stored()).toEqual(["4"]);
    await controller.ticks(20);
    expect(stored()).toEqual(["4"]);
  });

  it("keeps what a record restores from, as long as it does", async () => {
    const id = await take("1");
    for (const files of ["2", "3", "4"]) await take(files);
    await controller.put("clone", { ...spec, source: { backup: id } });
    await controller.ticks(10);
    expect(stored()).toEqual(["1", "3", "4"]);
    await controller.put("clone", { ...spec, source: null, operatingMode: "Suspended" });
    await all("UPDATE workspaces SET source_backup_id = NULL");
    await controller.ticks(4);
    expect(stored()).toEqual(["3", "4"]);
  });

  it("of a workspace that is gone ends, too", async () => {
    await take("1");
    await controller.delete("a");
    await controller.ticks(3);
    expect(await controller.find("a")).toBeNull();
    expect(stored()).toEqual(["1"]);
    await controller.ticks(12);
    expect(stored()).toEqual([]);
    expect(await kept()).toEqual([]);
  });

  it("a removal that was interrupted anywhere is finished by whoever comes next", async () => {
    for (const files of ["1", "2", "3"]) await take(files);
    const [id = ""] = await kept();
    expect(await deleteBackup(controller.db, { namespace: "default", name: "a" }, id, controller.clock.now())).toBe("Deleted");
    controller.world.bucket.removeFaults.push("network lost", "network lost");
    await controller.ticks(1);
    expect(stored()).toEqual(["1", "2", "3"]);
    expect(await all("SELECT id FROM backups WHERE state = 'Deleting'")).toEqual([{ id }]);
    await controller.ticks(2);
    expect(stored()).toEqual(["2", "3"]);
    expect(await kept()).not.toContain(id);
  });

  it("killed after any call, it loses no good backup and leaves nothing", async () => {
    for (const files of ["1", "2", "3"]) await take(files);
    await controller.clock.pass(10 * MINUTE);
    // Through a lease, a round and both parts of the sweep.
    for (let nth = 1; nth <= 40; nth += 1) {
      const process = new Process();
      process.onPoint = (_, count) => (count >= nth ? new Promise<void>(() => {}) : undefined);
      void sweep(controller.deps(process));
      await controller.clock.pass(MINUTE);
      expect(stored()).toEqual(expect.arrayContaining(["2", "3"]));
    }
    await controller.ticks(3);
    expect(stored()).toEqual(["2", "3"]);
    expect(await all("SELECT id FROM backups WHERE state <> 'Completed'")).toEqual([]);
  });
});

describe("what the bucket does not let go", () => {
  it("delays no other removal, no retention and no sweep (invariant 10)", async () => {
    for (const files of ["1", "2", "3", "4"]) await take(files);
    const { bucket } = controller.world;
    const [first] = [...bucket.stored.keys()];
    bucket.locked.add(first ?? "").add(stranger(0));
    for (let n = 0; n < 3; n += 1) bucket.put(stranger(n), `stray ${n}`);
    await all("UPDATE backups SET id = '00000000-0000-4000-8000-000000000000', state = 'Deleting' WHERE object_id = ?", first);
    await controller.ticks(SWEPT_TICKS + 3);
    expect(stored()).toEqual(["1", "3", "4", "stray 0"]);
    bucket.locked.clear();
    await controller.ticks(3);
    expect(stored()).toEqual(["3", "4"]);
  });
});

describe("objects without a row", () => {
  it("go after the grace and two sweeps, whole or not, and nothing else does", async () => {
    await take("1");
    controller.world.bucket.put(stranger(1), "stray");
    controller.world.bucket.put(stranger(2), "half", { hasMetadata: false });
    await controller.ticks(2);
    expect(stored()).toHaveLength(3);
    expect(await all("SELECT object_id FROM unclaimed_backups")).toHaveLength(2);
    await controller.ticks(SWEPT_TICKS);
    expect(stored()).toEqual(["1"]);
    await controller.ticks(1);
    expect(await all("SELECT object_id FROM unclaimed_backups")).toEqual([]);
  });

  it("stay where they are many, until an operator lets them go", async () => {
    await take("1");
    for (let n = 0; n < 6; n += 1) controller.world.bucket.put(stranger(n), `stray ${n}`);
    await controller.ticks(SWEPT_TICKS + 3);
    expect(stored()).toHaveLength(7);
    const [row] = await all<{ brake: string }>("SELECT backup_sweep ->> 'brake' AS brake FROM controller");
    expect(row?.brake).toBe("TooManyOrphans");
  });

  it("stay where the database knows no backup at all: it may be another one", async () => {
    controller.world.bucket.put(stranger(1), "stray");
    await controller.ticks(SWEPT_TICKS + 3);
    expect(stored()).toEqual(["stray"]);
  });

  it("stay while the list fails, is reported only, or the controller is paused", async () => {
    await take("1");
    controller.world.bucket.put(stranger(1), "stray");
    controller.world.bucket.listFaults.push(...Array.from({ length: 20 }, () => "internal error"));
    await controller.ticks(SWEPT_TICKS + 3);
    expect(stored()).toHaveLength(2);
    controller.world.bucket.listFaults.length = 0;
    await all("INSERT INTO settings (id, revision, paused, gc_mode, allow_empty) VALUES (1, 1, 0, 'Report', 0)");
    await controller.ticks(SWEPT_TICKS + 3);
    expect(stored()).toHaveLength(2);
    await all("UPDATE settings SET gc_mode = NULL");
    await controller.ticks(SWEPT_TICKS);
    expect(stored()).toEqual(["1"]);
  });
});

it("a row whose objects are gone is lost, and found again where they come back", async () => {
  const id = await take("1");
  const [objects] = controller.world.bucket.stored.values();
  if (objects === undefined) throw new Error("nothing stored");
  controller.world.bucket.stored.delete(objects.objectId);
  await controller.ticks(3);
  expect(await all("SELECT id FROM backups WHERE lost_time IS NOT NULL")).toEqual([{ id }]);
  await controller.requestReconcile("a");
  await controller.ticks(1);
  expect(conditionOf(await controller.get("a"), "BackupCurrent")).toEqual({ status: "False", reason: "BackupLost" });
  controller.world.bucket.put(objects.objectId, "1");
  await controller.ticks(3);
  expect(await all("SELECT id FROM backups WHERE lost_time IS NOT NULL")).toEqual([]);
});
