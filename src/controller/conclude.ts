/**
 * What a pass leaves behind: status and memory, from the record, the action and the look after it. Every condition is computed in
 * `conditions.ts` from the verdict made here, and nowhere else. Pure; chance is an input.
 */
import type { Conclusion, ConditionType, Failure, Instant, Observation, Reason, WorkspaceRecord } from "../workspace.ts";
import { compare } from "./compare.ts";
import { FORGIVE_AFTER_MS, backoffMs, patienceMs } from "./backoff.ts";
import { type Verdict, nextStatus } from "./conditions.ts";
import { type Action, failureToCount, isStalled } from "./plan.ts";
import { isSameSpec, specHash } from "./spec-hash.ts";

/** The part of a conclusion that one situation decides; the rest carries over. */
type Outcome = Verdict & Partial<Omit<Conclusion, "status">>;

export function conclude(record: WorkspaceRecord, action: Action, observed: Observation, now: Instant, chance: number): Conclusion {
  const fresh = forgetOlderGeneration(record);
  const outcome = decide(fresh, action, observed, now, chance);
  const { failures, nextRetryTime, readyTime, queuedTime, nextReconcileTime, laneReleased, brake, unreachableTime, ...verdict } = outcome;
  return {
    status: nextStatus(record, verdict, now),
    failures: failures ?? fresh.failures,
    nextRetryTime: nextRetryTime === undefined ? fresh.nextRetryTime : nextRetryTime,
    readyTime: readyTime ?? null,
    queuedTime: queuedTime ?? null,
    unreachableTime: unreachableTime ?? null,
    nextReconcileTime: nextReconcileTime ?? null,
    laneReleased: laneReleased ?? (fresh.lane !== null && isSettled(observed)),
    brake: brake ?? null,
  };
}

/** A new wish deserves a new try. */
function forgetOlderGeneration(record: WorkspaceRecord): WorkspaceRecord {
  if (record.status.observedGeneration === record.generation) return record;
  return { ...record, failures: 0, nextRetryTime: null };
}

/** Whether no start is under way any more, so that the lane can be given to the next. */
function isSettled(observed: Observation): boolean {
  return observed.kind !== "Starting" && observed.kind !== "Unknown" && observed.kind !== "Unverified";
}

function decide(record: WorkspaceRecord, action: Action, observed: Observation, now: Instant, chance: number): Outcome {
  if (record.deletionTime !== null) return deleting(record, record.deletionTime, observed, now);
  if (observed.kind === "Unknown") return unreachable(record, observed.failure, now);
  if (record.spec === null) return invalidSpec();
  if (record.spec.paused) return paused(record, observed, now);
  if (action.kind === "Destroy") return replacing(observed, now);
  if (record.spec.operatingMode === "Suspended") return suspended(observed, now);
  return running(record, action, observed, now, chance);
}

function deleting(record: WorkspaceRecord, since: Instant, observed: Observation, now: Instant): Outcome {
  if (observed.kind === "Unknown") return { ...unreachable(record, observed.failure, now), phase: "Terminating", queuedTime: null };
  const isDone = record.instance === null || observed.kind === "Destroyed";
  const wait = isDone ? 0 : patienceMs(now - since, 1000, 30_000);
  const message = observed.kind === "Destroying" ? "A container still runs after it was told to go." : "";
  return { phase: "Terminating", ready: "False", reason: "Terminating", message, reconciling: true, nextReconcileTime: now + wait };
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
    stall: isStalled(record) ? lastOf(record, "Stalled") : undefined,
    readyTime: record.readyTime,
    queuedTime: record.queuedTime,
    unreachableTime,
    nextReconcileTime: now + patienceMs(now - unreachableTime, 2000, 60_000),
  };
}

function invalidSpec(): Outcome {
  const message = "The stored spec no longer parses; PUT a valid one.";
  return { phase: "Stalled", ready: "False", reason: "InvalidSpec", message, stall: { reason: "InvalidSpec", message } };
}

function paused(record: WorkspaceRecord, observed: Observation, now: Instant): Outcome {
  if (observed.kind === "Running" && record.spec !== null && compare({ ...record.spec, operatingMode: "Running" }, observed) === null) {
    return { phase: "Ready", ready: "True", reason: "ContainerHealthy", message: "Paused.", readyTime: record.readyTime ?? now };
  }
  return { phase: "Pending", ready: "False", reason: "Paused", message: "spec.paused is true; nothing is done but deletion." };
}

function replacing(observed: Observation, now: Instant): Outcome {
  const wait = observed.kind === "Destroyed" ? 0 : 2000;
  return { phase: "Pending", ready: "False", reason: "SpecChanged", message: "", reconciling: true, nextReconcileTime: now + wait };
}

function suspended(observed: Observation, now: Instant): Outcome {
  switch (observed.kind) {
    case "Absent":
    case "Stopped":
    case "Failed":
    case "Destroyed":
      return { phase: "Suspended", ready: "False", reason: "SuspendedByUser", message: "", suspended: true, nextRetryTime: null };
    case "Starting":
    case "Unverified":
    case "Running":
    case "Destroying":
    case "Unknown":
      return { phase: "Suspending", ready: "False", reason: "Suspending", message: "", reconciling: true, nextReconcileTime: now + 2000 };
  }
}

