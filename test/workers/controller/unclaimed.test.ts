/** Instances that no desired record claims, as the sweep leaves them: on the real D1, whose statements take 100 parameters and no more. */
import { beforeEach, describe, expect, it } from "vitest";
import { requestDeletion } from "../../../src/store/intent.ts";
import { acquireLease } from "../../../src/store/lease.ts";
import { forget } from "../../../src/store/progress.ts";
import { claimDestroy, readInventoryView, recordSweep } from "../../../src/store/unclaimed.ts";
import type { Unclaimed } from "../../../src/unclaimed.ts";
import { orphan } from "../../support/builders.ts";
import { admitted, create, db, dump, epoch, insertInstance, loseLease, record, sweepOf, workspace } from "./store-support.ts";
import { all, d1, emptyTables, NOW, uidOf } from "./support.ts";

beforeEach(emptyTables);

const OWNER = { uid: uidOf(9), namespace: "team", name: "w", incarnation: 3 };

async function inventory(): Promise<unknown> {
  const [row] = await all<{ inventory: string }>("SELECT inventory FROM controller");
  return JSON.parse(row?.inventory ?? "null");
}

async function stored(held: number): Promise<readonly Unclaimed[]> {
  return (await readInventoryView(db, held, NOW)).unclaimed;
}

describe("recordSweep", () => {
  it("keeps what was seen and how it went, and forgets what is gone", async () => {
    const held = await epoch();
    const [one, two] = [orphan({ doId: "1", owner: OWNER, startedTime: 7 }), orphan({ doId: "2", sandboxId: "s", state: "Unknown" })];
    expect(await recordSweep(db, held, sweepOf([one, two]), NOW)).toBe(true);
    expect(await stored(held)).toEqual([one, two]);
    expect(await inventory()).toEqual({ ...sweepOf([one, two]).record, completeTime: NOW });
    const later = {
      ...one,
      state: "Settling",
      timesSeen: 0,
      lastSeenTime: NOW + 1,
      firstSeenTime: NOW,
      startedTime: 8,
      sandboxId: "named",
    } as const;
    await recordSweep(db, held, sweepOf([later], [two]), NOW + 1);
    expect(await stored(held)).toEqual([later]);
  });

  it("leaves alone what an operator wrote, and the destroys that were counted", async () => {
    const held = await epoch();
    const one = orphan({ doId: "1" });
    await recordSweep(db, held, sweepOf([one]), NOW);
    await d1.exec("UPDATE unclaimed SET protected = 1, destroy_request_time = 5, destroy_attempts = 2, last_destroy_time = 6");
    await recordSweep(db, held, sweepOf([{ ...one, timesSeen: 6 }]), NOW + 1);
    expect(await stored(held)).toEqual([
      { ...one, timesSeen: 6, protected: true, destroyRequested: true, destroyAttempts: 2, lastDestroyTime: 6 },
    ]);
  });

  it("says of what was destroyed that it is gone, and nothing of what went by itself", async () => {
    const held = await epoch();
    const [one, two] = [orphan({ doId: "1", owner: OWNER, destroyAttempts: 1 }), orphan({ doId: "2" })];
    await recordSweep(db, held, sweepOf([], [one, two]), NOW);
    expect(await all("SELECT workspace_uid, namespace, name, do_id, time, reason FROM events")).toEqual([
      { workspace_uid: OWNER.uid, namespace: "team", name: "w", do_id: "1", time: NOW, reason: "OrphanDestroyed" },
    ]);
  });

  it("does not take for unclaimed what was claimed since the view was read", async () => {
    const held = await epoch();
    await insertInstance("1");
    await recordSweep(db, held, sweepOf([orphan({ doId: "1" }), orphan({ doId: "2" })]), NOW);
    expect(await all("SELECT do_id FROM unclaimed")).toEqual([{ do_id: "2" }]);
  });

  it("writes nothing where the lease is lost: neither what was seen, nor the record, nor an event", async () => {
    const held = await epoch();
    const gone = orphan({ doId: "1", destroyAttempts: 1 });
    await recordSweep(db, held, sweepOf([gone]), NOW);
    await loseLease();
    const rows = await dump();
    expect(await recordSweep(db, held, sweepOf([orphan({ doId: "2" })], [gone], NOW + 5), NOW + 5)).toBe(false);
    expect(await dump()).toEqual(rows);
  });

  it("keeps the time of the last complete sweep while sweeps fail", async () => {
    const held = await epoch();
    const failed = (time: number) => ({ unclaimed: [], gone: [], record: { ...sweepOf([]).record, time, outcome: "Failed" as const } });
    await recordSweep(db, held, failed(NOW), NOW);
    expect(await inventory()).toMatchObject({ time: NOW, completeTime: null });
    await recordSweep(db, held, sweepOf([], [], NOW + 1), NOW + 1);
    await recordSweep(db, held, failed(NOW + 2), NOW + 2);
    await recordSweep(db, held, failed(NOW + 3), NOW + 3);
    expect(await inventory()).toMatchObject({ outcome: "Failed", time: NOW + 3, completeTime: NOW + 1 });
    const lease = await acquireLease(db, "next", NOW + 60_000, 1000);
    expect(lease?.inventory).toMatchObject({ outcome: "Failed", completeTime: NOW + 1 });
  });

  it.each(["{", "7", "null", "[]", '{"time":"x"}'])("is as the first one where the record that is stored reads %s", async (garbage) => {
    const held = await epoch();
    await d1.prepare("UPDATE controller SET inventory = ?").bind(garbage).run();
    const failed = { ...sweepOf([]), record: { ...sweepOf([]).record, outcome: "Failed" as const } };
    expect(await recordSweep(db, held, failed, NOW)).toBe(true);
    expect(await inventory()).toMatchObject({ completeTime: null });
  });

  it("drizzle-orm#2479: takes 1,000 seen and 1,000 gone", async () => {
    const held = await epoch();
    const many = (first: string) =>
      Array.from({ length: 1000 }, (_, n) => orphan({ doId: `${first}-${n}`, owner: OWNER, destroyAttempts: n % 2 }));
    await recordSweep(db, held, sweepOf(many("old")), NOW);
    expect(await recordSweep(db, held, sweepOf(many("new"), many("old")), NOW)).toBe(true);
    expect(await all("SELECT count(*) AS n, min(substr(do_id, 1, 3)) AS first FROM unclaimed")).toEqual([{ n: 1000, first: "new" }]);
    expect(await all("SELECT count(*) AS n FROM events")).toEqual([{ n: 500 }]);
  });
});

