/** The drift report: every type, what will be done, what holds it back, and that it cannot disagree with the loop. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { driftOf, driftOfUnclaimed } from "../../src/controller/drift.ts";
import { DRIFT_TYPES, type DriftContext, type DriftItem } from "../../src/controller/drift-item.ts";
import { plan } from "../../src/controller/plan.ts";
import { specHash } from "../../src/controller/spec-hash.ts";
import { toObservedState } from "../../src/controller/compare.ts";
import type { ControllerSettings, Unclaimed } from "../../src/unclaimed.ts";
import type { Observation, WorkspaceSpec } from "../../src/workspace.ts";
import type { ObservedState, WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  UID,
  admittedRecord,
  changedSpec,
  condition,
  expiringSpec,
  firstInstance,
  idleRecord,
  idleSpec,
  instance,
  lane,
  mortalSpec,
  observedState,
  orphan,
  pausedSpec,
  pendingStatus,
  readyRecord,
  readyStatus,
  record,
  runningSpec,
  runs,
  spec,
  stalledStatus,
  startingRecord,
  statusOf,
  suspendedSpec,
  suspendedStatus,
} from "../support/builders.ts";

fc.configureGlobal({ seed: 794_825 });

const settings: ControllerSettings = { paused: false, gcMode: null, allowEmpty: false, laneWidth: null, brakeReleasedUntilTime: null };
const open: DriftContext = {
  now: NOW,
  mode: "Enforce",
  graceMs: 2 * MINUTE,
  settings,
  brakeUntilTime: null,
  gcBrake: null,
  backupGraceMs: 120 * MINUTE,
  backupBrake: null,
  isComplete: true,
};
const halted: DriftContext = { ...open, settings: { ...settings, paused: true } };
const braked: DriftContext = { ...open, brakeUntilTime: NOW + 1 };
const brakeOver: DriftContext = { ...open, brakeUntilTime: NOW };

const down = observedState("Stopped");
const up = (overrides: Partial<ObservedState> = {}) => observedState("Running", overrides);
const unused = up({ startedTime: NOW - 60 * MINUTE, activityTime: NOW - 10 * MINUTE });
const invalidStatus = {
  ...statusOf("Stalled"),
  conditions: [condition("Ready", "False", "InvalidSpec"), condition("Stalled", "True", "InvalidSpec")],
};
const expired = expiringSpec(NOW);

type Row = readonly [situation: string, record: WorkspaceRecord, context: DriftContext, expected: string];

// oxfmt-ignore
const workspaces: readonly Row[] = [
  ["what is as wished",                                  readyRecord(),                                                       open,   "-"],
  ["what is suspended as wished",                        admittedRecord({ spec: suspendedSpec, observed: down }),             open,   "-"],
  ["what sleeps",                                        idleRecord({ observed: down }),                                      open,   "-"],
  ["what was never begun",                               record(),                                                            open,   "Missing Start"],
  ["what stopped",                                       admittedRecord({ observed: down }),                                  open,   "Missing Start"],
  ["what failed to start",                               admittedRecord({ observed: observedState("Failed") }),               open,   "Missing Start"],
  ["what is being started",                              startingRecord({ observed: observedState("Starting") }),             open,   "Missing Start"],
  ["what is being restored or set up",                   startingRecord({ observed: observedState("Preparing") }),            open,   "Missing None (Preparation)"],
  ["what was being restored when it failed for good",    startingRecord({ observed: observedState("Preparing"), status: stalledStatus }), open, "Missing None (Stalled), Stalled None (Stalled)"],
  ["what runs, but nobody vouches for it",               admittedRecord({ observed: observedState("Unverified") }),           open,   "Missing Start"],
  ["what is being replaced",                             admittedRecord({ observed: observedState("Destroying") }),           open,   "Missing Replace"],
  ["what was destroyed",                                 admittedRecord({ observed: observedState("Destroyed") }),            open,   "Missing Start"],
  ["what was admitted, and never looked at since",       admittedRecord(),                                                    open,   "-"],
  ["what runs and is to be suspended",                   readyRecord({ spec: suspendedSpec }),                                open,   "Unexpected Stop"],
  ["what runs and sleeps",                               idleRecord({ observed: up() }),                                      open,   "Unexpected Stop"],
  ["what runs and slept until its user came back",       idleRecord({ observed: up({ activityTime: NOW - SECOND }) }),        open,   "-"],
  ["what runs with another spec",                        readyRecord({ spec: changedSpec, generation: 2 }),                   open,   "OutOfSync Replace"],
  ["what nobody uses",                                   readyRecord({ spec: idleSpec, observed: unused }),                   open,   "IdleOverrun Suspend"],
  ["what runs for too long",                             readyRecord({ spec: mortalSpec, observed: unused }),                 open,   "LifetimeOverrun Stop"],
  ["several at once: all name what is done first",       readyRecord({ spec: spec({ ...idleSpec, maxLifetimeSeconds: 60 }), observed: unused }), open, "IdleOverrun Suspend, LifetimeOverrun Suspend"],
  ["what is to be replaced on request, and differs",     admittedRecord({ observed: down, instance: instance({ destroyRequested: true }) }), open, "Missing Replace"],
  ["what differs and whose time is up",                  admittedRecord({ spec: expired, observed: down }),                   open,   "Missing Delete"],
  ["what failed for good",                               admittedRecord({ status: stalledStatus, observed: down }),           open,   "Missing None (Stalled), Stalled None (Stalled)"],
  ["what failed for good and runs nevertheless",         readyRecord({ status: stalledStatus }),                              open,   "Stalled None (Stalled)"],
  ["what failed for good and runs with another spec",    readyRecord({ status: stalledStatus, spec: changedSpec }),           open,   "OutOfSync Replace, Stalled None (Stalled)"],
  ["what failed for good under another wish",            admittedRecord({ status: stalledStatus, observed: down, generation: 2 }), open, "Missing Start"],
  ["what failed for good, and somebody asked",           admittedRecord({ status: stalledStatus, observed: down, reconcileRequestTime: NOW }), open, "Missing Start"],
  ["what can not be read",                               readyRecord({ spec: null, status: invalidStatus }),                  open,   "Stalled None (Stalled)"],
  ["what can be read again",                             readyRecord({ status: invalidStatus }),                              open,   "-"],
  ["what does not answer",                               readyRecord({ unreachableTime: NOW - MINUTE }),                      open,   "Unreachable Observe"],
  ["what does not answer and differed",                  admittedRecord({ observed: down, unreachableTime: NOW }),            open,   "Missing Start (Unreachable), Unreachable Observe"],
  ["what is being deleted",                              readyRecord({ deletionTime: NOW, spec: changedSpec }),               open,   "-"],
  ["what is being deleted and was stalled",              admittedRecord({ deletionTime: NOW, status: stalledStatus }),        open,   "-"],
  ["what is being deleted and does not answer",          readyRecord({ deletionTime: NOW, unreachableTime: NOW }),            open,   "Unreachable Observe"],
  // What holds it back.
  ["the controller is paused",                           record(),                                                            halted, "Missing Start (ControllerPaused)"],
  ["the workspace is paused",                            admittedRecord({ spec: pausedSpec, observed: down }),                open,   "Missing Start (Paused)"],
  ["a paused workspace that nobody uses",                readyRecord({ spec: spec({ ...idleSpec, paused: true }), observed: unused }), open, "IdleOverrun Suspend (Paused)"],
  ["both are paused",                                    admittedRecord({ spec: pausedSpec, observed: down }),                halted, "Missing Start (ControllerPaused)"],
  ["paused and silent",                                  admittedRecord({ spec: pausedSpec, observed: down, unreachableTime: NOW }), open, "Missing Start (Paused), Unreachable Observe"],
  ["it backs off",                                       admittedRecord({ observed: down, nextRetryTime: NOW + 1 }),          open,   "Missing Start (Backoff)"],
  ["its backoff is over",                                admittedRecord({ observed: down, nextRetryTime: NOW }),              open,   "Missing Start"],
  ["its backoff was of another wish",                    admittedRecord({ observed: down, nextRetryTime: NOW + 1, generation: 2 }), open, "Missing Start"],
  ["its backoff, and somebody asked",                    admittedRecord({ observed: down, nextRetryTime: NOW + 1, reconcileRequestTime: NOW }), open, "Missing Start"],
  ["its namespace is full",                              record({ quotaReached: true }),                                      open,   "Missing Start (Quota)"],
  ["its namespace is full, and the lane is braked",      record({ quotaReached: true }),                                      braked, "Missing Start (Quota)"],
  ["the lane is braked",                                 record({ queuedTime: NOW }),                                         braked, "Missing Start (StartBrake)"],
  ["the brake is over",                                  record({ queuedTime: NOW }),                                         brakeOver, "Missing Start (StartLane)"],
  ["it waits for the lane",                              record({ queuedTime: NOW }),                                         open,   "Missing Start (StartLane)"],
  ["it holds the lane: nothing holds it back",           startingRecord({ observed: down, quotaReached: true, queuedTime: NOW }), braked, "Missing Start"],
  ["only a start waits for the lane",                    readyRecord({ spec: suspendedSpec, quotaReached: true, queuedTime: NOW, nextRetryTime: NOW + 1 }), braked, "Unexpected Stop"],
];

test.for(workspaces)("%s", ([, situation, context, expected]) => {
  expect(show(driftOf(situation, context))).toBe(expected);
});

type OrphanRow = readonly [situation: string, instance: Partial<Unclaimed>, context: DriftContext, expected: string];

const owner = { namespace: "default", name: "alice-1", uid: UID, incarnation: 1 };
const partial: DriftContext = { ...open, isComplete: false };
const tooMany: DriftContext = { ...open, gcBrake: "TooManyOrphans" };
const partialAndTooMany: DriftContext = { ...partial, gcBrake: "TooManyOrphans" };

// oxfmt-ignore
const orphans: readonly OrphanRow[] = [
  ["runs, and nothing holds its destroy back",     {},                                        open,    "Orphaned Destroy"],
  ["settles",                                      { state: "Settling" },                     open,    "Orphaned Observe (NotRunning)"],
  ["is in a state that nobody knows",              { state: "Unknown" },                      open,    "Orphaned Observe (NotRunning)"],
  ["stopped: no drift",                            { state: "Stopped" },                      open,    "-"],
  ["was left, and no sweep has looked: no drift",  { state: "Expected" },                     open,    "-"],
  ["belongs to a workspace that lives",            { owner, ownerLives: true },               open,    "Orphaned Observe (OwnerLives)"],
  ["the controller is paused",                     {},                                        halted,  "Orphaned Destroy (ControllerPaused)"],
  ["is protected",                                 { protected: true },                       open,    "Orphaned None (Protected)"],
  ["garbage collection is off",                    {},                                        { ...open, mode: "Off" }, "Orphaned None (GcOff)"],
  ["garbage collection only reports",              {},                                        { ...open, mode: "Report" }, "Orphaned None (ReportOnly)"],
  ["is young",                                     { firstSeenTime: NOW },                    open,    "Orphaned Destroy (Grace)"],
  ["was seen once",                                { timesSeen: 1 },                          open,    "Orphaned Destroy (SeenOnce)"],
  ["the last sweep did not see everything",        {},                                        partial, "Orphaned Destroy (InventoryUntrusted)"],
  ["there are too many",                           {},                                        tooMany, "Orphaned Destroy (TooManyOrphans)"],
  ["nobody wishes anything",                       {},                                        { ...open, gcBrake: "EmptyDesired" }, "Orphaned Destroy (EmptyDesired)"],
  ["there are too many, and it is young anyway",   { firstSeenTime: NOW },                    tooMany, "Orphaned Destroy (Grace)"],
  ["nothing new is known, whatever the brake",     {},                                        partialAndTooMany, "Orphaned Destroy (InventoryUntrusted)"],
  ["was asked for: the brake is not for it",       { destroyRequested: true },                tooMany, "Orphaned Destroy"],
  ["was asked for, but nothing new is known",      { destroyRequested: true },                partial, "Orphaned Destroy (InventoryUntrusted)"],
  ["was told to go twice",                         { destroyAttempts: 2 },                    open,    "Orphaned Destroy"],
  ["was told to go three times, and still runs",   { destroyAttempts: 3 },                    open,    "DestroyNotEffective Destroy"],
];

test.for(orphans)("an instance that nobody claims: %s", ([, overrides, context, expected]) => {
  expect(show(driftOfUnclaimed(orphan(overrides), context))).toBe(expected);
});

/** Those of backups have theirs in `drift-backups.test.ts`. */
const OF_BACKUPS: ReadonlySet<string> = new Set(["BackupOverdue", "BackupOrphaned"]);

