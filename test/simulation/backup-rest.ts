/** (6, 13) What must hold of backups once nothing but the controller has acted for a while. */
import type { Instant } from "../../src/workspace.ts";
import type { BackupRow } from "./memory-backup-rows.ts";
import type { WorkspaceRow } from "./memory-rows.ts";
import type { Day } from "./ports.ts";

/** Two sweeps, and time for what they mark. */
const SWEEPS = 3;
/** Between the deadline and the pass that writes it down. */
const ABANDON_MS = 120_000;

export function* backupProblemsOf({
  store,
  bucket,
  config,
  clock,
  invariants,
}: Day): Iterable<readonly [subject: string, message: string]> {
  if (config.backups === null) return;
  const now = clock.now();
  const { sweepIntervalMs, orphanGraceMs, keepAfterDeletionMs } = config.backups;
  const { backups, workspaces } = store.tables;
  const objectIds = new Set<string>();
  for (const row of backups.values()) {
    if (row.objectId !== null) objectIds.add(row.objectId);
    const message = problemOf(row);
    if (message !== null) yield [row.id, `${row.id} of ${row.name} ${message}`];
  }
  for (const [objectId, { uploadedTime }] of bucket.stored) {
    const isOld = uploadedTime < now - orphanGraceMs - SWEEPS * sweepIntervalMs;
    if (isOld && !objectIds.has(objectId)) yield [objectId, `${objectId} is nobody's`];
  }

  function problemOf(row: BackupRow): string | null {
    const { state, deadlineTime, objectId, lostTime, workspaceGoneTime, workspaceUid } = row;
    if (state === "Deleting") return "is still to be removed";
    if (state === "Requested" && !workspaces.has(workspaceUid)) return "is asked for, and its workspace is gone";
    if (state === "InProgress" && now > (deadlineTime ?? 0) + ABANDON_MS) return "is past its deadline and has no outcome";
    if (state !== "Completed") return null;
    const objects = bucket.stored.get(objectId ?? "");
    if (!objects?.hasArchive || !objects.hasMetadata) return "is good, and has no objects";
    if (lostTime !== null) return "counts as lost, and its objects are there";
    const isOver = workspaceGoneTime !== null && now > workspaceGoneTime + keepAfterDeletionMs + SWEEPS * sweepIntervalMs;
    return isOver && !invariants.backups.contents.isKept(row) ? "is kept although its workspace is long gone" : null;
  }
}

/** Nothing is started for what is a clone of nothing: its user has to ask again once there is something. */
export function isWithoutSource(row: WorkspaceRow, { store, invariants }: Day, restTime: Instant): boolean {
  const { status, spec, uid } = row;
  const isStalled = status.conditions.some(({ type, reason }) => type === "Stalled" && reason === "SourceNotFound");
  const hasOwn = [...store.tables.backups.of(uid)].some(({ state }) => state === "Completed");
  if (!isStalled || spec === null || spec.source === null || hasOwn) return false;
  const source = invariants.backups.contents.sourceOf(row);
  return source === null || (source.endedTime ?? 0) >= restTime;
}
