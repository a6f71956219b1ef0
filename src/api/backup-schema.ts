/** The routes of backups, and their wire shapes. */
import { createRoute, z } from "@hono/zod-openapi";
import { json, jsonBody, problem, security } from "./route-parts.ts";
import { instant, nameText, noQuery, pageQuery, workspacePath } from "./schema.ts";

const backupSchema = z
  .object({
    id: z.string(),
    workspace: z
      .object({ namespace: z.string(), name: z.string(), uid: z.string() })
      .meta({ description: "Whose files it holds; the uid tells lives of one name apart." }),
    state: z.enum(["Requested", "InProgress", "Completed", "Skipped", "Failed", "Abandoned", "Deleting"]),
    trigger: z.enum(["Request", "Schedule", "Suspend", "Final"]),
    reason: z.string().meta({ description: "CamelCase; part of the API. Empty while nothing needs explaining.", example: "NotRunning" }),
    message: z.string(),
    directory: z.string(),
    sizeBytes: z.int().nullable().meta({ description: "Of the archive; null where there is none." }),
    requestedTime: instant,
    startedTime: instant.nullable(),
    endedTime: instant.nullable(),
    lost: z.boolean().meta({ description: "Whether the bucket no longer has what the record stands for." }),
  })
  .openapi("Backup");

export type BackupBody = z.infer<typeof backupSchema>;

const backupListSchema = z.object({ items: z.array(backupSchema), nextPageToken: z.string().nullable() }).openapi("BackupList");

/** The place of a backup in the order of the list. */
export const backupPosition = z.object({ requestedTime: z.int().min(0), id: z.string() });

const BACKUPS = "/v1/namespaces/{namespace}/workspaces/{name}/backups";
const tags = ["backups"];
const backupPath = z.object({
  namespace: nameText,
  name: nameText,
  id: z.uuid({ error: "must be the id of a backup, a UUID" }).toLowerCase(),
});

export const listBackupsRoute = createRoute({
  method: "get",
  path: BACKUPS,
  operationId: "listBackups",
  summary: "The backups of the workspaces of this name, newest first",
  description: "Those of a workspace that is gone too. 404 where there is neither a workspace nor any backup of one.",
  tags,
  security,
  request: { params: workspacePath, query: pageQuery },
  responses: { 200: json(backupListSchema, "One page, newest first"), default: problem() },
});

export const requestBackupRoute = createRoute({
  method: "post",
  path: BACKUPS,
  operationId: "requestBackup",
  summary: "Ask for a backup of a workspace that runs",
  description:
    "Wakes nothing: of a workspace that does not run, the request ends as Skipped. One that is asked for already is answered as it is; " +
    "while one is being taken, 409.",
  tags,
  security,
  request: { params: workspacePath, query: noQuery, body: jsonBody("Empty", false) },
  responses: {
    202: { ...json(backupSchema, "Asked for"), headers: { Location: { schema: { type: "string" as const } } } },
    default: problem(),
  },
});

export const getBackupRoute = createRoute({
  method: "get",
  path: `${BACKUPS}/{id}`,
  operationId: "getBackup",
  summary: "Read a backup, also of a workspace that is gone",
  tags,
  security,
  request: { params: backupPath, query: noQuery },
  responses: { 200: json(backupSchema, "The backup"), default: problem() },
});

export const deleteBackupRoute = createRoute({
  method: "delete",
  path: `${BACKUPS}/{id}`,
  operationId: "deleteBackup",
  summary: "Ask for a backup to be deleted, or withdraw the request for one",
  description: "409 while it is being taken, and while a workspace restores from it. Retention does not hold it back.",
  tags,
  security,
  request: { params: backupPath, query: noQuery },
  responses: { 202: json(backupSchema, "Deleting, or Skipped where it was only asked for"), default: problem() },
});
