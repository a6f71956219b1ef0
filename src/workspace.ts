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
  /** Absolute path of the working directory; it exists before the workspace is Ready, and it is what backups hold. */
  readonly directory: string;
  /** What the first start restores: a backup by its id, or the newest good one of a workspace in the same namespace. Null: nothing. */
  readonly source: { readonly backup: string } | { readonly workspace: string } | null;
  /** Environment of the container. Values may be secrets: never in logs, messages or errors. */
  readonly env: Readonly<Record<string, string>>;
  /** Run one after the other in the working directory, after the restore and once for each container. */
  readonly setup: readonly string[];
  /** Null: never suspended for idleness. */
  readonly idle: { readonly timeoutSeconds: number } | null;
  /** How long one container may run before it is replaced by a fresh one; null: no limit. */
  readonly maxLifetimeSeconds: number | null;
  /** RFC 3339; the workspace is deleted then. Null: never. */
  readonly expireTime: string | null;
  /** Null: none is taken unless a client asks. */
  readonly backup: BackupSpec | null;
  readonly deletion: DeletionSpec;
  /** The operator's hold: nothing but deletion is done for the workspace while true. */
  readonly paused: boolean;
}

/** What is done where the end of a container would lose files. `Require`: not without a backup; `BestEffort`: one try. */
export type BackupPolicy = "Require" | "BestEffort" | "Skip";

export interface BackupSpec {
  /** Null: no schedule. */
  readonly everySeconds: number | null;
  /** Before a container is stopped or replaced on the controller's own account. */
  readonly onSuspend: BackupPolicy;
  /** Patterns as mksquashfs takes them, relative to the directory. */
  readonly excludes: readonly string[];
  /** A good backup is removed once neither of the two keeps it. */
  readonly retention: {
    readonly keepLast: number;
    /** Null: only `keepLast` keeps. */
    readonly keepForSeconds: number | null;
  };
}

export interface DeletionSpec {
  readonly finalBackup: BackupPolicy;
  /** The deletion goes on after it, with or without the backup. */
  readonly deadlineSeconds: number;
}

export interface WorkspaceName {
  readonly namespace: string;
  readonly name: string;
}

export type ConditionType = "Ready" | "Reconciling" | "Stalled" | "Suspended" | "BackupCurrent";
export type ConditionStatus = "True" | "False" | "Unknown";

/** Machine-readable cause of a condition; part of the API. */
export type Reason =
  | "ContainerHealthy"
  | "Pending"
  | "Queued"
  | "Starting"
  | "Restoring"
  | "SettingUp"
  | "StartFailed"
  | "StartTimeout"
  | "RestoreFailed"
  | "SetupFailed"
  | "SourceNotFound"
  | "CapacityUnavailable"
  | "RateLimited"
  | "QuotaExceeded"
  | "ContainerExited"
  | "CrashLoopBackOff"
  | "SpecChanged"
  | "Suspending"
  | "BackingUp"
  | "SuspendedByUser"
  | "IdleTimeout"
  | "LifetimeExceeded"
  | "Paused"
  | "Terminating"
  | "Unreachable"
  | "InvalidSpec"
  | "Misconfigured"
  | "BackupCompleted"
  | "BackupFailed"
  | "BackupOverdue"
  | "BackupLost"
  | "NeverBackedUp"
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
export type Phase =
  | "Pending"
  | "Queued"
  | "Starting"
  | "Restoring"
  | "Ready"
  | "Suspending"
  | "Suspended"
  | "Stalled"
  | "Terminating"
  | "Unknown";

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
  /** The newest good one, as the table of backups has it now. */
  readonly lastBackup: { readonly id: string; readonly time: Instant } | null;
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
 * - `Starting`: a start operation is under way that may still start its container.
 * - `Preparing`: its container runs, and is being restored or set up: it can start no other.
 * - `Failed`: the last start operation ended without a verified container, and none runs.
 * - `Unverified`: a container runs that no finished start operation vouches for.
 * - `Running`: a container runs and its start was verified, its restore and its setup included.
 * - `Destroying`: the incarnation is over for good, yet a container still runs.
 * - `Destroyed`: the incarnation is over for good and no container runs.
 */
export type Observation =
  | { readonly kind: "Absent" }
  | { readonly kind: "Stopped"; readonly startId: string | null; readonly exit: Exit | null }
  | { readonly kind: "Starting"; readonly startId: string }
  | { readonly kind: "Preparing"; readonly startId: string; readonly step: "Restore" | "Setup" }
  | { readonly kind: "Failed"; readonly startId: string; readonly specHash: string; readonly failure: Failure }
  | { readonly kind: "Unverified" }
  | {
      readonly kind: "Running";
      readonly startId: string;
      readonly specHash: string;
      /** What its start prepared, which the spec may have left since. Absent where an older version started it. */
      readonly directory?: string;
      /** Of the container. */
      readonly startedTime: Instant;
      /** Of the last traffic that was a user's; never before it was verified. */
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
