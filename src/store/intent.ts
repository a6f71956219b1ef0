/**
 * What the API may write of a workspace: spec, labels, annotations, and the requests to be looked at, woken or deleted. Never status.
 *
 * Every write is a compare-and-swap on `revision`, which the controller never moves: status churn breaks no client. Its event is
 * written in the same batch, and only where the write took place.
 */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { BackupPolicy, Instant, Workspace, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import { toWorkspace } from "./rows.ts";
import { workspaces } from "./schema.ts";
import { hasRoom, type Limits, NO_LIMITS } from "./usage-reading.ts";
import { currentVersion, isWritten, nextVersion } from "./versions.ts";
import { type NewWorkspace, workspaceRow } from "./workspace-row.ts";

/** How a client's write is to be done. */
export interface WriteOptions {
  /** The name of the token that asks for it. */
  readonly actor?: string;
  /** What the namespace must have room for. */
  readonly limits?: Limits;
}

/** The workspace as created, or null where the name is taken or the namespace has no room. */
export async function createWorkspace(
  db: Database,
  workspace: NewWorkspace,
  { actor, limits = NO_LIMITS }: WriteOptions = {},
): Promise<Workspace | null> {
  const { uid, namespace, now } = workspace;
  const insert = db
    .insert(workspaces)
    .select(workspaceRow(workspace, 0, hasRoom(limits, namespace, { uid })))
    .onConflictDoNothing()
    .returning();
  const [, [inserted]] = await db.batch([nextVersion(db), insert, ...history(db, { ...workspace, actor }, CREATED, now)]);
  return inserted ? toWorkspace(inserted, { sandboxId: null, lastBackup: null }) : null;
}

export interface Replacement {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: WorkspaceSpec;
  /** Whether the normalised spec is another wish; only then the generation rises and the controller is called. */
  readonly specChanged: boolean;
  /** Whether `spec.source` is another: what it was pinned to is pinned no more. */
  readonly sourceChanged?: boolean;
  /** For the history: what of the spec changed, without any value. */
  readonly change?: string;
  readonly now: Instant;
}

/** The workspace as replaced, or null where `current` is out of date (another revision, gone, being deleted) or there is no room. */
export async function replaceWorkspace(
  db: Database,
  current: Workspace,
  replacement: Replacement,
  options: WriteOptions = {},
): Promise<Workspace | null> {
  const { specChanged, sourceChanged = false, change = "", now } = replacement;
  const fields = {
    labels: JSON.stringify(replacement.labels),
    annotations: JSON.stringify(replacement.annotations),
    ...(specChanged && {
      spec: JSON.stringify(replacement.spec),
      generation: current.generation + 1,
      nextReconcileTime: now,
    }),
    ...(sourceChanged && { sourceBackupId: null }),
  };
  const event = specChanged ? ({ type: "Normal", reason: "SpecChanged", message: change } as const) : null;
  return await write(db, current, fields, event, now, options);
}

export interface DeletionOptions extends WriteOptions {
  /** None is taken where it is left out. */
  readonly finalBackup?: { readonly policy: BackupPolicy; readonly deadlineTime: Instant };
}

/** The workspace as it is being deleted, or null where `current` is out of date. */
export async function requestDeletion(
  db: Database,
  current: Workspace,
  now: Instant,
  { finalBackup = { policy: "Skip", deadlineTime: now }, ...options }: DeletionOptions = {},
): Promise<Workspace | null> {
  const fields = { finalBackup: finalBackup.policy, finalBackupDeadlineTime: finalBackup.deadlineTime };
  return await write(db, current, { ...fields, deletionTime: now, nextReconcileTime: now }, DELETION_REQUESTED, now, options);
}

/** The workspace, to be woken from a suspension for idleness; null where `current` is out of date or there is no room. */
export async function requestWake(db: Database, current: Workspace, now: Instant, options: WriteOptions = {}): Promise<Workspace | null> {
  // A suspension that the controller dated by a clock ahead of this one must end all the same.
  const wakeTime = sql`max(${now}, coalesce(${workspaces.idleTime}, 0))`;
  return await write(db, current, { wakeTime, nextReconcileTime: now }, WAKE_REQUESTED, now, options);
}

/** The workspace, whose backoff and stall are to be forgotten; null where `current` is out of date. */
export async function requestReconcile(
  db: Database,
  current: Workspace,
  now: Instant,
  options: WriteOptions = {},
): Promise<Workspace | null> {
  return await write(db, current, { reconcileRequestTime: now, nextReconcileTime: now }, RECONCILE_REQUESTED, now, options);
}

const CREATED: WorkspaceEvent = { type: "Normal", reason: "Created", message: "" };
const DELETION_REQUESTED: WorkspaceEvent = { type: "Normal", reason: "DeletionRequested", message: "" };
const WAKE_REQUESTED: WorkspaceEvent = { type: "Normal", reason: "WakeRequested", message: "" };
const RECONCILE_REQUESTED: WorkspaceEvent = { type: "Normal", reason: "ReconcileRequested", message: "" };

type Fields = Parameters<ReturnType<typeof updateWorkspaces>["set"]>[0];

async function write(
  db: Database,
  current: Workspace,
  fields: Fields,
  event: WorkspaceEvent | null,
  now: Instant,
  { actor, limits = NO_LIMITS }: WriteOptions,
): Promise<Workspace | null> {
  const update = updateWorkspaces(db)
    .set({ ...fields, revision: current.revision + 1, resourceVersion: currentVersion })
    .where(and(isCurrent(current), isNull(workspaces.deletionTime), hasRoom(limits, current.namespace, current)))
    .returning();
  const after = event === null ? [] : history(db, { ...current, actor }, event, now);
  const [, [updated]] = await db.batch([nextVersion(db), update, ...after]);
  return updated ? toWorkspace(updated, current) : null;
}

function updateWorkspaces(db: Database) {
  return db.update(workspaces);
}

function history(
  db: Database,
  { uid, namespace, name, actor }: Pick<Workspace, "uid" | "namespace" | "name"> & { readonly actor: string | undefined },
  event: WorkspaceEvent,
  now: Instant,
) {
  return [recordEvent(db, { uid, namespace, name, actor: actor ?? null }, event, now, isWritten(uid)), capEvents(db, uid)] as const;
}

function isCurrent(current: Workspace) {
  return and(eq(workspaces.uid, current.uid), eq(workspaces.revision, current.revision));
}
