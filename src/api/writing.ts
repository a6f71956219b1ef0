/**
 * PUT, DELETE and the requests of a workspace: compare what is stored with what is asked, write at most once by compare-and-swap. A
 * write that came too late is decided again from what is there now, so that two writers at once never mix and never both succeed on one
 * tag.
 */
import { weakenFinalBackup } from "../store/final-backup-intent.ts";
import { createWorkspace, replaceWorkspace, requestDeletion, requestReconcile, requestWake } from "../store/intent.ts";
import { getWorkspace } from "../store/reading.ts";
import { parseStoredSpec } from "../spec.ts";
import type { BackupPolicy, Workspace, WorkspaceName } from "../workspace.ts";
import type { ApiDeps } from "./context.ts";
import { checkPreconditions, type Preconditions, toEtag } from "./precondition.ts";
import { Problem } from "./problem.ts";
import { checkQuota, limitsOfCreation, limitsOfRunning } from "./quota.ts";
import { untilWritten } from "./retrying.ts";
import { checkBackups, checkExpiry, compareSpecs, hasSameMetadata, isWishedRunning, readSpec, type Wish } from "./wish.ts";

/** Who asks, and under which conditions. */
export interface Asked {
  /** The name of the token. */
  readonly actor: string;
  readonly preconditions: Preconditions;
}

export interface Applied {
  readonly created: boolean;
  readonly workspace: Workspace;
}

export async function applyWorkspace(deps: ApiDeps, workspaceName: WorkspaceName, wish: Wish, asked: Asked): Promise<Applied> {
  return await untilWritten(async () => {
    const current = await getWorkspace(deps.db, workspaceName);
    const workspace = current === null ? await create(deps, workspaceName, wish, asked) : await replace(deps, current, wish, asked);
    return workspace && { created: current === null, workspace };
  });
}

async function create(deps: ApiDeps, { namespace, name }: WorkspaceName, wish: Wish, asked: Asked): Promise<Workspace | null> {
  const [uid, now] = [deps.newUid(), deps.now()];
  checkExpiry(wish.spec, null, now);
  checkBackups(deps.config, wish.spec, null);
  checkPreconditions(asked.preconditions, []);
  const limits = limitsOfCreation(deps.config, namespace, wish.spec.operatingMode);
  await checkQuota(deps, limits, namespace, { uid });
  return await createWorkspace(deps.db, { ...wish, namespace, name, uid, now }, { actor: asked.actor, limits });
}

async function replace(deps: ApiDeps, current: Workspace, wish: Wish, { actor, preconditions }: Asked): Promise<Workspace | null> {
  const now = deps.now();
  // RFC 9110 has preconditions looked at only where the request would succeed without them.
  rejectDeleted(current);
  const { before, fields } = compareSpecs(current.spec, wish.spec);
  checkExpiry(wish.spec, before, now);
  checkBackups(deps.config, wish.spec, before);
  checkPreconditions(preconditions, [toEtag(current)]);
  const specChanged = fields.length > 0;
  if (!specChanged && hasSameMetadata(current, wish)) return current;
  const isNew = specChanged && wish.spec.operatingMode === "Running" && !isWishedRunning(current, before);
  const limits = limitsOfRunning(deps.config, current.namespace, isNew);
  await checkQuota(deps, limits, current.namespace, current);
  const replacement = { ...wish, specChanged, sourceChanged: fields.includes("source"), change: `Changed: ${fields.join(", ")}.`, now };
  return await replaceWorkspace(deps.db, current, replacement, { actor, limits });
}

/**
 * The workspace as it is being deleted, or null where there is none. `finalBackup`: what the request says of it; null: as the spec has it.
 * The policy of the first request stands; a later one may only weaken it, which ends a wait for a backup that cannot succeed.
 */
export async function deleteWorkspace(
  deps: ApiDeps,
  workspaceName: WorkspaceName,
  finalBackup: BackupPolicy | null,
  asked: Asked,
): Promise<Workspace | null> {
  if (finalBackup === "Require") requireBackups(deps);
  const { workspace } = await untilWritten(async () => {
    const current = await getWorkspace(deps.db, workspaceName);
    if (current === null) return { workspace: null };
    if (current.deletionTime !== null) {
      checkPreconditions(asked.preconditions, [toEtag(current), tagBeforeDeletion(current)]);
      return { workspace: finalBackup === null ? current : await weaken(deps, current, finalBackup, asked) };
    }
    checkPreconditions(asked.preconditions, [toEtag(current)]);
    const now = deps.now();
    const { deletion } = readSpec(current);
    const policy = finalBackup ?? deletion.finalBackup;
    const deadlineTime = now + deletion.deadlineSeconds * 1000;
    const deleting = await requestDeletion(deps.db, current, now, { actor: asked.actor, finalBackup: { policy, deadlineTime } });
    return deleting && { workspace: deleting };
  });
  return workspace;
}

async function weaken(deps: ApiDeps, current: Workspace, policy: BackupPolicy, { actor }: Asked): Promise<Workspace> {
  const isWeakened = await weakenFinalBackup(deps.db, current, policy, deps.now(), { actor });
  return (isWeakened ? await getWorkspace(deps.db, current) : null) ?? current;
}

/** Throws QUOTA_EXCEEDED where the namespace has no room for one that rests to run again. */
export async function wakeWorkspace(deps: ApiDeps, workspaceName: WorkspaceName, asked: Asked): Promise<Workspace> {
  return await requestOf(deps, workspaceName, asked, async (current) => {
    const spec = parseStoredSpec(current.spec);
    const isNew = spec?.operatingMode === "Running" && !isWishedRunning(current, spec);
    const limits = limitsOfRunning(deps.config, current.namespace, isNew);
    await checkQuota(deps, limits, current.namespace, current);
    return await requestWake(deps.db, current, deps.now(), { actor: asked.actor, limits });
  });
}

export async function reconcileWorkspace(deps: ApiDeps, workspaceName: WorkspaceName, asked: Asked): Promise<Workspace> {
  return await requestOf(deps, workspaceName, asked, (current) => requestReconcile(deps.db, current, deps.now(), { actor: asked.actor }));
}

async function requestOf(
  deps: ApiDeps,
  workspaceName: WorkspaceName,
  { preconditions }: Asked,
  write: (current: Workspace) => Promise<Workspace | null>,
): Promise<Workspace> {
  return await untilWritten(async () => {
    const current = await getWorkspace(deps.db, workspaceName);
    if (current === null) throw new Problem("NOT_FOUND", "There is no such workspace.");
    rejectDeleted(current);
    checkPreconditions(preconditions, [toEtag(current)]);
    return await write(current);
  });
}

/** Throws BACKUPS_DISABLED. */
export function requireBackups({ config }: ApiDeps): void {
  if (config.backups === null) throw new Problem("BACKUPS_DISABLED", "This installation takes no backups (BACKUP_MODE).");
}

/** Throws BEING_DELETED. */
export function rejectDeleted({ deletionTime }: Workspace): void {
  if (deletionTime === null) return;
  throw new Problem("BEING_DELETED", "The workspace is being deleted; its name is free once it is gone.");
}

/** No revision follows that of the deletion, so a repeated DELETE may still carry the tag its first one had. */
function tagBeforeDeletion({ uid, revision }: Workspace): string {
  return toEtag({ uid, revision: revision - 1 });
}
