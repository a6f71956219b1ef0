/**
 * The decision: from the wish and one look, the one thing to do now. Pure and total; its order of guards, top to bottom, is the policy.
 *
 * 1. Nothing destructive follows an unknown observation (invariant 4). 2. Deletion goes before everything a user or operator can set,
 * and needs no parsable spec (invariant 5). 3. A start needs a place in the lane (invariant 1).
 */
import type { Exit, Instant, Observation, WorkspaceRecord, WorkspaceSpec } from "../workspace.ts";
import { compare } from "./compare.ts";

/** Named for the state it leads to; each can be repeated without harm. */
export type Action =
  /** Nothing to do now. */
  | { readonly kind: "Rest" }
  /** Join those who wait for the start lane. */
  | { readonly kind: "Enqueue" }
  | { readonly kind: "Start" }
  | { readonly kind: "Stop" }
  | { readonly kind: "Destroy" }
  | { readonly kind: "Forget" };

const REST: Action = { kind: "Rest" };

/** `mayStart`: the workspace holds a place in the lane, or one is free and it is its turn. */
export function plan(record: WorkspaceRecord, observed: Observation, now: Instant, mayStart: boolean): Action {
  if (record.deletionTime !== null) return planDeletion(record, observed);
  if (observed.kind === "Unknown") return REST;
  if (record.spec === null || record.spec.paused) return REST;
  // An incarnation that is over has to be seen gone before another one may begin.
  if (observed.kind === "Destroying") return { kind: "Destroy" };
  if (record.spec.operatingMode === "Suspended") return planSuspended(record.spec, observed);
  return planRunning(record, record.spec, observed, now, mayStart);
}

function planDeletion(record: WorkspaceRecord, observed: Observation): Action {
  if (record.instance === null || observed.kind === "Destroyed") return { kind: "Forget" };
  return observed.kind === "Unknown" ? REST : { kind: "Destroy" };
}

function planSuspended(spec: WorkspaceSpec, observed: Observation): Action {
  return compare(spec, observed) === null ? REST : { kind: "Stop" };
}

function planRunning(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, now: Instant, mayStart: boolean): Action {
  switch (compare(spec, observed)) {
    case null:
      return REST;
    case "OutOfSync":
      return { kind: "Destroy" };
    case "Unexpected":
    case "Missing":
      break;
  }
  if (isStalled(record) || failureToCount(record, observed) !== null) return REST;
  if (isBackingOff(record, now)) return REST;
  if (mayStart) return { kind: "Start" };
  return observed.kind === "Starting" || record.queuedTime !== null ? REST : { kind: "Enqueue" };
}

/** Retrying is pointless until the generation changes. */
export function isStalled({ status, generation }: WorkspaceRecord): boolean {
  return (
    status.observedGeneration === generation &&
    status.conditions.some(({ type, status: value, reason }) => type === "Stalled" && value === "True" && reason !== "InvalidSpec")
  );
}

/** A new wish deserves a new try: what an older generation waited for does not hold it back. */
function isBackingOff({ status, generation, nextRetryTime }: WorkspaceRecord, now: Instant): boolean {
  return status.observedGeneration === generation && nextRetryTime !== null && nextRetryTime > now;
}

export type CountableFailure =
  | { readonly kind: "StartFailed"; readonly failure: Extract<Observation, { kind: "Failed" }>["failure"] }
  | { readonly kind: "Crashed"; readonly exit: Exit };

/** What this look shows for the first time: the end of the start that holds the lane, or the crash of a Ready container. */
export function failureToCount(record: WorkspaceRecord, observed: Observation): CountableFailure | null {
  if (observed.kind === "Failed" && record.lane?.startId === observed.startId) {
    return { kind: "StartFailed", failure: observed.failure };
  }
  if (observed.kind !== "Stopped" || observed.exit === null || !vouchedFor(record, observed.startId)) return null;
  const isCountable = isCrash(observed.exit) || wasShort(record, observed.exit);
  return isCountable ? { kind: "Crashed", exit: observed.exit } : null;
}

/** Ready until now, or verified so recently that no pass has seen it. */
function vouchedFor({ readyTime, lane }: WorkspaceRecord, startId: string | null): boolean {
  return readyTime !== null || (lane !== null && lane.startId === startId);
}

/** A container that ends again and again soon after it was Ready does not do what it is there for, however cleanly it ends. */
function wasShort({ readyTime }: WorkspaceRecord, exit: Exit): boolean {
  return readyTime === null || exit.time - readyTime < SHORT_LIFE_MS;
}

const SHORT_LIFE_MS = 30_000;

/** 0 is a clean end, 143 the SIGTERM of an idle stop or a rollout; without a code nobody knows. */
function isCrash({ code }: Exit): boolean {
  return code !== null && code !== 0 && code !== 143;
}
