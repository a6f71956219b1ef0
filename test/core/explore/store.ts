/** D1 in the model: `admitStart`, `saveConclusion`, `expire` and `forget` of `src/store/progress.ts`, and the queue of `src/store/due.ts`. */
import type { Instance } from "../../../src/workspace.ts";
import type { ActiveBackup } from "../../../src/backup.ts";
import type { Conclusion, LaneHold, WorkspaceRecord } from "../../../src/workspace-record.ts";
import { NOW } from "../../support/builders.ts";
import { afterEnding } from "./backups.ts";
import { UNTOUCHED, type World, withRow, withWorkspace, workspaceOf } from "./world.ts";

function isCurrent(world: World, epoch: number, record: WorkspaceRecord): boolean {
  return world.epoch === epoch && workspaceOf(world, record.uid).row?.resourceVersion === record.resourceVersion;
}

/** Null where nothing was written. */
export function admitStart(
  world: World,
  epoch: number,
  record: WorkspaceRecord,
  admission: { readonly instance: Instance; readonly lane: LaneHold; readonly conclusion: Conclusion },
): World | null {
  if (world.lane !== null || world.brake || !isCurrent(world, epoch, record)) return null;
  const { instance, lane, conclusion } = admission;
  const { status, failures, nextRetryTime, readyTime, observed, idleTime } = conclusion;
  const admitted = withRow(world, record.uid, {
    status,
    failures,
    nextRetryTime,
    readyTime,
    observed,
    idleTime,
    startId: lane.startId,
    reconcileRequestTime: null,
    instance: { ...instance, running: true, destroyRequested: false },
    incarnation: instance.incarnation,
    queuedTime: null,
    unreachableTime: null,
    nextReconcileTime: NOW,
  });
  const isSuccessor = instance.incarnation !== record.instance?.incarnation;
  return {
    ...(isSuccessor ? withWorkspace(admitted, record.uid, { sandbox: { ...UNTOUCHED, epoch } }) : admitted),
    lane: { ...lane, uid: record.uid },
  };
}

/** Null where nothing was written because the row moved on or the lease is lost; the same world where nothing changed. */
export function saveConclusion(world: World, epoch: number, record: WorkspaceRecord, conclusion: Conclusion): World | null {
  if (!isChange(record, conclusion)) return world;
  if (!isCurrent(world, epoch, record)) return null;
  const { laneReleased, brake, running: _, event: __, backup, ...memory } = conclusion;
  const fields = { ...memory, reconcileRequestTime: null, backups: afterEnding(record, backup) };
  const poked = workspaceOf(world, record.uid).row?.nextReconcileTime !== record.nextReconcileTime;
  const saved = withRow(world, record.uid, poked ? { ...fields, nextReconcileTime: NOW } : fields);
  return {
    ...saved,
    lane: laneReleased && world.lane?.uid === record.uid ? null : world.lane,
    brake: brake !== null || (world.brake && fields.readyTime !== NOW),
  };
}

/** Null where nothing was written. The row of the workspace stays as it is. */
export function claimBackup(world: World, epoch: number, record: WorkspaceRecord, active: ActiveBackup): World | null {
  const { row } = workspaceOf(world, record.uid);
  if (row?.backups == null || !isCurrent(world, epoch, record)) return null;
  const isFree = row.backups.active === null || (row.backups.active.id === active.id && row.backups.active.state === "Requested");
  return isFree ? withWorkspace(world, record.uid, { row: { ...row, backups: { ...row.backups, active } } }) : null;
}

/** Null where nothing was written. */
export function expire(world: World, epoch: number, record: WorkspaceRecord): World | null {
  return isCurrent(world, epoch, record) ? withRow(world, record.uid, { deletionTime: NOW, nextReconcileTime: NOW }) : null;
}

export function forget(world: World, epoch: number, record: WorkspaceRecord): World | null {
  if (!isCurrent(world, epoch, record)) return null;
  return { ...withWorkspace(world, record.uid, { row: null }), lane: world.lane?.uid === record.uid ? null : world.lane };
}

const MEMORY = [
  "failures",
  "nextRetryTime",
  "readyTime",
  "queuedTime",
  "unreachableTime",
  "nextReconcileTime",
  "startId",
  "idleTime",
] as const;

function isChange(record: WorkspaceRecord, conclusion: Conclusion): boolean {
  const { laneReleased, brake, status } = conclusion;
  const isMoved = MEMORY.some((field) => record[field] !== conclusion[field]);
  const isRequested = record.reconcileRequestTime !== null || conclusion.backup !== null;
  return laneReleased || brake !== null || isRequested || isMoved || JSON.stringify(record.status) !== JSON.stringify(status);
}

/** Who is first in line for the lane, while it has room. */
export function startable(world: World): string | null {
  if (world.lane !== null || world.brake) return null;
  const waiting = Object.values(world.workspaces).flatMap(({ row }) =>
    row !== null && row.queuedTime !== null && row.unreachableTime === null ? [row] : [],
  );
  const [first] = waiting.toSorted((a, b) => (a.queuedTime ?? 0) - (b.queuedTime ?? 0) || (a.uid < b.uid ? -1 : 1));
  return first?.uid ?? null;
}
