/**
 * What the controller may write: status and its own memory, the ledger, the start lane. Never spec.
 *
 * Every write is fenced by the lease's epoch and is a compare-and-swap on the row's resource version. In a batch the later statements
 * hang on what the first one did, since a missed condition does not roll a batch back.
 */
import { and, eq, lte, ne, type SQL, sql } from "drizzle-orm";
import type { Conclusion, Instance, Instant, WorkspaceRecord } from "../workspace.ts";
import type { Database } from "./db.ts";
import { controller, instances, startLane, workspaces } from "./schema.ts";
import { currentVersion, nextVersion } from "./versions.ts";

/** False where the row moved on meanwhile, or the lease is lost: the next pass decides afresh. Writes nothing where nothing changed. */
export async function saveConclusion(
  db: Database,
  epoch: number,
  record: WorkspaceRecord,
  conclusion: Conclusion,
  now: Instant,
): Promise<boolean> {
  if (!isChange(record, conclusion)) return true;
  const save = db
    .update(workspaces)
    .set({
      resourceVersion: currentVersion,
      status: JSON.stringify(conclusion.status),
      failures: conclusion.failures,
      nextRetryTime: conclusion.nextRetryTime,
      readyTime: conclusion.readyTime,
      queuedTime: conclusion.queuedTime,
      unreachableTime: conclusion.unreachableTime,
      nextReconcileTime: unlessPoked(record, conclusion.nextReconcileTime),
    })
    .where(isCurrent(record, epoch))
    .returning({ uid: workspaces.uid });
  const release = db
    .delete(startLane)
    .where(and(eq(startLane.workspaceUid, record.uid), sql`${conclusion.laneReleased}`, isWritten(record)));
  const brake = db
    .update(controller)
    .set(nextBrake(conclusion, now))
    .where(and(sql`${conclusion.brake !== null || conclusion.readyTime === now}`, isWritten(record)));
  const [, saved] = await db.batch([nextVersion(db), save, release, brake]);
  return saved.length === 1;
}

export interface Admission {
  /** The ledger row of the incarnation that is to start. */
  readonly instance: Instance;
  readonly startId: string;
  readonly deadlineTime: Instant;
  readonly laneWidth: number;
  /** As concluded for a start that is about to begin. */
  readonly conclusion: Conclusion;
}

/**
 * The intent, committed before any start: a place in the lane, the ledger row, the new status. All of it or, where the lane has no
 * room, the brake is on, the row moved on or the lease is lost, nothing. Answers the row's new resource version.
 */
export async function admitStart(
  db: Database,
  epoch: number,
  record: WorkspaceRecord,
  admission: Admission,
  now: Instant,
): Promise<number | null> {
  const { instance, startId, conclusion } = admission;
  const isAdmitted = sql`EXISTS (SELECT 1 FROM ${startLane} WHERE ${startLane.startId} = ${startId})`;
  const expire = db.delete(startLane).where(and(lte(startLane.deadlineTime, now), isHeld(epoch)));
  const forgetOlder = db
    .delete(instances)
    .where(and(eq(instances.workspaceUid, record.uid), ne(instances.doId, instance.doId), isAdmitted));
  const update = db
    .update(workspaces)
    .set({
      resourceVersion: currentVersion,
      status: JSON.stringify(conclusion.status),
      incarnation: instance.incarnation,
      failures: conclusion.failures,
      nextRetryTime: conclusion.nextRetryTime,
      readyTime: conclusion.readyTime,
      queuedTime: null,
      unreachableTime: null,
      nextReconcileTime: now,
    })
    .where(and(eq(workspaces.uid, record.uid), isAdmitted))
    .returning({ resourceVersion: workspaces.resourceVersion });
  const [, , , , , updated] = await db.batch([
    nextVersion(db),
    expire,
    db.insert(startLane).select(freePlace(epoch, record, admission, now)),
    forgetOlder,
    db
      .insert(instances)
      .select(ledgerRow(record, instance, now, isAdmitted))
      .onConflictDoNothing(),
    update,
  ]);
  return updated[0]?.resourceVersion ?? null;
}

