/** Garbage collection, the decision: which instances nobody claims, and which of those may be destroyed. Invariants 3 and 4. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { InstanceState, ListedInstance } from "../../src/controller/inventory.ts";
import { type GcContext, type Guard, type Sweep, destroyLimit, guardOf, planSweep } from "../../src/controller/orphans.ts";
import type { ControllerSettings, Unclaimed } from "../../src/unclaimed.ts";
import { MINUTE, NOW, SECOND, UID, orphan } from "../support/builders.ts";

fc.configureGlobal({ seed: 794_825 });

const GRACE = 2 * MINUTE;
const settings: ControllerSettings = {
  paused: false,
  gcMode: null,
  allowEmpty: false,
  laneWidth: null,
  brakeReleasedUntilTime: null,
};

function context(overrides: Partial<GcContext> = {}): GcContext {
  return { now: NOW, mode: "Enforce", graceMs: GRACE, settings, ...overrides };
}

const enforce = context();
const off = context({ mode: "Off" });
const report = context({ mode: "Report" });
const paused = context({ settings: { ...settings, paused: true } });
const owner = { namespace: "default", name: "alice-1", uid: UID, incarnation: 1 };

type GuardRow = readonly [situation: string, instance: Partial<Unclaimed>, context: GcContext, expected: Guard | null];

// oxfmt-ignore
const guards: readonly GuardRow[] = [
  ["an orphan past every guard",                           {},                                       enforce, null],
  ["also one whose owner is gone",                         { owner },                                enforce, null],
  ["what stopped costs nothing",                           { state: "Stopped" },                     enforce, "NotRunning"],
  ["what settles is no orphan",                            { state: "Settling" },                    enforce, "NotRunning"],
  ["what nobody knows is no orphan",                       { state: "Unknown" },                     enforce, "NotRunning"],
  ["what no sweep has looked at is no orphan",             { state: "Expected" },                    enforce, "NotRunning"],
  ["another incarnation of a workspace is its own affair", { owner, ownerLives: true },              enforce, "OwnerLives"],
  ["a paused controller destroys nothing",                 {},                                       paused,  "ControllerPaused"],
  ["what is protected stays",                              { protected: true },                      enforce, "Protected"],
  ["garbage collection is off",                            {},                                       off,     "GcOff"],
  ["garbage collection only reports",                      {},                                       report,  "ReportOnly"],
  ["too young by a millisecond",                           { firstSeenTime: NOW - GRACE + 1 },       enforce, "Grace"],
  ["just old enough",                                      { firstSeenTime: NOW - GRACE },           enforce, null],
  ["known for long, but started again lately",             { startedTime: NOW - GRACE + 1 },         enforce, "Grace"],
  ["started long ago, but seen lately",                    { startedTime: 1, firstSeenTime: NOW - MINUTE }, enforce, "Grace"],
  ["started just long enough ago",                         { startedTime: NOW - GRACE },             enforce, null],
  ["seen in one sweep only",                               { timesSeen: 1 },                         enforce, "SeenOnce"],
  ["seen in no sweep",                                     { timesSeen: 0 },                         enforce, "SeenOnce"],
  ["seen in two sweeps",                                   { timesSeen: 2 },                         enforce, null],
  ["tried in vain before",                                 { destroyAttempts: 9, lastDestroyTime: NOW - SECOND }, enforce, null],
  // What an operator asks for passes the guards that weigh …
  ["asked for, though too young and seen once",            { destroyRequested: true, firstSeenTime: NOW, timesSeen: 1 }, enforce, null],
  ["asked for, though garbage collection is off",          { destroyRequested: true },               off,     null],
  ["asked for, though it only reports",                    { destroyRequested: true },               report,  null],
  // … and not those that know.
  ["asked for, but not known to run",                      { destroyRequested: true, state: "Unknown" }, enforce, "NotRunning"],
  ["asked for, but its owner lives",                       { destroyRequested: true, ownerLives: true }, enforce, "OwnerLives"],
  ["asked for, but the controller is paused",              { destroyRequested: true },               paused,  "ControllerPaused"],
  ["asked for, but protected",                             { destroyRequested: true, protected: true }, enforce, "Protected"],
];

test.for(guards)("%s", ([, overrides, where, expected]) => {
  expect(guardOf(orphan(overrides), where)).toBe(expected);
});

test("of several guards the first is named: what is so for good before what time will heal", () => {
  const all: Partial<Unclaimed> = { state: "Unknown", ownerLives: true, protected: true, firstSeenTime: NOW, timesSeen: 1 };
  const offAndPaused = context({ mode: "Off", settings: { ...settings, paused: true } });
  const lifted: readonly (readonly [Partial<Unclaimed>, GcContext])[] = [
    [all, offAndPaused],
    [{ ...all, state: "Running" }, offAndPaused],
    [{ ...all, state: "Running", ownerLives: false }, offAndPaused],
    [{ ...all, state: "Running", ownerLives: false }, off],
    [{ ...all, state: "Running", ownerLives: false, protected: false }, off],
    [{ ...all, state: "Running", ownerLives: false, protected: false }, report],
    [{ timesSeen: 1 }, report],
    [{}, report],
    [{}, enforce],
  ];
  expect(lifted.map(([overrides, where]) => guardOf(orphan(overrides), where))).toEqual([
    "NotRunning",
    "OwnerLives",
    "ControllerPaused",
    "Protected",
    "GcOff",
    "Grace",
    "SeenOnce",
    "ReportOnly",
    null,
  ]);
});

type LimitRow = readonly [running: number, limit: number];

// oxfmt-ignore
const limits: readonly LimitRow[] = [[0, 5], [5, 5], [59, 5], [60, 6], [69, 6], [100, 10], [1234, 123]];

test.for(limits)("of %i that run, %i may be destroyed in one sweep", ([running, limit]) => {
  expect(destroyLimit(running)).toBe(limit);
});

/** Each by its number. */
function id(n: number): string {
  return n.toString(16).padStart(64, "0");
}

