/**
 * What the controller and a workspace's Durable Object say to each other. Plain data, structured-clone safe.
 *
 * Every call carries a fence. The object keeps the highest epoch it has seen and refuses lower ones, so a controller that
 * lost its lease cannot act through a call that was already on its way (invariant 11).
 */

export interface Fence {
  /** The lease epoch of the controller that calls. Only ever rises. */
  readonly epoch: number;
  /** The life of the sandbox that the call is about. */
  readonly incarnation: number;
  /**
   * Epoch milliseconds. The caller has given up by then and may have decided otherwise: a call that arrives later does nothing. Absent:
   * it never does.
   */
  readonly expiresTime?: number;
}

/** The admission of one start, for one container. */
export interface StartOrder {
  /** Chosen by the controller and recorded in D1 before the call; repeating it joins the same operation. */
  readonly startId: string;
  /** The row that the object pokes when its container starts, stops or fails. */
  readonly workspaceUid: string;
  /** From acceptance by the object until a container answers or the start is given up. */
  readonly timeoutMs: number;
  /** From there until it is restored and set up, or given up. */
  readonly prepareTimeoutMs: number;
  /** Created before the start counts as verified. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  /** Hash of the static fields that this container runs with. */
  readonly specHash: string;
  /** Vouch for the container that runs already, whoever started it, instead of replacing it. */
  readonly adopt: boolean;
  /** What the directory holds before anything else; null: nothing. Looked up in the bucket before a container is started. */
  readonly restore: RestoreOrder | null;
  /** Run in the directory once it is restored, each to its end; the first that fails fails the start. */
  readonly setup: readonly string[];
}

export interface RestoreOrder {
  /** A UUID: `backups/<objectId>/` in the bucket. */
  readonly objectId: string;
  /** The archive passes through the object by the bucket's binding (local development) instead of by presigned URL. */
  readonly localBucket: boolean;
}

/** The order to take one backup, from one container. */
export interface BackupOrder {
  /** Chosen by the controller and recorded in D1 before the call; repeating it joins the same backup, and never begins it twice. */
  readonly backupId: string;
  /** The start whose container it is to be taken from. */
  readonly startId: string;
  readonly directory: string;
  readonly excludes: readonly string[];
  /** From acceptance by the object until it is given up. */
  readonly timeoutMs: number;
  readonly localBucket: boolean;
}

/** - `Interrupted`: the object lost its memory while it was taken; what it left in the bucket is nobody's. */
export type BackupReport =
  | { readonly state: "InProgress" }
  | { readonly state: "Completed"; readonly objectId: string; readonly sizeBytes: number }
  | { readonly state: "Skipped"; readonly reason: "NotRunning" | "NotRestored" | "Empty" }
  | { readonly state: "RuntimeReplaced" }
  | { readonly state: "Interrupted" }
  | { readonly state: "Failed"; readonly failure: OperationFailure };

export type BackupAnswer =
  | { readonly accepted: true; readonly report: BackupReport }
  | { readonly accepted: false; readonly refusal: "StaleEpoch" | "OtherIncarnation" | "Expired" };

/** What a start does, one after the other. */
export type StartStep = "Container" | "Restore" | "Setup";

/**
 * - `None`: no start was ever admitted. - `Admitted`: by `startId`. - `Revoked`: stopped; another start may be admitted.
 * - `Destroyed`: this incarnation never runs again.
 */
export type AdmissionState = "None" | "Admitted" | "Revoked" | "Destroyed";

/** Code of a start that was given up because of a stop, a destroy or another start. */
export const START_CANCELLED = "START_CANCELLED";
/** Code of a start that its deadline ended. */
export const START_DEADLINE = "START_DEADLINE";
/** Code of a start one of whose setup commands failed; the message ends with the tail of its output. */
export const SETUP_FAILED = "SETUP_FAILED";
/** Code of a backup that its deadline ended. */
export const BACKUP_DEADLINE = "BACKUP_DEADLINE";

