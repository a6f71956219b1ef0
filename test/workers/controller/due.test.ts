import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { type DueQuery, type ResyncWindow, loadDue } from "../../../src/store/due.ts";
import { readInventoryView } from "../../../src/store/unclaimed.ts";
import { FakeClock } from "./clock.ts";
import { goodBackup } from "../../contract/store-world.ts";
import { admitted, create, db, epoch, putBackup } from "./store-support.ts";
import { all, d1, emptyTables, NOW, Process, SPEC, uidOf } from "./support.ts";
import { type Statement, watchD1 } from "./watched-d1.ts";

beforeEach(emptyTables);

const QUERY: DueQuery = { now: NOW, resync: null, resyncIntervalMs: 300_000, laneWidth: 1, runningLimits: {}, backups: true, limit: 100 };

/** The turns after `from`, whoever shares it. */
function after(from: number, to: number): ResyncWindow {
  return { from: { phase: from, uid: "~" }, to, wraps: to <= from };
}

interface Row {
  readonly next?: number | null;
  readonly queued?: number | null;
  readonly deletion?: number | null;
  readonly unreachable?: number | null;
  readonly phase?: number;
}

/** Rows past the store, so that each column is as the test says. */
async function insert(rows: Readonly<Record<string, Row>>): Promise<void> {
  const entries = Object.entries(rows).map(([name, row], index) => ({ name, uid: uidOf(index + 1), ...row }));
  await d1
    .prepare(
      `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, deletion_time,
         resource_version, next_reconcile_time, status, queued_time, unreachable_time, resync_phase)
       SELECT value ->> 'uid', 'default', value ->> 'name', ?1, '{}', '{}', 1, 1, 0, value ->> 'deletion', 1, value ->> 'next', '{}',
         value ->> 'queued', value ->> 'unreachable', coalesce(value ->> 'phase', 0) FROM json_each(?2)`,
    )
    .bind(JSON.stringify(SPEC), JSON.stringify(entries))
    .run();
}

function namesOf(records: readonly { readonly name: string }[]): string {
  return records.map(({ name }) => name).join(" ");
}

describe("what is due", () => {
  it("is what should be looked at by now: deletions first, then what has waited longest, silent sandboxes last", async () => {
    await insert({
      later: { next: NOW + 1 },
      never: {},
      recent: { next: NOW },
      old: { next: NOW - 5000 },
      silent: { next: NOW - 9000, unreachable: NOW - 9000 },
      "silent-deleted": { next: NOW - 1, unreachable: NOW - 9000, deletion: NOW - 9000 },
      deleted: { next: NOW, deletion: NOW - 1 },
    });
    const { due, resync, startable } = await loadDue(db, QUERY);
    expect(namesOf(due)).toBe("deleted old recent silent-deleted silent");
    expect([resync, startable]).toEqual([[], []]);
  });

  it("is cut to the limit from the end", async () => {
    await insert({ a: { next: NOW - 3 }, b: { next: NOW - 2 }, c: { next: NOW - 1 } });
    expect(namesOf((await loadDue(db, { ...QUERY, limit: 2 })).due)).toBe("a b");
  });

  it("comes with the live incarnation and a place in the lane that has not expired", async () => {
    const held = await epoch();
    await create("a", 1);
    await admitted("a", held, "s1");
    const [before] = (await loadDue(db, { ...QUERY, now: NOW + 134_999 })).due;
    expect(before).toMatchObject({ incarnation: 1, instance: { incarnation: 1 }, lane: { startId: "s1", deadlineTime: NOW + 135_000 } });
    const [after] = (await loadDue(db, { ...QUERY, now: NOW + 135_000 })).due;
    expect(after).toMatchObject({ instance: { incarnation: 1 }, lane: null });
  });

  it("tells the workspace's own queue time from that of its place in the lane", async () => {
    const held = await epoch();
    await create("a", 1);
    await d1
      .prepare("UPDATE workspaces SET queued_time = ?")
      .bind(NOW - 77)
      .run();
    await admitted("a", held, "s1");
    const [found] = (await loadDue(db, QUERY)).due;
    expect(found).toMatchObject({ queuedTime: null, lane: { queuedTime: NOW - 77 } });
  });

  it("tells the start whose outcome nobody has seen from the one that holds the lane", async () => {
    const held = await epoch();
    await create("a", 1);
    await admitted("a", held, "s1");
    const [holding] = (await loadDue(db, QUERY)).due;
    expect(holding).toMatchObject({ startId: "s1", lane: { startId: "s1" } });
    await d1.exec("DELETE FROM start_lane");
    const [waiting] = (await loadDue(db, QUERY)).due;
    expect(waiting).toMatchObject({ startId: "s1", lane: null });
    expect(waiting?.instance).toMatchObject({ running: true, destroyRequested: false, adopted: false });
  });

  it("gives each column of joined tables a name of its own, since a batch keeps one value of each name", async () => {
    const watched = new Process();
    const watchedStore = openDatabase(watchD1(d1, new FakeClock(NOW), watched));
    await loadDue(watchedStore, { ...QUERY, runningLimits: { "*": 3 } });
    await readInventoryView(watchedStore, 1, NOW);
    expect(watched.statements.length).toBeGreaterThan(7);
    for (const { sql, values } of watched.statements) {
      const statement = d1.prepare(sql).bind(...values);
      const [columns] = await statement.raw({ columnNames: true });
      expect(new Set(columns).size, sql).toBe(columns.length);
    }
  });

  it("is read even where spec and status are garbage", async () => {
    await insert({ a: { next: NOW } });
    for (const garbage of ["", "null", "{", "[]", "7", '{"conditions":7}', '{"conditions":[null]}', '{"conditions":["x"]}']) {
      await d1.prepare("UPDATE workspaces SET spec = ?1, status = ?1").bind(garbage).run();
      const [found] = (await loadDue(db, QUERY)).due;
      expect(found?.spec, garbage).toBeNull();
      const types = found?.status.conditions.map((condition) => typeof condition?.type);
      expect(types, `conditions of ${garbage}`).toEqual([]);
    }
  });
});

