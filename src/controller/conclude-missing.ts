/** What a pass leaves of a workspace that is wished Running and has no verified container: it waits, starts, retries or is stalled. */
import type { Exit, Failure, Instant, Observation, Reason, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { FORGIVE_AFTER_MS, backoffMs } from "./backoff.ts";
import { type Outcome, lastReason, superseded } from "./outcome.ts";
import { type Action, type CountableFailure, failureToCount, isStalled } from "./plan.ts";
import { isSameSpec, specHash } from "./spec-hash.ts";

/** So many crashes one after the other are a loop. */
const CRASH_LOOP_FAILURES = 3;

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
  if (action.kind === "Start") return starting(observed, now);
  if (action.kind === "Enqueue") return enqueued(record, observed, now);
  if (record.queuedTime !== null) return stillQueued(record, record.queuedTime);
  return stillWaiting(record, now);
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
      return queued(sinceBefore, "Queued", message);
    case "Transient":
    case "Uncertain":
    case "NotRunning":
      return retrying(record, reason, message, now, chance);
  }
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

function stillWaiting(record: WorkspaceRecord, now: Instant): Outcome {
  const { reason, message } = lastReason(record, "Ready");
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
