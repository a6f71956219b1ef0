/**
 * What the controller may write: status and its own memory, the ledger, the start lane. Never spec.
 *
 * Every write is fenced by the lease's epoch and is a compare-and-swap on the row's resource version. In a batch the later statements
 * hang on what the first one did, since a missed condition does not roll a batch back.
 */
import { and, eq, isNull, lte, ne, type SQL, sql } from "drizzle-orm";
import type { Instance, Instant } from "../workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../workspace-record.ts";
import { endBackup, leaveBackups } from "./backup-progress.ts";
import { isChange, isOtherInstance, isStillAdopted } from "./change.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import { isHeld } from "./lease.ts";
import { type RunningLimits, isQuotaReached } from "./quota.ts";
import { controller, instances, startLane, unclaimed, workspaces } from "./schema.ts";
import { nextBrake } from "./start-brake.ts";
import { leaveUnclaimed } from "./unclaimed.ts";
import { currentVersion, isCurrent, isWritten, nextVersion } from "./versions.ts";

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
      ...memoryOf(conclusion),
    })
    .where(isCurrent(record, epoch))
    .returning({ uid: workspaces.uid });
  const release = db
    .delete(startLane)
    .where(and(eq(startLane.workspaceUid, record.uid), sql`${conclusion.laneReleased}`, isWritten(record.uid)));
  const brake = db
    .update(controller)
    .set(nextBrake(conclusion, now))
    .where(and(sql`${conclusion.brake !== null || conclusion.readyTime === now}`, isWritten(record.uid)));
  const [, saved] = await db.batch([nextVersion(db), save, release, brake, ...sideEffects(db, record, conclusion, now)]);
  return saved.length === 1;
}

/** The columns of a conclusion beside those that every write of it decides for itself. Requests that it met are met. */
function memoryOf({ startId, idleTime, observed }: Conclusion) {
  return { startId, idleTime, observed: observed === null ? null : JSON.stringify(observed), reconcileRequestTime: null };
}

function sideEffects(db: Database, record: WorkspaceRecord, conclusion: Conclusion, now: Instant) {
  const { uid, instance } = record;
  const { running, event, backup } = conclusion;
  const written = isWritten(record.uid);
  const count =
    instance === null || !isOtherInstance(instance, conclusion)
      ? []
      : [
          db
            .update(instances)
            .set({ running, adopted: isStillAdopted(instance, conclusion) })
            .where(and(eq(instances.doId, instance.doId), written)),
        ];
  const history = event === null ? [] : [recordEvent(db, record, event, now, written), capEvents(db, uid)];
  return [...count, ...history, ...(backup === null ? [] : endBackup(db, record, backup, now))];
}

export interface Admission {
  /** The ledger row of the incarnation that is to start. */
  readonly instance: Instance;
  readonly startId: string;
  readonly deadlineTime: Instant;
  readonly laneWidth: number;
  readonly runningLimits: RunningLimits;
  /** What the start restores, as long as it is good; null: nothing. */
  readonly restoredBackupId: string | null;
  /** What `spec.source` stands for from this start on; null where the start restores no such thing and none was pinned before. */
  readonly sourceBackupId: string | null;
  /** As concluded for a start that is about to begin. */
  readonly conclusion: Conclusion;
}

/**
 * The intent, committed before any start: a place in the lane, the ledger row, the new status. All of it or, where the lane has no
 * room, the brake is on, the row moved on, its backup is to go or the lease is lost, nothing. Answers the row's new resource version.
 */
export async function admitStart(
  db: Database,
  epoch: number,
  record: WorkspaceRecord,
  admission: Admission,
  now: Instant,
): Promise<number | null> {
  const { instance, startId, conclusion } = admission;
  const { event } = conclusion;
  const isAdmitted = sql`EXISTS (SELECT 1 FROM ${startLane} WHERE ${startLane.startId} = ${startId})`;
  const freePlaces = db.delete(startLane).where(and(lte(startLane.deadlineTime, now), isHeld(epoch)));
  const isOlder = and(eq(instances.workspaceUid, record.uid), ne(instances.doId, instance.doId), isAdmitted);
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
      ...memoryOf(conclusion),
      startId,
      sourceBackupId: admission.sourceBackupId,
    })
    .where(and(eq(workspaces.uid, record.uid), isAdmitted))
    .returning({ resourceVersion: workspaces.resourceVersion });
  const [, , , , , , , updated] = await db.batch([
    nextVersion(db),
    freePlaces,
    db.insert(startLane).select(freePlace(epoch, record, admission, now)),
    leaveUnclaimed(db, isOlder, now),
    db.delete(instances).where(isOlder),
    db
      .insert(instances)
      .select(ledgerRow(record, instance, now, isAdmitted))
      .onConflictDoUpdate({ target: instances.doId, set: { running: true, destroyRequestTime: null } }),
    // A sweep may have met it before there was a record of it, as after a restored database.
    db.delete(unclaimed).where(and(eq(unclaimed.doId, instance.doId), isAdmitted)),
    update,
    ...(event === null ? [] : [recordEvent(db, record, event, now, isAdmitted), capEvents(db, record.uid)]),
  ]);
  return updated[0]?.resourceVersion ?? null;
}

