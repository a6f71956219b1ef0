/** What a pass knows of a workspace's backups: looked up with its row, at a cost that does not depend on how many backups exist. */
import { type SQL, sql } from "drizzle-orm";
import { z } from "zod";
import type { BackupMemory } from "../backup.ts";
import { ATTEMPT_STATES, newestGood, sourceById, sourceByName } from "./backup-selections.ts";

const STORED = "json_object('id', good.id, 'objectId', good.object_id, 'endedTime', good.ended_time, 'lostTime', good.lost_time)";

const ACTIVE = `(
  SELECT json_object('id', id, 'state', state, 'trigger', "trigger", 'startId', start_id, 'directory', directory,
    'startedTime', started_time, 'deadlineTime', deadline_time)
  FROM backups AS active WHERE active.workspace_uid = workspaces.uid AND active.state IN ('Requested', 'InProgress'))`;

const LAST = `(
  SELECT json_object('trigger', "trigger", 'state', state, 'startId', start_id, 'generation', generation,
    'startedTime', started_time, 'endedTime', ended_time, 'failures', failures, 'message', message)
  FROM backups AS attempt
  WHERE attempt.workspace_uid = workspaces.uid AND attempt.started_time IS NOT NULL AND attempt.state IN ${ATTEMPT_STATES}
  ORDER BY attempt.started_time DESC, attempt.ended_time DESC, attempt.id DESC LIMIT 1)`;

/** A pin holds whatever the name stands for by now. */
const SOURCE = `CASE
  WHEN workspaces.source_backup_id IS NOT NULL
  THEN (SELECT ${STORED} FROM backups AS good WHERE good.id = workspaces.source_backup_id AND good.state = 'Completed')
  ELSE coalesce(${sourceById(STORED, "workspaces")}, ${sourceByName(STORED, "workspaces")}) END`;

/** Columns of a joined selection of `workspaces`; all null where backups are not wanted. */
export function backupColumns(isWanted: boolean) {
  const column = (query: string): SQL<string | null> => sql.raw(isWanted ? query : "NULL") as SQL<string | null>;
  return {
    active: column(ACTIVE).as("backup_active"),
    newest: column(newestGood(STORED, "good.workspace_uid = workspaces.uid")).as("backup_newest"),
    last: column(LAST).as("backup_last"),
    source: column(SOURCE).as("backup_source"),
  };
}

/** Whether there are good ones that are of no use here. */
export function isUnrestorable(isWanted: boolean): SQL<boolean> {
  const query = "EXISTS (SELECT 1 FROM backups AS good WHERE good.workspace_uid = workspaces.uid AND good.state = 'Completed')";
  return sql<boolean>`${sql.raw(isWanted ? "0" : query)}`.mapWith(Boolean);
}

type BackupColumns = { readonly [Name in keyof BackupMemory]: string | null };

export function toBackupMemory(columns: BackupColumns): BackupMemory {
  return {
    active: read(active, columns.active),
    newest: read(stored, columns.newest),
    last: read(attempt, columns.last),
    source: read(stored, columns.source),
  };
}

/** A trigger of another version must not hide the row: it holds the place of any other. */
const trigger = z.enum(["Request", "Schedule", "Suspend", "Final"]).catch("Request");

const active = z.object({
  id: z.string(),
  state: z.enum(["Requested", "InProgress"]),
  trigger,
  startId: z.string().nullable(),
  directory: z.string(),
  startedTime: z.number().nullable(),
  deadlineTime: z.number().nullable(),
});

const stored = z.object({ id: z.string(), objectId: z.string(), endedTime: z.number(), lostTime: z.number().nullable() });

const attempt = z.object({
  trigger,
  state: z.enum(["Completed", "Skipped", "Failed", "Abandoned"]),
  startId: z.string(),
  generation: z.int(),
  startedTime: z.number(),
  endedTime: z.number(),
  failures: z.int(),
  message: z.string(),
});

function read<Value>(schema: z.ZodType<Value>, text: string | null): Value | null {
  return text === null ? null : (schema.safeParse(JSON.parse(text)).data ?? null);
}