test("every type of drift has its row", () => {
  const found = [
    ...workspaces.flatMap(([, situation, context]) => driftOf(situation, context)),
    ...orphans.flatMap(([, overrides, context]) => driftOfUnclaimed(orphan(overrides), context)),
  ];
  expect(new Set(found.map(({ type }) => type))).toEqual(new Set(DRIFT_TYPES.filter((type) => !OF_BACKUPS.has(type))));
});

describe("an item says", () => {
  test("of a difference: what, since when, how often, and why", () => {
    const seen = { type: "OutOfSync", firstSeenTime: NOW - MINUTE, timesSeen: 3 };
    const status = statusOf("Pending", { Ready: { reason: "SpecChanged", message: "on its way" } });
    const situation = readyRecord({ spec: changedSpec, status, observed: up({ differences: [{ ...seen, type: "Missing" }, seen] }) });
    expect(driftOf(situation, open)).toEqual([
      {
        type: "OutOfSync",
        workspace: { namespace: "default", name: "alice-1" },
        instance: { doId: firstInstance.doId, sandboxId: firstInstance.sandboxId },
        backup: null,
        differences: [{ field: "/spec", desired: specHash(changedSpec), observed: specHash(runningSpec) }],
        firstSeenTime: NOW - MINUTE,
        timesSeen: 3,
        plannedAction: "Replace",
        blockedBy: null,
        reason: "SpecChanged",
        message: "on its way",
      },
    ]);
  });

  test("of a difference that no pass has written down: since now", () => {
    expect(driftOf(record(), open)).toMatchObject([
      { instance: null, firstSeenTime: NOW, timesSeen: 0, reason: "Pending", message: "", differences: [{ observed: "Absent" }] },
    ]);
  });

  test("of a stall: since when, after how many failures, and why", () => {
    const situation = readyRecord({ status: stalledStatus, failures: 2 });
    expect(driftOf(situation, open)).toMatchObject([
      { type: "Stalled", differences: [], firstSeenTime: NOW - MINUTE, timesSeen: 2, reason: "StartFailed", message: "no such image" },
    ]);
  });

  test("of silence: since when, and what was heard last", () => {
    const status = statusOf("Unknown", { Ready: { status: "Unknown", reason: "Unreachable", message: "no answer" } });
    expect(driftOf(readyRecord({ status, unreachableTime: NOW - 7 * SECOND }), open)).toMatchObject([
      { type: "Unreachable", differences: [], firstSeenTime: NOW - 7 * SECOND, reason: "Unreachable", message: "no answer" },
    ]);
  });

  test("of an orphan: whose it was, and how often it was told to go", () => {
    expect(driftOfUnclaimed(orphan({ owner, sandboxId: "s-1", destroyAttempts: 4 }), open)).toEqual([
      {
        type: "DestroyNotEffective",
        workspace: { namespace: "default", name: "alice-1" },
        instance: { doId: orphan().doId, sandboxId: "s-1" },
        backup: null,
        differences: [{ field: "/instance/state", desired: "Stopped", observed: "Running" }],
        firstSeenTime: NOW - 10 * MINUTE,
        timesSeen: 5,
        plannedAction: "Destroy",
        blockedBy: null,
        reason: "NoDesiredRecord",
        message: "Still runs after 4 destroys.",
      },
    ]);
    const others = [orphan(), orphan({ owner, ownerLives: true })].flatMap((each) => driftOfUnclaimed(each, open));
    expect(others.map(({ workspace, reason, message }) => [workspace?.name ?? null, reason, message])).toEqual([
      [null, "Unattributed", ""],
      ["alice-1", "OtherIncarnation", ""],
    ]);
  });
});

