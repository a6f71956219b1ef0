/** What a pass leaves behind: verdicts, counters, times, the lane and the brake. Invariants 1, 8, 9 and 12 of design.md section 2. */
import { describe, expect, test } from "vitest";
import { conclude } from "../../src/controller/conclude.ts";
import type { Action } from "../../src/controller/plan.ts";
import type { Observation, WorkspaceRecord } from "../../src/workspace.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  absent,
  admittedRecord,
  changedSpec,
  condition,
  destroyed,
  destroying,
  exited,
  failed,
  failedBefore,
  incomparable,
  lane,
  outdated,
  pausedSpec,
  pendingStatus,
  readyRecord,
  readyStatus,
  record,
  running,
  silent,
  spec,
  stalledStatus,
  starting,
  statusOf,
  stopped,
  suspendedSpec,
  suspendedStatus,
  unverified,
} from "../support/builders.ts";
import { showConclusion } from "../support/show.ts";

const fresh = record();
const queued = record({ queuedTime: NOW - 5 * SECOND, nextReconcileTime: null, status: { ...pendingStatus, phase: "Queued" } });
const inLane = admittedRecord({ lane: lane() });
const inLaneAgain = admittedRecord({ lane: lane(), failures: 2, nextRetryTime: NOW - SECOND });
const inLaneChanged = admittedRecord({ lane: lane(), generation: 2, spec: changedSpec });
const outOfLane = admittedRecord();
const ready = readyRecord();
const readyWithFailures = readyRecord({ failures: 2, readyTime: NOW - 9 * MINUTE });
const readyLongEnough = readyRecord({ failures: 2, readyTime: NOW - 10 * MINUTE });
const readyChanged = readyRecord({ generation: 2, spec: changedSpec, failures: 2, nextRetryTime: NOW + SECOND });
const backingOff = admittedRecord({
  status: statusOf("Pending", { Ready: { reason: "StartTimeout" }, Reconciling: { status: "True", reason: "StartTimeout" } }),
  failures: 2,
  nextRetryTime: NOW + 7 * SECOND,
});
const backingOffChanged = admittedRecord({ failures: 2, nextRetryTime: NOW + 7 * SECOND, generation: 2, spec: changedSpec });
const stalled = admittedRecord({ status: stalledStatus, failures: 1 });
const stalledChanged = admittedRecord({ status: stalledStatus, failures: 1, generation: 2, spec: changedSpec });
const unreachable = readyRecord({ unreachableTime: NOW - 30 * SECOND, nextReconcileTime: NOW });
const unreachableForHours = readyRecord({ unreachableTime: NOW - 600 * MINUTE, nextReconcileTime: NOW });
const unreachableInQueue = record({ queuedTime: NOW - 5 * SECOND, instance: inLane.instance, incarnation: 1 });
const unreachableBackingOff = admittedRecord({
  status: statusOf("Unknown", { Ready: { status: "Unknown", reason: "Unreachable", message: "no answer" } }),
  failures: 2,
  nextRetryTime: NOW + 7 * SECOND,
  unreachableTime: NOW - 2 * SECOND,
});
const paused = readyRecord({ spec: pausedSpec, generation: 2 });
const pausedChanged = readyRecord({ spec: spec({ paused: true, env: { MODE: "changed" } }), generation: 2 });
const pausedInQueue = record({ spec: pausedSpec, queuedTime: NOW - 5 * SECOND });
const pausedInLane = admittedRecord({ spec: pausedSpec, lane: lane() });
const suspended = readyRecord({ spec: suspendedSpec, generation: 2, failures: 1, nextRetryTime: NOW + SECOND });
const suspendedBackingOff = admittedRecord({ spec: suspendedSpec, failures: 1, nextRetryTime: NOW + SECOND });
const suspendedInLane = admittedRecord({ spec: suspendedSpec, generation: 2, lane: lane() });
const suspendedInQueue = record({ spec: suspendedSpec, generation: 2, queuedTime: NOW - 5 * SECOND });
const invalid = readyRecord({ spec: null, generation: 2 });
const deleting = readyRecord({ deletionTime: NOW - 4 * SECOND });
const deletingInLane = admittedRecord({ deletionTime: NOW, lane: lane() });
const deletingForHours = readyRecord({ deletionTime: NOW - 600 * MINUTE });
const deletingInQueue = admittedRecord({ deletionTime: NOW - 4 * SECOND, queuedTime: NOW - 5 * SECOND });

const capacity = failed("Capacity", "CapacityUnavailable");
const rateLimited = failed("RateLimited", "RateLimited", { retryAfterMs: 30_000 });

type Row = readonly [situation: string, record: WorkspaceRecord, action: Action["kind"], observed: Observation, expected: string];