describe("the resync", () => {
  const phases = { a: { phase: 0 }, b: { phase: 10 }, c: { phase: 20 }, d: { phase: 999_999 } };

  it.each<[{ from: number; to: number }, string]>([
    [{ from: 0, to: 20 }, "b c"],
    [{ from: 10, to: 11 }, ""],
    [{ from: 20, to: 999_999 }, "d"],
    [{ from: 20, to: 0 }, "d a"],
    [{ from: 999_998, to: 10 }, "d a b"],
    [{ from: 10, to: 10 }, "c d a b"],
  ])("takes the turns of %o in their order: %s", async ({ from, to }, expected) => {
    await insert(phases);
    expect(namesOf((await loadDue(db, { ...QUERY, resync: after(from, to) })).resync)).toBe(expected);
  });

  it.each([10, 11, 20])("goes on within a turn that several share, and not round again, up to turn %i", async (to) => {
    await insert({ a: { phase: 5 }, b: { phase: 10 }, c: { phase: 10 }, d: { phase: 10 }, e: { phase: 30 } });
    const sharing = await all<{ name: string; uid: string }>("SELECT name, uid FROM workspaces WHERE resync_phase = 10 ORDER BY uid");
    const [first, ...others] = sharing;
    const resync = { from: { phase: 10, uid: first?.uid ?? "" }, to, wraps: false };
    expect(namesOf((await loadDue(db, { ...QUERY, resync })).resync)).toBe(namesOf(others));
  });

  it("leaves out what is due within the interval anyway, not what is due later, and is cut to the limit", async () => {
    await insert({ ...phases, e: { phase: 5, next: NOW }, f: { phase: 6, next: NOW + 300_000 }, g: { phase: 7, next: NOW + 300_001 } });
    const resync = after(999_999, 999_998);
    expect(namesOf((await loadDue(db, { ...QUERY, resync })).resync)).toBe("a g b c");
    expect(namesOf((await loadDue(db, { ...QUERY, resync, limit: 2 })).resync)).toBe("a g");
  });
});

describe("who may start", () => {
  const queue = {
    third: { queued: NOW - 1 },
    first: { queued: NOW - 9 },
    second: { queued: NOW - 5, next: NOW + 1e9 },
    not: { next: NOW + 1e9 },
  };

  it("is who waits longest, one where the width is one", async () => {
    await insert(queue);
    expect(namesOf((await loadDue(db, QUERY)).startable)).toBe("first");
    expect(namesOf((await loadDue(db, { ...QUERY, laneWidth: 2 })).startable)).toBe("first second");
  });

  it("is, of those who joined at the same moment, who was created first, however often its row was written since", async () => {
    await insert({ late: { queued: NOW }, early: { queued: NOW }, middle: { queued: NOW } });
    for (const [index, name] of ["early", "middle", "late"].entries()) {
      const update = d1.prepare("UPDATE workspaces SET creation_time = ?1, resource_version = 9 - ?1 WHERE name = ?2");
      await update.bind(index + 1, name).run();
    }
    expect(namesOf((await loadDue(db, { ...QUERY, laneWidth: 3 })).startable)).toBe("early middle late");
  });

  it("is nobody while the brake is on", async () => {
    await insert(queue);
    await epoch();
    await d1
      .prepare("UPDATE controller SET brake_until_time = ?")
      .bind(NOW + 1)
      .run();
    expect(namesOf((await loadDue(db, QUERY)).startable)).toBe("");
    expect(namesOf((await loadDue(db, { ...QUERY, now: NOW + 1 })).startable)).toBe("first");
  });

  it.each([
    [1, 1, ""],
    [3, 1, "first second"],
    [3, 2, "first"],
    [3, 3, ""],
    [2, 3, ""],
  ])("with %i places of which %i are held is exactly as many as there is room for: %s", async (laneWidth, heldPlaces, expected) => {
    const held = await epoch();
    await insert(queue);
    for (let n = 1; n <= heldPlaces; n += 1) {
      await create(`running-${n}`, 100 + n);
      await admitted(`running-${n}`, held, `s${n}`, { laneWidth: 3 });
    }
    expect(namesOf((await loadDue(db, { ...QUERY, laneWidth })).startable)).toBe(expected);
  });

  it("is not kept from its turn by one whose sandbox does not answer", async () => {
    await insert({ ...queue, silent: { queued: NOW - 99, unreachable: NOW - 50, next: NOW + 5000 } });
    expect(namesOf((await loadDue(db, QUERY)).startable)).toBe("first");
  });
});