export interface OperationFailure {
  /** Message of the error and of each of its causes, outermost first; no environment values. */
  readonly messages: readonly string[];
  /** The SDK's error code where there was one. */
  readonly code: string | null;
  /** The SDK error's `context.reason` where there was one. Absent in what older versions persisted. */
  readonly contextReason?: string | null;
  readonly exitCode: number | null;
  readonly retryAfterMs: number | null;
}

/**
 * A start as persisted in the object.
 *
 * `Interrupted`: the object lost its memory (eviction, deploy, crash) while the operation ran. `TimedOut`: its deadline passed; the
 * admission is revoked and the container destroyed.
 */
export interface StartOperation {
  readonly startId: string;
  readonly state: "InProgress" | "Succeeded" | "Failed" | "TimedOut" | "Interrupted";
  readonly specHash: string;
  /** What it prepares, and backups of its container hold. Absent in what older versions persisted. */
  readonly directory?: string;
  readonly startedTime: number;
  readonly deadlineTime: number;
  readonly failure: OperationFailure | null;
  /** When it succeeded. Absent until then, and in what older versions persisted. */
  readonly endedTime?: number;
  /** How far it came. Absent in what older versions persisted, which knew but one. */
  readonly step?: StartStep;
}

/** What the object knows without asking its container anything. */
export interface SandboxFacts {
  /** `ctx.container.running`, the platform's own synchronous word. */
  readonly running: boolean;
  readonly admission: AdmissionState;
  readonly operation: StartOperation | null;
  /** How the last container ended, once it has; null while one runs or none ever did. */
  readonly exit: { readonly code: number | null; readonly time: number; readonly signalled: boolean } | null;
  /** When the container that runs was started; null where none runs or nobody saw it begin. */
  readonly startedTime: number | null;
  /** When a user's traffic last reached the container that runs; null where none has. */
  readonly activityTime: number | null;
}

/** A refusal is an answer, not an error: the caller's own state is out of date. */
export type Answer =
  | { readonly accepted: true; readonly facts: SandboxFacts }
  | {
      readonly accepted: false;
      readonly refusal: "StaleEpoch" | "OtherIncarnation" | "Destroyed" | "Expired";
      readonly facts: SandboxFacts;
    };

/**
 * What became of the order to destroy a container that no record claims. `Wanted`: the object's own record names a workspace that has a
 * row; `StaleEpoch`: a controller with a higher epoch has spoken; `Expired`: it arrived too late. Nothing was done then.
 */
export type OrphanAnswer = "Gone" | "StillRuns" | "Wanted" | "StaleEpoch" | "Expired";

/**
 * The calls the controller makes. None but `startWorkspace` can start a container, and none renews activity.
 *
 * - `observeWorkspace`: facts at once; settles an operation whose deadline passed or whose memory was lost.
 * - `startWorkspace`: persists the admission, begins the operation, waits up to `waitMs` for it and answers with the facts of that moment.
 * - `backupWorkspace`: takes a backup of the container that runs, waits up to `waitMs` for its outcome and answers with what it is then.
 *   Starts nothing whatever happens, in its clean-up neither.
 * - `stopWorkspace`: revokes the admission, SIGTERM, and after the grace the kill. Answers when `running` is false or `graceMs` and a
 *   short while have passed.
 * - `destroyWorkspace`: revokes for good first, destroys, verifies that nothing runs. Idempotent.
 * - `destroyOrphan`: the same whatever the incarnation, unless the object knows better.
 */
export interface WorkspaceControl {
  observeWorkspace(fence: Fence): Promise<Answer>;
  startWorkspace(fence: Fence, order: StartOrder, waitMs: number): Promise<Answer>;
  backupWorkspace(fence: Fence, order: BackupOrder, waitMs: number): Promise<BackupAnswer>;
  stopWorkspace(fence: Fence, graceMs: number): Promise<Answer>;
  destroyWorkspace(fence: Fence): Promise<Answer>;
  destroyOrphan(epoch: number, expiresTime?: number): Promise<OrphanAnswer>;
}
