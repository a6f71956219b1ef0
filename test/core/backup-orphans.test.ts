/** The sweep of the bucket: which objects nobody knows may be removed, and which rows have lost theirs. Invariants 4 and 6. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { UnclaimedBackup } from "../../src/backup.ts";
import type { StoredObjects } from "../../src/controller/backup-bucket.ts";
import {
  type BackupGuard,
  type BackupSweepPlan,
  type BucketContext,
  backupGuardOf,
  planBackupSweep,
} from "../../src/controller/backup-orphans.ts";
import type { ControllerSettings } from "../../src/unclaimed.ts";
import { HOUR } from "../support/backup-builders.ts";
import { NOW, SECOND } from "../support/builders.ts";

fc.configureGlobal({ seed: 794_825 });

const GRACE = 2 * HOUR;
const settings: ControllerSettings = { paused: false, gcMode: null, allowEmpty: false, laneWidth: null, brakeReleasedUntilTime: null };

function context(overrides: Partial<BucketContext> = {}): BucketContext {
  return { now: NOW, mode: "Enforce", graceMs: GRACE, settings, ...overrides };
}

const enforce = context();
const off = context({ mode: "Off" });
const report = context({ mode: "Report" });
const paused = context({ settings: { ...settings, paused: true } });
const allowEmpty = context({ settings: { ...settings, allowEmpty: true } });
const released = context({ settings: { ...settings, brakeReleasedUntilTime: NOW + 1 } });
const releasedBefore = context({ settings: { ...settings, brakeReleasedUntilTime: NOW } });

/** Old enough, and seen for long enough. */
function unclaimed(overrides: Partial<UnclaimedBackup> = {}): UnclaimedBackup {
  const times = { uploadedTime: NOW - 9 * HOUR, firstSeenTime: NOW - 3 * HOUR, lastSeenTime: NOW - HOUR };
  return { objectId: "orphan", sizeBytes: 5, ...times, timesSeen: 3, ...overrides };
}

type GuardRow = readonly [
  situation: string,
  objects: Partial<UnclaimedBackup>,
  context: BucketContext,
  oldestClaimTime: number | null,
  expected: BackupGuard | null,
];

// oxfmt-ignore
const guards: readonly GuardRow[] = [
  ["past every guard",                         {},                                     enforce, null,                   null],
  ["the controller is paused",                 {},                                     paused,  null,                   "ControllerPaused"],
  ["garbage collection is off",                {},                                     off,     null,                   "GcOff"],
  ["garbage collection only reports",          {},                                     report,  null,                   "ReportOnly"],
  ["uploaded too lately",                      { uploadedTime: NOW - GRACE + 1 },      enforce, null,                   "Grace"],
  ["uploaded just long enough ago",            { uploadedTime: NOW - GRACE },          enforce, null,                   null],
  ["seen for too short a time",                { firstSeenTime: NOW - GRACE + 1 },     enforce, null,                   "Grace"],
  ["seen for just long enough",                { firstSeenTime: NOW - GRACE },         enforce, null,                   null],
  ["seen once",                                { timesSeen: 1 },                       enforce, null,                   "SeenOnce"],
  ["seen twice",                               { timesSeen: 2 },                       enforce, null,                   null],
  ["a claim is older",                         {},                                     enforce, NOW - 9 * HOUR,         "UnderWay"],
  ["a claim may be older by the bucket's clock", {},                                   enforce, NOW - 9 * HOUR + GRACE, "UnderWay"],
  ["no claim can be older",                    {},                                     enforce, NOW - 9 * HOUR + GRACE + 1, null],
  ["a report says so of what is ripe only",    { timesSeen: 1 },                       report,  null,                   "SeenOnce"],
  ["and not of what may be under way",         {},                                     report,  NOW - 9 * HOUR,         "UnderWay"],
  ["a pause is said first",                    { timesSeen: 1 },                       context({ mode: "Off", settings: { ...settings, paused: true } }), null, "ControllerPaused"],
];

test.for(guards)("a guard: %s", ([, overrides, situation, oldestClaimTime, expected]) => {
  expect(backupGuardOf(unclaimed(overrides), situation, oldestClaimTime)).toBe(expected);
});

function objects(objectId: string, overrides: Partial<StoredObjects> = {}): StoredObjects {
  return { objectId, hasArchive: true, hasMetadata: true, uploadedTime: NOW - 9 * HOUR, sizeBytes: 5, ...overrides };
}