function listed(n: number, state: InstanceState = "Running", startedTime: number | null = null): ListedInstance {
  return { doId: id(n), name: `sandbox-${n}`, state, startedTime };
}

function known(n: number, overrides: Partial<Unclaimed> = {}): Unclaimed {
  return orphan({ doId: id(n), ...overrides });
}

const NOBODY = { sandboxId: null, owner: null, ownerLives: false };

function sweep(overrides: Partial<Sweep> = {}): Sweep {
  const nothing = { listed: [], running: 10, claimed: new Set<string>(), desired: 10, known: [], attribute: () => NOBODY };
  return { source: "Complete", ...nothing, ...overrides };
}

function many(count: number, overrides: Partial<Unclaimed> = {}) {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  return { listed: numbers.map((n) => listed(n)), known: numbers.map((n) => known(n, overrides)) };
}

describe("the brake", () => {
  const released = (until: number) => context({ settings: { ...settings, brakeReleasedUntilTime: until } });
  const allowed = context({ settings: { ...settings, allowEmpty: true } });
  const allowedAndReleased = context({ settings: { ...settings, allowEmpty: true, brakeReleasedUntilTime: NOW + 1 } });

  type Row = readonly [
    situation: string,
    orphans: number,
    running: number,
    desired: number,
    context: GcContext,
    destroyed: number,
    brake: string | null,
  ];

  // oxfmt-ignore
  const table: readonly Row[] = [
    ["as many as may go",                            5,  10,  10, enforce,            5,  null],
    ["one more",                                     6,  10,  10, enforce,            0,  "TooManyOrphans"],
    ["as many as a tenth of all",                    12, 120, 10, enforce,            12, null],
    ["one more than a tenth",                        13, 120, 10, enforce,            0,  "TooManyOrphans"],
    ["released",                                     6,  10,  10, released(NOW + 1),  6,  null],
    ["released until now",                           6,  10,  10, released(NOW),      0,  "TooManyOrphans"],
    ["nobody wishes anything",                       1,  10,  0,  enforce,            0,  "EmptyDesired"],
    ["nobody wishes anything, and that is meant",    1,  10,  0,  allowed,            1,  null],
    ["that is meant, but they are many",             6,  10,  0,  allowed,            0,  "TooManyOrphans"],
    ["many at once and nobody wishes anything",      6,  10,  0,  enforce,            0,  "EmptyDesired"],
    ["a release does not say that it is meant",      6,  10,  0,  released(NOW + 1),  0,  "EmptyDesired"],
    ["both are meant",                               6,  10,  0,  allowedAndReleased, 6,  null],
    ["no brake without an orphan",                   0,  10,  0,  enforce,            0,  null],
    ["none while it only reports",                   6,  10,  0,  report,             0,  null],
  ];

  test.for(table)("%s", ([, orphans, running, desired, where, destroyed, brake]) => {
    const { destroy, record } = planSweep(sweep({ ...many(orphans), running, desired }), where);
    expect({ destroyed: destroy.length, brake: record.brake }).toEqual({ destroyed, brake });
  });

  test("what an operator asked for is not counted and not held back by it", () => {
    const asked = [known(101, { destroyRequested: true }), known(102, { destroyRequested: true, timesSeen: 0 })];
    const { listed: list, known: orphans } = many(6);
    const plan = planSweep(sweep({ listed: [...list, listed(101), listed(102)], known: [...orphans, ...asked] }), enforce);
    expect(plan.destroy.map(({ doId }) => doId)).toEqual([id(101), id(102)]);
    expect(plan.record).toMatchObject({ eligible: 6, limit: 5, brake: "TooManyOrphans" });
    const few = planSweep(sweep({ listed: [...list.slice(1), listed(101)], known: [...orphans.slice(1), ...asked.slice(0, 1)] }), enforce);
    expect(few.destroy).toHaveLength(6);
  });

  test("a sweep that found too many leaves what it saw in mind, and the next that finds few destroys", () => {
    const first = planSweep(sweep(many(6)), enforce);
    expect(first.unclaimed).toHaveLength(6);
    const second = planSweep(sweep({ listed: many(5).listed, known: first.unclaimed }), context({ now: NOW + 30 * SECOND }));
    expect(second.destroy).toHaveLength(5);
    expect(second.gone.map(({ doId }) => doId)).toEqual([id(6)]);
  });
});

