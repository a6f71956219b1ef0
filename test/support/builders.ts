/** Records and observations as tests name them. Every time is an offset from `NOW`. */
import { specHash } from "../../src/controller/spec-hash.ts";
import type { Unclaimed } from "../../src/unclaimed.ts";
import type {
  Condition,
  ConditionStatus,
  ConditionType,
  Failure,
  FailureClass,
  Instance,
  Observation,
  Phase,
  Reason,
  WorkspaceSpec,
  WorkspaceStatus,
} from "../../src/workspace.ts";
import type { LaneHold, ObservedState, WorkspaceRecord } from "../../src/workspace-record.ts";

/** 2026-11-30T12:00:00Z. */
export const NOW = 1_796_040_000_000;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;

export const UID = "7f2c91aa-0000-4000-8000-000000000001";
export const START_ID = "start-1";
/** A start of which this record knows nothing. */
export const OTHER_START_ID = "start-of-long-ago";

const WITHOUT_BACKUPS = { source: null, setup: [], backup: null, deletion: { finalBackup: "Skip", deadlineSeconds: 600 } } as const;

export function spec(overrides: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  const defaults = { operatingMode: "Running", directory: "/workspace", env: {}, idle: null, maxLifetimeSeconds: null } as const;
  const { source, setup, backup, deletion } = WITHOUT_BACKUPS;
  return { ...defaults, source, setup, expireTime: null, backup, deletion, paused: false, ...overrides };
}

export const runningSpec = spec();
export const suspendedSpec = spec({ operatingMode: "Suspended" });
export const pausedSpec = spec({ paused: true });
export const changedSpec = spec({ env: { MODE: "changed" } });

/** Suspended after ten minutes without traffic. */
export const idleSpec = spec({ idle: { timeoutSeconds: 600 } });
/** Replaced after an hour. */
export const mortalSpec = spec({ maxLifetimeSeconds: 3600 });

/** Of a workspace whose time is up at that moment. */
export function expiringSpec(expireTime: number, overrides: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return spec({ expireTime: new Date(expireTime).toISOString(), ...overrides });
}

export function instance(overrides: Partial<Instance> = {}): Instance {
  const sandbox = { doId: "a1".repeat(32), sandboxId: `${UID}-1`, incarnation: 1 };
  return { ...sandbox, running: true, destroyRequested: false, adopted: false, ...overrides };
}

export const firstInstance: Instance = instance();

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
export const idleStatus = statusOf("Suspended", {
  Ready: { reason: "IdleTimeout" },
  Suspended: { status: "True", reason: "IdleTimeout" },
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
    finalBackup: "Skip",
    finalBackupDeadlineTime: null,
    backups: null,
    unrestorable: false,
    sourceBackupId: null,
    spec: runningSpec,
    status: { observedGeneration: 0, phase: "Pending", conditions: [] },
    incarnation: 0,
    instance: null,
    lane: null,
    startId: null,
    observed: null,
    idleTime: null,
    wakeTime: null,
    reconcileRequestTime: null,
    quotaReached: false,
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

/** A workspace whose start holds its place in the lane. */
export function startingRecord(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return admittedRecord({ lane: lane(), startId: START_ID, ...overrides });
}

/** A workspace that has been Ready for a minute, in its steady state. */
export function readyRecord(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  const observed = observedState("Running");
  return admittedRecord({ status: readyStatus, readyTime: NOW - MINUTE, nextReconcileTime: null, observed, ...overrides });
}

/** A workspace that was marked as suspended for idleness five seconds ago. */
export function idleRecord(overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return admittedRecord({ spec: idleSpec, status: idleStatus, idleTime: NOW - 5 * SECOND, nextReconcileTime: null, ...overrides });
}

/** What a record remembers of a look; of a container that began a minute ago and was not used since. */
export function observedState(kind: Observation["kind"], overrides: Partial<ObservedState> = {}): ObservedState {
  const isRunning = kind === "Running";
  const times = { startedTime: isRunning ? NOW - MINUTE : null, activityTime: isRunning ? NOW - MINUTE : null };
  return { kind, specHash: isRunning ? specHash(runningSpec) : null, ...times, differences: [], ...overrides };
}

/** An orphan that has been watched for ten minutes: nothing holds its destroy back. */
export function orphan(overrides: Partial<Unclaimed> = {}): Unclaimed {
  return {
    doId: "0f".repeat(32),
    sandboxId: null,
    owner: null,
    ownerLives: false,
    state: "Running",
    firstSeenTime: NOW - 10 * MINUTE,
    lastSeenTime: NOW - MINUTE,
    timesSeen: 5,
    startedTime: null,
    protected: false,
    destroyRequested: false,
    destroyAttempts: 0,
    lastDestroyTime: null,
    ...overrides,
  };
}

export function failure(of: FailureClass, reason: Reason = "StartFailed", overrides: Partial<Failure> = {}): Failure {
  return { class: of, reason, message: `a failure of class ${of}`, ...overrides };
}

/** Observations. */

export const absent: Observation = { kind: "Absent" };
export const starting: Observation = { kind: "Starting", startId: START_ID };
export const unverified: Observation = { kind: "Unverified" };
export const running: Observation = runs();
export const outdated: Observation = runs({ specHash: specHash(spec({ env: { MODE: "older" } })) });
/** Runs with a spec hash that another version of the controller computed. */
export const incomparable: Observation = runs({ specHash: "v0:0123456789abcdef" });
export const destroying: Observation = { kind: "Destroying" };
export const destroyed: Observation = { kind: "Destroyed" };
/** Stopped, and nobody saw how. */
export const stopped: Observation = { kind: "Stopped", startId: OTHER_START_ID, exit: null };
export const silent: Observation = { kind: "Unknown", failure: failure("Uncertain", "Unreachable", { message: "no answer" }) };

/** A container that began a minute ago and was not used since. */
export function runs(overrides: Partial<Extract<Observation, { kind: "Running" }>> = {}): Extract<Observation, { kind: "Running" }> {
  const times = { startedTime: NOW - MINUTE, activityTime: NOW - MINUTE };
  return { kind: "Running", startId: START_ID, specHash: specHash(runningSpec), ...times, ...overrides };
}

export function exited(code: number | null, signalled = false): Observation {
  return { kind: "Stopped", startId: OTHER_START_ID, exit: { code, time: NOW - SECOND, signalled } };
}

export function failed(of: FailureClass, reason: Reason = "StartFailed", overrides: Partial<Failure> = {}): Observation {
  return { kind: "Failed", startId: START_ID, specHash: specHash(runningSpec), failure: failure(of, reason, overrides) };
}

/** The end of a start that the record does not wait for: it was counted before. */
export function failedBefore(of: FailureClass): Observation {
  return { kind: "Failed", startId: OTHER_START_ID, specHash: specHash(runningSpec), failure: failure(of) };
}
