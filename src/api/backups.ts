/** The handlers of backups: list, read, ask for one, ask for one to go. Each reads or writes records; nothing is called, nothing woken. */
import type { Backup } from "../backup.ts";
import { deleteBackup, requestBackup } from "../store/backup-intent.ts";
import { listBackups, readBackup } from "../store/backup-reading.ts";
import { getWorkspace } from "../store/reading.ts";
import type { WorkspaceName } from "../workspace.ts";
import { authorise } from "./auth.ts";
import {
  type BackupBody,
  backupPosition,
  deleteBackupRoute,
  getBackupRoute,
  listBackupsRoute,
  requestBackupRoute,
} from "./backup-schema.ts";
import { readEmptyBody } from "./body.ts";
import type { Api, ApiDeps } from "./context.ts";
import { cutPage, readPaging } from "./paging.ts";
import { Problem } from "./problem.ts";
import { untilWritten } from "./retrying.ts";
import { openapiWithVerbs } from "./verbs.ts";
import { readWorkspace } from "./waiting.ts";
import { toLocation, toOptionalTimestamp, toTimestamp } from "./wire.ts";
import { readSpec } from "./wish.ts";
import { rejectDeleted, requireBackups } from "./writing.ts";

export function registerBackups(app: Api, deps: ApiDeps): void {
  const openapi = openapiWithVerbs(app);

  openapi(listBackupsRoute, async (c) => {
    const path = c.req.valid("param");
    authorise(c.var.principal, "read", path.namespace);
    const paging = await readPaging(c.req.valid("query"), ["backups", path.namespace, path.name], backupPosition);
    const found = await listBackups(deps.db, { ...path, after: paging.after, limit: paging.readLimit });
    if (found.length === 0 && paging.after === null) await rejectUnknown(deps, path);
    const { items, nextPageToken } = await cutPage(found, paging, ({ requestedTime, id }) => ({ requestedTime, id }));
    return c.json({ items: items.map(toBackupBody), nextPageToken }, 200);
  });

  openapi(getBackupRoute, async (c) => {
    const { id, ...workspaceName } = c.req.valid("param");
    authorise(c.var.principal, "read", workspaceName.namespace);
    return c.json(toBackupBody(await read(deps, workspaceName, id)), 200);
  });

  openapi(requestBackupRoute, async (c) => {
    const path = c.req.valid("param");
    authorise(c.var.principal, "write", path.namespace);
    await readEmptyBody(c.req.raw);
    const backup = await request(deps, path, c.var.principal.name);
    return c.json(toBackupBody(backup), 202, { Location: `${toLocation(path)}/backups/${backup.id}` });
  });

  openapi(deleteBackupRoute, async (c) => {
    const { id, ...workspaceName } = c.req.valid("param");
    authorise(c.var.principal, "write", workspaceName.namespace);
    return c.json(toBackupBody(await remove(deps, workspaceName, id, c.var.principal.name)), 202);
  });
}

async function rejectUnknown({ db }: ApiDeps, workspaceName: WorkspaceName): Promise<void> {
  if ((await getWorkspace(db, workspaceName)) !== null) return;
  throw new Problem("NOT_FOUND", "There is no such workspace, and no backup of one.");
}

/** Throws NOT_FOUND. */
async function read({ db }: ApiDeps, workspaceName: WorkspaceName, id: string): Promise<Backup> {
  const backup = await readBackup(db, workspaceName, id);
  if (backup === null) throw notFound();
  return backup;
}

/** The request as recorded; one that nobody has taken up yet is as good as another. */
async function request(deps: ApiDeps, workspaceName: WorkspaceName, actor: string): Promise<Backup> {
  requireBackups(deps);
  const { backup } = await untilWritten(async () => {
    const current = await readWorkspace(deps, workspaceName);
    rejectDeleted(current);
    const { directory } = readSpec(current);
    return await requestBackup(deps.db, current, { id: deps.newUid(), directory, now: deps.now() }, { actor });
  });
  if (backup.state === "InProgress") throw inProgress(backup.id);
  return backup;
}

/** The backup as it is after the request. */
async function remove(deps: ApiDeps, workspaceName: WorkspaceName, id: string, actor: string): Promise<Backup> {
  const before = await read(deps, workspaceName, id);
  switch (await deleteBackup(deps.db, workspaceName, id, deps.now(), { actor })) {
    case "Missing":
      throw notFound();
    case "InProgress":
      throw inProgress(id);
    case "InUse":
      throw new Problem("BACKUP_IN_USE", "A workspace restores from this backup.");
    case "Deleted":
      // The controller may have been quick, and the record be gone.
      return (await readBackup(deps.db, workspaceName, id)) ?? { ...before, state: "Deleting" };
  }
}

function notFound(): Problem {
  return new Problem("NOT_FOUND", "There is no such backup.");
}

function inProgress(id: string): Problem {
  return new Problem("BACKUP_IN_PROGRESS", `The backup ${id} is being taken.`);
}

function toBackupBody(backup: Backup): BackupBody {
  const { id, namespace, name, workspaceUid, state, trigger, reason, message, directory, sizeBytes } = backup;
  return {
    id,
    workspace: { namespace, name, uid: workspaceUid },
    state,
    trigger,
    reason,
    message,
    directory,
    sizeBytes,
    requestedTime: toTimestamp(backup.requestedTime),
    startedTime: toOptionalTimestamp(backup.startedTime),
    endedTime: toOptionalTimestamp(backup.endedTime),
    lost: backup.lostTime !== null,
  };
}