function running(record: WorkspaceRecord, action: Action, observed: Observation, now: Instant, chance: number): Outcome {
  if (observed.kind === "Running") return record.spec && compare(record.spec, observed) === null ? ready(record, now) : superseded(now);
  const countable = failureToCount(record, observed);
  if (countable !== null && isOfOlderSpec(record, observed)) {
    const failed = countable.kind === "StartFailed" ? startFailed(record, countable.failure, now, chance) : null;
    return failed?.brake ? failed : superseded(now);
  }
  if (countable?.kind === "Crashed") {
    return retrying(record, "ContainerExited", `The container exited with code ${countable.exit.code ?? "unknown"}.`, now, chance);
  }
  if (countable?.kind === "StartFailed") return startFailed(record, countable.failure, now, chance);
  if (isStalled(record)) return stillStalled(record);
  if (action.kind === "Start") {
    return {
      phase: "Starting",
      ready: "False",
      reason: "Starting",
      message: "",
      reconciling: true,
      nextReconcileTime: observed.kind === "Unverified" ? now + 1000 : now,
    };
  }
  if (action.kind === "Enqueue") return queued(now, "Queued", "");
  if (record.queuedTime !== null) return stillQueued(record, record.queuedTime);
  return stillWaiting(record, now);
}

function ready(record: WorkspaceRecord, now: Instant): Outcome {
  const readyTime = record.readyTime ?? now;
  const forgiveTime = readyTime + FORGIVE_AFTER_MS;
  const isForgiven = record.failures > 0 && now >= forgiveTime;
  return {
    phase: "Ready",
    ready: "True",
    reason: "ContainerHealthy",
    message: "",
    readyTime,
    failures: isForgiven ? 0 : record.failures,
    nextRetryTime: null,
    nextReconcileTime: record.failures > 0 && !isForgiven ? forgiveTime : null,
  };
}

function startFailed(record: WorkspaceRecord, failure: Failure, now: Instant, chance: number): Outcome {
  switch (failure.class) {
    case "Capacity":
    case "RateLimited":
      return {
        ...queued(record.lane?.queuedTime ?? now, failure.reason, failure.message),
        brake: { retryAfterMs: failure.retryAfterMs ?? null },
      };
    case "Permanent":
    case "Misconfigured":
      return {
        phase: "Stalled",
        ready: "False",
        reason: failure.reason,
        message: failure.message,
        stall: failure,
        failures: record.failures + (failure.class === "Permanent" ? 1 : 0),
        nextRetryTime: null,
      };
    case "Progressing":
      return queued(record.lane?.queuedTime ?? now, "Queued", failure.message);
    case "Transient":
    case "Uncertain":
    case "NotRunning":
      return retrying(record, failure.reason, failure.message, now, chance);
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

/** The lane brings the workspace back; until then there is nothing to look at. */
function queued(queuedTime: Instant, reason: Reason, message: string): Outcome {
  return { phase: "Queued", ready: "False", reason, message, reconciling: true, queuedTime };
}

function stillStalled(record: WorkspaceRecord): Outcome {
  const stall = lastOf(record, "Stalled");
  return { phase: "Stalled", ready: "False", ...stall, stall };
}

function stillWaiting(record: WorkspaceRecord, now: Instant): Outcome {
  const { reason, message } = lastOf(record, "Ready");
  return {
    phase: "Pending",
    ready: "False",
    reason,
    message,
    reconciling: true,
    nextReconcileTime: Math.max(now + 1000, record.nextRetryTime ?? 0),
  };
}

function stillQueued(record: WorkspaceRecord, queuedTime: Instant): Outcome {
  const { reason, message } = lastOf(record, "Ready");
  const isForTheLane = reason === "CapacityUnavailable" || reason === "RateLimited" || reason === "Queued";
  return isForTheLane ? queued(queuedTime, reason, message) : queued(queuedTime, "Queued", "");
}

/** What the look showed was of a wish that holds no longer. */
function superseded(now: Instant): Outcome {
  return { phase: "Pending", ready: "False", reason: "SpecChanged", message: "", reconciling: true, nextReconcileTime: now };
}

function isOfOlderSpec({ spec, status, generation }: WorkspaceRecord, observed: Observation): boolean {
  if (observed.kind === "Failed") return spec !== null && !isSameSpec(specHash(spec), observed.specHash);
  return status.observedGeneration !== generation;
}

/** A look that gave no answer is not why something is as it is now. */
function lastOf(record: WorkspaceRecord, wanted: ConditionType): { readonly reason: Reason; readonly message: string } {
  const known = record.status.conditions.find(({ type, reason }) => type === wanted && reason !== "Unreachable");
  return { reason: known?.reason ?? "Pending", message: known?.message ?? "" };
}
