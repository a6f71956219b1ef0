/** A running instance that no record claims becomes a workspace's own: in one batch, wholly or not at all. */
import { and, eq, sql } from "drizzle-orm";
import type { Unclaimed } from "../unclaimed.ts";
import type { Workspace } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { recordEvent } from "./events.ts";
import { isUnclaimed } from "./instance-reading.ts";
import type { WriteOptions } from "./intent.ts";
import { toWorkspace } from "./rows.ts";
import { instances, unclaimed, workspaces } from "./schema.ts";
import { hasRoom, NO_LIMITS } from "./usage-reading.ts";
import { isWritten, nextVersion } from "./versions.ts";
import { type NewWorkspace, workspaceRow } from "./workspace-row.ts";

export interface Adoption extends NewWorkspace {
  readonly instance: Unclaimed;
  /** The name that the instance's DO id is made from. */
  readonly sandboxId: string;
}

/**
 * The workspace as created, or null where the name is taken, the namespace has no room, or the instance is gone, claimed, no longer
 * running or was told to go.
 */
export async function adoptInstance(
  db: Database,
  adoption: Adoption,
  { actor, limits = NO_LIMITS }: WriteOptions = {},
): Promise<Workspace | null> {
  const { uid, namespace, name, now, instance, sandboxId } = adoption;
  const { doId } = instance;
  // The sandbox knows under which incarnation it was last addressed, and answers to no other.
  const incarnation = instance.owner?.incarnation ?? incarnationIn(sandboxId) ?? 1;
  const adoptable = sql`EXISTS (SELECT 1 FROM ${unclaimed} WHERE ${isAdoptable(doId)})`;
  const insert = db
    .insert(workspaces)
    .select(workspaceRow(adoption, incarnation, sql`${adoptable} AND ${hasRoom(limits, namespace, { uid, doId })}`))
    .onConflictDoNothing()
    .returning();
  const ledgerRow = sql`SELECT ${doId}, ${sandboxId}, ${uid}, ${namespace}, ${name}, ${incarnation}, ${now}, 1, NULL, 1 WHERE ${isWritten(uid)}`;
  const [, [inserted]] = await db.batch([
    nextVersion(db),
    insert,
    db.insert(instances).select(ledgerRow),
    db.delete(unclaimed).where(and(eq(unclaimed.doId, doId), isWritten(uid))),
    recordEvent(db, { uid, namespace, name, doId, actor: actor ?? null }, ADOPTED, now, isWritten(uid)),
  ]);
  return inserted ? toWorkspace(inserted, { sandboxId, lastBackup: null }) : null;
}

/** In a name that Mooring gave, of a workspace that this database does not know any more. */
function incarnationIn(sandboxId: string): number | null {
  const match = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-([1-9][0-9]{0,8})$/.exec(sandboxId);
  return match?.[1] === undefined ? null : Number(match[1]);
}

const ADOPTED: WorkspaceEvent = { type: "Normal", reason: "InstanceAdopted", message: "" };

function isAdoptable(doId: string) {
  return and(
    eq(unclaimed.doId, doId),
    eq(unclaimed.state, "Running"),
    // What was told to go is over for good: its sandbox never runs again.
    eq(unclaimed.destroyAttempts, 0),
    sql`NOT EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${unclaimed.workspaceUid})`,
    isUnclaimed,
  );
}