describe("a look", () => {
  type Row = readonly [
    situation: string,
    before: Partial<Unclaimed> | null,
    seen: InstanceState | "not listed",
    source: Sweep["source"],
    expected: string,
  ];

  const young = { state: "Expected", firstSeenTime: NOW - GRACE + 1, timesSeen: 0 } as const;
  const ripe = { state: "Expected", firstSeenTime: NOW - GRACE, timesSeen: 0 } as const;
  const since = NOW - 10 * MINUTE;

  // oxfmt-ignore
  const table: readonly Row[] = [
    ["at a stranger that runs",                                null,                     "Running",    "Complete",   "Running x1 +0s"],
    ["at a stranger that settles",                             null,                     "Settling",   "Complete",   "Settling x0 +0s"],
    ["at a stranger that nobody understands",                  null,                     "Unknown",    "Complete",   "Unknown x0 +0s"],
    ["at a stranger that stopped",                             null,                     "Stopped",    "Complete",   "-"],
    ["at one that goes on running",                            { timesSeen: 1 },         "Running",    "Complete",   "Running x2 -600s"],
    ["at one that settles now: its sightings are over",        { timesSeen: 4 },         "Settling",   "Complete",   "Settling x0 -600s"],
    ["at one that is not understood now",                      { timesSeen: 4 },         "Unknown",    "Complete",   "Unknown x0 -600s"],
    ["at one that runs again after it settled: grace begins",  { state: "Settling", timesSeen: 0 }, "Running", "Complete", "Running x1 +0s"],
    ["at one that runs again after nobody understood it",      { state: "Unknown", timesSeen: 0 },  "Running", "Complete", "Running x1 +0s"],
    ["at one that runs again after it stopped",                { state: "Stopped", timesSeen: 0 },  "Running", "Complete", "Running x1 +0s"],
    ["at one that was left and runs: grace since then",        ripe,                     "Running",    "Complete",   "Running x1 -120s"],
    ["at one that was left and settles",                       ripe,                     "Settling",   "Complete",   "Settling x0 -120s"],
    ["at one that stopped",                                    {},                       "Stopped",    "Complete",   "gone"],
    ["at one that is not listed any more",                     {},                       "not listed", "Complete",   "gone"],
    ["at one that was left lately and is not listed yet",      young,                    "not listed", "Complete",   "Expected x0 -119.999s"],
    ["at one that was left lately and is listed as stopped",   young,                    "Stopped",    "Complete",   "Expected x0 -119.999s"],
    ["at one that was left for long enough",                   ripe,                     "not listed", "Complete",   "gone"],
    ["by its own word, at one that was left lately",           young,                    "Stopped",    "LedgerOnly", "gone"],
    ["by its own word, at one that runs",                      { timesSeen: 1 },         "Running",    "LedgerOnly", "Running x2 -600s"],
    ["by its own word, at one that does not answer",           { timesSeen: 1 },         "Unknown",    "LedgerOnly", "Unknown x0 -600s"],
  ];

  test.for(table)("%s", ([, before, seen, source, expected]) => {
    const list = seen === "not listed" ? [] : [listed(1, seen)];
    const plan = planSweep(
      sweep({ source, listed: list, known: before === null ? [] : [known(1, { firstSeenTime: since, ...before })] }),
      report,
    );
    const remembered = plan.unclaimed.map(
      ({ state, timesSeen, firstSeenTime }) => `${state} x${timesSeen} ${secondsFromNow(firstSeenTime)}`,
    );
    expect([...remembered, ...plan.gone.map(() => "gone")].join(" ") || "-").toBe(expected);
  });

  test("keeps what an operator and the destroys before have left, and takes what the list says", () => {
    const before = known(1, {
      sandboxId: "by-owner",
      protected: true,
      destroyAttempts: 2,
      lastDestroyTime: NOW - MINUTE,
      startedTime: 5,
      owner,
    });
    const [seen] = planSweep(sweep({ listed: [listed(1, "Running", 7)], known: [before] }), enforce).unclaimed;
    expect(seen).toEqual({ ...before, startedTime: 7, lastSeenTime: NOW, timesSeen: 6 });
    const [unnamed] = planSweep(sweep({ listed: [listed(1)], known: [known(1, { startedTime: 5 })] }), enforce).unclaimed;
    expect(unnamed).toMatchObject({ sandboxId: "sandbox-1", startedTime: 5 });
  });

  test("asks whom a stranger belongs to, and nobody else", () => {
    const asked: string[] = [];
    const attribute = ({ doId }: ListedInstance) => {
      asked.push(doId);
      return { sandboxId: "of-alice", owner, ownerLives: true };
    };
    const strangers = sweep({ listed: [listed(1), listed(2), listed(3), listed(4, "Stopped")], known: [known(1)], attribute });
    const plan = planSweep({ ...strangers, claimed: new Set([id(3)]) }, enforce);
    expect(asked).toContain(id(2));
    expect(asked).not.toContain(id(1));
    expect(asked).not.toContain(id(4));
    expect(plan.unclaimed.find(({ doId }) => doId === id(2))).toEqual({
      doId: id(2),
      sandboxId: "of-alice",
      owner,
      ownerLives: true,
      state: "Running",
      firstSeenTime: NOW,
      lastSeenTime: NOW,
      timesSeen: 1,
      startedTime: null,
      protected: false,
      destroyRequested: false,
      destroyAttempts: 0,
      lastDestroyTime: null,
    });
  });
});