describe("the cost of a round", () => {
  it("is one round trip of statements that each use their index, whatever the window", async () => {
    const watched = new Process();
    const watchedDb = openDatabase(watchD1(d1, new FakeClock(NOW), watched));
    for (const resync of [null, after(5, 10), after(10, 5)]) {
      watched.statements.length = 0;
      await loadDue(watchedDb, { ...QUERY, resync });
      const plans = await Promise.all(watched.statements.map(explain));
      expect(plans[0]).toMatch(/workspaces USING INDEX workspaces_due \(/);
      expect(plans[2]).toMatch(/workspaces USING INDEX workspaces_queued/);
      if (resync !== null) expect(plans[1]).toMatch(/workspaces USING INDEX workspaces_resync \(/);
      // Without a window the second has a condition that never holds, and reads nothing.
      for (const [index, plan] of plans.entries()) {
        if (index !== 1 || resync !== null)
          expect(plan).not.toMatch(/SCAN (workspaces|instances|active|attempt|good)(?! USING INDEX workspaces_queued)/);
      }
    }
  });

  it("reads no more rows of 2,000 that are at rest than of 20", async () => {
    const read: number[] = [];
    for (const count of [20, 2000]) {
      await emptyTables();
      const rows = Object.fromEntries(Array.from({ length: count }, (_, n) => [`n-${n}`, { phase: 1000 + n }]));
      await insert({ ...rows, due: { next: NOW, phase: 0 }, queued: { queued: NOW, phase: 0 } });
      const watched = new Process();
      await loadDue(openDatabase(watchD1(d1, new FakeClock(NOW), watched)), { ...QUERY, resync: after(0, 10) });
      let total = 0;
      for (const statement of watched.statements) total += await rowsRead(statement);
      watched.statements.length = 0;
      await loadDue(openDatabase(watchD1(d1, new FakeClock(NOW), watched)), QUERY);
      for (const statement of watched.statements) total += await rowsRead(statement);
      read.push(total);
    }
    expect(read[1]).toBe(read[0]);
  });
});

describe("the cost of backups", () => {
  it("is the same for a workspace whether it and the others have 10 or 500", async () => {
    const read: number[] = [];
    for (const count of [10, 500]) {
      await emptyTables();
      const source = { ...SPEC, source: { workspace: "other" } };
      await insert({ a: { next: NOW } });
      await d1.prepare("UPDATE workspaces SET spec = ?, source_backup_id = 'other-1'").bind(JSON.stringify(source)).run();
      const [{ uid } = { uid: "" }] = await all<{ uid: string }>("SELECT uid FROM workspaces");
      for (let n = 0; n < count; n += 1) {
        await putBackup(goodBackup(`own-${n}`, uid, NOW - n));
        await putBackup(goodBackup(`other-${n}`, "other", NOW - n, { name: "other" }));
      }
      const watched = new Process();
      await loadDue(openDatabase(watchD1(d1, new FakeClock(NOW), watched)), QUERY);
      const [due] = watched.statements;
      read.push(due === undefined ? -1 : await rowsRead(due));
    }
    expect(read[1]).toBe(read[0]);
  });
});

async function explain({ sql, values }: Statement): Promise<string> {
  const { results } = await d1
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .bind(...values)
    .all<{ detail: string }>();
  return results.map(({ detail }) => detail).join("\n");
}

async function rowsRead({ sql, values }: Statement): Promise<number> {
  const { meta } = await d1
    .prepare(sql)
    .bind(...values)
    .all();
  return meta.rows_read;
}

it("finds its rows in the database as the migrations made it", async () => {
  const indexes = await all<{ name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE 'workspaces_%' ORDER BY name",
  );
  expect(indexes.map(({ name }) => name)).toEqual(["workspaces_due", "workspaces_name", "workspaces_queued", "workspaces_resync"]);
});