/**
 * Removes the row and its ledger; what it had is watched as unclaimed until a sweep confirms that it is gone, and its backups are kept for
 * a while. False where the row moved on or the lease is lost.
 */
export async function forget(db: Database, epoch: number, record: WorkspaceRecord, now: Instant): Promise<boolean> {
  const isStillCurrent = sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isCurrent(record, epoch)})`;
  const isOwn = and(eq(instances.workspaceUid, record.uid), isStillCurrent);
  const [, , , , , , forgotten] = await db.batch([
    nextVersion(db),
    leaveUnclaimed(db, isOwn, now),
    db.delete(instances).where(isOwn),
    recordEvent(db, record, { type: "Normal", reason: "Deleted", message: "" }, now, isStillCurrent),
    db.delete(startLane).where(and(eq(startLane.workspaceUid, record.uid), isStillCurrent)),
    leaveBackups(db, record.uid, isStillCurrent, now),
    db.delete(workspaces).where(isCurrent(record, epoch)).returning({ uid: workspaces.uid }),
  ]);
  return forgotten.length === 1;
}

/** The workspace's time is up: deleted as if somebody had asked for it. False where the row moved on or the lease is lost. */
export async function expire(db: Database, epoch: number, record: WorkspaceRecord, now: Instant): Promise<boolean> {
  const { finalBackup, deadlineSeconds } = record.spec?.deletion ?? { finalBackup: "Skip", deadlineSeconds: 0 };
  const deletion = { deletionTime: now, finalBackup, finalBackupDeadlineTime: now + deadlineSeconds * 1000 };
  const update = db
    .update(workspaces)
    .set({ ...deletion, revision: sql`${workspaces.revision} + 1`, resourceVersion: currentVersion, nextReconcileTime: now })
    .where(and(isCurrent(record, epoch), isNull(workspaces.deletionTime)))
    .returning({ uid: workspaces.uid });
  const event = { type: "Normal", reason: "Expired", message: "spec.expireTime has come." } as const;
  const [, updated] = await db.batch([nextVersion(db), update, recordEvent(db, record, event, now, isWritten(record.uid))]);
  return updated.length === 1;
}

/** A poke that came after the row was read asks for another look, whatever this pass concluded. */
function unlessPoked(record: WorkspaceRecord, nextReconcileTime: Instant | null): SQL {
  return sql`CASE WHEN ${workspaces.nextReconcileTime} IS ${record.nextReconcileTime} THEN ${nextReconcileTime} ELSE ${workspaces.nextReconcileTime} END`;
}

/** A place among those below the width that nobody holds, while no more than the width are held in all (the width may have shrunk). */
function freePlace(epoch: number, record: WorkspaceRecord, admission: Admission, now: Instant): SQL {
  const { startId, deadlineTime, laneWidth, restoredBackupId } = admission;
  const slots = JSON.stringify(Array.from({ length: laneWidth }, (_, slot) => slot));
  return sql`
    SELECT free.value, ${startId}, ${record.uid}, ${record.queuedTime ?? now}, ${now}, ${deadlineTime}
    FROM json_each(${slots}) AS free
    WHERE free.value NOT IN (SELECT slot FROM start_lane)
      AND (SELECT count(*) FROM start_lane) < ${laneWidth}
      AND NOT EXISTS (SELECT 1 FROM controller WHERE brake_until_time > ${now})
      AND NOT ${isQuotaReached(admission.runningLimits, sql`${record.namespace}`, sql`${record.uid}`)}
      AND EXISTS (SELECT 1 FROM ${workspaces} WHERE ${isCurrent(record, epoch)})
      AND (${restoredBackupId} IS NULL OR EXISTS (SELECT 1 FROM backups WHERE id = ${restoredBackupId} AND state = 'Completed'))
    LIMIT 1`;
}

function ledgerRow(record: WorkspaceRecord, instance: Instance, now: Instant, isAdmitted: SQL): SQL {
  return sql`
    SELECT ${instance.doId}, ${instance.sandboxId}, ${record.uid}, ${record.namespace}, ${record.name}, ${instance.incarnation}, ${now}, 1, NULL, 0
    WHERE ${isAdmitted}`;
}
