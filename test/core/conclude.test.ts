/** What a pass leaves behind: verdicts, counters, times, the lane and the brake. Invariants 1, 8, 9 and 12 of design.md section 2. */
import { describe, expect, test } from "vitest";
import { conclude } from "../../src/controller/conclude.ts";
import { type Action, plan } from "../../src/controller/plan.ts";
import type { Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
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
  expiringSpec,
  failed,
  failedBefore,
  idleRecord,
  idleSpec,
  idleStatus,
  incomparable,
  instance,
  mortalSpec,
  observedState,
  outdated,
  pausedSpec,
  pendingStatus,
  readyRecord,
  readyStatus,
  record,
  running,
  runs,
  silent,
  spec,
  stalledStatus,
  starting,
  startingRecord,
  statusOf,
  stopped,
  suspendedSpec,
  suspendedStatus,
  unverified,
} from "../support/builders.ts";
import { showConclusion, showEvent } from "../support/show.ts";

const fresh = record();
const queued = record({ queuedTime: NOW - 5 * SECOND, nextReconcileTime: null, status: { ...pendingStatus, phase: "Queued" } });
const inLane = startingRecord();
const inLaneAgain = startingRecord({ failures: 2, nextRetryTime: NOW - SECOND });
const inLaneChanged = startingRecord({ generation: 2, spec: changedSpec });
const awaited = startingRecord({ lane: null });
const overQuota = record({ quotaReached: true });
const queuedOverQuota = record({ ...queued, quotaReached: true });
const queuedUnderQuota = record({ ...queued, status: statusOf("Queued", { Ready: { reason: "QuotaExceeded" } }) });
const queuedForCapacity = record({ ...queued, status: statusOf("Queued", { Ready: { reason: "CapacityUnavailable" } }) });
const queuedForUs = record({ ...queued, status: statusOf("Queued", { Ready: { reason: "Misconfigured" } }) });
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
const pausedInLane = startingRecord({ spec: pausedSpec });
const suspended = readyRecord({ spec: suspendedSpec, generation: 2, failures: 1, nextRetryTime: NOW + SECOND });
const suspendedBackingOff = admittedRecord({ spec: suspendedSpec, failures: 1, nextRetryTime: NOW + SECOND });
const suspendedInLane = startingRecord({ spec: suspendedSpec, generation: 2 });
const suspendedInQueue = record({ spec: suspendedSpec, generation: 2, queuedTime: NOW - 5 * SECOND });
const invalid = readyRecord({ spec: null, generation: 2 });
const deleting = readyRecord({ deletionTime: NOW - 4 * SECOND });
const deletingInLane = startingRecord({ deletionTime: NOW });
const deletingForHours = readyRecord({ deletionTime: NOW - 600 * MINUTE });
const deletingInQueue = admittedRecord({ deletionTime: NOW - 4 * SECOND, queuedTime: NOW - 5 * SECOND });

function readyAgain(failures: number): WorkspaceRecord {
  return readyRecord({ failures });
}

const IDLE_FOR = 10 * MINUTE;
const mayIdle = readyRecord({ spec: idleSpec });
const mayIdleLooked = readyRecord({ spec: idleSpec, nextReconcileTime: NOW + MINUTE });
const mayIdleDue = readyRecord({ spec: idleSpec, nextReconcileTime: NOW });
const woken = readyRecord({ spec: idleSpec, wakeTime: NOW - SECOND });
const idle = idleRecord();
const idleWoken = idleRecord({ wakeTime: NOW - SECOND });
const idleWokenAtOnce = idleRecord({ wakeTime: NOW - 5 * SECOND });
const idleChanged = idleRecord({ spec: spec({ ...idleSpec, env: changedSpec.env }), generation: 2 });
const idleIllegible = idleRecord({ spec: null });
const idleIllegibleChanged = idleRecord({ spec: null, generation: 2 });
const idlePaused = idleRecord({ spec: spec({ ...idleSpec, paused: true }) });
const idlePausedNow = idleRecord({ spec: spec({ ...idleSpec, paused: true }), generation: 2 });
const mortal = readyRecord({ spec: mortalSpec });
const both = readyRecord({ spec: spec({ ...idleSpec, maxLifetimeSeconds: 3600 }), failures: 1 });
const toBeReplaced = readyRecord({ instance: instance({ destroyRequested: true }) });
const stalledToBeReplaced = admittedRecord({ status: stalledStatus, failures: 1, instance: instance({ destroyRequested: true }) });
const usedAgo = (ms: number) => runs({ startedTime: NOW - 60 * MINUTE, activityTime: NOW - ms });
const startedAgo = (ms: number) => runs({ startedTime: NOW - ms, activityTime: NOW });

