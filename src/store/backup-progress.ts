/** What a pass may write of backups: a claim before the sandbox is asked, and how it ended. */
import { and, eq, sql, type SQL } from "drizzle-orm";
import type { BackupClaim, BackupEnding } from "../backup.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceEvent, WorkspaceRecord } from "../workspace-record.ts";
import { isActive } from "./backup-selections.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import { backups, workspaces } from "./schema.ts";
import { isCurrent, isWritten } from "./versions.ts";

/**
 * Takes up the request that the record knows, or begins a backup of its own. False, and nothing written, where the row moved on, the
 * lease is lost, the request was withdrawn, or another is asked for or under way by now.
 */
export async function claimBackup(
  db: Database,
  epoch: number,
  record: WorkspaceRecord,
  claim: BackupClaim,
  now: Instant,
): Promise<boolean> {
  const isStillCurrent = sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isCurrent(record, epoch)})`;
  const { startId, deadlineTime, directory, failures } = claim;
  const claimed =
    record.backups?.active?.id === claim.id
      ? await db
          .update(backups)
          .set({ state: "InProgress", startId, generation: record.generation, startedTime: now, deadlineTime, directory, failures })
          .where(and(eq(backups.id, claim.id), eq(backups.workspaceUid, record.uid), sql`${backups.state} = 'Requested'`, isStillCurrent))
          .returning({ id: backups.id })
      : await db
          .insert(backups)
          .select(claimedRow(record, claim, now, isStillCurrent))
          .onConflictDoNothing()
          .returning({ id: backups.id });
  return claimed.length === 1;
}

/** In the table's order. The index of active backups refuses a second one. */
function claimedRow({ uid, namespace, name, generation }: WorkspaceRecord, claim: BackupClaim, now: Instant, condition: SQL): SQL {
  return sql`
    SELECT ${claim.id}, ${uid}, ${namespace}, ${name}, ${claim.trigger}, 'InProgress', '', '', ${claim.directory}, ${now},
      ${claim.startId}, ${generation}, ${now}, ${claim.deadlineTime}, ${claim.failures}, NULL, NULL, NULL, NULL, NULL
    WHERE ${condition}`;
}

/** The statements that write down how the active backup ended, where the batch's own write of the workspace took place. */
export function endBackup(db: Database, record: WorkspaceRecord, ending: BackupEnding, now: Instant) {
  const { state, reason, message, objectId, sizeBytes } = ending;
  const isEnding = and(eq(backups.id, ending.id), eq(backups.workspaceUid, record.uid), isActive, isWritten(record.uid));
  const event = eventOf(ending);
  const write = db
    .update(backups)
    .set({ state, reason, message, objectId, sizeBytes, endedTime: now, failures: failuresAfter(ending) })
    .where(isEnding);
  // Before the write: afterwards, the row could not be told from one that ended earlier.
  const isTold = sql`EXISTS (SELECT 1 FROM ${backups} WHERE ${isEnding})`;
  return event === null ? [write] : [recordEvent(db, record, event, now, isTold), capEvents(db, record.uid), write];
}

/** What was skipped says nothing about the next try. */
function failuresAfter({ state }: BackupEnding): SQL | number {
  if (state === "Completed") return 0;
  return state === "Skipped" ? sql`${backups.failures}` : sql`${backups.failures} + 1`;
}

/** A schedule that goes well is no news. */
function eventOf({ state, trigger, reason, message }: BackupEnding): WorkspaceEvent | null {
  if (state === "Failed" || state === "Abandoned") {
    return { type: "Warning", reason: "BackupFailed", message: message === "" ? reason : `${reason}: ${message}` };
  }
  if (trigger === "Schedule") return null;
  if (state === "Completed") return { type: "Normal", reason: "BackupCompleted", message: "" };
  return { type: "Normal", reason: "BackupSkipped", message: reason };
}

/** The statement that ends what is active with the workspace, and dates the end of its backups' keep. */
export function leaveBackups(db: Database, uid: string, condition: SQL, now: Instant) {
  return db
    .update(backups)
    .set({
      workspaceGoneTime: now,
      state: sql`CASE ${backups.state} WHEN 'Requested' THEN 'Skipped' WHEN 'InProgress' THEN 'Abandoned' ELSE ${backups.state} END`,
      reason: sql`CASE ${backups.state} WHEN 'Requested' THEN 'Cancelled' WHEN 'InProgress' THEN 'WorkspaceDeleted' ELSE ${backups.reason} END`,
      endedTime: sql`CASE WHEN ${isActive} THEN ${now} ELSE ${backups.endedTime} END`,
    })
    .where(and(eq(backups.workspaceUid, uid), condition));
}
