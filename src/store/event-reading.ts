/** The history, newest first. */
import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { Database } from "./db.ts";
import { inNamespaces } from "./reading.ts";
import { events, workspaces } from "./schema.ts";

export interface StoredEvent {
  readonly id: number;
  readonly time: Instant;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly namespace: string | null;
  readonly name: string | null;
  readonly uid: string | null;
  readonly doId: string | null;
  readonly actor: string | null;
}

export interface EventPage {
  /** The id of the last event of the page before; null for the first page. */
  readonly after: number | null;
  readonly limit: number;
}

/** Of all lives of one name; null where there is neither a workspace nor any trace of one. */
export async function listEventsOf(
  db: Database,
  { namespace, name }: WorkspaceName,
  page: EventPage,
): Promise<readonly StoredEvent[] | null> {
  const isOfName = and(eq(events.namespace, namespace), eq(events.name, name));
  const [items, trace] = await db
    .batch([
      selectEvents(db, page, isOfName),
      db.select({ id: events.id }).from(events).where(isOfName).limit(1),
      db
        .select({ uid: workspaces.uid })
        .from(workspaces)
        .where(and(eq(workspaces.namespace, namespace), eq(workspaces.name, name))),
    ])
    .then(([found, ofEvents, ofWorkspace]) => [found, [...ofEvents, ...ofWorkspace]] as const);
  return trace.length === 0 ? null : items;
}

/** `namespaces` null: of everything, also what concerns no namespace. */
export async function listEvents(db: Database, namespaces: readonly string[] | null, page: EventPage): Promise<readonly StoredEvent[]> {
  return await selectEvents(db, page, namespaces === null ? undefined : inNamespaces(events.namespace, namespaces));
}

function selectEvents(db: Database, { after, limit }: EventPage, which: SQL | undefined) {
  return db
    .select({
      id: events.id,
      time: events.time,
      type: events.type,
      reason: events.reason,
      message: events.message,
      namespace: events.namespace,
      name: events.name,
      uid: sql<string | null>`${events.workspaceUid}`.as("uid"),
      doId: events.doId,
      actor: events.actor,
    })
    .from(events)
    .where(and(which, after === null ? undefined : lt(events.id, after)))
    .orderBy(desc(events.id))
    .limit(limit);
}