const capacity = failed("Capacity", "CapacityUnavailable");
const rateLimited = failed("RateLimited", "RateLimited", { retryAfterMs: 30_000 });

/** Where backups are not taken: all but `Backup`. */
type Plain = Exclude<Action, { readonly trigger: unknown }>["kind"];
type Row = readonly [situation: string, record: WorkspaceRecord, action: Plain, observed: Observation, expected: string];

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
const limits: readonly Row[] = [
  ["a workspace that may idle is looked at when it would be", mayIdle, "Rest", usedAgo(MINUTE), "Ready | Ready=True(ContainerHealthy) | look +540s | ready -60s"],
  ["traffic that moves that time changes nothing as long as the old one is ahead", mayIdleLooked, "Rest", usedAgo(0), "Ready | Ready=True(ContainerHealthy) | look +60s | ready -60s"],
  ["an old time that comes too late is replaced",    readyRecord({ ...mayIdle, nextReconcileTime: NOW + 60 * MINUTE }), "Rest", usedAgo(MINUTE), "Ready | Ready=True(ContainerHealthy) | look +540s | ready -60s"],
  ["a time that has come is replaced",               mayIdleDue, "Rest",   usedAgo(MINUTE),   "Ready | Ready=True(ContainerHealthy) | look +540s | ready -60s"],
  ["a wake counts as traffic",                       woken,      "Rest",   usedAgo(IDLE_FOR), "Ready | Ready=True(ContainerHealthy) | look +599s | ready -60s"],
  ["a limited life is looked at when it ends",       mortal,     "Rest",   startedAgo(MINUTE), "Ready | Ready=True(ContainerHealthy) | look +3540s | ready -60s"],
  ["of several times the earliest counts: idleness", both,       "Rest",   runs({ activityTime: NOW - 9 * MINUTE }), "Ready | Ready=True(ContainerHealthy) | look +60s | failures 1 | ready -60s"],
  ["of several times the earliest counts: age",      both,       "Rest",   startedAgo(58 * MINUTE), "Ready | Ready=True(ContainerHealthy) | look +120s | failures 1 | ready -60s"],
  ["of several times the earliest counts: forgiving", both,      "Rest",   startedAgo(0),     "Ready | Ready=True(ContainerHealthy) | look +540s | failures 1 | ready -60s"],
  ["idle: marked before the stop",                   mayIdle,    "Suspend", usedAgo(IDLE_FOR), "Suspending | Ready=False(IdleTimeout) Reconciling=True(IdleTimeout) | look +0s | idle +0s"],
  ["idle: the stop takes a while",                   idle,       "Stop",   running,           "Suspending | Ready=False(IdleTimeout) Reconciling=True(IdleTimeout) | look +2s | idle -5s"],
  ["idle: whoever comes back before the stop ends it", idle,     "Rest",   usedAgo(SECOND),   "Ready | Ready=True(ContainerHealthy) | look +599s | ready +0s"],
  ["idle: also during an operator's hold",           idlePaused, "Rest",   usedAgo(SECOND),   "Ready | Ready=True(ContainerHealthy) | steady | ready +0s"],
  ["idle: stopped",                                  idle,       "Stop",   exited(143),       "Suspended | Ready=False(IdleTimeout) Suspended=True(IdleTimeout) | steady | idle -5s"],
  ["idle: however it ended",                         idle,       "Rest",   exited(137),       "Suspended | Ready=False(IdleTimeout) Suspended=True(IdleTimeout) | steady | idle -5s"],
  ["idle: a crash between mark and stop leads to the stop", idle, "Stop",  silent,            "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | idle -5s | unreachable +0s"],
  ["idle: an unreadable spec does not end it",       idleIllegible, "Rest", stopped,          "Stalled | Ready=False(InvalidSpec) Stalled=True(InvalidSpec) | steady | idle -5s"],
  ["idle: an unreadable spec that is another one does", idleIllegibleChanged, "Rest", stopped, "Stalled | Ready=False(InvalidSpec) Stalled=True(InvalidSpec) | steady"],
  ["idle: an operator's hold does not end it",       idlePaused, "Rest",   stopped,           "Pending | Ready=False(Paused) | steady | idle -5s"],
  ["idle: an operator's hold on a container of another spec", idlePaused, "Rest", outdated,   "Pending | Ready=False(Paused) | steady | idle -5s"],
  ["idle: another wish with an operator's hold does", idlePausedNow, "Rest", stopped,         "Pending | Ready=False(Paused) | steady"],
  ["idle: a wake ends it",                           idleWoken,  "Enqueue", stopped,          "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["idle: a wake before the stop ends it",           idleWoken,  "Rest",   running,           "Ready | Ready=True(ContainerHealthy) | look +599s | ready +0s"],
  ["idle: a wake in the millisecond of the mark ends it", idleWokenAtOnce, "Enqueue", stopped, "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["idle: a wake that meets silence is not forgotten", idleWoken, "Rest",  silent,            "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
  ["idle: another wish ends it",                     idleChanged, "Enqueue", stopped,         "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["idle: another wish that meets silence ends it for good", idleChanged, "Rest", silent,     "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
  ["a life that was long enough",                    mortal,     "Stop",   exited(143),       "Pending | Ready=False(LifetimeExceeded) Reconciling=True(LifetimeExceeded) | look +0s"],
  ["however it ended",                               mortal,     "Stop",   exited(137),       "Pending | Ready=False(LifetimeExceeded) Reconciling=True(LifetimeExceeded) | look +0s"],
  ["a life that does not end yet",                   mortal,     "Stop",   running,           "Pending | Ready=False(LifetimeExceeded) Reconciling=True(LifetimeExceeded) | look +2s"],
  ["another sandbox, since an operator asked",       toBeReplaced, "Destroy", destroyed,      "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +0s"],
  ["another sandbox does not make good what failed for good", stalledToBeReplaced, "Destroy", destroyed, "Pending | Ready=False(Pending) Reconciling=True(Pending) Stalled=True(StartFailed) | look +0s | failures 1"],
  ["no place under the quota",                       overQuota,  "Enqueue", absent,           "Queued | Ready=False(QuotaExceeded) Reconciling=True(QuotaExceeded) | steady | queued +0s"],
  ["a quota that was reached meanwhile",             queuedOverQuota, "Rest", absent,         "Queued | Ready=False(QuotaExceeded) Reconciling=True(QuotaExceeded) | steady | queued -5s"],
  ["a quota that has room again",                    queuedUnderQuota, "Rest", absent,        "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued -5s"],
  ["what the queue waits for is still said",         queuedForCapacity, "Rest", absent,       "Queued | Ready=False(CapacityUnavailable) Reconciling=True(CapacityUnavailable) | steady | queued -5s"],
  ["also where it is our own mistake",               queuedForUs, "Rest",  absent,            "Queued | Ready=False(Misconfigured) Reconciling=True(Misconfigured) | steady | queued -5s"],
];

const soon = expiringSpec(NOW + SECOND);
const expiring = (overrides: Partial<WorkspaceRecord>) => readyRecord({ spec: soon, ...overrides });
const over = readyRecord({ spec: expiringSpec(NOW - SECOND), unreachableTime: NOW - 30 * SECOND });

// oxfmt-ignore
const expiry: readonly Row[] = [
  ["a Ready workspace is looked at when its time comes", expiring({}), "Rest", running,         "Ready | Ready=True(ContainerHealthy) | look +1s | ready -60s"],
  ["so is one that is paused",                       expiring({ spec: expiringSpec(NOW + SECOND, { paused: true }) }), "Rest", stopped, "Pending | Ready=False(Paused) | look +1s"],
  ["and one that is suspended",                      expiring({ spec: expiringSpec(NOW + SECOND, { operatingMode: "Suspended" }) }), "Rest", stopped, "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | look +1s"],
  ["and one that is stalled",                        expiring({ ...stalled, spec: soon }), "Rest", stopped, "Stalled | Ready=False(StartFailed) Stalled=True(StartFailed) | look +1s | failures 1"],
  ["and one that waits for the lane",                expiring({ ...queued, spec: soon }), "Rest", absent, "Queued | Ready=False(Queued) Reconciling=True(Queued) | look +1s | queued -5s"],
  ["and one that backs off for longer",              expiring({}),  "Rest",    exited(137),     "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +1s | failures 1 | retry +3s"],
  ["and one that does not answer",                   expiring({ unreachableTime: NOW - MINUTE }), "Rest", silent, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +1s | ready -60s | unreachable -60s"],
  ["what is looked at before then is looked at before then", readyRecord({ spec: expiringSpec(NOW + MINUTE) }), "Rest", exited(137), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s"],
  ["a time that came in this very pass is due",      readyRecord({ ...over, unreachableTime: null }), "Rest", running, "Ready | Ready=True(ContainerHealthy) | look -1s | ready -60s"],
  ["but whoever does not answer is not asked more often for that", over, "Rest", silent,      "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +15s | ready -60s | unreachable -30s"],
  ["what is being deleted does not expire",          readyRecord({ ...over, deletionTime: NOW - 4 * SECOND, unreachableTime: null }), "Destroy", destroying, "Terminating | Ready=False(Terminating) Reconciling=True(Terminating) | look +2s"],
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
  ["a deployment that is wrong is nobody's fault here: the others have their turn first", inLane, "Start", failed("Misconfigured", "Misconfigured"), "Queued | Ready=False(Misconfigured) Reconciling=True(Misconfigured) | steady | queued +0s | lane released | brake by count"],
  ["it brakes the lane although it was of an older spec", inLaneChanged, "Rest", failed("Misconfigured", "Misconfigured"), "Queued | Ready=False(Misconfigured) Reconciling=True(Misconfigured) | steady | queued +0s | lane released | brake by count"],
  ["a start that outlasted its lane place is counted", awaited,  "Rest",    failed("Transient"), "Pending | Ready=False(StartFailed) Reconciling=True(StartFailed) | look +3s | failures 1 | retry +3s"],
  ["a want of capacity that outlasted its lane place has lost its place in the queue", awaited, "Rest", capacity, "Queued | Ready=False(CapacityUnavailable) Reconciling=True(CapacityUnavailable) | steady | queued +0s | brake by count"],
  ["unless it has joined the queue again",           startingRecord({ lane: null, queuedTime: NOW - 7 * SECOND }), "Rest", capacity, "Queued | Ready=False(CapacityUnavailable) Reconciling=True(CapacityUnavailable) | steady | queued -7s | brake by count"],
  ["the second crash in a row is not a loop yet",    readyAgain(1), "Rest", exited(137), "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +5.5s | failures 2 | retry +5.5s"],
  ["the third is",                                   readyAgain(2), "Rest", exited(137), "Pending | Ready=False(CrashLoopBackOff) Reconciling=True(CrashLoopBackOff) | look +10.5s | failures 3 | retry +10.5s"],
  ["so are those after it",                          readyAgain(3), "Rest", exited(1),   "Pending | Ready=False(CrashLoopBackOff) Reconciling=True(CrashLoopBackOff) | look +20.5s | failures 4 | retry +20.5s"],
  ["a third start that failed is no crash",          inLaneAgain, "Rest",   failed("Transient"), "Pending | Ready=False(StartFailed) Reconciling=True(StartFailed) | look +10.5s | failures 3 | retry +10.5s | lane released"],
  ["a container that the platform told to go is not counted, whatever its code", readyAgain(2), "Enqueue", exited(137, true), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | failures 2 | queued +0s"],
  ["nor if it was soon after it was Ready",          readyRecord({ readyTime: NOW - 10_000 }), "Enqueue", exited(1, true), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a request forgets the stall and its failures",   admittedRecord({ ...stalled, reconcileRequestTime: NOW }), "Enqueue", failedBefore("Permanent"), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a request forgets the backoff and its failures", admittedRecord({ ...backingOff, reconcileRequestTime: NOW }), "Enqueue", stopped, "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["a failure that a request meets is the first",    startingRecord({ failures: 4, reconcileRequestTime: NOW }), "Rest", failed("Transient"), "Pending | Ready=False(StartFailed) Reconciling=True(StartFailed) | look +3s | failures 1 | retry +3s | lane released"],
  ["a request that meets silence is met",            admittedRecord({ ...stalled, reconcileRequestTime: NOW }), "Rest", silent, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
  ["a start that was cancelled goes back to its place in the queue and is not counted", inLane, "Start", failed("Progressing", "Starting"), "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued -10s | lane released"],
  ["to a place that its namespace has none of now",  startingRecord({ quotaReached: true }), "Start", failed("Progressing", "Starting"), "Queued | Ready=False(QuotaExceeded) Reconciling=True(QuotaExceeded) | steady | queued -10s | lane released"],
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
  { part: "with limits", table: limits },
  { part: "until its time", table: expiry },
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

test("why a workspace is in the queue is said for as long as it is", () => {
  const message = "The container exited with code 0.";
  const waiting = record({ ...queued, status: statusOf("Queued", { Ready: { reason: "Queued", message } }) });
  const said = conclude(waiting, { kind: "Rest" }, absent, NOW, 0.5).status.conditions.find(({ type }) => type === "Ready");
  expect(said?.message).toBe(message);
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

describe("memory", () => {
  type StartRow = readonly [situation: string, record: WorkspaceRecord, observed: Observation, startId: string | null];

  // oxfmt-ignore
  const starts: readonly StartRow[] = [
    ["a start under way is awaited",                        inLane,   starting,            inLane.startId],
    ["also without its lane place",                         awaited,  starting,            inLane.startId],
    ["a container that nobody vouches for is awaited",      inLane,   unverified,          inLane.startId],
    ["a start that nothing is heard of is awaited",         inLane,   silent,              inLane.startId],
    ["a start that came to be Ready is not",                inLane,   running,             null],
    ["a start that failed is not",                          awaited,  failed("Transient"), null],
    ["a start whose container ended is not",                awaited,  stopped,             null],
    ["a workspace that awaits nothing awaits nothing",      outOfLane, starting,           null],
  ];

  test.for(starts)("%s", ([, situation, observed, startId]) => {
    expect(conclude(situation, { kind: "Rest" }, observed, NOW, 0.5).startId).toBe(startId);
  });

  type RunningRow = readonly [situation: string, record: WorkspaceRecord, observed: Observation, running: boolean];

  // oxfmt-ignore
  const holders: readonly RunningRow[] = [
    ["a container that runs counts",                        ready,     running,            true],
    ["so does a start under way",                           inLane,    starting,           true],
    ["a stopped sandbox holds no place",                    ready,     stopped,            false],
    ["nor does a failed one",                               inLane,    failed("Permanent"), false],
    ["nor does one that was destroyed",                     deleting,  destroyed,          false],
    ["one that is being destroyed does",                    deleting,  destroying,         true],
    ["silence changes nothing: ran",                        ready,     silent,             true],
    ["silence changes nothing: ran not",                    readyRecord({ instance: instance({ running: false }) }), silent, false],
    ["what was never admitted holds no place",              fresh,     absent,             false],
    ["nor if something failed",                             fresh,     silent,             false],
  ];

  test.for(holders)("under the quota: %s", ([, situation, observed, isRunning]) => {
    expect(conclude(situation, { kind: "Rest" }, observed, NOW, 0.5).running).toBe(isRunning);
  });

  test("what was seen is kept, silence is not", () => {
    const { observed } = conclude(ready, { kind: "Rest" }, runs({ startedTime: 1, activityTime: 2 }), NOW, 0.5);
    expect(observed).toMatchObject({ kind: "Running", startedTime: 1, activityTime: 2, differences: [] });
    expect(conclude(ready, { kind: "Rest" }, silent, NOW, 0.5).observed).toBe(ready.observed);
    expect(conclude(invalid, { kind: "Rest" }, stopped, NOW, 0.5).observed).toEqual(observedState("Stopped"));
  });

  test("a difference is dated by its first sight, and counted while it lasts", () => {
    const first = conclude(ready, { kind: "Enqueue" }, stopped, NOW - MINUTE, 0.5).observed;
    expect(first?.differences).toEqual([{ type: "Missing", firstSeenTime: NOW - MINUTE, timesSeen: 1 }]);
    const second = conclude(readyRecord({ observed: first }), { kind: "Rest" }, absent, NOW, 0.5).observed;
    expect(second?.differences).toEqual([{ type: "Missing", firstSeenTime: NOW - MINUTE, timesSeen: 2 }]);
    const gone = conclude(readyRecord({ observed: second }), { kind: "Rest" }, running, NOW, 0.5).observed;
    expect(gone?.differences).toEqual([]);
    const other = conclude(readyRecord({ observed: second, spec: changedSpec }), { kind: "Rest" }, running, NOW, 0.5).observed;
    expect(other?.differences).toEqual([{ type: "OutOfSync", firstSeenTime: NOW, timesSeen: 1 }]);
  });

  test("a mark survives a crash between it and the stop, and the stop follows", () => {
    const marked = conclude(mayIdle, { kind: "Suspend" }, usedAgo(IDLE_FOR), NOW, 0.5);
    expect(marked).toMatchObject({ idleTime: NOW, readyTime: null, nextReconcileTime: NOW });
    const reloaded = readyRecord({ spec: idleSpec, ...marked });
    expect(plan(reloaded, usedAgo(0), NOW + 1, true).kind).toBe("Stop");
    expect(plan(reloaded, exited(137), NOW + 1, true).kind).toBe("Rest");
  });
});

describe("a rollout of all at once", () => {
  const codes = [0, 137, 143, null];
  const rows = codes.flatMap((code) => [ready, readyAgain(2), awaited].map((situation) => ({ code, situation })));

  test.for(rows)("counts nothing: code $code", ({ code, situation }) => {
    const gone = exited(code, true);
    const action = plan(situation, gone, NOW, false);
    const { failures, brake, nextRetryTime, status } = conclude(situation, action, gone, NOW, 0.5);
    expect({ action: action.kind, failures, brake, nextRetryTime, phase: status.phase }).toEqual({
      action: "Enqueue",
      failures: situation.failures,
      brake: null,
      nextRetryTime: null,
      phase: "Queued",
    });
  });
});

describe("history", () => {
  type EventRow = readonly [situation: string, record: WorkspaceRecord, action: Plain, observed: Observation, expected: string];

  // oxfmt-ignore
  const events: readonly EventRow[] = [
    ["nothing in a steady state",                 ready,      "Rest",    running,              "-"],
    ["nothing while it waits in the queue",       queuedForCapacity, "Rest",    absent,               "-"],
    ["nothing while it is idle",                  idle,       "Rest",    stopped,              "-"],
    ["nothing while it does not answer",          readyRecord({ status: statusOf("Unknown", { Ready: { status: "Unknown", reason: "Unreachable" } }) }), "Rest", silent, "-"],
    ["the first verdict",                         fresh,      "Enqueue", absent,               "Normal Queued"],
    ["Ready",                                     inLane,     "Start",   running,              "Normal ContainerHealthy"],
    ["a crash, with its code",                    ready,      "Rest",    exited(137),          "Warning ContainerExited: The container exited with code 137."],
    ["a crash without a code",                    startingRecord({ lane: null, startId: "start-of-long-ago" }), "Rest", exited(null), "Warning ContainerExited: The container exited with code unknown."],
    ["a loop of crashes, with the code",          readyAgain(2), "Rest", exited(139),          "Warning CrashLoopBackOff: The container exited with code 139."],
    ["an end that the platform asked for",        ready,      "Enqueue", exited(143, true),    "Normal Queued: The container exited with code 143, as the platform told it to."],
    ["a quiet end",                               ready,      "Enqueue", exited(0),            "Normal Queued: The container exited with code 0."],
    ["an end that nobody saw",                    ready,      "Enqueue", stopped,              "Normal Queued"],
    ["the end of what was not Ready",             outOfLane,  "Enqueue", exited(0),            "Normal Queued"],
    ["a failed start",                            inLane,     "Rest",    failed("Transient"),  "Warning StartFailed: a failure of class Transient"],
    ["want of capacity",                          inLane,     "Rest",    capacity,             "Warning CapacityUnavailable: a failure of class Capacity"],
    ["a rate limit",                              inLane,     "Rest",    rateLimited,          "Warning RateLimited: a failure of class RateLimited"],
    ["a deployment that is wrong",                inLane,     "Rest",    failed("Misconfigured", "Misconfigured"), "Warning Misconfigured: a failure of class Misconfigured"],
    ["no place under the quota",                  overQuota,  "Enqueue", absent,               "Warning QuotaExceeded: As many workspaces run in the namespace as its quota allows."],
    ["silence",                                   ready,      "Rest",    silent,               "Warning Unreachable: no answer"],
    ["an unreadable spec",                        invalid,    "Rest",    running,              "Warning InvalidSpec: The stored spec no longer parses; PUT a valid one."],
    ["idleness",                                  mayIdle,    "Suspend", usedAgo(IDLE_FOR),    "Normal IdleTimeout: No user traffic for as long as spec.idle.timeoutSeconds."],
    ["idleness that came to its end",             readyRecord({ ...idle, status: { ...idleStatus, phase: "Suspending" } }), "Stop", stopped, "Normal IdleTimeout: Suspended after spec.idle.timeoutSeconds without user traffic; ask for :wake to run it again."],
    ["a life that was long enough",               mortal,     "Stop",    exited(143),          "Warning LifetimeExceeded: The container ran for spec.maxLifetimeSeconds; a fresh one follows."],
    ["another sandbox",                           toBeReplaced, "Destroy", destroyed,          "Normal Pending: An operator asked for another sandbox."],
    ["the same phase for another reason",         admittedRecord({ ...backingOff, spec: pausedSpec }), "Rest", stopped, "Normal Paused: spec.paused is true; nothing is done but deletion."],
    ["another message for the same reason",       readyRecord({ spec: pausedSpec }), "Rest", running, "-"],
    ["a deletion",                                deleting,   "Destroy", destroyed,            "Normal Terminating"],
    ["a deletion that goes on",                   readyRecord({ deletionTime: NOW, status: statusOf("Terminating", { Ready: { reason: "Terminating" } }) }), "Destroy", destroying, "-"],
  ];

  test.for(events)("%s", ([, situation, action, observed, expected]) => {
    expect(showEvent(conclude(situation, { kind: action }, observed, NOW, 0.5))).toBe(expected);
  });
});