// oxfmt-ignore
const toward: readonly Row[] = [
  ["joining the queue",                              fresh,      "Enqueue", absent,     "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["waiting in the queue keeps its place",           queued,     "Rest",    absent,     "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued -5s"],
  ["a start about to begin",                         fresh,      "Start",   starting,   "Starting | Ready=False(Starting) Reconciling=True(Starting) | look +0s"],
  ["a start under way keeps the lane",               inLane,     "Start",   starting,   "Starting | Ready=False(Starting) Reconciling=True(Starting) | look +0s"],
  ["a start without a lane place is looked at soon", outOfLane,  "Rest",    starting,   "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +1s"],
  ["a start that came to be Ready gives the lane on",inLane,     "Start",   running,    "Ready | Ready=True(ContainerHealthy) | steady | ready +0s | lane released"],
  ["a retry that came to be Ready remembers for ten minutes", inLaneAgain, "Start", running, "Ready | Ready=True(ContainerHealthy) | look +600s | failures 2 | ready +0s | lane released"],
  ["a start that the sandbox refused as destroyed",  inLane,     "Start",   destroyed,  "Starting | Ready=False(Starting) Reconciling=True(Starting) | look +0s | lane released"],
  ["an uncertain start keeps the lane",              inLane,     "Start",   silent,     "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
  ["a container that nobody vouches for keeps the lane, and is not asked for without a pause", inLane, "Start", unverified, "Starting | Ready=False(Starting) Reconciling=True(Starting) | look +1s"],
  ["a start of the old spec that came to be Ready is not what is wished", inLaneChanged, "Start", running, "Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) | look +0s | lane released"],
  ["a wish for another spec begins with a destroy",  readyChanged, "Destroy", destroyed,"Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) | look +0s"],
  ["a destroy that is not effective yet",            readyChanged, "Destroy", destroying, "Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) | look +2s"],
];

// oxfmt-ignore
const steady: readonly Row[] = [
  ["a Ready workspace stays Ready",                  ready,      "Rest",    running,      "Ready | Ready=True(ContainerHealthy) | steady | ready -60s"],
  ["a container of another controller version is as good", ready, "Rest",   incomparable, "Ready | Ready=True(ContainerHealthy) | steady | ready -60s"],
  ["failures are remembered for ten minutes",        readyWithFailures, "Rest", running,  "Ready | Ready=True(ContainerHealthy) | look +60s | failures 2 | ready -540s"],
  ["failures are forgiven after ten minutes Ready",  readyLongEnough, "Rest", running,    "Ready | Ready=True(ContainerHealthy) | steady | ready -600s"],
  ["a quiet stop leads back to the queue",           ready,      "Enqueue", stopped,      "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a paused container that runs is Ready",          paused,     "Rest",    running,      "Ready | Ready=True(ContainerHealthy) | steady | ready -60s"],
  ["a paused workspace that does not run is Paused", paused,     "Rest",    stopped,      "Pending | Ready=False(Paused) | steady"],
  ["a paused container of an older spec is not Ready with the newer", pausedChanged, "Rest", outdated, "Pending | Ready=False(Paused) | steady"],
  ["a paused workspace leaves the queue",            pausedInQueue, "Rest", absent,       "Pending | Ready=False(Paused) | steady"],
  ["a paused start keeps its place in the lane",     pausedInLane, "Rest",  starting,     "Pending | Ready=False(Paused) | steady"],
  ["a paused start that ended gives the lane on",    pausedInLane, "Rest",  running,      "Ready | Ready=True(ContainerHealthy) | steady | ready +0s | lane released"],
  ["an unreadable spec is a stall",                  invalid,    "Rest",    running,      "Stalled | Ready=False(InvalidSpec) Stalled=True(InvalidSpec) | steady"],
  ["suspending takes a while",                       suspended,  "Stop",    unverified,   "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) | look +2s"],
  ["suspended once nothing runs, and nothing is to be retried", suspended, "Stop", exited(143), "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | steady"],
  ["suspended in the middle of a backoff",           suspendedBackingOff, "Rest", failedBefore("Transient"), "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | steady | failures 1"],
  ["suspended without ever having run",              suspendedInQueue, "Rest", absent,    "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | steady"],
  ["suspending a start gives the lane on",           suspendedInLane, "Stop", failed("Transient"), "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | steady | lane released"],
];

// oxfmt-ignore
const failing: readonly Row[] = [
  ["a failed start backs off",                       inLane,     "Rest",    failed("Transient", "StartTimeout"), "Pending | Ready=False(StartTimeout) Reconciling=True(StartTimeout) | look +3s | failures 1 | retry +3s | lane released"],
  ["a failed start is counted in the pass that began it", inLane, "Start",  failed("Transient"), "Pending | Ready=False(StartFailed) Reconciling=True(StartFailed) | look +3s | failures 1 | retry +3s | lane released"],
  ["each failure doubles the bound",                 inLaneAgain, "Start",  failed("Transient"), "Pending | Ready=False(StartFailed) Reconciling=True(StartFailed) | look +10.5s | failures 3 | retry +10.5s | lane released"],
  ["a failure that was counted is not counted again",backingOff, "Rest",    failed("Transient"), "Pending | Ready=False(StartTimeout) Reconciling=True(StartTimeout) | look +7s | failures 2 | retry +7s"],
  ["a permanent failure stalls",                     inLane,     "Start",   failed("Permanent"), "Stalled | Ready=False(StartFailed) Stalled=True(StartFailed) | steady | failures 1 | lane released"],
  ["a stall has nothing to retry",                   inLaneAgain,"Start",   failed("Permanent"), "Stalled | Ready=False(StartFailed) Stalled=True(StartFailed) | steady | failures 3 | lane released"],
  ["a stalled workspace stays as it is",             stalled,    "Rest",    failedBefore("Permanent"), "Stalled | Ready=False(StartFailed) Stalled=True(StartFailed) | steady | failures 1"],
  ["a new generation forgets the stall and its failures", stalledChanged, "Enqueue", failedBefore("Permanent"), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a new generation forgets the backoff",           backingOffChanged, "Enqueue", stopped, "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a start of an older generation does not stall the new one", inLaneChanged, "Rest", failed("Permanent"), "Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) | look +0s | lane released"],
  ["a start of an older generation does not hold the new one back", inLaneChanged, "Rest", failed("Transient"), "Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) | look +0s | lane released"],
  ["a crash of a Ready container backs off",         ready,      "Rest",    exited(137), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s"],
  ["an end soon after Ready backs off, however clean", readyRecord({ readyTime: NOW - 10_000 }), "Rest", exited(0), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s"],
  ["a crash is counted once",                        backingOff, "Rest",    exited(137), "Pending | Ready=False(StartTimeout) Reconciling=True(StartTimeout) | look +7s | failures 2 | retry +7s"],
  ["a crash after ten minutes Ready is the first again", readyLongEnough, "Rest", exited(137), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s"],
  ["no capacity brakes the lane, returns to its place in the queue and is not counted", inLane, "Start", capacity, "Queued | Ready=False(CapacityUnavailable) Reconciling=True(CapacityUnavailable) | steady | queued -10s | lane released | brake by count"],
  ["a rate limit brakes the lane for as long as it asks", inLaneAgain, "Start", rateLimited, "Queued | Ready=False(RateLimited) Reconciling=True(RateLimited) | steady | failures 2 | retry -1s | queued -10s | lane released | brake 30s"],
  ["a deployment that is wrong is not the workspace's fault", inLane, "Start", failed("Misconfigured", "Misconfigured"), "Stalled | Ready=False(Misconfigured) Stalled=True(Misconfigured) | steady | lane released"],
  ["a start that was cancelled goes back to its place in the queue and is not counted", inLane, "Start", failed("Progressing", "Starting"), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued -10s | lane released"],
  ["a container that was gone in the middle of its start is tried again", inLane, "Start", failed("NotRunning", "ContainerExited"), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s | lane released"],
];

// oxfmt-ignore
const silence: readonly Row[] = [
  ["a sandbox that does not answer",                 ready,      "Rest",    silent,  "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | ready -60s | unreachable +0s"],
  ["a hanging sandbox costs less and less",          unreachable,"Rest",    silent,  "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +15s | ready -60s | unreachable -30s"],
  ["a hanging sandbox costs a look a minute at least", unreachableForHours, "Rest", silent, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +60s | ready -60s | unreachable -36000s"],
  ["a sandbox that answers again",                   unreachable,"Rest",    running, "Ready | Ready=True(ContainerHealthy) | steady | ready -60s"],
  ["a queued workspace keeps its place",             unreachableInQueue, "Rest", silent, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | queued -5s | unreachable +0s"],
  ["a stalled workspace stays stalled",              stalled,    "Rest",    silent,  "Unknown | Ready=Unknown(Unreachable) Stalled=True(StartFailed) | look +2s | failures 1 | unreachable +0s"],
  ["backing off goes on after silence, and no longer says Unreachable", unreachableBackingOff, "Rest", stopped, "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +7s | failures 2 | retry +7s"],
  ["a silent lane holder keeps the lane",            inLane,     "Rest",    silent,  "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
];

// oxfmt-ignore
const endings: readonly Row[] = [
  ["a deletion that is under way",                   deleting,   "Destroy", destroying, "Terminating | Ready=False(Terminating) Reconciling=True(Terminating) | look +2s"],
  ["a deletion that drags on",                       deletingForHours, "Destroy", destroying, "Terminating | Ready=False(Terminating) Reconciling=True(Terminating) | look +30s"],
  ["a deletion that only has to be forgotten",       deleting,   "Destroy", destroyed,  "Terminating | Ready=False(Terminating) Reconciling=True(Terminating) | look +0s"],
  ["a deletion that met silence",                    deleting,   "Destroy", silent,     "Terminating | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | ready -60s | unreachable +0s"],
  ["a deletion gives the lane on",                   deletingInLane, "Destroy", destroyed, "Terminating | Ready=False(Terminating) Reconciling=True(Terminating) | look +0s | lane released"],
  ["a deletion that met silence keeps the lane",     deletingInLane, "Destroy", silent, "Terminating | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
  ["a deletion leaves the queue, answered or not",   deletingInQueue, "Rest", silent,   "Terminating | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
];

describe.each([
  { part: "toward the wish", table: toward },
  { part: "steady", table: steady },
  { part: "failing", table: failing },
  { part: "silence", table: silence },
  { part: "endings", table: endings },
])("$part", ({ table }) => {
  test.for(table)("%s", ([, situation, action, observed, expected]) => {
    const conclusion = conclude(situation, { kind: action }, observed, NOW, 0.5);
    expect(showConclusion(conclusion)).toBe(expected);
  });
});

const suspendedSince = admittedRecord({ spec: suspendedSpec, status: suspendedStatus });
const noConditions = readyRecord({ status: { observedGeneration: 1, phase: "Ready", conditions: [] } });
const someConditions = readyRecord({ status: { ...readyStatus, conditions: [condition("Stalled", "False", "Retryable")] } });

type TransitionRow = readonly [situation: string, record: WorkspaceRecord, observed: Observation, moved: string];

// oxfmt-ignore
const transitions: readonly TransitionRow[] = [
  ["nothing moves while nothing changes",            ready,          running,     ""],
  ["the first verdict dates them all",               fresh,          running,     "Ready Reconciling Stalled Suspended"],
  ["conditions that were missing are dated now",     noConditions,   running,     "Ready Reconciling Stalled Suspended"],
  ["conditions that were there keep their dates",    someConditions, running,     "Ready Reconciling Suspended"],
  ["a crash moves Ready and Reconciling",            ready,          exited(1),   "Ready Reconciling"],
  ["silence moves Ready and Reconciling",            ready,          silent,      "Ready Reconciling"],
  ["another reason for the same status moves nothing", backingOff,   failed("Transient"), ""],
  ["a permanent failure moves Stalled",              inLane,         failed("Permanent"), "Reconciling Stalled"],
  ["a stall that goes on moves nothing",             stalled,        stopped,     ""],
  ["being suspended goes on",                        suspendedSince, stopped,     ""],
];

test.for(transitions)("%s", ([, situation, observed, moved]) => {
  const { status } = conclude(situation, { kind: "Rest" }, observed, NOW, 0.5);
  const dated = status.conditions.filter(({ lastTransitionTime }) => lastTransitionTime === NOW).map(({ type }) => type);
  expect(dated.join(" ")).toBe(moved);
});

test("every condition is there, once, and is about the generation that was looked at", () => {
  const { status } = conclude(readyChanged, { kind: "Rest" }, silent, NOW, 0.5);
  expect(status.observedGeneration).toBe(2);
  expect(status.conditions.map(({ type, observedGeneration }) => `${type} ${observedGeneration}`)).toEqual([
    "Ready 2",
    "Reconciling 2",
    "Stalled 2",
    "Suspended 2",
  ]);
});

test("the reason why a workspace is not suspended says what it is on its way to", () => {
  const reasons = [ready, suspended, deleting].map((situation) => {
    const { status } = conclude(situation, { kind: "Rest" }, running, NOW, 0.5);
    return status.conditions.find(({ type }) => type === "Suspended")?.reason;
  });
  expect(reasons).toEqual(["WishedRunning", "Suspending", "Terminating"]);
});

test("what the platform said is in the message of Ready and of Stalled, and nowhere else", () => {
  const { status } = conclude(inLane, { kind: "Start" }, failed("Permanent", "StartFailed", { message: "no such image" }), NOW, 0.5);
  expect(status.conditions.map(({ type, message }) => `${type}: ${message}`)).toEqual([
    "Ready: no such image",
    "Reconciling: ",
    "Stalled: no such image",
    "Suspended: ",
  ]);
});
