/**
 * What a pass leaves behind: status and memory, from the record, the action and the look after it. Every condition is computed in
 * `conditions.ts` from the verdict made here and in `conclude-missing.ts`, and nowhere else. Pure; chance is an input.
 */
import type { BackupOutcome } from "../backup.ts";
import type { Failure, Instant, Observation, WorkspaceSpec } from "../workspace.ts";
import type { Conclusion, ObservedState, WorkspaceRecord } from "../workspace-record.ts";
import { FORGIVE_AFTER_MS, patienceMs } from "./backoff.ts";
import { hasFailed, isUnderWay, nextBackupTime } from "./backup-due.ts";
import { endingOf, withEnding } from "./backup-ending.ts";
import { type Difference, compare, mayRun, toObservedState } from "./compare.ts";
import { concludeMissing } from "./conclude-missing.ts";
import { nextStatus } from "./conditions.ts";
import { eventOf } from "./event.ts";
import { farewell, pendingEnd, waitingReason } from "./farewell.ts";
import { type Outcome, lastReason, superseded } from "./outcome.ts";
import { type Action, isStalled } from "./plan.ts";
import {
  deservesNewTry,
  expiryOf,
  heedReturn,
  idleDeadline,
  idleSince,
  isSuspendedForIdleness,
  lifetimeDeadline,
  wishedMode,
} from "./wish.ts";

/** `taken`: what the sandbox answered about the active backup; null where it was not asked. */
export function conclude(
  before: WorkspaceRecord,
  action: Action,
  observed: Observation,
  now: Instant,
  chance: number,
  taken: BackupOutcome | null = null,
): Conclusion {
  const backup = endingOf(before, observed, taken, now);
  const record = heedReturn(withEnding(before, backup, now), observed);
  const fresh = deservesNewTry(record) ? { ...record, failures: 0, nextRetryTime: null } : record;
  const outcome = decide(fresh, action, observed, now, chance);
  const { failures, nextRetryTime, readyTime, queuedTime, nextReconcileTime, laneReleased, brake, unreachableTime, idleTime, ...verdict } =
    outcome;
  const status = nextStatus(record, verdict, now);
  return {
    status,
    failures: failures ?? fresh.failures,
    nextRetryTime: nextRetryTime === undefined ? fresh.nextRetryTime : nextRetryTime,
    readyTime: readyTime ?? null,
    queuedTime: queuedTime ?? null,
    unreachableTime: unreachableTime ?? null,
    nextReconcileTime: beforeExpiry(record, observed, afterBackup(record, observed, nextReconcileTime ?? null, now), now),
    idleTime: idleTime ?? null,
    startId: isSettled(observed) && observed.kind !== "Preparing" ? null : record.startId,
    observed: nextObserved(record, observed, now),
    running: observed.kind === "Unknown" ? (record.instance?.running ?? false) : mayRun(observed.kind),
    laneReleased: laneReleased ?? (fresh.lane !== null && isSettled(observed)),
    brake: brake ?? null,
    event: eventOf(record.status, status),
    backup,
  };
}

/** Whether no container can come of a start any more, so that the lane can be given to the next. */
function isSettled(observed: Observation): boolean {
  return observed.kind !== "Starting" && observed.kind !== "Unknown" && observed.kind !== "Unverified";
}

/** A backup under way is what to look after next. An end follows the backup that it waits for, or waits for another try. */
function afterBackup(record: WorkspaceRecord, observed: Observation, nextReconcileTime: Instant | null, now: Instant): Instant | null {
  const { backups } = record;
  if (backups === null || observed.kind === "Unknown") return nextReconcileTime;
  if (isUnderWay(backups)) return now + patienceMs(now - (backups.active?.startedTime ?? now), 1000, 5000);
  const isHeld = record.deletionTime === null && (record.spec === null || record.spec.paused);
  if (isHeld) return nextReconcileTime;
  const pending = pendingEnd(record, observed, now);
  // Asked for before it ran.
  if (pending === null && backups.active !== null && observed.kind === "Running") return now;
  const next = pending === null ? null : farewell(record, pending, now);
  if (next?.kind === "Wait") return beforeDeadline(record, next.until);
  return next?.kind === "Take" || (next?.kind === "Go" && backups.last?.endedTime === now) ? now : nextReconcileTime;
}

function beforeDeadline({ finalBackupDeadlineTime }: WorkspaceRecord, time: Instant): Instant {
  return Math.min(time, finalBackupDeadlineTime ?? time);
}

