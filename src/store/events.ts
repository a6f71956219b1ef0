/** The history: one row for each change worth telling, capped for each workspace, kept after the workspace is gone. */
import { and, eq, lt, type SQL, sql } from "drizzle-orm";
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { events } from "./schema.ts";

/** The newest that are kept for one workspace. */
export const EVENTS_PER_WORKSPACE = 100;

export interface EventSubject extends Partial<WorkspaceName> {
  readonly uid?: string | null;
  readonly doId?: string | null;
  /** The name of the token that asked for it; none: the controller. */
  readonly actor?: string | null;
}

/** The statement that records `event` where `condition` holds at its place in the batch. */
export function recordEvent(db: Database, subject: EventSubject, event: WorkspaceEvent, now: Instant, condition: SQL) {
  const { uid = null, namespace = null, name = null, doId = null, actor = null } = subject;
  return db.insert(events).select(sql`
    SELECT NULL, ${uid}, ${namespace}, ${name}, ${doId}, ${now}, ${event.type}, ${event.reason}, ${event.message}, ${actor}
    WHERE ${condition}`);
}

/** The statement that keeps the history of one workspace short. */
export function capEvents(db: Database, uid: string) {
  const oldest = sql`(SELECT id FROM ${events} WHERE ${events.workspaceUid} = ${uid} ORDER BY id DESC LIMIT 1 OFFSET ${EVENTS_PER_WORKSPACE})`;
  return db.delete(events).where(and(eq(events.workspaceUid, uid), sql`${events.id} <= ${oldest}`));
}

export async function expireEvents(db: Database, before: Instant): Promise<void> {
  await db.delete(events).where(lt(events.time, before));
}
