/** Backups as a reader sees them: by the name of their workspace, whichever life of it they are of, and whether it still lives. */
import { and, desc, eq, sql } from "drizzle-orm";
import type { Backup, BackupState, BackupTrigger } from "../backup.ts";
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { Database } from "./db.ts";
import { backups } from "./schema.ts";

export async function readBackup(db: Database, { namespace, name }: WorkspaceName, id: string): Promise<Backup | null> {
  const [row] = await db
    .select()
    .from(backups)
    .where(and(eq(backups.id, id), eq(backups.namespace, namespace), eq(backups.name, name)));
  return row === undefined ? null : toBackup(row);
}

export interface BackupQuery extends WorkspaceName {
  /** The last item of the page before. */
  readonly after: { readonly requestedTime: Instant; readonly id: string } | null;
  readonly limit: number;
}

/** One page, newest first. */
export async function listBackups(db: Database, { namespace, name, after, limit }: BackupQuery): Promise<readonly Backup[]> {
  const rows = await db
    .select()
    .from(backups)
    .where(
      and(
        eq(backups.namespace, namespace),
        eq(backups.name, name),
        after === null ? undefined : sql`(${backups.requestedTime}, ${backups.id}) < (${after.requestedTime}, ${after.id})`,
      ),
    )
    .orderBy(desc(backups.requestedTime), desc(backups.id))
    .limit(limit);
  return rows.map(toBackup);
}

/** The words are not checked: a reader shows what is there. */
export function toBackup(row: typeof backups.$inferSelect): Backup {
  const { id, workspaceUid, namespace, name, reason, message, directory } = row;
  const { requestedTime, startedTime, endedTime, sizeBytes, lostTime } = row;
  const [state, trigger] = [row.state as BackupState, row.trigger as BackupTrigger];
  const about = { id, workspaceUid, namespace, name, trigger, state, reason, message, directory };
  return { ...about, requestedTime, startedTime, endedTime, sizeBytes, lostTime };
}
