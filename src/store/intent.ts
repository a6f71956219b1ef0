/**
 * What the API may write: spec, labels, annotations, and the request to be looked at or deleted. Never status.
 *
 * Every write is a compare-and-swap on `revision`, which the controller never moves: status churn breaks no client.
 */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Instant, Workspace, WorkspaceName, WorkspaceSpec } from "../workspace.ts";
import type { Database } from "./db.ts";
import { toWorkspace } from "./rows.ts";
import { workspaces } from "./schema.ts";
import { INITIAL_STATUS } from "./status.ts";
import { currentVersion, nextVersion } from "./versions.ts";

export interface NewWorkspace extends WorkspaceName {
  /** A UUID: its first digits also choose the workspace's turn in the resync. */
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: WorkspaceSpec;
  readonly now: Instant;
}

/** The workspace as created, or null where the name is taken. */
export async function createWorkspace(db: Database, workspace: NewWorkspace): Promise<Workspace | null> {
  const { uid, namespace, name, now } = workspace;
  const insert = db
    .insert(workspaces)
    .values({
      uid,
      namespace,
      name,
      spec: JSON.stringify(workspace.spec),
      labels: JSON.stringify(workspace.labels),
      annotations: JSON.stringify(workspace.annotations),
      generation: 1,
      revision: 1,
      creationTime: now,
      resourceVersion: currentVersion,
      nextReconcileTime: now,
      status: JSON.stringify(INITIAL_STATUS),
      resyncPhase: resyncPhase(uid),
    })
    .onConflictDoNothing()
    .returning();
  const [, [inserted]] = await db.batch([nextVersion(db), insert]);
  return inserted ? toWorkspace(inserted, null) : null;
}

export interface Replacement {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: WorkspaceSpec;
  /** Whether the normalised spec is another wish; only then the generation rises and the controller is called. */
  readonly specChanged: boolean;
  readonly now: Instant;
}

/** The workspace as replaced, or null where `current` is out of date: another revision, gone, or being deleted. */
export async function replaceWorkspace(db: Database, current: Workspace, replacement: Replacement): Promise<Workspace | null> {
  const { specChanged, now } = replacement;
  const update = db
    .update(workspaces)
    .set({
      labels: JSON.stringify(replacement.labels),
      annotations: JSON.stringify(replacement.annotations),
      revision: current.revision + 1,
      resourceVersion: currentVersion,
      ...(specChanged && {
        spec: JSON.stringify(replacement.spec),
        generation: current.generation + 1,
        nextReconcileTime: now,
      }),
    })
    .where(and(isCurrent(current), isNull(workspaces.deletionTime)))
    .returning();
  const [, [updated]] = await db.batch([nextVersion(db), update]);
  return updated ? { ...toWorkspace(updated, null), sandboxId: current.sandboxId } : null;
}

/** The workspace as it is being deleted, or null where `current` is out of date. */
export async function requestDeletion(db: Database, current: Workspace, now: Instant): Promise<Workspace | null> {
  const update = db
    .update(workspaces)
    .set({
      deletionTime: now,
      revision: current.revision + 1,
      resourceVersion: currentVersion,
      nextReconcileTime: now,
    })
    .where(and(isCurrent(current), isNull(workspaces.deletionTime)))
    .returning();
  const [, [updated]] = await db.batch([nextVersion(db), update]);
  return updated ? { ...toWorkspace(updated, null), sandboxId: current.sandboxId } : null;
}

function isCurrent(current: Workspace) {
  return and(eq(workspaces.uid, current.uid), eq(workspaces.revision, current.revision));
}

function resyncPhase(uid: string) {
  return sql<number>`${Number.parseInt(uid.slice(0, 8), 16) % RESYNC_PHASES}`;
}

/** Turns in one resync interval. */
const RESYNC_PHASES = 1_000_000;
