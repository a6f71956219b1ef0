/** What the controller reads: the workspaces that are due, in one round trip whose cost does not depend on how many exist. */
import { and, asc, eq, gt, isNotNull, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { ControllerSettings } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { backupColumns, isUnrestorable, toBackupMemory } from "./backup-memory.ts";
import { isBackingUp } from "./backup-selections.ts";
import { selectSettings, toSettings } from "./controller-settings.ts";
import type { Database } from "./db.ts";
import { type RunningLimits, isQuotaReached } from "./quota.ts";
import { toRecord } from "./rows.ts";
import { controller, instances, startLane, workspaces } from "./schema.ts";
import { instanceColumns, laneColumns } from "./selections.ts";

/** A place in the order of the resync: the turn, in millionths of its interval, and the workspace within the turn. */
export interface ResyncPlace {
  readonly phase: number;
  readonly uid: string;
}

/** What comes after `from`, up to and with the turn `to`. */
export interface ResyncWindow {
  readonly from: ResyncPlace;
  readonly to: number;
  /** Whether the end of the interval lies between the two. */
  readonly wraps: boolean;
}

export interface DueQuery {
  readonly now: Instant;
  /** Null where no turn has come. */
  readonly resync: ResyncWindow | null;
  readonly resyncIntervalMs: number;
  readonly laneWidth: number;
  readonly runningLimits: RunningLimits;
  /** Whether backups are taken: then each record has what is known of its own. */
  readonly backups: boolean;
  /** Of each of the three lists. */
  readonly limit: number;
}

export interface DueWorkspaces {
  /**
   * Those whose sandbox does not answer come last; of the others deletions first, of those and of the rest what follows a backup last,
   * then what has waited longest.
   */
  readonly due: readonly WorkspaceRecord[];
  /** In the order of their turns. */
  readonly resync: readonly WorkspaceRecord[];
  /** Those first in line for the start lane, as many as it has room for; none while the brake is on or their namespace is full. */
  readonly startable: readonly WorkspaceRecord[];
  readonly settings: ControllerSettings;
}

export async function loadDue(db: Database, query: DueQuery): Promise<DueWorkspaces> {
  const { now, limit, laneWidth, resync, runningLimits } = query;
  const brakeIsOn = sql`EXISTS (SELECT 1 FROM ${controller} WHERE ${controller.brakeUntilTime} > ${now})`;
  const [due, turns, startable, [lanes], settings] = await db.batch([
    selectRecords(db, query)
      .where(and(isNotNull(workspaces.nextReconcileTime), lte(workspaces.nextReconcileTime, now)))
      .orderBy(
        sql`${workspaces.unreachableTime} IS NOT NULL`,
        sql`${workspaces.deletionTime} IS NULL`,
        // They may be many, and are looked after often: before the others, they would fill the list.
        isBackingUp,
        asc(workspaces.nextReconcileTime),
        asc(workspaces.resourceVersion),
      )
      .limit(limit),
    selectRecords(db, query)
      // What is due within the interval is looked at anyway.
      .where(
        and(
          or(isNull(workspaces.nextReconcileTime), gt(workspaces.nextReconcileTime, now + query.resyncIntervalMs)),
          resync === null ? sql`0` : isTurn(resync),
        ),
      )
      .orderBy(resync === null ? sql`1` : inTurn(resync))
      .limit(limit),
    selectRecords(db, query)
      .where(
        and(
          isNotNull(workspaces.queuedTime),
          isNull(workspaces.unreachableTime),
          sql`NOT ${brakeIsOn}`,
          sql`NOT ${isQuotaReached(runningLimits, sql`${workspaces.namespace}`, sql`${workspaces.uid}`)}`,
        ),
      )
      // Many join at the same moment; a place among them must not change with the row.
      .orderBy(asc(workspaces.queuedTime), asc(workspaces.creationTime), asc(workspaces.uid))
      .limit(laneWidth),
    db
      .select({ held: sql<number>`count(*)` })
      .from(startLane)
      .where(gt(startLane.deadlineTime, now)),
    selectSettings(db),
  ]);
  const read = (row: RecordRow) => readRecord(row, query.backups);
  return {
    due: due.map(read),
    resync: turns.map(read),
    startable: startable.slice(0, Math.max(0, laneWidth - (lanes?.held ?? 0))).map(read),
    settings: toSettings(settings),
  };
}

/** A lane place whose deadline passed is nobody's: its start can no longer happen. */
export function selectRecords(db: Database, { now, runningLimits, backups }: Pick<DueQuery, "now" | "runningLimits" | "backups">) {
  const quotaReached = isQuotaReached(runningLimits, sql`${workspaces.namespace}`, sql`${workspaces.uid}`).as("quota_reached");
  return db
    .select({
      workspace: workspaces,
      instance: instanceColumns,
      lane: laneColumns,
      quotaReached,
      unrestorable: isUnrestorable(backups).as("unrestorable"),
      memory: backupColumns(backups),
    })
    .from(workspaces)
    .leftJoin(instances, eq(instances.workspaceUid, workspaces.uid))
    .leftJoin(startLane, and(eq(startLane.workspaceUid, workspaces.uid), gt(startLane.deadlineTime, now)))
    .$dynamic();
}

type RecordRow = Awaited<ReturnType<typeof selectRecords>>[number];

export function readRecord(row: RecordRow, backups: boolean): WorkspaceRecord {
  const { workspace, memory, ...found } = row;
  return toRecord(workspace, { ...found, backups: backups ? toBackupMemory(memory) : null });
}

function isTurn({ from, to, wraps }: ResyncWindow): SQL | undefined {
  const above = sql`(${workspaces.resyncPhase}, ${workspaces.uid}) > (${from.phase}, ${from.uid})`;
  const upTo = lte(workspaces.resyncPhase, to);
  return wraps ? or(above, upTo) : and(above, upTo);
}

function inTurn({ from }: ResyncWindow): SQL {
  return sql`(${workspaces.resyncPhase}, ${workspaces.uid}) <= (${from.phase}, ${from.uid}), ${workspaces.resyncPhase}, ${workspaces.uid}`;
}
