/** What a pass leaves of a workspace that is wished Running and has no verified container: it waits, starts, retries or is stalled. */
import type { Exit, Failure, Instant, Observation, Reason, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { FORGIVE_AFTER_MS, backoffMs } from "./backoff.ts";
import { isUnderWay } from "./backup-due.ts";
import { type Outcome, lastReason, superseded } from "./outcome.ts";
import { type Action, type CountableFailure, failureToCount, isStalled } from "./plan.ts";
import { restoreOf } from "./restore.ts";
import { isSameSpec, specHash } from "./spec-hash.ts";

/** So many crashes one after the other are a loop. */
const CRASH_LOOP_FAILURES = 3;
/** What could not be prepared so many times in a row is not tried, and paid for, again. */
const PREPARATION_TRIES = 5;

export function concludeMissing(
  record: WorkspaceRecord,
  spec: WorkspaceSpec,
  action: Action,
  observed: Observation,
  now: Instant,
  chance: number,
): Outcome {
  const countable = failureToCount(record, observed);
  if (countable !== null) return failed(record, spec, countable, observed, now, chance);
  if (isStalled(record)) return stillStalled(record);
  if (observed.kind === "Preparing") return preparing(observed.step, now);
  if (action.kind === "Start") return starting(observed, now);
  const restore = restoreOf(record, spec);
  if (restore.kind === "Missing" && !isUnderWay(record.backups)) return withoutSource(record, restore.message, now);
  if (action.kind === "Enqueue") return enqueued(record, observed, now);
  if (record.queuedTime !== null) return stillQueued(record, record.queuedTime);
  return stillWaiting(record, observed, now);
}

function failed(
  record: WorkspaceRecord,
  spec: WorkspaceSpec,
  countable: CountableFailure,
  observed: Observation,
  now: Instant,
  chance: number,
): Outcome {
  const outcome =
    countable.kind === "Crashed" ? crashed(record, countable.exit, now, chance) : startFailed(record, countable.failure, now, chance);
  if (!isOfOlderSpec(record, spec, observed)) return outcome;
  // An older wish's failure says nothing about this one, unless it concerns every workspace.
  return outcome.brake ? outcome : superseded(now);
}

function isOfOlderSpec({ status, generation }: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation): boolean {
  if (observed.kind === "Failed") return !isSameSpec(specHash(spec), observed.specHash);
  return status.observedGeneration !== generation;
}

function crashed(record: WorkspaceRecord, exit: Exit, now: Instant, chance: number): Outcome {
  const outcome = retrying(record, "ContainerExited", `The container exited with code ${exit.code ?? "unknown"}.`, now, chance);
  return (outcome.failures ?? 0) < CRASH_LOOP_FAILURES ? outcome : { ...outcome, reason: "CrashLoopBackOff" };
}

function startFailed(record: WorkspaceRecord, failure: Failure, now: Instant, chance: number): Outcome {
  const { reason, message, retryAfterMs = null } = failure;
  const brake = { retryAfterMs, reason, message };
  const sinceBefore = record.lane?.queuedTime ?? record.queuedTime ?? now;
  switch (failure.class) {
    case "Capacity":
    case "RateLimited":
      return { ...queued(sinceBefore, reason, message), brake };
    case "Misconfigured":
      // Nobody's fault here, and the same for everybody: the others get their turn to find out first.
      return { ...queued(now, reason, message), brake };
    case "Permanent":
      return {
        phase: "Stalled",
        ready: "False",
        reason,
        message,
        stall: failure,
        failures: record.failures + 1,
        nextRetryTime: null,
      };
    case "Progressing":
      return record.quotaReached ? overQuota(sinceBefore) : queued(sinceBefore, "Queued", message);
    case "Transient":
    case "Uncertain":
    case "NotRunning": {
      const outcome = retrying(record, reason, message, now, chance);
      return isHopeless(outcome)
        ? { ...outcome, phase: "Stalled", stall: { reason, message }, nextRetryTime: null, nextReconcileTime: null, reconciling: false }
        : outcome;
    }
  }
}

function isHopeless({ reason, failures = 0 }: Outcome): boolean {
  return (reason === "RestoreFailed" || reason === "SetupFailed") && failures >= PREPARATION_TRIES;
}

function retrying(record: WorkspaceRecord, reason: Reason, message: string, now: Instant, chance: number): Outcome {
  const isForgiven = record.readyTime !== null && now >= record.readyTime + FORGIVE_AFTER_MS;
  const failures = isForgiven ? 1 : record.failures + 1;
  const nextRetryTime = now + backoffMs(failures, chance);
  return {
    phase: "Pending",
    ready: "False",
    reason,
    message,
    reconciling: true,
    failures,
    nextRetryTime,
    nextReconcileTime: nextRetryTime,
  };
}

function starting(observed: Observation, now: Instant): Outcome {
  const nextReconcileTime = observed.kind === "Unverified" ? now + 1000 : now;
  return { phase: "Starting", ready: "False", reason: "Starting", message: "", reconciling: true, nextReconcileTime };
}

/** Its sandbox tells when it is through. */
function preparing(step: "Restore" | "Setup", now: Instant): Outcome {
  const phase = step === "Restore" ? "Restoring" : "Starting";
  const reason = step === "Restore" ? "Restoring" : "SettingUp";
  return { phase, ready: "False", reason, message: "", reconciling: true, nextReconcileTime: now + 5000 };
}

/** Nothing is started: it would be taken for the workspace, and its emptiness for a loss. */
function withoutSource({ unrestorable }: WorkspaceRecord, message: string, now: Instant): Outcome {
  // The same for everybody, and over as soon as the setting is back.
  if (unrestorable) {
    return { phase: "Pending", ready: "False", reason: "Misconfigured", message, reconciling: true, nextReconcileTime: now + 60_000 };
  }
  const stall = { reason: "SourceNotFound", message } as const;
  return { phase: "Stalled", ready: "False", ...stall, stall, nextRetryTime: null };
}

function enqueued(record: WorkspaceRecord, observed: Observation, now: Instant): Outcome {
  return record.quotaReached ? overQuota(now) : queued(now, "Queued", endOf(record, observed));
}

/** The end of a container that is no failure is still worth a word. */
function endOf({ readyTime }: WorkspaceRecord, observed: Observation): string {
  if (readyTime === null || observed.kind !== "Stopped" || observed.exit === null) return "";
  const { code, signalled } = observed.exit;
  return `The container exited with code ${code ?? "unknown"}${signalled ? ", as the platform told it to" : ""}.`;
}

/** The lane brings the workspace back; until then there is nothing to look at. */
function queued(queuedTime: Instant, reason: Reason, message: string): Outcome {
  return { phase: "Queued", ready: "False", reason, message, reconciling: true, queuedTime };
}

function overQuota(queuedTime: Instant): Outcome {
  return queued(queuedTime, "QuotaExceeded", "As many workspaces run in the namespace as its quota allows.");
}

function stillStalled(record: WorkspaceRecord): Outcome {
  const stall = lastReason(record, "Stalled");
  return { phase: "Stalled", ready: "False", ...stall, stall };
}

function stillWaiting(record: WorkspaceRecord, observed: Observation, now: Instant): Outcome {
  const last = lastReason(record, "Ready");
  // Ready until now: the start waits for the outcome of the backup that its end met.
  const { reason, message } =
    last.reason === "ContainerHealthy" ? ({ reason: "Pending", message: endOf(record, observed) } as const) : last;
  return {
    phase: "Pending",
    ready: "False",
    reason,
    message,
    reconciling: true,
    nextReconcileTime: Math.max(now + 1000, record.nextRetryTime ?? 0),
  };
}

/** What holds the whole lane up is still worth saying, until the start is tried again. */
const LANE_REASONS: ReadonlySet<Reason> = new Set(["CapacityUnavailable", "RateLimited", "Misconfigured"]);

function stillQueued(record: WorkspaceRecord, queuedTime: Instant): Outcome {
  const { reason, message } = lastReason(record, "Ready");
  if (LANE_REASONS.has(reason)) return queued(queuedTime, reason, message);
  return record.quotaReached ? overQuota(queuedTime) : queued(queuedTime, "Queued", reason === "Queued" ? message : "");
}
