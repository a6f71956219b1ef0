/** What the API may write of backups: that one is to be taken, or to go. The controller does both. */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Backup } from "../backup.ts";
import type { Instant, Workspace, WorkspaceName } from "../workspace.ts";
import { toBackup } from "./backup-reading.ts";
import { isActive, referredIds } from "./backup-selections.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import type { WriteOptions } from "./intent.ts";
import { backups, workspaces } from "./schema.ts";
import { currentVersion, isWritten, nextVersion } from "./versions.ts";

export interface BackupRequest {
  /** A UUID. */
  readonly id: string;
  readonly directory: string;
  readonly now: Instant;
}

/** The backup as requested, or the one that is asked for or under way already. Null where the workspace is gone or being deleted. */
export async function requestBackup(
  db: Database,
  { uid, namespace, name }: Workspace,
  { id, directory, now }: BackupRequest,
  { actor }: WriteOptions = {},
): Promise<{ readonly backup: Backup; readonly created: boolean } | null> {
  const isAlive = and(eq(workspaces.uid, uid), isNull(workspaces.deletionTime));
  const [, , , , , [row]] = await db.batch([
    nextVersion(db),
    // The index of active backups refuses a second one.
    db
      .insert(backups)
      .select(
        sql`
        SELECT ${id}, ${uid}, ${namespace}, ${name}, 'Request', 'Requested', '', '', ${directory}, ${now},
          NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL
        WHERE EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isAlive})`,
      )
      .onConflictDoNothing(),
    // A pass that read the row before must not save on top of the request.
    db
      .update(workspaces)
      .set({ nextReconcileTime: now, resourceVersion: currentVersion })
      .where(and(isAlive, sql`EXISTS (SELECT 1 FROM ${backups} WHERE ${eq(backups.id, id)})`)),
    recordEvent(
      db,
      { uid, namespace, name, actor: actor ?? null },
      { type: "Normal", reason: "BackupRequested", message: "" },
      now,
      isWritten(uid),
    ),
    capEvents(db, uid),
    db
      .select()
      .from(backups)
      .where(and(eq(backups.workspaceUid, uid), isActive, sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isAlive})`)),
  ]);
  return row === undefined ? null : { backup: toBackup(row), created: row.id === id };
}

/** `Deleted`: it is to go, or was asked for and is no more. `InUse`: a record refers to it. Only the first of the four writes anything. */
export type BackupDeletionAnswer = "Deleted" | "Missing" | "InProgress" | "InUse";

export async function deleteBackup(
  db: Database,
  { namespace, name }: WorkspaceName,
  id: string,
  now: Instant,
  { actor }: WriteOptions = {},
): Promise<BackupDeletionAnswer> {
  const isIt = and(eq(backups.id, id), eq(backups.namespace, namespace), eq(backups.name, name));
  const [found] = await db.select({ uid: backups.workspaceUid }).from(backups).where(isIt);
  if (found === undefined) return "Missing";
  const isRequested = and(isIt, sql`${backups.state} = 'Requested'`);
  const isFree = and(
    isIt,
    sql`${backups.state} IN ('Completed', 'Skipped', 'Failed', 'Abandoned')`,
    sql`${backups.id} NOT IN ${referredIds}`,
  );
  const isNews = sql`EXISTS (SELECT 1 FROM ${backups} WHERE ${isRequested} OR ${isFree})`;
  const [, , deleted, cancelled, [left]] = await db.batch([
    recordEvent(
      db,
      { uid: found.uid, namespace, name, actor: actor ?? null },
      { type: "Normal", reason: "BackupDeletionRequested", message: id },
      now,
      isNews,
    ),
    capEvents(db, found.uid),
    db.update(backups).set({ state: "Deleting" }).where(isFree).returning({ id: backups.id }),
    // After the other: what was withdrawn just now stays to be seen.
    db.update(backups).set({ state: "Skipped", reason: "Cancelled", endedTime: now }).where(isRequested).returning({ id: backups.id }),
    db.select({ state: backups.state }).from(backups).where(isIt),
  ]);
  if (left === undefined) return "Missing";
  if (deleted.length + cancelled.length === 1 || left.state === "Deleting") return "Deleted";
  return left.state === "InProgress" ? "InProgress" : "InUse";
}
