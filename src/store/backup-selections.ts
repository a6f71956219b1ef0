/**
 * Which backups are meant, as conditions and look-ups in SQL. Enumerations stand in them as words, not as parameters: only so do the
 * partial indexes serve.
 */
import { type SQL, sql } from "drizzle-orm";
import { backups, workspaces } from "./schema.ts";

/** Of a row of `backups`. */
export const isActive: SQL = sql`${backups.state} IN ('Requested', 'InProgress')`;

/** Of a row of `workspaces`. The index of active backups serves. */
export const isBackingUp: SQL = sql`EXISTS (
  SELECT 1 FROM ${backups} WHERE ${backups.workspaceUid} = ${workspaces.uid} AND ${isActive} AND ${backups.state} = 'InProgress')`;

/** Of a row that ended, and was claimed before. */
export const ATTEMPT_STATES = "('Completed', 'Skipped', 'Failed', 'Abandoned')";

/** The newest good backup, named `good`, of those that `which` names. */
export function newestGood(column: string, which: string): string {
  return `(SELECT ${column} FROM backups AS good WHERE good.state = 'Completed' AND ${which}
    ORDER BY good.ended_time DESC, good.id DESC LIMIT 1)`;
}

/**
 * What `spec.source` of the workspace row `workspace` stands for as long as nothing is pinned: one of these two is null.
 * A spec that is no JSON must not fail the statement for all the others.
 */
export function sourceById(column: string, workspace: string): string {
  return `(SELECT ${column} FROM backups AS good WHERE good.id = ${sourceField("backup", workspace)}
    AND good.namespace = ${workspace}.namespace AND good.state = 'Completed')`;
}

/** A workspace may name the one that had its name before. */
export function sourceByName(column: string, workspace: string): string {
  const isNamed = `good.namespace = ${workspace}.namespace AND good.name = ${sourceField("workspace", workspace)}`;
  return newestGood(column, `${isNamed} AND good.workspace_uid <> ${workspace}.uid`);
}

/**
 * The ids of all good backups that a record of their namespace refers to: pinned by its first start, named by its spec, or what a first
 * start would restore now where the spec names a workspace.
 */
export const referredIds: SQL = sql.raw(`(
  SELECT source_backup_id FROM workspaces AS referrer WHERE source_backup_id IS NOT NULL
  UNION SELECT named.id FROM (SELECT ${sourceById("good.id", "referrer")} AS id FROM workspaces AS referrer) AS named
  WHERE named.id IS NOT NULL
  UNION SELECT named.id FROM (
    SELECT ${sourceByName("good.id", "referrer")} AS id FROM workspaces AS referrer
    WHERE referrer.source_backup_id IS NULL AND ${sourceField("workspace", "referrer")} IS NOT NULL) AS named
  WHERE named.id IS NOT NULL)`);

/** How many good backups of the same workspace, with their objects, are newer than the row `backup`. */
export function newerGood(backup: string): string {
  return `(SELECT count(*) FROM backups AS newer WHERE newer.workspace_uid = ${backup}.workspace_uid AND newer.state = 'Completed'
    AND newer.lost_time IS NULL AND (newer.ended_time, newer.id) > (${backup}.ended_time, ${backup}.id))`;
}

function sourceField(field: "backup" | "workspace", workspace: string): string {
  return `CASE WHEN json_valid(${workspace}.spec) THEN json_extract(${workspace}.spec, '$.source.${field}') END`;
}