function beforeExpiry(
  { spec, deletionTime }: WorkspaceRecord,
  observed: Observation,
  nextReconcileTime: Instant | null,
  now: Instant,
): Instant | null {
  const expiry = deletionTime === null ? expiryOf(spec) : null;
  if (expiry === null || nextReconcileTime === null) return nextReconcileTime ?? expiry;
  // Its time came in this very pass. Whoever does not answer is not asked more often for that.
  if (expiry <= now && observed.kind === "Unknown") return nextReconcileTime;
  return Math.min(expiry, nextReconcileTime);
}

/** A look without an answer says nothing new. What still differs keeps the time at which it first did. */
function nextObserved(record: WorkspaceRecord, observed: Observation, now: Instant): ObservedState | null {
  const state = toObservedState(observed);
  if (state === null) return record.observed;
  const found: readonly Difference[] = record.spec === null ? [] : compare(record, record.spec, state, now);
  const before = record.observed?.differences ?? [];
  const differences = found.map(({ type }) => {
    const known = before.find((difference) => difference.type === type);
    return { type, firstSeenTime: known?.firstSeenTime ?? now, timesSeen: (known?.timesSeen ?? 0) + 1 };
  });
  return { ...state, differences };
}

function decide(record: WorkspaceRecord, action: Action, observed: Observation, now: Instant, chance: number): Outcome {
  if (record.deletionTime !== null) return deleting(record, record.deletionTime, observed, now);
  if (observed.kind === "Unknown") return unreachable(record, observed.failure, now);
  if (record.spec === null) return invalidSpec(record);
  if (record.spec.paused) return paused(record, record.spec, observed, now);
  if (action.kind === "Destroy") return replacing(record, observed, now);
  if (action.kind === "Suspend") return goingIdle(now);
  if (wishedMode(record, record.spec) === "Suspended") return suspended(record, record.spec, observed, now);
  if (action.kind === "Stop") return outlived(observed, now);
  if (observed.kind !== "Running") return concludeMissing(record, record.spec, action, observed, now, chance);
  const isInSync = compare(record, record.spec, toObservedState(observed), now).every(({ type }) => type !== "OutOfSync");
  if (isInSync) return ready(record, record.spec, observed, now);
  return { ...superseded(now), ...waitingReason(record, observed, now) };
}

function deleting(record: WorkspaceRecord, since: Instant, observed: Observation, now: Instant): Outcome {
  if (observed.kind === "Unknown") return { ...unreachable(record, observed.failure, now), phase: "Terminating", queuedTime: null };
  const isDone = record.instance === null || observed.kind === "Destroyed";
  const wait = isDone ? 0 : patienceMs(now - since, 1000, 30_000);
  const still = observed.kind === "Destroying" ? "A container still runs after it was told to go." : "";
  const why = waitingReason(record, observed, now) ?? lossOf(record, since, now) ?? { reason: "Terminating" as const, message: still };
  return { phase: "Terminating", ready: "False", ...why, reconciling: true, nextReconcileTime: now + wait };
}

/** A final backup that was wished, and did not come before its deadline. */
function lossOf({ backups, finalBackup, finalBackupDeadlineTime }: WorkspaceRecord, since: Instant, now: Instant) {
  if (backups === null || finalBackup === "Skip" || finalBackupDeadlineTime === null || now < finalBackupDeadlineTime) return null;
  const { last } = backups;
  const isThere = last !== null && last.startedTime >= since && !hasFailed(last);
  return isThere ? null : ({ reason: "BackupFailed", message: "No final backup could be taken before its deadline." } as const);
}

/** How long it has been so decides how soon to look again: a hanging sandbox costs less and less. */
function unreachable(record: WorkspaceRecord, failure: Failure, now: Instant): Outcome {
  const unreachableTime = record.unreachableTime ?? now;
  return {
    phase: "Unknown",
    ready: "Unknown",
    reason: "Unreachable",
    message: failure.message,
    reconciling: !isStalled(record),
    stall: isStalled(record) ? lastReason(record, "Stalled") : undefined,
    readyTime: record.readyTime,
    queuedTime: record.queuedTime,
    idleTime: idleSince(record),
    unreachableTime,
    nextReconcileTime: now + patienceMs(now - unreachableTime, 2000, 60_000),
  };
}

function invalidSpec(record: WorkspaceRecord): Outcome {
  const message = "The stored spec no longer parses; PUT a valid one.";
  const stall = { reason: "InvalidSpec", message } as const;
  return { phase: "Stalled", ready: "False", ...stall, stall, idleTime: idleSince(record) };
}

