/** How many may run in a namespace: counted by D1 from what was observed, in the statement that lists and in the one that admits. */
import { beforeEach, describe, expect, it } from "vitest";
import { loadDue } from "../../../src/store/due.ts";
import { admitStart } from "../../../src/store/progress.ts";
import type { RunningLimits } from "../../../src/store/quota.ts";
import { recordSweep } from "../../../src/store/unclaimed.ts";
import type { Unclaimed } from "../../../src/unclaimed.ts";
import { orphan } from "../../support/builders.ts";
import { admissionOf, admitted, create, db, epoch, insertInstance, record, sweepOf } from "./store-support.ts";
import { all, d1, emptyTables, NOW } from "./support.ts";

beforeEach(emptyTables);

/** Whether the quota holds "a" back: as its record says, as the queue has it, and as its admission is answered. */
async function isHeldBack(held: number, runningLimits: RunningLimits): Promise<boolean> {
  const query = { now: NOW, resync: null, resyncIntervalMs: 1, laneWidth: 9, runningLimits, backups: false, limit: 100 };
  await d1.prepare("UPDATE workspaces SET queued_time = ? WHERE name = 'a'").bind(NOW).run();
  const { due, startable } = await loadDue(db, query);
  const isListed = !startable.some(({ name }) => name === "a");
  const isRecorded = due.find(({ name }) => name === "a")?.quotaReached;
  const before = await record("a");
  const version = await admitStart(db, held, before, admissionOf(before, "s-a", { laneWidth: 9, runningLimits }), NOW);
  expect([isRecorded, version === null]).toEqual([isListed, isListed]);
  return isListed;
}

describe("a namespace with two that run", () => {
  it.each<[RunningLimits, boolean]>([
    [{}, false],
    [{ default: 2 }, true],
    [{ default: 3 }, false],
    [{ "*": 2 }, true],
    [{ "*": 3 }, false],
    [{ default: 3, "*": 0 }, false],
    [{ default: null, "*": 0 }, false],
    [{ "*": null }, false],
    [{ other: 0 }, false],
    [{ default: 0 }, true],
  ])("and the limits %j: held back %s", async (limits, expected) => {
    const held = await epoch();
    await create("a", 1);
    await insertInstance("1");
    await insertInstance("2");
    expect(await isHeldBack(held, limits)).toBe(expected);
  });
});

describe("what counts", () => {
  const UNCLAIMED: readonly Unclaimed["state"][] = ["Expected", "Settling", "Stopped", "Unknown"];

  it("is not what the workspace runs itself: it may start again in its own place", async () => {
    const held = await epoch();
    await create("a", 1);
    await admitted("a", held, "s1");
    await d1.exec("DELETE FROM start_lane");
    expect(await isHeldBack(held, { default: 1 })).toBe(false);
  });

  it("is not what was seen not to run", async () => {
    const held = await epoch();
    await create("a", 1);
    await insertInstance("1", { running: false });
    expect(await isHeldBack(held, { default: 1 })).toBe(false);
  });

  it("is not what runs in another namespace", async () => {
    const held = await epoch();
    await create("a", 1);
    await insertInstance("1", { namespace: "other" });
    expect(await isHeldBack(held, { "*": 1 })).toBe(false);
  });

  it("is an orphan that runs", async () => {
    const held = await epoch();
    await create("a", 1);
    const owner = { uid: "u", namespace: "default", name: "gone", incarnation: 1 };
    await recordSweep(db, held, sweepOf([orphan({ owner })]), NOW);
    expect(await isHeldBack(held, { default: 1 })).toBe(true);
  });

  it.each(UNCLAIMED)("is not what is unclaimed and %s, nor what belongs to nobody", async (state) => {
    const held = await epoch();
    await create("a", 1);
    const owner = { uid: "u", namespace: "default", name: "gone", incarnation: 1 };
    await recordSweep(db, held, sweepOf([orphan({ owner, state }), orphan({ doId: "2", owner: null })]), NOW);
    expect(await isHeldBack(held, { default: 1 })).toBe(false);
  });

  it("takes namespaces by their whole name", async () => {
    const held = await epoch();
    await create("a", 1);
    await d1.exec("UPDATE workspaces SET namespace = 'a-b'");
    await insertInstance("1", { namespace: "a-b" });
    expect(await isHeldBack(held, { a: 1, "a-b": 2, "*": 0 })).toBe(false);
    expect(await all("SELECT count(*) AS n FROM start_lane")).toEqual([{ n: 1 }]);
  });
});
