/**
 * The vocabulary that every part of Mooring shares. Types only; imports nothing.
 *
 * Instants are epoch milliseconds (`…Time`), durations carry their unit. The wire form (RFC 3339) exists only in `api/`.
 */

/** Epoch milliseconds. */
export type Instant = number;

export type OperatingMode = "Running" | "Suspended";

/** What the user wishes. Replaced whole by a PUT; the controller never writes it. */
export interface WorkspaceSpec {
  readonly operatingMode: OperatingMode;
  /** Absolute path of the working directory; it exists before the workspace is Ready. */
  readonly directory: string;
  /** Environment of the container. Values may be secrets: never in logs, messages or errors. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: never suspended for idleness. */
  readonly idle: { readonly timeoutSeconds: number } | null;
  /** How long one container may run before it is replaced by a fresh one; null: no limit. */
  readonly maxLifetimeSeconds: number | null;
  /** RFC 3339; the workspace is deleted then. Null: never. */
  readonly expireTime: string | null;
  /** The operator's hold: nothing but deletion is done for the workspace while true. */
  readonly paused: boolean;
}

export interface WorkspaceName {
  readonly namespace: string;
  readonly name: string;
}

export type ConditionType = "Ready" | "Reconciling" | "Stalled" | "Suspended";
export type ConditionStatus = "True" | "False" | "Unknown";

/** Machine-readable cause of a condition; part of the API. */
export type Reason =
  | "ContainerHealthy"
  | "Pending"
  | "Queued"
  | "Starting"
  | "StartFailed"
  | "StartTimeout"
  | "CapacityUnavailable"
  | "RateLimited"
  | "QuotaExceeded"
  | "ContainerExited"
  | "CrashLoopBackOff"
  | "SpecChanged"
  | "Suspending"
  | "SuspendedByUser"
  | "IdleTimeout"
  | "LifetimeExceeded"
  | "Paused"
  | "Terminating"
  | "Unreachable"
  | "InvalidSpec"
  | "Misconfigured"
  | "Settled"
  | "WishedRunning"
  | "Retryable";

export interface Condition {
  readonly type: ConditionType;
  readonly status: ConditionStatus;
  readonly reason: Reason;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: Instant;
}

/** A printed summary of the conditions; nothing decides on it. */
export type Phase = "Pending" | "Queued" | "Starting" | "Ready" | "Suspending" | "Suspended" | "Stalled" | "Terminating" | "Unknown";

/** The controller's last conclusion about a workspace. */
export interface WorkspaceStatus {
  /** The generation this status is about; 0 before the first pass. */
  readonly observedGeneration: number;
  readonly phase: Phase;
  readonly conditions: readonly Condition[];
}

/** A workspace as a reader sees it. `spec` is the stored JSON: a reader shows what is stored, parsable or not. */
export interface Workspace extends WorkspaceName {
  readonly uid: string;
  readonly generation: number;
  readonly revision: number;
  readonly resourceVersion: number;
  readonly creationTime: Instant;
  readonly deletionTime: Instant | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
  readonly status: WorkspaceStatus;
  /** Of the live incarnation; null while no sandbox was admitted. */
  readonly sandboxId: string | null;
  readonly incarnation: number;
  readonly failures: number;
  readonly nextRetryTime: Instant | null;
}

/** What a failure is and so what follows from it. */
export type FailureClass =
  | "Progressing"
  | "Capacity"
  | "RateLimited"
  | "Transient"
  | "Uncertain"
  | "Permanent"
  | "NotRunning"
  | "Misconfigured";

export interface Failure {
  readonly class: FailureClass;
  readonly reason: Reason;
  /** For the status: what happened, without any value of the spec. */
  readonly message: string;
  /** As the platform asked, where it did. */
  readonly retryAfterMs?: number;
}

/** How a container ended. */
export interface Exit {
  /** 128 + n for signal n; null where the platform did not say. */
  readonly code: number | null;
  readonly time: Instant;
  /** The platform told the container to go (eviction, rollout, shutdown): no crash, whatever the code. */
  readonly signalled: boolean;
}