describe("laws", () => {
  const SECRET = "hunter2-hunter2";
  const around = fc.integer({ min: NOW - 20 * MINUTE, max: NOW + 20 * MINUTE });
  const past = fc.integer({ min: NOW - 20 * MINUTE, max: NOW });
  const specs: fc.Arbitrary<WorkspaceSpec> = fc
    .record({
      operatingMode: fc.constantFrom("Running", "Running", "Suspended"),
      env: fc.constantFrom<WorkspaceSpec["env"]>({}, changedSpec.env, { TOKEN: SECRET }),
      idle: fc.option(fc.constant({ timeoutSeconds: 600 }), { freq: 2 }),
      maxLifetimeSeconds: fc.option(fc.constant(600), { freq: 2 }),
      paused: fc.constantFrom(false, false, true),
    })
    .map(spec);
  const looks: fc.Arbitrary<Observation> = fc.oneof(
    fc.constantFrom("Absent", "Unverified", "Destroying", "Destroyed").map((kind) => ({ kind })),
    fc.constant({ kind: "Stopped", startId: null, exit: null } as const),
    fc.constant({ kind: "Starting", startId: "s" } as const),
    fc.constant({ kind: "Preparing", startId: "s", step: "Restore" } as const),
    fc
      .record({ specHash: fc.constantFrom(specHash(runningSpec), specHash(changedSpec)), startedTime: past, activityTime: past })
      .map((seen) => runs({ ...seen, activityTime: Math.max(seen.startedTime, seen.activityTime) })),
  );
  const situations = fc
    .record({
      spec: fc.option(specs, { freq: 8 }),
      look: looks,
      generation: fc.constantFrom(1, 1, 2),
      status: fc.constantFrom(readyStatus, pendingStatus, stalledStatus, suspendedStatus),
      deletionTime: fc.constantFrom(null, null, null, NOW),
      instance: fc.boolean().map((destroyRequested) => instance({ destroyRequested })),
      lane: fc.option(fc.constant(lane()), { freq: 2 }),
      idleTime: fc.option(past, { freq: 2 }),
      wakeTime: fc.option(past, { freq: 2 }),
      nextRetryTime: fc.option(around, { freq: 2 }),
      queuedTime: fc.option(past, { freq: 2 }),
      unreachableTime: fc.constantFrom(null, null, null, NOW),
      reconcileRequestTime: fc.constantFrom(null, null, NOW),
      quotaReached: fc.boolean(),
    })
    .map(({ look, ...fields }) => ({ row: record({ ...fields, observed: toObservedState(look) }), look }));
  const contexts = fc.constantFrom(open, halted, braked);
  const RUNS = { numRuns: 3000 };

  const DONE: Readonly<Record<string, string>> = { Destroy: "Replace", Enqueue: "Start" };
  /** No state that the loop leaves. */
  const backsOffInLane = ({ lane: held, nextRetryTime }: WorkspaceRecord) => held !== null && nextRetryTime !== null;
  const ofDifferences = (items: readonly DriftItem[]) => items.filter(({ differences }) => differences.length > 0);

  test("what the report says will be done is what the loop does with what was seen, unless something holds it back", () => {
    fc.assert(
      fc.property(situations, ({ row, look }) => {
        if (backsOffInLane(row)) return;
        for (const { plannedAction, blockedBy } of ofDifferences(driftOf(row, open))) {
          if (blockedBy !== null) continue;
          const action = plan(row, look, NOW, true).kind;
          expect(plannedAction).toBe(DONE[action] ?? action);
        }
      }),
      RUNS,
    );
  });

  test("the loop rests exactly where the report shows nothing to be done now", () => {
    fc.assert(
      fc.property(situations, ({ row, look }) => {
        if (row.deletionTime !== null || row.unreachableTime !== null || row.instance?.destroyRequested || look.kind === "Destroying")
          return;
        const free = { ...row, queuedTime: null, quotaReached: false };
        const isToBeDone = ofDifferences(driftOf(free, open)).some(({ blockedBy }) => blockedBy === null);
        const action = plan(free, look, NOW, true).kind;
        if (backsOffInLane(free)) return;
        expect(action !== "Rest").toBe(isToBeDone);
      }),
      RUNS,
    );
  });

  test("a deletion under way is no drift", () => {
    fc.assert(
      fc.property(situations, contexts, ({ row }, context) => {
        const types = driftOf({ ...row, deletionTime: NOW }, context).map(({ type }) => type);
        expect(types).toEqual(row.unreachableTime === null ? [] : ["Unreachable"]);
      }),
    );
  });

  test("no value of the environment is in any item", () => {
    fc.assert(
      fc.property(situations, contexts, ({ row }, context) => {
        expect(JSON.stringify(driftOf(row, context))).not.toContain(SECRET);
      }),
      RUNS,
    );
  });
});

/** For example `Missing Start (Backoff)`: the type, what will be done, and what it waits for. */
function show(items: readonly DriftItem[]): string {
  const lines = items.map(({ type, plannedAction, blockedBy }) => `${type} ${plannedAction}${blockedBy === null ? "" : ` (${blockedBy})`}`);
  return lines.join(", ") || "-";
}