function row(objectId: string, overrides: { readonly endedTime?: number; readonly lostTime?: number | null } = {}) {
  return { id: `id of ${objectId}`, objectId, endedTime: NOW - 8 * HOUR, lostTime: null, ...overrides };
}

const LISTED = NOW - 5 * SECOND;

interface View {
  readonly rows?: readonly ReturnType<typeof row>[];
  /** Ids of rows that are not good: claimed, failed, being removed. */
  readonly others?: readonly string[];
  readonly unclaimed?: readonly UnclaimedBackup[];
  readonly oldestClaimTime?: number | null;
}

function sweep(stored: readonly StoredObjects[], view: View, situation = enforce): BackupSweepPlan {
  const { rows = [], others = ["another"], oldestClaimTime = null } = view;
  const known = new Set([...rows.map(({ objectId }) => objectId), ...others]);
  return planBackupSweep(stored, LISTED, { stored: rows, known, unclaimed: view.unclaimed ?? [], oldestClaimTime }, situation);
}

describe("what nobody knows", () => {
  test("is remembered when it is first seen, and not removed", () => {
    const plan = sweep([objects("orphan")], {});
    expect(plan.unclaimed).toEqual([
      { objectId: "orphan", uploadedTime: NOW - 9 * HOUR, sizeBytes: 5, firstSeenTime: NOW, lastSeenTime: NOW, timesSeen: 1 },
    ]);
    expect(plan).toMatchObject({ remove: [], gone: [], lost: [], found: [], record: { stored: 1, eligible: 0, brake: null } });
  });

  test("is removed once it is ripe", () => {
    const plan = sweep([objects("orphan", { sizeBytes: 6 })], { unclaimed: [unclaimed()] });
    expect(plan.remove).toEqual(["orphan"]);
    expect(plan.record).toEqual({ time: NOW, outcome: "Complete", stored: 1, eligible: 1, limit: 5, brake: null });
    const { firstSeenTime } = unclaimed();
    expect(plan.unclaimed).toMatchObject([{ firstSeenTime, lastSeenTime: NOW, timesSeen: 4, sizeBytes: 6 }]);
  });

  test("begins anew where another of its objects was written since", () => {
    const plan = sweep([objects("orphan", { uploadedTime: NOW - 8 * HOUR })], { unclaimed: [unclaimed()] });
    expect(plan.unclaimed).toMatchObject([{ firstSeenTime: NOW, timesSeen: 1, uploadedTime: NOW - 8 * HOUR }]);
    expect(plan.remove).toEqual([]);
  });

  test("is an archive without metadata, too", () => {
    expect(sweep([objects("orphan", { hasMetadata: false })], { unclaimed: [unclaimed()] }).remove).toEqual(["orphan"]);
  });

  test("is gone where it is listed no more, and where a row knows it by now", () => {
    const plan = sweep([objects("b")], { rows: [row("b")], unclaimed: [unclaimed({ objectId: "a" }), unclaimed({ objectId: "b" })] });
    expect(plan).toMatchObject({ gone: ["a", "b"], unclaimed: [], remove: [] });
  });

  test("is not what any row has, however it ended", () => {
    expect(sweep([objects("a")], { others: ["a"] })).toMatchObject({ unclaimed: [], remove: [] });
  });

  test("stays as long as a backup is under way that may be older", () => {
    expect(sweep([objects("orphan")], { unclaimed: [unclaimed()], oldestClaimTime: NOW - 9 * HOUR }).remove).toEqual([]);
  });
});

describe("a row", () => {
  const cases = [
    { what: "that has its objects", stored: [objects("a")], lostTime: null, lost: 0, found: 0 },
    { what: "that has none", stored: [], lostTime: null, lost: 1, found: 0 },
    { what: "that has no archive", stored: [objects("a", { hasArchive: false })], lostTime: null, lost: 1, found: 0 },
    { what: "that has no metadata", stored: [objects("a", { hasMetadata: false })], lostTime: null, lost: 1, found: 0 },
    { what: "that still has none", stored: [], lostTime: NOW - HOUR, lost: 0, found: 0 },
    { what: "that has them again", stored: [objects("a")], lostTime: NOW - HOUR, lost: 0, found: 1 },
    { what: "that has one of them again", stored: [objects("a", { hasArchive: false })], lostTime: NOW - HOUR, lost: 0, found: 0 },
  ];

  test.for(cases)("$what", ({ stored, lostTime, lost, found }) => {
    const plan = sweep(stored, { rows: [row("a", { lostTime })] });
    expect([plan.lost, plan.found]).toEqual([lost ? ["id of a"] : [], found ? ["id of a"] : []]);
  });

  test("that was completed after the listing began need not be on it", () => {
    expect(sweep([], { rows: [row("a", { endedTime: LISTED })] }).lost).toEqual([]);
    expect(sweep([], { rows: [row("a", { endedTime: LISTED - 1 })] }).lost).toEqual(["id of a"]);
  });
});

