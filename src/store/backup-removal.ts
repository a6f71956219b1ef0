/**
 * What ends a backup: retention marks it, its objects are removed, then its row. A mark holds every guard once more in its own statement;
 * whoever dies after it leaves a row from which the removal goes on.
 */
import { and, asc, eq, lt, sql } from "drizzle-orm";
import type { RetentionCandidate } from "../backup.ts";
import { parseStoredSpec } from "../spec.ts";
import type { Instant } from "../workspace.ts";
import { ATTEMPT_STATES, newerGood, referredIds } from "./backup-selections.ts";
import type { Database } from "./db.ts";
import { isHeld } from "./lease.ts";
import { parseJson } from "./rows.ts";
import { backups, settings } from "./schema.ts";

export interface BackupDeletion {
  readonly id: string;
  /** Null where it never had objects. */
  readonly objectId: string | null;
}

/** Those that are to go. */
export async function readDeletions(db: Database, limit: number): Promise<readonly BackupDeletion[]> {
  return await db
    .select({ id: backups.id, objectId: backups.objectId })
    .from(backups)
    .where(sql`${backups.state} = 'Deleting'`)
    .orderBy(asc(backups.id))
    .limit(limit);
}

/** The last step of a removal. False where the row is not one that is to go, or the lease is lost. */
export async function forgetBackup(db: Database, epoch: number, id: string): Promise<boolean> {
  const forgotten = await db
    .delete(backups)
    .where(and(eq(backups.id, id), sql`${backups.state} = 'Deleting'`, isHeld(epoch)))
    .returning({ id: backups.id });
  return forgotten.length === 1;
}

/** Good backups after the id `after` that may be beyond their retention: not the newest good one of a workspace that lives. */
export async function readRetentionCandidates(db: Database, after: string | null, limit: number): Promise<readonly RetentionCandidate[]> {
  const rows = await db.all<CandidateRow>(sql`
    SELECT * FROM (
      SELECT kept.id, kept.ended_time AS endedTime, 1 + ${sql.raw(newerGood("kept"))} AS rank, ${sql.raw(RETENTION)} AS spec,
        kept.workspace_gone_time AS workspaceGoneTime, kept.id IN ${referredIds} AS referred
      FROM backups AS kept LEFT JOIN workspaces AS owner ON owner.uid = kept.workspace_uid
      WHERE kept.state = 'Completed' AND kept.id > ${after ?? ""})
    WHERE rank > 1 OR workspaceGoneTime IS NOT NULL
    ORDER BY id LIMIT ${limit}`);
  return rows.map(({ id, endedTime, rank, spec, workspaceGoneTime, referred }) => {
    return { id, endedTime, rank, retention: retentionOf(spec), workspaceGoneTime, referred: referred === 1 };
  });
}

interface CandidateRow extends Omit<RetentionCandidate, "retention" | "referred"> {
  readonly spec: string | null;
  readonly referred: number;
}

/** Of the owner's spec what says how long backups are kept: the whole may be large. */
const RETENTION = `CASE WHEN json_valid(owner.spec) THEN
  CASE WHEN json_type(owner.spec, '$.backup') IS NULL THEN '{}' ELSE json_object('backup', json_extract(owner.spec, '$.backup')) END END`;

function retentionOf(spec: string | null): RetentionCandidate["retention"] {
  return spec === null ? null : (parseStoredSpec(parseJson(spec))?.backup?.retention ?? null);
}

/** True where at this very moment a newer good one stands for it or its workspace is gone, no record refers to it, and nobody holds it back. */
export async function claimBackupDeletion(db: Database, epoch: number, id: string): Promise<boolean> {
  const isPaused = sql`EXISTS (SELECT 1 FROM ${settings} WHERE ${settings.paused} = 1)`;
  const claimed = await db
    .update(backups)
    .set({ state: "Deleting" })
    .where(
      and(
        eq(backups.id, id),
        sql`${backups.state} = 'Completed'`,
        sql`(${backups.workspaceGoneTime} IS NOT NULL OR ${sql.raw(newerGood("backups"))} > 0)`,
        sql`${backups.id} NOT IN ${referredIds}`,
        sql`NOT ${isPaused}`,
        isHeld(epoch),
      ),
    )
    .returning({ id: backups.id });
  return claimed.length === 1;
}

/** Rows without objects that ended long ago. The last attempt of a workspace that lives is what its next one follows from. */
export async function expireBackupRecords(db: Database, epoch: number, before: Instant): Promise<void> {
  const isFollowed = sql.raw(`EXISTS (
    SELECT 1 FROM backups AS later WHERE later.workspace_uid = backups.workspace_uid AND later.started_time IS NOT NULL
      AND later.state IN ${ATTEMPT_STATES}
      AND (later.started_time, later.ended_time, later.id) > (backups.started_time, backups.ended_time, backups.id))`);
  await db
    .delete(backups)
    .where(
      and(
        sql`${backups.state} IN ('Skipped', 'Failed', 'Abandoned')`,
        lt(backups.endedTime, before),
        sql`(${backups.workspaceGoneTime} IS NOT NULL OR ${backups.startedTime} IS NULL OR ${isFollowed})`,
        isHeld(epoch),
      ),
    );
}