function paused(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, now: Instant): Outcome {
  const idleTime = idleSince(record);
  const running = { ...spec, operatingMode: "Running" as const };
  const isServing =
    observed.kind === "Running" && !compare({ ...record, idleTime: null }, running, toObservedState(observed), now).some(isStale);
  if (isServing) {
    const readyTime = record.readyTime ?? now;
    return { phase: "Ready", ready: "True", reason: "ContainerHealthy", message: "Paused.", readyTime, idleTime };
  }
  return { phase: "Pending", ready: "False", reason: "Paused", message: "spec.paused is true; nothing is done but deletion.", idleTime };
}

function isStale({ type }: Difference): boolean {
  return type === "OutOfSync";
}

function replacing(record: WorkspaceRecord, observed: Observation, now: Instant): Outcome {
  const cause = record.instance?.destroyRequested
    ? ({ reason: "Pending", message: "An operator asked for another sandbox." } as const)
    : ({ reason: "SpecChanged", message: "" } as const);
  // What failed for good does so in another sandbox, too.
  const stall = isStalled(record) ? lastReason(record, "Stalled") : undefined;
  const nextReconcileTime = now + (observed.kind === "Destroyed" ? 0 : 2000);
  return { phase: "Pending", ready: "False", ...cause, reconciling: true, stall, idleTime: idleSince(record), nextReconcileTime };
}

/** Written down before the stop: a pass that ends in between must not start it again. */
function goingIdle(now: Instant): Outcome {
  const message = "No user traffic for as long as spec.idle.timeoutSeconds.";
  return { phase: "Suspending", ready: "False", reason: "IdleTimeout", message, reconciling: true, idleTime: now, nextReconcileTime: now };
}

function suspended(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, now: Instant): Outcome {
  const isIdle = isSuspendedForIdleness(record, spec);
  const idleTime = isIdle ? record.idleTime : null;
  if (mayRun(observed.kind)) {
    const usual = { reason: isIdle ? "IdleTimeout" : "Suspending", message: "" } as const;
    const why = waitingReason(record, observed, now) ?? usual;
    return { phase: "Suspending", ready: "False", ...why, reconciling: true, idleTime, nextReconcileTime: now + 2000 };
  }
  const reason = isIdle ? "IdleTimeout" : "SuspendedByUser";
  const message = isIdle ? "Suspended after spec.idle.timeoutSeconds without user traffic; ask for :wake to run it again." : "";
  return { phase: "Suspended", ready: "False", reason, message, suspended: true, nextRetryTime: null, idleTime };
}

/** Its container reached the end of its life; a fresh one follows. */
function outlived(observed: Observation, now: Instant): Outcome {
  const wait = mayRun(observed.kind) ? 2000 : 0;
  const message = "The container ran for spec.maxLifetimeSeconds; a fresh one follows.";
  return { phase: "Pending", ready: "False", reason: "LifetimeExceeded", message, reconciling: true, nextReconcileTime: now + wait };
}

type Running = Extract<Observation, { kind: "Running" }>;

function ready(record: WorkspaceRecord, spec: WorkspaceSpec, { startedTime, activityTime }: Running, now: Instant): Outcome {
  const readyTime = record.readyTime ?? now;
  const forgiveTime = readyTime + FORGIVE_AFTER_MS;
  const isForgiven = record.failures > 0 && now >= forgiveTime;
  const deadlines = [
    record.failures > 0 && !isForgiven ? forgiveTime : null,
    idleDeadline(spec, activityTime, record.wakeTime),
    lifetimeDeadline(spec, startedTime),
    nextBackupTime({ ...record, readyTime }, spec),
  ].filter((time) => time !== null);
  return {
    phase: "Ready",
    ready: "True",
    reason: "ContainerHealthy",
    message: "",
    readyTime,
    failures: isForgiven ? 0 : record.failures,
    nextRetryTime: null,
    nextReconcileTime: deadlines.length === 0 ? null : stillAhead(record, Math.max(now, Math.min(...deadlines)), now),
  };
}

/** A time that was written down and comes sooner is kept: traffic that moves the idle deadline is not worth a write. */
function stillAhead({ nextReconcileTime }: WorkspaceRecord, deadline: Instant, now: Instant): Instant {
  return nextReconcileTime !== null && nextReconcileTime > now && nextReconcileTime < deadline ? nextReconcileTime : deadline;
}