/** Removes the row and its ledger. False where the row moved on or the lease is lost. */
export async function forget(db: Database, epoch: number, record: WorkspaceRecord): Promise<boolean> {
  const isStillCurrent = sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isCurrent(record, epoch)})`;
  const [, , , forgotten] = await db.batch([
    nextVersion(db),
    db.delete(instances).where(and(eq(instances.workspaceUid, record.uid), isStillCurrent)),
    db.delete(startLane).where(and(eq(startLane.workspaceUid, record.uid), isStillCurrent)),
    db.delete(workspaces).where(isCurrent(record, epoch)).returning({ uid: workspaces.uid }),
  ]);
  return forgotten.length === 1;
}

function isChange(record: WorkspaceRecord, conclusion: Conclusion): boolean {
  return (
    conclusion.laneReleased ||
    conclusion.brake !== null ||
    record.failures !== conclusion.failures ||
    record.nextRetryTime !== conclusion.nextRetryTime ||
    record.readyTime !== conclusion.readyTime ||
    record.queuedTime !== conclusion.queuedTime ||
    record.unreachableTime !== conclusion.unreachableTime ||
    record.nextReconcileTime !== conclusion.nextReconcileTime ||
    JSON.stringify(record.status) !== JSON.stringify(conclusion.status)
  );
}

function isHeld(epoch: number): SQL {
  return sql`EXISTS (SELECT 1 FROM ${controller} WHERE ${controller.epoch} = ${epoch})`;
}

function isCurrent(record: WorkspaceRecord, epoch: number): SQL | undefined {
  return and(eq(workspaces.uid, record.uid), eq(workspaces.resourceVersion, record.resourceVersion), isHeld(epoch));
}

/** Whether the batch's own update of the row took place. */
function isWritten(record: WorkspaceRecord): SQL {
  return sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${record.uid} AND ${workspaces.resourceVersion} = ${currentVersion})`;
}

/** A poke that came after the row was read asks for another look, whatever this pass concluded. */
function unlessPoked(record: WorkspaceRecord, nextReconcileTime: Instant | null): SQL {
  return sql`CASE WHEN ${workspaces.nextReconcileTime} IS ${record.nextReconcileTime} THEN ${nextReconcileTime} ELSE ${workspaces.nextReconcileTime} END`;
}

/** A place among those below the width that nobody holds, while no more than the width are held in all (the width may have shrunk). */
function freePlace(epoch: number, record: WorkspaceRecord, admission: Admission, now: Instant): SQL {
  const { startId, deadlineTime, laneWidth } = admission;
  const slots = JSON.stringify(Array.from({ length: laneWidth }, (_, slot) => slot));
  return sql`
    SELECT free.value, ${startId}, ${record.uid}, ${record.queuedTime ?? now}, ${now}, ${deadlineTime}
    FROM json_each(${slots}) AS free
    WHERE free.value NOT IN (SELECT slot FROM start_lane)
      AND (SELECT count(*) FROM start_lane) < ${laneWidth}
      AND NOT EXISTS (SELECT 1 FROM controller WHERE brake_until_time > ${now})
      AND EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isCurrent(record, epoch)})
    LIMIT 1`;
}

function ledgerRow(record: WorkspaceRecord, instance: Instance, now: Instant, isAdmitted: SQL): SQL {
  return sql`
    SELECT ${instance.doId}, ${instance.sandboxId}, ${record.uid}, ${record.namespace}, ${record.name}, ${instance.incarnation}, ${now}
    WHERE ${isAdmitted}`;
}

/** Each refusal in a row doubles the wait; a workspace that became Ready lets the brake go. */
function nextBrake({ brake }: Conclusion, now: Instant) {
  if (brake === null) return { brakeUntilTime: null, brakeFailures: 0 };
  const doubled = sql`min(${BRAKE_MAX_MS}, ${BRAKE_BASE_MS} << min(${controller.brakeFailures}, 10))`;
  return {
    brakeUntilTime: sql<number>`${now} + ${brake.retryAfterMs === null ? doubled : Math.min(brake.retryAfterMs, BRAKE_MAX_MS)}`,
    brakeFailures: sql<number>`${controller.brakeFailures} + 1`,
  };
}

const BRAKE_BASE_MS = 5000;
const BRAKE_MAX_MS = 300_000;