/**
 * What one look at a sandbox gave. A look that failed is `Unknown`, which is never taken for absence.
 *
 * - `Absent`: nothing was ever admitted under this incarnation.
 * - `Stopped`: admitted once, runs no container.
 * - `Starting`: a start operation is under way.
 * - `Failed`: the last start operation ended without a verified container, and none runs.
 * - `Unverified`: a container runs that no finished start operation vouches for.
 * - `Running`: a container runs and its start was verified.
 * - `Destroying`: the incarnation is over for good, yet a container still runs.
 * - `Destroyed`: the incarnation is over for good and no container runs.
 */
export type Observation =
  | { readonly kind: "Absent" }
  | { readonly kind: "Stopped"; readonly startId: string | null; readonly exit: Exit | null }
  | { readonly kind: "Starting"; readonly startId: string }
  | { readonly kind: "Failed"; readonly startId: string; readonly specHash: string; readonly failure: Failure }
  | { readonly kind: "Unverified" }
  | {
      readonly kind: "Running";
      readonly startId: string;
      readonly specHash: string;
      /** Of the container. */
      readonly startedTime: Instant;
      /** Of the last traffic that was a user's; never before `startedTime`. */
      readonly activityTime: Instant;
    }
  | { readonly kind: "Destroying" }
  | { readonly kind: "Destroyed" }
  | { readonly kind: "Unknown"; readonly failure: Failure };

/** A row of the ledger: an incarnation that was admitted once and is not yet proven gone. */
export interface Instance {
  /** 64 hex digits. */
  readonly doId: string;
  /** What a user's Worker passes to `getSandbox`; derived from uid and incarnation, never used twice. */
  readonly sandboxId: string;
  readonly incarnation: number;
  /** Whether it may run a container, as last seen: then it counts against its namespace's quota. */
  readonly running: boolean;
  /** An operator asked for it to be replaced. */
  readonly destroyRequested: boolean;
  /** It ran before there was a record of it: its container is to be kept. */
  readonly adopted: boolean;
}

/** A place in the start lane: the permission for one start, until its deadline. */
export interface LaneHold {
  readonly startId: string;
  readonly queuedTime: Instant;
  readonly deadlineTime: Instant;
}

/** What the last look showed, as far as a report needs it. */
export interface ObservedState {
  readonly kind: Observation["kind"];
  readonly specHash: string | null;
  readonly startedTime: Instant | null;
  /** As of the last look that was written down; the sandbox may know a later one. */
  readonly activityTime: Instant | null;
  /** What separated it from the wish after that look, and since when. */
  readonly differences: readonly { readonly type: string; readonly firstSeenTime: Instant; readonly timesSeen: number }[];
}

/** What the controller loads for a pass: the wish, and beside it its own memory. */
export interface WorkspaceRecord extends WorkspaceName {
  readonly uid: string;
  readonly generation: number;
  readonly resourceVersion: number;
  readonly deletionTime: Instant | null;
  /** Null where the stored spec no longer parses. */
  readonly spec: WorkspaceSpec | null;
  readonly status: WorkspaceStatus;
  /** The last incarnation given out; 0 before the first. */
  readonly incarnation: number;
  readonly instance: Instance | null;
  readonly lane: LaneHold | null;
  /** Of the start whose outcome no pass has seen yet, whether or not it still holds its lane place. */
  readonly startId: string | null;
  /** What the last pass saw; null before the first. */
  readonly observed: ObservedState | null;
  /** Since when it is suspended for idleness; void once `wakeTime` is not before it, or the generation is another. */
  readonly idleTime: Instant | null;
  /** When somebody last asked for it to be woken. */
  readonly wakeTime: Instant | null;
  /** When somebody asked for backoff and stall to be forgotten, as long as no pass has done so. */
  readonly reconcileRequestTime: Instant | null;
  /** As many instances run in its namespace as the quota allows. */
  readonly quotaReached: boolean;
  readonly failures: number;
  readonly nextRetryTime: Instant | null;
  /** Since when the workspace is Ready; null while it is not. */
  readonly readyTime: Instant | null;
  /** Since when it waits for the start lane; null while it does not. */
  readonly queuedTime: Instant | null;
  /** Since when its sandbox has not answered; null while it does. */
  readonly unreachableTime: Instant | null;
  /** Null in a steady state: only the resync looks at it. */
  readonly nextReconcileTime: Instant | null;
  /** The workspace's turn in the resync, in millionths of its interval. */
  readonly resyncPhase: number;
}