describe("from sweep to sweep", () => {
  /** One after the other, half a minute apart; each sees instance 1 so, or not. */
  function fates(...looks: readonly (InstanceState | "not listed")[]): readonly string[] {
    let rows: readonly Unclaimed[] = [];
    return looks.map((state, index) => {
      const list = state === "not listed" ? [] : [listed(1, state)];
      const plan = planSweep(sweep({ listed: list, known: rows }), context({ now: NOW + index * 30 * SECOND, graceMs: 30 * SECOND }));
      rows = plan.unclaimed;
      return plan.destroy.length > 0 ? "destroy" : plan.gone.length > 0 ? "gone" : rows.length > 0 ? "watch" : "-";
    });
  }

  type Row = readonly [situation: string, looks: readonly (InstanceState | "not listed")[], fates: readonly string[]];

  // oxfmt-ignore
  const table: readonly Row[] = [
    ["two sightings in a row",                 ["Running", "Running"],                                   ["watch", "destroy"]],
    ["it is told again until it is gone",      ["Running", "Running", "Running", "Stopped", "Stopped"],  ["watch", "destroy", "destroy", "gone", "-"]],
    ["a sweep that does not show it",          ["Running", "not listed", "Running", "Running"],          ["watch", "gone", "watch", "destroy"]],
    ["a sweep that shows it as settling",      ["Running", "Settling", "Running", "Running"],            ["watch", "watch", "watch", "destroy"]],
    ["a sweep that does not understand it",    ["Running", "Unknown", "Running", "Running"],             ["watch", "watch", "watch", "destroy"]],
    ["it settles for ever",                    ["Settling", "Settling", "Settling"],                     ["watch", "watch", "watch"]],
  ];

  test.for(table)("%s", ([, looks, expected]) => {
    expect(fates(...looks)).toEqual(expected);
  });
});

