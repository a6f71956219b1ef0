/**
 * The vocabulary of backups. Types only.
 *
 * A backup is a row first and an archive second: claimed in D1, taken by the sandbox, and good only once its outcome is written down.
 */
import type { Instant, WorkspaceName } from "./workspace.ts";

/**
 * - `Requested`: a client asked for it. - `InProgress`: claimed for one runtime; its sandbox takes it, or is about to.
 * - `Completed`: good, its objects verified. - `Skipped`: there was nothing to take. - `Failed`. - `Abandoned`: no outcome came before
 * its deadline. - `Deleting`: its objects, then its row, are being removed.
 */
export type BackupState = "Requested" | "InProgress" | "Completed" | "Skipped" | "Failed" | "Abandoned" | "Deleting";

/** Why it is taken: a client's request, the schedule, the end of a container that is about to be stopped, or that of the workspace. */
export type BackupTrigger = "Request" | "Schedule" | "Suspend" | "Final";

/** Why nothing was taken. */
export type SkipReason =
  /** No container ran, or it ended meanwhile. */
  | "NotRunning"
  /** Nothing that was restored and verified runs, or another container than the claim was for. */
  | "NotRestored"
  /** The directory holds no file: an empty one never replaces a good backup. */
  | "Empty"
  /** Its workspace was deleted, or the request withdrawn. */
  | "Cancelled";

/** A row of `backups`, as a reader sees it. Outlives its workspace. */
export interface Backup extends WorkspaceName {
  /** A UUID. */
  readonly id: string;
  readonly workspaceUid: string;
  readonly trigger: BackupTrigger;
  readonly state: BackupState;
  /** CamelCase; empty while nothing needs explaining. */
  readonly reason: string;
  readonly message: string;
  readonly directory: string;
  readonly requestedTime: Instant;
  /** When it was claimed; null before. */
  readonly startedTime: Instant | null;
  /** When its outcome was written down. */
  readonly endedTime: Instant | null;
  /** Of the archive. */
  readonly sizeBytes: number | null;
  /** Since when a complete sweep has missed its objects; null where they are there. */
  readonly lostTime: Instant | null;
}

/** A good backup, as a start needs it. */
export interface StoredBackup {
  readonly id: string;
  /** A UUID: `backups/<objectId>/` in the bucket. */
  readonly objectId: string;
  readonly endedTime: Instant;
  readonly lostTime: Instant | null;
}

/** The one backup of a workspace that is asked for or under way. */
export interface ActiveBackup {
  readonly id: string;
  readonly state: "Requested" | "InProgress";
  readonly trigger: BackupTrigger;
  /** The runtime it is taken from; null before the claim. */
  readonly startId: string | null;
  readonly directory: string;
  readonly startedTime: Instant | null;
  /** The claim is worth nothing after it; null before the claim. */
  readonly deadlineTime: Instant | null;
}

/** The last claim that has ended, whatever came of it. */
export interface BackupAttempt {
  readonly trigger: BackupTrigger;
  readonly state: "Completed" | "Skipped" | "Failed" | "Abandoned";
  readonly startId: string;
  /** Of the workspace when it was claimed. */
  readonly generation: number;
  readonly startedTime: Instant;
  readonly endedTime: Instant;
  /** How many in a row have failed, this one included. */
  readonly failures: number;
  readonly message: string;
}

/** What a pass knows of a workspace's backups. */
export interface BackupMemory {
  readonly active: ActiveBackup | null;
  /** The newest good one of this workspace: what its next start restores. */
  readonly newest: StoredBackup | null;
  readonly last: BackupAttempt | null;
  /** What `spec.source` stands for, pinned by the first start that restored it; null where there is none such. */
  readonly source: StoredBackup | null;
}

/** A claim, committed before the sandbox is asked. */
export interface BackupClaim {
  /** Of the request that it takes up, or a new one. */
  readonly id: string;
  readonly trigger: BackupTrigger;
  readonly startId: string;
  readonly directory: string;
  readonly deadlineTime: Instant;
  /** Of the attempts before it, in a row. */
  readonly failures: number;
}

/** What a sandbox answers about a claim. */
export type BackupOutcome =
  | { readonly kind: "InProgress" }
  | { readonly kind: "Completed"; readonly objectId: string; readonly sizeBytes: number }
  | { readonly kind: "Skipped"; readonly reason: SkipReason; readonly message: string }
  | { readonly kind: "Failed"; readonly reason: string; readonly message: string }
  /** No answer: the claim stands until its deadline. */
  | { readonly kind: "Unknown"; readonly message: string };

/** How the active backup ended, as a pass writes it down. */
export interface BackupEnding {
  readonly id: string;
  readonly trigger: BackupTrigger;
  readonly state: "Completed" | "Skipped" | "Failed" | "Abandoned";
  readonly reason: string;
  readonly message: string;
  readonly objectId: string | null;
  readonly sizeBytes: number | null;
}

/** The objects of a backup that no row knows, kept until they are gone. */
export interface UnclaimedBackup {
  readonly objectId: string;
  /** Of the youngest of its objects, by the bucket's clock. */
  readonly uploadedTime: Instant;
  readonly sizeBytes: number;
  readonly firstSeenTime: Instant;
  readonly lastSeenTime: Instant;
  /** In how many complete sweeps in a row. */
  readonly timesSeen: number;
}

/** How the last sweep of the bucket went. */
export interface BackupSweepRecord {
  readonly time: Instant;
  /** Of the last that saw every page; null before the first. */
  readonly completeTime: Instant | null;
  readonly outcome: "Complete" | "Failed";
  readonly message: string;
  /** Backups with objects, as of the last complete sweep. */
  readonly stored: number;
  /** Past every guard but the brake. */
  readonly eligible: number;
  /** How many may be removed in one sweep. */
  readonly limit: number;
  readonly brake: "TooManyOrphans" | "EmptyDesired" | null;
}

/** A good backup beyond the newest of its workspace, with what decides whether it is kept. */
export interface RetentionCandidate {
  readonly id: string;
  readonly endedTime: Instant;
  /** Among the good ones of its workspace, the newest being 1. */
  readonly rank: number;
  /** Null where the workspace is gone, or its spec does not parse. */
  readonly retention: { readonly keepLast: number; readonly keepForSeconds: number | null } | null;
  /** When the workspace was forgotten; null while it lives. */
  readonly workspaceGoneTime: Instant | null;
  /** A record restores from it. */
  readonly referred: boolean;
}
