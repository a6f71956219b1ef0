/**
 * Instances that no desired record claims. The sweep writes what it saw, an operator (through `intent`) what is to be protected or
 * destroyed; each has its own columns.
 */
import { and, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import type { InventoryRecord, Unclaimed } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { type EventSubject, recordEvent } from "./events.ts";
import { isHeld } from "./lease.ts";
import { controller, events, instances, settings, unclaimed, workspaces } from "./schema.ts";
import { sweepRecordJson } from "./sweep-record.ts";

/** A workspace as far as a sweep needs it. */
export interface Claim {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly incarnation: number;
}

export interface InventoryView {
  /** Every workspace, whatever is wished of it. */
  readonly claims: readonly Claim[];
  /** DO ids of the ledger rows of these workspaces. */
  readonly claimed: ReadonlySet<string>;
  readonly unclaimed: readonly Unclaimed[];
  /** How many of the ledger's instances run, as last seen. */
  readonly ledgerRunning: number;
}

/** What is wished, in one round trip and so of one moment. Ledger rows whose workspace is gone are left as unclaimed first. */
export async function readInventoryView(db: Database, epoch: number, now: Instant): Promise<InventoryView> {
  const isStray = and(sql`NOT EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${instances.workspaceUid})`, isHeld(epoch));
  const [strays] = await db
    .select({ count: sql<number>`count(*)` })
    .from(instances)
    .where(isStray);
  if ((strays?.count ?? 0) > 0) await db.batch([leaveUnclaimed(db, isStray, now), db.delete(instances).where(isStray)]);
  const [claims, ledger, rows] = await db.batch([
    db
      .select({ uid: workspaces.uid, namespace: workspaces.namespace, name: workspaces.name, incarnation: workspaces.incarnation })
      .from(workspaces),
    db.select({ doId: instances.doId, running: instances.running }).from(instances),
    selectUnclaimed(db),
  ]);
  return {
    claims,
    claimed: new Set(ledger.map(({ doId }) => doId)),
    unclaimed: rows.map(toUnclaimed),
    ledgerRunning: ledger.filter(({ running }) => running).length,
  };
}

/** The statement that keeps ledger rows in mind as unclaimed; put it before their deletion. */
export function leaveUnclaimed(db: Database, which: SQL | undefined, now: Instant) {
  return db
    .insert(unclaimed)
    .select(
      sql`
      SELECT ${instances.doId}, ${instances.sandboxId}, ${instances.workspaceUid}, ${instances.namespace}, ${instances.name},
        ${instances.incarnation}, 'Expected', ${now}, ${now}, 0, NULL, 0, NULL, 0, NULL
      FROM ${instances} WHERE ${which}`,
    )
    .onConflictDoNothing();
}

export function selectUnclaimed(db: Database) {
  const ownerLives = sql<boolean>`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${unclaimed.workspaceUid})`;
  return db
    .select({ row: unclaimed, ownerLives: ownerLives.mapWith(Boolean).as("owner_lives") })
    .from(unclaimed)
    .$dynamic();
}

type UnclaimedRow = Awaited<ReturnType<typeof selectUnclaimed>>[number];

const STATES: ReadonlySet<string> = new Set(["Expected", "Running", "Settling", "Stopped", "Unknown"] satisfies Unclaimed["state"][]);

export function toUnclaimed({ row, ownerLives }: UnclaimedRow): Unclaimed {
  const { workspaceUid, namespace, name, incarnation } = row;
  const isOwned = workspaceUid !== null && namespace !== null && name !== null && incarnation !== null;
  return {
    doId: row.doId,
    sandboxId: row.sandboxId,
    owner: isOwned ? { uid: workspaceUid, namespace, name, incarnation } : null,
    ownerLives,
    state: STATES.has(row.state) ? (row.state as Unclaimed["state"]) : "Unknown",
    firstSeenTime: row.firstSeenTime,
    lastSeenTime: row.lastSeenTime,
    timesSeen: row.timesSeen,
    startedTime: row.startedTime,
    protected: row.protected,
    destroyRequested: row.destroyRequestTime !== null,
    destroyAttempts: row.destroyAttempts,
    lastDestroyTime: row.lastDestroyTime,
  };
}

export interface SweepResult {
  readonly unclaimed: readonly Unclaimed[];
  readonly gone: readonly Unclaimed[];
  readonly record: Omit<InventoryRecord, "completeTime">;
}

/** What a sweep saw. False, and nothing written, where the lease is lost. */
export async function recordSweep(db: Database, epoch: number, result: SweepResult, now: Instant): Promise<boolean> {
  const held = isHeld(epoch);
  const goneIds = sql`(SELECT value FROM json_each(${JSON.stringify(result.gone.map(({ doId }) => doId))}))`;
  const destroyed = result.gone.filter(({ destroyAttempts }) => destroyAttempts > 0);
  const [recorded] = await db.batch([
    db
      .update(controller)
      .set({ inventory: sweepRecordJson(controller.inventory, result.record, "running") })
      .where(held)
      .returning({ epoch: controller.epoch }),
    ...(result.unclaimed.length === 0 ? [] : [upsert(db, result.unclaimed, held)]),
    ...(result.gone.length === 0 ? [] : [db.delete(unclaimed).where(and(sql`${unclaimed.doId} IN ${goneIds}`, held))]),
    ...(destroyed.length === 0 ? [] : [recordAll(db, destroyed, now, held)]),
  ]);
  return recorded.length === 1;
}

/** One statement however many there are. */
function recordAll(db: Database, gone: readonly Unclaimed[], now: Instant, held: SQL) {
  const rows = JSON.stringify(gone.map(({ owner, doId }) => ({ ...owner, doId })));
  return db.insert(events).select(sql`
    SELECT NULL, ${field("uid")}, ${field("namespace")}, ${field("name")}, ${field("doId")}, ${now}, 'Normal', 'OrphanDestroyed',
      'The instance is confirmed to be gone.', NULL
    FROM json_each(${rows}) WHERE ${held}`);
}

/** One statement however many there are, and only the columns that are the sweep's. */
function upsert(db: Database, seen: readonly Unclaimed[], held: SQL) {
  const rows = JSON.stringify(seen.map(({ owner, ...instance }) => ({ ...instance, ...owner })));
  return db
    .insert(unclaimed)
    .select(
      sql`
      SELECT ${field("doId")}, ${field("sandboxId")}, ${field("uid")}, ${field("namespace")}, ${field("name")}, ${field("incarnation")},
        ${field("state")}, ${field("firstSeenTime")}, ${field("lastSeenTime")}, ${field("timesSeen")}, ${field("startedTime")}, 0, NULL, 0, NULL
      FROM json_each(${rows})
      WHERE ${held} AND NOT EXISTS (SELECT 1 FROM ${instances} WHERE ${instances.doId} = ${field("doId")})`,
    )
    .onConflictDoUpdate({
      target: unclaimed.doId,
      set: {
        sandboxId: sql`excluded.sandbox_id`,
        state: sql`excluded.state`,
        firstSeenTime: sql`excluded.first_seen_time`,
        lastSeenTime: sql`excluded.last_seen_time`,
        timesSeen: sql`excluded.times_seen`,
        startedTime: sql`excluded.started_time`,
      },
    });
}

function field(name: string): SQL {
  return sql.raw(`json_extract(value, '$.${name}')`);
}

/**
 * The last look before a destroy, and the mark that it is being done: true where at this very moment no record claims the instance, none
 * of its owner exists, nobody protects it, no operator has told the controller to stop, and the lease is held.
 */
export async function claimDestroy(db: Database, epoch: number, instance: Unclaimed, now: Instant): Promise<boolean> {
  const isClaimed = sql`EXISTS (SELECT 1 FROM ${instances} WHERE ${instances.doId} = ${instance.doId})`;
  const ownerLives = sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${unclaimed.workspaceUid})`;
  const isHeldBack = sql`EXISTS (
    SELECT 1 FROM ${settings} WHERE ${settings.paused} = 1
      OR (${settings.gcMode} IN ('Off', 'Report') AND ${unclaimed.destroyRequestTime} IS NULL))`;
  const isFree = and(
    eq(unclaimed.doId, instance.doId),
    eq(unclaimed.protected, false),
    isHeld(epoch),
    sql`NOT ${isClaimed}`,
    sql`NOT ${ownerLives}`,
    sql`NOT ${isHeldBack}`,
    instance.destroyRequested ? isNotNull(unclaimed.destroyRequestTime) : undefined,
  );
  // A deaf one is told again with every sweep; its history does not grow with that.
  const isWorthTelling = sql`${instance.destroyAttempts} < ${TOLD_TRIES} AND EXISTS (SELECT 1 FROM ${unclaimed} WHERE ${isFree})`;
  const [, claimed] = await db.batch([
    recordEvent(db, subjectOf(instance), destroying(instance), now, isWorthTelling),
    db
      .update(unclaimed)
      .set({ destroyAttempts: sql`${unclaimed.destroyAttempts} + 1`, lastDestroyTime: now })
      .where(isFree)
      .returning({ doId: unclaimed.doId }),
  ]);
  return claimed.length === 1;
}

/** So many tries are worth an event each. */
const TOLD_TRIES = 3;

function destroying({ destroyAttempts, destroyRequested }: Unclaimed): WorkspaceEvent {
  const message = `${destroyRequested ? "An operator asked for it." : "No desired record claims the instance."} Try ${destroyAttempts + 1}.`;
  return { type: "Warning", reason: "DestroyingOrphan", message };
}

function subjectOf({ owner, doId }: Unclaimed): EventSubject {
  return { ...owner, doId };
}