describe("what is claimed", () => {
  test("is neither watched nor destroyed nor forgotten, whatever was known of it", () => {
    const claimed = new Set([id(1), id(2), id(3)]);
    const asked = known(2, { destroyRequested: true });
    const plan = planSweep(sweep({ listed: [listed(1), listed(2)], known: [known(1), asked, known(3)], claimed }), enforce);
    expect([...plan.unclaimed, ...plan.destroy, ...plan.gone, ...plan.reexamine]).toEqual([]);
  });

  type Row = readonly [situation: string, instance: Partial<Unclaimed>, context: GcContext, reexamined: boolean];
  const older = { owner, ownerLives: true };

  // oxfmt-ignore
  const leftOvers: readonly Row[] = [
    ["an older incarnation that still runs is asked itself",         older,                                   enforce, true],
    ["not before its grace is over",                                 { ...older, firstSeenTime: NOW },        enforce, false],
    ["not after one sighting",                                       { ...older, timesSeen: 0 },              enforce, false],
    ["not if it is protected",                                       { ...older, protected: true },           enforce, false],
    ["not while the controller is paused",                           older,                                   paused,  false],
    ["not while garbage collection only reports",                    older,                                   report,  false],
    ["not if nobody knows which it is",                              { ...older, owner: null },               enforce, false],
    ["a true orphan is not asked",                                   { owner },                               enforce, false],
  ];

  test.for(leftOvers)("%s", ([, overrides, where, reexamined]) => {
    const plan = planSweep(sweep({ listed: [listed(1)], known: [known(1, overrides)] }), where);
    expect(plan.reexamine.length > 0).toBe(reexamined);
    if (overrides.ownerLives) expect(plan.destroy).toEqual([]);
  });
});