/** What a pass writes back: the controller's own fields of the record, and what follows for the lane. */
export interface Conclusion extends Pick<
  WorkspaceRecord,
  | "status"
  | "failures"
  | "nextRetryTime"
  | "readyTime"
  | "queuedTime"
  | "unreachableTime"
  | "nextReconcileTime"
  | "observed"
  | "startId"
  | "idleTime"
> {
  /** The start that holds the lane has been settled, one way or the other. */
  readonly laneReleased: boolean;
  /** Whether the sandbox may run a container now. */
  readonly running: boolean;
  /** The platform refused a start for reasons that concern every workspace. */
  readonly brake: { readonly retryAfterMs: number | null; readonly reason: Reason; readonly message: string } | null;
  /** What a reader of the workspace's history should know about this pass; null where nothing changed. */
  readonly event: WorkspaceEvent | null;
}

export type EventType = "Normal" | "Warning";

export interface WorkspaceEvent {
  readonly type: EventType;
  /** CamelCase; a condition's reason or what was done. */
  readonly reason: string;
  readonly message: string;
}

/** What the garbage collector may do. */
export type GcMode = "Off" | "Report" | "Enforce";

/** What an operator set for the whole controller; null: as configured. */
export interface ControllerSettings {
  /** Nothing is started, stopped, destroyed or deleted while true. */
  readonly paused: boolean;
  readonly gcMode: GcMode | null;
  /** Orphans may be destroyed although not one workspace is wished. */
  readonly allowEmpty: boolean;
  readonly laneWidth: number | null;
  /** Until then, any number of orphans may be destroyed in one sweep. */
  readonly brakeReleasedUntilTime: Instant | null;
}

/**
 * An instance that no desired record claims: seen by a sweep, or left by an incarnation that is over. It is kept until its absence is
 * confirmed. An *orphan* is one that runs.
 */
export interface Unclaimed {
  /** 64 hex digits. */
  readonly doId: string;
  /** Null where nobody knows its name. */
  readonly sandboxId: string | null;
  /** Of the workspace it once belonged to, where that is known. */
  readonly owner: (WorkspaceName & { readonly uid: string; readonly incarnation: number }) | null;
  /** The workspace it once belonged to still has a record: that one's own loop answers for it. */
  readonly ownerLives: boolean;
  /** As of the last complete sweep. `Expected`: no sweep has looked since it was left. */
  readonly state: "Expected" | "Running" | "Settling" | "Stopped" | "Unknown";
  readonly firstSeenTime: Instant;
  readonly lastSeenTime: Instant;
  /** In how many complete sweeps in a row it was seen Running. */
  readonly timesSeen: number;
  readonly startedTime: Instant | null;
  readonly protected: boolean;
  /** An operator asked for it, guards or not. */
  readonly destroyRequested: boolean;
  readonly destroyAttempts: number;
  readonly lastDestroyTime: Instant | null;
}

/** How the last inventory sweep went. */
export interface InventoryRecord {
  readonly time: Instant;
  /** Of the last sweep that saw every page; null before the first. */
  readonly completeTime: Instant | null;
  /** `Complete`: the platform's list; `LedgerOnly`: the platform offers none; otherwise why nothing was concluded. */
  readonly outcome: "Complete" | "LedgerOnly" | "Failed";
  readonly message: string;
  /** Running, as far as the sweep knew. */
  readonly running: number;
  /** Orphans past every guard but the brake. */
  readonly eligible: number;
  /** How many may be destroyed in one sweep. */
  readonly limit: number;
  /** Why no orphan is destroyed; null where they are. */
  readonly brake: "TooManyOrphans" | "EmptyDesired" | null;
  /** The platform asked not to be asked again before; null where it did not. */
  readonly retryTime: Instant | null;
}