describe("the brake", () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `orphan ${index}`);
  const ripe = (count: number, situation: BucketContext, kept = 0, others: readonly string[] = ["another"]) => {
    const rows = Array.from({ length: kept }, (_, index) => row(`kept ${index}`));
    const stored = [...rows.map(({ objectId }) => objects(objectId)), ...many(count).map((objectId) => objects(objectId))];
    return sweep(stored, { rows, others, unclaimed: many(count).map((objectId) => unclaimed({ objectId })) }, situation);
  };

  type BrakeRow = readonly [situation: string, plan: BackupSweepPlan, brake: string | null, removed: number];

  // oxfmt-ignore
  const brakes: readonly BrakeRow[] = [
    ["nothing to be removed",                        ripe(0, enforce),              null,             0],
    ["five at once",                                 ripe(5, enforce),              null,             5],
    ["six are too many",                             ripe(6, enforce),              "TooManyOrphans", 0],
    ["six of sixty are not",                         ripe(6, enforce, 54),          null,             6],
    ["seven of sixty are",                           ripe(7, enforce, 53),          "TooManyOrphans", 0],
    ["an operator lets them go",                     ripe(6, released),             null,             6],
    ["but not for ever",                             ripe(6, releasedBefore),       "TooManyOrphans", 0],
    ["a database that knows no backup at all",       ripe(1, enforce, 0, []),       "EmptyDesired",   0],
    ["unless an operator says that it is right",     ripe(1, allowEmpty, 0, []),    null,             1],
    ["that is not what lets too many go",            ripe(6, allowEmpty, 0, []),    "TooManyOrphans", 0],
    ["nor does what lets too many go allow an empty one", ripe(6, released, 0, []), "EmptyDesired",   0],
    ["an empty database with an empty bucket",       ripe(0, enforce, 0, []),       null,             0],
    ["what only is reported needs no brake",         ripe(6, report),               null,             0],
  ];

  test.for(brakes)("%s", ([, plan, brake, removed]) => {
    expect([plan.record.brake, plan.remove.length]).toEqual([brake, removed]);
  });
});

test("never removed is what a row knows, what is young, or what was seen but once", () => {
  const ids = fc.constantFrom("a", "b", "c", "d");
  const times = fc.integer({ min: NOW - 10 * HOUR, max: NOW });
  const stored = fc.uniqueArray(
    fc.record({ objectId: ids, hasArchive: fc.boolean(), hasMetadata: fc.boolean(), uploadedTime: times, sizeBytes: fc.constant(1) }),
    { selector: ({ objectId }) => objectId },
  );
  const seen = fc.uniqueArray(
    fc.record({ objectId: ids, uploadedTime: times, firstSeenTime: times, timesSeen: fc.nat({ max: 3 }) }).map(unclaimed),
    { selector: ({ objectId }) => objectId },
  );
  const claims = fc.option(times);
  fc.assert(
    fc.property(stored, seen, fc.array(ids), claims, (listing, before, known, oldestClaimTime) => {
      const plan = sweep(listing, { others: known, unclaimed: before, oldestClaimTime });
      for (const objectId of plan.remove) {
        expect(known).not.toContain(objectId);
        const here = listing.find((each) => each.objectId === objectId);
        expect(NOW - (here?.uploadedTime ?? NOW)).toBeGreaterThanOrEqual(GRACE);
        expect(before.find((each) => each.objectId === objectId)?.timesSeen ?? 0).toBeGreaterThanOrEqual(1);
        if (oldestClaimTime !== null) expect(here?.uploadedTime).toBeLessThan(oldestClaimTime - GRACE);
      }
      expect(new Set(plan.unclaimed.map(({ objectId }) => objectId))).toEqual(
        new Set(listing.map(({ objectId }) => objectId).filter((objectId) => !known.includes(objectId))),
      );
    }),
    { numRuns: 2000 },
  );
});