describe("claimDestroy", () => {
  async function known(change: Partial<Unclaimed> = {}): Promise<{ held: number; one: Unclaimed }> {
    const held = await epoch();
    const one = orphan({ doId: "1", owner: OWNER, ...change });
    await recordSweep(db, held, sweepOf([one]), NOW);
    return { held, one };
  }

  it("marks the destroy and tells of it", async () => {
    const { held, one } = await known();
    expect(await claimDestroy(db, held, one, NOW + 1)).toBe(true);
    expect(await stored(held)).toEqual([{ ...one, destroyAttempts: 1, lastDestroyTime: NOW + 1 }]);
    expect(await all("SELECT do_id, namespace, reason, type FROM events")).toEqual([
      { do_id: "1", namespace: "team", reason: "DestroyingOrphan", type: "Warning" },
    ]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ["the ledger claims it by now", () => insertInstance("1")],
    ["its workspace has a row", () => create("w", 9)],
    ["it is protected", () => d1.exec("UPDATE unclaimed SET protected = 1")],
    ["the lease is lost", () => loseLease()],
    ["it is not among the unclaimed any more", () => d1.exec("DELETE FROM unclaimed")],
  ])("is refused where %s, and leaves no trace", async (_sentence, happen) => {
    const { held, one } = await known();
    await happen();
    const rows = await dump();
    expect(await claimDestroy(db, held, one, NOW + 1)).toBe(false);
    expect(await dump()).toEqual(rows);
  });

  it("is refused also where an operator asked for it, as long as a record claims it", async () => {
    const { held, one } = await known();
    await create("w", 9);
    expect(await claimDestroy(db, held, { ...one, destroyRequested: true }, NOW + 1)).toBe(false);
  });

  it("is granted for a stranger that nobody can name", async () => {
    const { held, one } = await known({ owner: null, sandboxId: null });
    expect(await claimDestroy(db, held, one, NOW + 1)).toBe(true);
  });
});

describe("readInventoryView", () => {
  it("shows what is wished, what the ledger claims and what nobody claims", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    const { instance } = await admitted("a", held, "s1");
    await create("b", 2);
    await insertInstance("off", { uid: uidOf(2), running: false });
    await recordSweep(db, held, sweepOf([orphan({ doId: "1", owner: { ...OWNER, uid } }), orphan({ doId: "2", owner: OWNER })]), NOW);
    const view = await readInventoryView(db, held, NOW);
    expect(view.claims.toSorted((x, y) => (x.name < y.name ? -1 : 1))).toEqual([
      { uid, namespace: "default", name: "a", incarnation: 1 },
      { uid: uidOf(2), namespace: "default", name: "b", incarnation: 0 },
    ]);
    expect(view.claimed).toEqual(new Set([instance?.doId, "off"]));
    expect(view.unclaimed.map(({ doId, ownerLives }) => [doId, ownerLives])).toEqual([
      ["1", true],
      ["2", false],
    ]);
    expect(view.ledgerRunning).toBe(1);
  });

  it("leaves ledger rows whose workspace is gone as unclaimed, and keeps the others", async () => {
    const held = await epoch();
    await create("a", 1);
    await admitted("a", held, "s1");
    await insertInstance("stray");
    const view = await readInventoryView(db, held, NOW + 5);
    expect(view.claimed.size).toBe(1);
    expect(view.unclaimed).toMatchObject([
      { doId: "stray", state: "Expected", ownerLives: false, owner: { uid: "uid-of-stray" }, firstSeenTime: NOW + 5, timesSeen: 0 },
    ]);
    expect(await all("SELECT count(*) AS n FROM instances")).toEqual([{ n: 1 }]);
  });

  it("moves nothing for who has lost the lease", async () => {
    const held = await epoch();
    await insertInstance("stray");
    await loseLease();
    const rows = await dump();
    expect((await readInventoryView(db, held, NOW)).claimed).toEqual(new Set(["stray"]));
    expect(await dump()).toEqual(rows);
  });

  it("takes a state word of another version for Unknown", async () => {
    const held = await epoch();
    await recordSweep(db, held, sweepOf([orphan({ doId: "1" })]), NOW);
    await d1.exec("UPDATE unclaimed SET state = 'Levitating'");
    expect(await stored(held)).toMatchObject([{ state: "Unknown" }]);
  });

  it("reads one without a whole owner as nobody's", async () => {
    const held = await epoch();
    await recordSweep(db, held, sweepOf([orphan({ doId: "1", owner: OWNER })]), NOW);
    await d1.exec("UPDATE unclaimed SET incarnation = NULL");
    expect(await stored(held)).toMatchObject([{ owner: null }]);
  });
});

describe("what a deleted workspace leaves", () => {
  it("is watched with its owner's name until a sweep confirms that it is gone", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    const { instance } = await admitted("a", held, "s1");
    await requestDeletion(db, await workspace("a"), NOW);
    expect(await forget(db, held, await record("a"), NOW + 7)).toBe(true);
    expect(await stored(held)).toEqual([
      orphan({
        doId: instance?.doId ?? "",
        sandboxId: `${uid}-1`,
        owner: { uid, namespace: "default", name: "a", incarnation: 1 },
        state: "Expected",
        firstSeenTime: NOW + 7,
        lastSeenTime: NOW + 7,
        timesSeen: 0,
      }),
    ]);
  });

  it("is nothing where it never had a sandbox", async () => {
    const held = await epoch();
    await create("a", 1);
    await forget(db, held, await record("a"), NOW);
    expect(await stored(held)).toEqual([]);
  });
});