describe("what a sweep keeps in mind", () => {
  const sweepOf = (known: readonly Unclaimed[], seen: readonly ListedInstance[], source: Sweep["source"] = "Complete"): Sweep => ({
    source,
    listed: seen,
    running: 10,
    claimed: new Set(),
    desired: 1,
    known,
    attribute: ({ name }) => ({ ...NOBODY, sandboxId: name }),
  });
  const ripe = { state: "Running", firstSeenTime: NOW - 60 * MINUTE, timesSeen: 2 } as const;

  test("what is protected stays so while it does not run, and is as protected when it runs again", () => {
    const known = orphan({ ...ripe, doId: id(1), protected: true });
    for (const seen of [[], [listed(1, "Stopped")]]) {
      const { unclaimed, gone } = planSweep(sweepOf([known], seen), context());
      expect([unclaimed, gone]).toMatchObject([[{ doId: id(1), state: "Stopped", protected: true }], []]);
      const again = planSweep(sweepOf(unclaimed, [listed(1, "Running")]), context());
      expect([again.unclaimed[0]?.protected, again.destroy]).toEqual([true, []]);
    }
  });

  test("those that were told to go do not engage the brake for the next, and are told again within the limit", () => {
    const told = Array.from({ length: 5 }, (_, n) => orphan({ ...ripe, doId: id(n + 1), destroyAttempts: 2, lastDestroyTime: NOW - n }));
    const fresh = orphan({ ...ripe, doId: id(9) });
    const seen = [1, 2, 3, 4, 5, 9].map((n) => listed(n, "Running"));
    const { destroy, record } = planSweep(sweepOf([...told, fresh], seen), context());
    expect(record).toMatchObject({ eligible: 1, limit: 5, brake: null });
    // The one that was told last waits.
    expect(destroy.map(({ doId }) => doId)).toEqual([id(9), id(5), id(4), id(3), id(2)]);
  });

  test("what could not be asked is as it was, and is not counted as seen", () => {
    const known = orphan({ ...ripe, doId: id(1) });
    const { unclaimed, gone, destroy } = planSweep(sweepOf([known], [], "LedgerOnly"), context());
    expect([unclaimed, gone, destroy]).toEqual([[{ ...known, timesSeen: 0 }], [], []]);
  });

  test("nobody is asked whose a claimed instance is", () => {
    const sweep = { ...sweepOf([], [listed(1, "Running")]), claimed: new Set([id(1)]), attribute: () => expect.unreachable() };
    expect(planSweep(sweep, context()).unclaimed).toEqual([]);
  });
});

