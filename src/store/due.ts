/** What the controller reads: the workspaces that are due, in one round trip whose cost does not depend on how many exist. */
import { and, asc, eq, gt, isNotNull, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import type { Instant, WorkspaceRecord } from "../workspace.ts";
import type { Database } from "./db.ts";
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
  readonly laneWidth: number;
  /** Of each of the three lists. */
  readonly limit: number;
}

export interface DueWorkspaces {
  /** Those whose sandbox does not answer come last; of the others deletions first, then what has waited longest. */
  readonly due: readonly WorkspaceRecord[];
  /** In the order of their turns. */
  readonly resync: readonly WorkspaceRecord[];
  /** Those first in line for the start lane, as many as it has room for; none while the brake is on. */
  readonly startable: readonly WorkspaceRecord[];
}

export async function loadDue(db: Database, query: DueQuery): Promise<DueWorkspaces> {
  const { now, limit, laneWidth, resync } = query;
  const brakeIsOn = sql`EXISTS (SELECT 1 FROM ${controller} WHERE ${controller.brakeUntilTime} > ${now})`;
  const [due, turns, startable, [lanes]] = await db.batch([
    selectRecords(db, now)
      .where(and(isNotNull(workspaces.nextReconcileTime), lte(workspaces.nextReconcileTime, now)))
      .orderBy(
        sql`${workspaces.unreachableTime} IS NOT NULL`,
        sql`${workspaces.deletionTime} IS NULL`,
        asc(workspaces.nextReconcileTime),
        asc(workspaces.resourceVersion),
      )
      .limit(limit),
    selectRecords(db, now)
      .where(and(isNull(workspaces.nextReconcileTime), resync === null ? sql`0` : isTurn(resync)))
      .orderBy(resync === null ? sql`1` : inTurn(resync))
      .limit(limit),
    selectRecords(db, now)
      .where(and(isNotNull(workspaces.queuedTime), isNull(workspaces.unreachableTime), sql`NOT ${brakeIsOn}`))
      .orderBy(asc(workspaces.queuedTime), asc(workspaces.resourceVersion))
      .limit(laneWidth),
    db
      .select({ held: sql<number>`count(*)` })
      .from(startLane)
      .where(gt(startLane.deadlineTime, now)),
  ]);
  return {
    due: due.map(readRecord),
    resync: turns.map(readRecord),
    startable: startable.slice(0, Math.max(0, laneWidth - (lanes?.held ?? 0))).map(readRecord),
  };
}

/** A lane place whose deadline passed is nobody's: its start can no longer happen. */
function selectRecords(db: Database, now: Instant) {
  return db
    .select({ workspace: workspaces, instance: instanceColumns, lane: laneColumns })
    .from(workspaces)
    .leftJoin(instances, eq(instances.workspaceUid, workspaces.uid))
    .leftJoin(startLane, and(eq(startLane.workspaceUid, workspaces.uid), gt(startLane.deadlineTime, now)))
    .$dynamic();
}

function readRecord(row: Awaited<ReturnType<typeof selectRecords>>[number]): WorkspaceRecord {
  return toRecord(row.workspace, row.instance, row.lane);
}

function isTurn({ from, to, wraps }: ResyncWindow): SQL | undefined {
  const above = sql`(${workspaces.resyncPhase}, ${workspaces.uid}) > (${from.phase}, ${from.uid})`;
  const upTo = lte(workspaces.resyncPhase, to);
  return wraps ? or(above, upTo) : and(above, upTo);
}

function inTurn({ from }: ResyncWindow): SQL {
  return sql`(${workspaces.resyncPhase}, ${workspaces.uid}) <= (${from.phase}, ${from.uid}), ${workspaces.resyncPhase}, ${workspaces.uid}`;
}
