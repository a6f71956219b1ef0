/**
 * When the schedule wants a backup (invariant 6). Pure.
 *
 * 1. The next one is counted from the begin of the last: windows that were missed are not made up for.
 * 2. An attempt that failed is repeated sooner, but less and less soon, and never within the window of a good one.
 */
import type { BackupAttempt, BackupMemory } from "../backup.ts";
import type { Instant, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";

const RETRY_BASE_MS = 30_000;
const RETRY_CAP_MS = 900_000;
/** A report may come while the backup that it misses is being taken. */
const OVERDUE_SLACK_MS = 600_000;

/** Null: the schedule wants none. Of a workspace that is Ready. */
export function nextBackupTime({ backups, readyTime }: WorkspaceRecord, { backup }: WorkspaceSpec): Instant | null {
  if (backups === null || backup === null || backup.everySeconds === null) return null;
  const everyMs = backup.everySeconds * 1000;
  const { last, newest } = backups;
  if (last === null) return readyTime === null ? null : readyTime + everyMs;
  // What failed need not be of the schedule: a window that has its good backup is not opened again for it.
  if (hasFailed(last)) return Math.max(Math.min(last.endedTime + everyMs, retryTime(last)), (newest?.endedTime ?? 0) + everyMs);
  return last.startedTime + everyMs;
}

/** Whether the newest good one is older than the schedule allows, counted from Ready at the earliest: nothing is taken of what sleeps. */
export function overdueSince({ backups, readyTime }: WorkspaceRecord, { backup }: WorkspaceSpec, now: Instant): Instant | null {
  if (backups === null || readyTime === null || backup === null || backup.everySeconds === null) return null;
  const dueTime = Math.max(readyTime, backups.newest?.endedTime ?? 0) + 2 * backup.everySeconds * 1000 + OVERDUE_SLACK_MS;
  return now >= dueTime ? dueTime : null;
}

/** Claimed, and without an outcome. */
export function isUnderWay(backups: BackupMemory | null): boolean {
  return backups?.active?.state === "InProgress";
}

export function hasFailed({ state }: BackupAttempt): boolean {
  return state === "Failed" || state === "Abandoned";
}

/** How many attempts in a row have failed. */
export function failuresBefore(last: BackupAttempt | null): number {
  return last !== null && hasFailed(last) ? last.failures : 0;
}

/** When an attempt that failed may be repeated. */
export function retryTime({ endedTime, failures }: BackupAttempt): Instant {
  return endedTime + Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 2 ** Math.max(0, failures - 1));
}
