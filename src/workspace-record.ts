/** What the controller remembers of a workspace, and what a pass leaves behind. Types only. */
import type { BackupEnding, BackupMemory } from "./backup.ts";
import type { BackupPolicy, Instance, Instant, Observation, Reason, WorkspaceName, WorkspaceSpec, WorkspaceStatus } from "./workspace.ts";

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
  /** As asked for with the deletion. */
  readonly finalBackup: BackupPolicy;
  /** The deletion waits no longer for its final backup; null while it is not being deleted. */
  readonly finalBackupDeadlineTime: Instant | null;
  /** Null where this installation takes no backups. */
  readonly backups: BackupMemory | null;
  /** It has good backups, and this installation takes and restores none: without them it would begin with nothing. */
  readonly unrestorable: boolean;
  /** The good backup that `spec.source` stood for when it was first restored; null before, and once the source is another. */
  readonly sourceBackupId: string | null;
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
  /** How the active backup ended in this pass; null where it did not. */
  readonly backup: BackupEnding | null;
}

export type EventType = "Normal" | "Warning";

export interface WorkspaceEvent {
  readonly type: EventType;
  /** CamelCase; a condition's reason or what was done. */
  readonly reason: string;
  readonly message: string;
}
