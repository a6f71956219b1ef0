/**
 * What an operator may write about instances: that one is to be destroyed, or protected. Each write names in its conditions what it was
 * decided on; false where that no longer holds, and then nothing was written. The event of a write that changes something stands before
 * it in the batch, on the same conditions.
 */
import { and, eq, isNull, ne, type SQL, sql } from "drizzle-orm";
import type { Unclaimed } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import { type ClaimedInstance, isUnclaimed } from "./instance-reading.ts";
import { instances, unclaimed, workspaces } from "./schema.ts";
import { currentVersion, nextVersion } from "./versions.ts";

/** Of an instance that no record claims: the next sweep destroys it, whatever its age and the brake. */
export async function requestOrphanDestroy(db: Database, instance: Unclaimed, actor: string, now: Instant): Promise<boolean> {
  const isEligible = and(eq(unclaimed.doId, instance.doId), eq(unclaimed.protected, false), isUnclaimed);
  const isNew = existsUnclaimed(and(isEligible, isNull(unclaimed.destroyRequestTime)));
  const [, written] = await db.batch([
    recordEvent(db, { ...instance.owner, doId: instance.doId, actor }, DESTROY_REQUESTED, now, isNew),
    db
      .update(unclaimed)
      .set({ destroyRequestTime: sql`coalesce(${unclaimed.destroyRequestTime}, ${now})` })
      .where(isEligible)
      .returning({ doId: unclaimed.doId }),
    ...capped(db, instance),
  ]);
  return written.length === 1;
}

/** Of a workspace's instance: its controller replaces it by one of the next incarnation. */
export async function requestReplacement(db: Database, instance: ClaimedInstance, actor: string, now: Instant): Promise<boolean> {
  const { doId, owner } = instance;
  const isNew = sql`EXISTS (SELECT 1 FROM ${instances} WHERE ${and(eq(instances.doId, doId), isNull(instances.destroyRequestTime))})`;
  const isOwner = and(eq(workspaces.uid, owner.uid), sql`EXISTS (SELECT 1 FROM ${instances} WHERE ${eq(instances.doId, doId)})`);
  const [, , written] = await db.batch([
    nextVersion(db),
    recordEvent(db, { ...owner, doId, actor }, DESTROY_REQUESTED, now, isNew),
    db
      .update(instances)
      .set({ destroyRequestTime: sql`coalesce(${instances.destroyRequestTime}, ${now})` })
      .where(eq(instances.doId, doId))
      .returning({ doId: instances.doId }),
    // A pass that read the row before must not save on top of the request.
    db.update(workspaces).set({ nextReconcileTime: now, resourceVersion: currentVersion }).where(isOwner),
    ...capped(db, instance),
  ]);
  return written.length === 1;
}

/** A protected instance is not destroyed; what was asked for before is void. */
export async function setProtected(db: Database, instance: Unclaimed, value: boolean, actor: string, now: Instant): Promise<boolean> {
  const isEligible = and(eq(unclaimed.doId, instance.doId), isUnclaimed);
  const isNew = existsUnclaimed(and(isEligible, ne(unclaimed.protected, value)));
  const [, written] = await db.batch([
    recordEvent(db, { ...instance.owner, doId: instance.doId, actor }, value ? PROTECTED : UNPROTECTED, now, isNew),
    db
      .update(unclaimed)
      .set({ protected: value, ...(value && { destroyRequestTime: null }) })
      .where(isEligible)
      .returning({ doId: unclaimed.doId }),
    ...capped(db, instance),
  ]);
  return written.length === 1;
}

const DESTROY_REQUESTED: WorkspaceEvent = { type: "Normal", reason: "InstanceDestroyRequested", message: "" };
const PROTECTED: WorkspaceEvent = { type: "Normal", reason: "InstanceProtected", message: "" };
const UNPROTECTED: WorkspaceEvent = { type: "Normal", reason: "InstanceUnprotected", message: "" };

function existsUnclaimed(which: SQL | undefined): SQL {
  return sql`EXISTS (SELECT 1 FROM ${unclaimed} WHERE ${which})`;
}

function capped(db: Database, { owner }: Pick<Unclaimed, "owner">) {
  return owner === null ? [] : [capEvents(db, owner.uid)];
}
