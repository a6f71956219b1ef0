/** Records and observations as tests name them. Every time is an offset from `NOW`. */
import { specHash } from "../../src/controller/spec-hash.ts";
import type {
  Condition,
  ConditionStatus,
  ConditionType,
  Failure,
  FailureClass,
  Instance,
  LaneHold,
  Observation,
  Phase,
  Reason,
  WorkspaceRecord,
  WorkspaceSpec,
  WorkspaceStatus,
} from "../../src/workspace.ts";

/** 2026-11-30T12:00:00Z. */
export const NOW = 1_796_040_000_000;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;

export const UID = "7f2c91aa-0000-4000-8000-000000000001";
export const START_ID = "start-1";
/** A start of which this record knows nothing. */
export const OTHER_START_ID = "start-of-long-ago";

export function spec(overrides: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return { operatingMode: "Running", directory: "/workspace", env: {}, paused: false, ...overrides };
}

export const runningSpec = spec();
export const suspendedSpec = spec({ operatingMode: "Suspended" });
export const pausedSpec = spec({ paused: true });
export const changedSpec = spec({ env: { MODE: "changed" } });

export const firstInstance: Instance = { doId: "a1".repeat(32), sandboxId: `${UID}-1`, incarnation: 1 };

/** A place in the lane taken a second ago. */
export function lane(overrides: Partial<LaneHold> = {}): LaneHold {
  return { startId: START_ID, queuedTime: NOW - 10 * SECOND, deadlineTime: NOW + 2 * MINUTE, ...overrides };
}

export function condition(type: ConditionType, status: ConditionStatus, reason: Reason, overrides: Partial<Condition> = {}): Condition {
  return { type, status, reason, message: "", observedGeneration: 1, lastTransitionTime: NOW - MINUTE, ...overrides };
}

/** All four conditions, as a pass about generation 1 left them a minute ago. */
export function statusOf(phase: Phase, overrides: Partial<Record<ConditionType, Partial<Condition>>> = {}): WorkspaceStatus {
  const conditions = [
    condition("Ready", "False", "Pending", overrides.Ready),
    condition("Reconciling", "False", "Settled", overrides.Reconciling),
    condition("Stalled", "False", "Retryable", overrides.Stalled),
    condition("Suspended", "False", "WishedRunning", overrides.Suspended),
  ];
  return { observedGeneration: 1, phase, conditions };
}

export const pendingStatus = statusOf("Pending", { Reconciling: { status: "True", reason: "Pending" } });
export const readyStatus = statusOf("Ready", { Ready: { status: "True", reason: "ContainerHealthy" } });
export const stalledStatus = statusOf("Stalled", {
  Ready: { reason: "StartFailed", message: "no such image" },
  Stalled: { status: "True", reason: "StartFailed", message: "no such image" },
});
export const suspendedStatus = statusOf("Suspended", {
  Ready: { reason: "SuspendedByUser" },
  Suspended: { status: "True", reason: "SuspendedByUser" },
});

/** A workspace that was just created, wished Running, which no pass has looked at. */
export function record(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return {
    namespace: "default",
    name: "alice-1",
    uid: UID,
    generation: 1,
    resourceVersion: 1,
    deletionTime: null,
    spec: runningSpec,
    status: { observedGeneration: 0, phase: "Pending", conditions: [] },
    incarnation: 0,
    instance: null,
    lane: null,
    failures: 0,
    nextRetryTime: null,
    readyTime: null,
    queuedTime: null,
    unreachableTime: null,
    nextReconcileTime: NOW,
    resyncPhase: 0,
    ...overrides,
  };
}

/** A workspace whose first incarnation was admitted and which a pass about generation 1 has looked at. */
export function admittedRecord(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return record({ incarnation: 1, instance: firstInstance, status: pendingStatus, ...overrides });
}

/** A workspace that has been Ready for a minute, in its steady state. */
export function readyRecord(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return admittedRecord({ status: readyStatus, readyTime: NOW - MINUTE, nextReconcileTime: null, ...overrides });
}

export function failure(of: FailureClass, reason: Reason = "StartFailed", overrides: Partial<Failure> = {}): Failure {
  return { class: of, reason, message: `a failure of class ${of}`, ...overrides };
}

/** Observations. */

export const absent: Observation = { kind: "Absent" };
export const starting: Observation = { kind: "Starting", startId: START_ID };
export const unverified: Observation = { kind: "Unverified" };
export const running: Observation = { kind: "Running", startId: START_ID, specHash: specHash(runningSpec) };
export const outdated: Observation = { kind: "Running", startId: START_ID, specHash: specHash(spec({ env: { MODE: "older" } })) };
/** Runs with a spec hash that another version of the controller computed. */
export const incomparable: Observation = { kind: "Running", startId: START_ID, specHash: "v0:0123456789abcdef" };
export const destroying: Observation = { kind: "Destroying" };
export const destroyed: Observation = { kind: "Destroyed" };
/** Stopped, and nobody saw how. */
export const stopped: Observation = { kind: "Stopped", startId: OTHER_START_ID, exit: null };
export const silent: Observation = { kind: "Unknown", failure: failure("Uncertain", "Unreachable", { message: "no answer" }) };

export function exited(code: number | null): Observation {
  return { kind: "Stopped", startId: OTHER_START_ID, exit: { code, time: NOW - SECOND } };
}

export function failed(of: FailureClass, reason: Reason = "StartFailed", overrides: Partial<Failure> = {}): Observation {
  return { kind: "Failed", startId: START_ID, specHash: specHash(runningSpec), failure: failure(of, reason, overrides) };
}

/** The end of a start that no longer holds the lane: it was counted before. */
export function failedBefore(of: FailureClass): Observation {
  return { kind: "Failed", startId: OTHER_START_ID, specHash: specHash(runningSpec), failure: failure(of) };
}