describe("laws", () => {
  const numbers = fc.integer({ min: 1, max: 24 });
  const states = fc.constantFrom<InstanceState>("Running", "Running", "Running", "Settling", "Stopped", "Unknown");
  const past = fc.integer({ min: NOW - 10 * MINUTE, max: NOW });
  const lists = fc.uniqueArray(
    fc
      .record({ n: numbers, state: states, startedTime: fc.option(past) })
      .map(({ n, state, startedTime }) => listed(n, state, startedTime)),
    { selector: ({ doId }) => doId, maxLength: 24 },
  );
  const rows = fc.uniqueArray(
    fc
      .record({
        doId: numbers.map(id),
        owner: fc.option(fc.constant(owner)),
        ownerLives: fc.constantFrom(false, false, true),
        state: fc.constantFrom<Unclaimed["state"]>("Running", "Running", "Running", "Expected", "Settling", "Stopped", "Unknown"),
        firstSeenTime: past,
        timesSeen: fc.nat({ max: 3 }),
        startedTime: fc.option(past),
        protected: fc.constantFrom(false, false, false, true),
        destroyRequested: fc.constantFrom(false, false, false, true),
        destroyAttempts: fc.nat({ max: 4 }),
      })
      .map(orphan),
    { selector: ({ doId }) => doId, maxLength: 24 },
  );
  const sweeps: fc.Arbitrary<Sweep> = fc
    .record({
      source: fc.constantFrom<Sweep["source"]>("Complete", "LedgerOnly"),
      listed: lists,
      known: rows,
      claimed: fc.uniqueArray(numbers.map(id), { maxLength: 6 }),
      desired: fc.nat({ max: 2 }),
      lives: fc.boolean(),
    })
    .map(({ claimed, lives, ...fields }) => {
      const running = fields.listed.filter(({ state }) => state === "Running").length;
      return {
        ...fields,
        running,
        claimed: new Set(claimed),
        attribute: ({ name }: ListedInstance) => ({ ...NOBODY, sandboxId: name, ownerLives: lives }),
      };
    });
  const contexts = fc
    .record({
      mode: fc.constantFrom<GcContext["mode"]>("Enforce", "Enforce", "Enforce", "Report", "Off"),
      graceMs: fc.constantFrom(0, GRACE),
      paused: fc.constantFrom(false, false, false, true),
      allowEmpty: fc.boolean(),
      brakeReleasedUntilTime: fc.option(fc.constantFrom(NOW, NOW + MINUTE)),
    })
    .map(({ mode, graceMs, ...set }) => context({ mode, graceMs, settings: { ...settings, ...set } }));

  const RUNS = { numRuns: 2000 };

  function always(holds: (given: Sweep, where: GcContext) => void): void {
    fc.assert(fc.property(sweeps, contexts, holds), RUNS);
  }

  const ids = (instances: readonly { readonly doId: string }[]) => instances.map(({ doId }) => doId).toSorted();

  test("nothing is destroyed that is claimed, belongs to a living owner, is protected, or was not seen running just now (3, 4)", () => {
    always((given, where) => {
      const running = new Set(given.listed.filter(({ state }) => state === "Running").map(({ doId }) => doId));
      for (const instance of planSweep(given, where).destroy) {
        expect(given.claimed.has(instance.doId) || instance.ownerLives || instance.protected || where.settings.paused).toBe(false);
        // An operator's word stands also where the instance cannot be asked.
        const isUnasked = given.source === "LedgerOnly" && given.listed.every(({ doId }) => doId !== instance.doId);
        expect(running.has(instance.doId) || (isUnasked && instance.destroyRequested)).toBe(true);
      }
    });
  });

  test("nothing is destroyed at first sight, nor in its grace, nor against the mode, unless an operator asked for it", () => {
    always((given, where) => {
      for (const instance of planSweep(given, where).destroy.filter(({ destroyRequested }) => !destroyRequested)) {
        expect(where.mode).toBe("Enforce");
        expect(given.known.find(({ doId }) => doId === instance.doId)?.timesSeen ?? 0).toBeGreaterThanOrEqual(1);
        expect(where.now - Math.max(instance.firstSeenTime, instance.startedTime ?? 0)).toBeGreaterThanOrEqual(where.graceMs);
      }
    });
  });

  test("no more are destroyed in one sweep than may be, unless an operator released the brake, and none if nobody wishes anything", () => {
    always((given, where) => {
      const { destroy, record } = planSweep(given, where);
      const automatic = destroy.filter(({ destroyRequested }) => !destroyRequested).length;
      const { brakeReleasedUntilTime, allowEmpty } = where.settings;
      if ((brakeReleasedUntilTime ?? 0) <= where.now) expect(automatic).toBeLessThanOrEqual(destroyLimit(given.running));
      if (given.desired === 0 && !allowEmpty) expect(automatic).toBe(0);
      if (record.brake === null) expect(automatic).toBeGreaterThanOrEqual(record.eligible);
      const untold = destroy.filter(({ destroyRequested, destroyAttempts }) => !destroyRequested && destroyAttempts === 0);
      expect(untold).toHaveLength(record.brake === null ? record.eligible : 0);
    });
  });

  test("one more guard never lets anything go that was held back", () => {
    const protect = (instance: Unclaimed) => ({ ...instance, protected: true });
    const young = (instance: Unclaimed) => ({ ...instance, firstSeenTime: NOW });
    const once = (instance: Unclaimed) => ({ ...instance, timesSeen: 0 });
    const lives = (instance: Unclaimed) => ({ ...instance, ownerLives: true });
    const more = fc.constantFrom(protect, young, once, lives);
    fc.assert(
      fc.property(rows, contexts, more, fc.constantFrom<GcContext["mode"]>("Report", "Off"), (instances, where, guard, mode) => {
        const stricter = { ...where, mode: where.mode === "Enforce" ? mode : where.mode };
        const halted = { ...where, settings: { ...where.settings, paused: true } };
        for (const instance of instances) {
          if (guardOf(instance, where) === null) continue;
          expect([guardOf(guard(instance), where), guardOf(instance, stricter), guardOf(instance, halted)]).not.toContain(null);
        }
      }),
      RUNS,
    );
  });

  test("whoever is claimed or protected is spared, and costs nobody else anything but the brake", () => {
    fc.assert(
      fc.property(sweeps, contexts, numbers.map(id), (given, where, spared) => {
        const free = context({ ...where, settings: { ...where.settings, allowEmpty: true, brakeReleasedUntilTime: NOW + MINUTE } });
        const before = ids(planSweep(given, free).destroy);
        const claimed = planSweep({ ...given, claimed: new Set([...given.claimed, spared]) }, free);
        const isSpared = (instance: Unclaimed) => (instance.doId === spared ? { ...instance, protected: true } : instance);
        const guarded = planSweep({ ...given, known: given.known.map(isSpared) }, free);
        const others = before.filter((doId) => doId !== spared);
        expect(ids(claimed.destroy)).toEqual(others);
        expect(ids(guarded.destroy)).toEqual(others);
      }),
      RUNS,
    );
  });

  test("every listed instance that runs is claimed or watched, and nothing is watched any more only if its absence is confirmed (3)", () => {
    always((given, where) => {
      const { unclaimed, gone } = planSweep(given, where);
      const [watched, confirmed] = [new Set(ids(unclaimed)), new Set(ids(gone))];
      const states = new Map(given.listed.map(({ doId, state }) => [doId, state]));
      for (const [doId, state] of states) {
        if (state !== "Stopped") expect(watched.has(doId) || given.claimed.has(doId)).toBe(true);
      }
      for (const { doId } of given.known) expect(watched.has(doId) || confirmed.has(doId) || given.claimed.has(doId)).toBe(true);
      for (const doId of confirmed) expect([undefined, "Stopped"]).toContain(states.get(doId));
      expect(unclaimed.length + gone.length).toBe(new Set([...watched, ...confirmed]).size);
    });
  });

  test("the same sweep decides the same, and changes nothing of what it was given", () => {
    always((given, where) => {
      const before = JSON.stringify(given);
      expect(planSweep(given, where)).toEqual(planSweep(given, where));
      expect(JSON.stringify(given)).toBe(before);
    });
  });

  test("a second look at once sees the same, once more", () => {
    always((given, where) => {
      const first = planSweep(given, where);
      const second = planSweep({ ...given, known: first.unclaimed }, where);
      expect(second.gone).toEqual([]);
      const isListed = ({ doId }: Unclaimed) => given.source === "Complete" || given.listed.some((instance) => instance.doId === doId);
      const counted = first.unclaimed.map((instance) =>
        instance.state === "Running" && isListed(instance) ? { ...instance, timesSeen: instance.timesSeen + 1 } : instance,
      );
      expect(second.unclaimed).toEqual(counted);
    });
  });
});

function secondsFromNow(time: number): string {
  const seconds = (time - NOW) / 1000;
  return `${seconds < 0 ? "" : "+"}${seconds}s`;
}
