/**
 * The sweep of the bucket, the decision: which objects no row knows, which of them may be removed now, and which rows have lost theirs.
 * Pure. The guards are those of orphaned instances.
 *
 * 1. Only a complete listing teaches anything (invariant 4). 2. The listing was read before the rows were: what was completed in between
 * has a row. 3. What is under way has objects before its row knows them: nothing younger than the oldest claim is an orphan.
 */
import type { BackupSweepRecord, UnclaimedBackup } from "../backup.ts";
import type { BackupSweepView } from "../store/backup-sweep.ts";
import type { Instant } from "../workspace.ts";
import type { StoredObjects } from "./backup-bucket.ts";
import { type GcContext, destroyLimit, isReleased } from "./orphans.ts";

const MIN_SIGHTINGS = 2;

/** `graceMs`: objects younger than this may belong to a backup whose outcome is not written down yet. */
export type BucketContext = GcContext;

export type BackupGuard = "ControllerPaused" | "GcOff" | "Grace" | "SeenOnce" | "UnderWay" | "ReportOnly";

/** Why objects without a row are not removed, the first that holds; null where all guards let them go. */
export function backupGuardOf(
  { uploadedTime, firstSeenTime, timesSeen }: UnclaimedBackup,
  { now, mode, graceMs, settings }: BucketContext,
  oldestClaimTime: Instant | null,
): BackupGuard | null {
  if (settings.paused) return "ControllerPaused";
  if (mode === "Off") return "GcOff";
  if (now - Math.max(uploadedTime, firstSeenTime) < graceMs) return "Grace";
  if (timesSeen < MIN_SIGHTINGS) return "SeenOnce";
  // The bucket's clock is not ours.
  if (oldestClaimTime !== null && uploadedTime >= oldestClaimTime - graceMs) return "UnderWay";
  return mode === "Report" ? "ReportOnly" : null;
}

export interface BackupSweepPlan {
  readonly record: Omit<BackupSweepRecord, "completeTime" | "message">;
  /** As to be remembered. */
  readonly unclaimed: readonly UnclaimedBackup[];
  /** Object ids that are in the bucket no more, or have a row. */
  readonly gone: readonly string[];
  /** Rows whose objects are not all there, and rows whose objects are there again. */
  readonly lost: readonly string[];
  readonly found: readonly string[];
  /** Object ids. */
  readonly remove: readonly string[];
}

/** `listedTime`: when the listing began; what was completed later need not be on it. */
export function planBackupSweep(
  stored: readonly StoredObjects[],
  listedTime: Instant,
  view: BackupSweepView,
  context: BucketContext,
): BackupSweepPlan {
  const { now } = context;
  const listed = new Map(stored.map((objects) => [objects.objectId, objects]));
  const before = new Map(view.unclaimed.map((objects) => [objects.objectId, objects]));
  const unclaimed = stored.filter(({ objectId }) => !view.known.has(objectId)).map((objects) => seen(objects, before, now));
  const remembered = new Set(unclaimed.map(({ objectId }) => objectId));
  const ripe = unclaimed.filter((objects) => backupGuardOf(objects, context, view.oldestClaimTime) === null);
  const limit = destroyLimit(stored.length);
  const brake = brakeOf(ripe.length, limit, view.known.size, context);
  const isWhole = (objectId: string) => {
    const objects = listed.get(objectId);
    return objects !== undefined && objects.hasArchive && objects.hasMetadata;
  };
  const comparable = view.stored.filter(({ endedTime }) => endedTime < listedTime);
  return {
    record: { time: now, outcome: "Complete", stored: stored.length, eligible: ripe.length, limit, brake },
    unclaimed,
    gone: view.unclaimed.filter(({ objectId }) => !remembered.has(objectId)).map(({ objectId }) => objectId),
    lost: comparable.filter(({ objectId, lostTime }) => lostTime === null && !isWhole(objectId)).map(({ id }) => id),
    found: comparable.filter(({ objectId, lostTime }) => lostTime !== null && isWhole(objectId)).map(({ id }) => id),
    remove: brake === null ? ripe.map(({ objectId }) => objectId) : [],
  };
}

function seen({ objectId, uploadedTime, sizeBytes }: StoredObjects, before: ReadonlyMap<string, UnclaimedBackup>, now: Instant) {
  const known = before.get(objectId);
  const isSame = known !== undefined && known.uploadedTime === uploadedTime;
  return {
    objectId,
    uploadedTime,
    sizeBytes,
    firstSeenTime: isSame ? known.firstSeenTime : now,
    lastSeenTime: now,
    timesSeen: isSame ? known.timesSeen + 1 : 1,
  };
}

/** Many at once are more likely a mistake of ours, or somebody else's bucket; so is a database that knows no backup at all. */
function brakeOf(ripe: number, limit: number, known: number, context: BucketContext): BackupSweepRecord["brake"] {
  if (ripe === 0) return null;
  if (known === 0 && !context.settings.allowEmpty) return "EmptyDesired";
  return ripe > limit && !isReleased(context) ? "TooManyOrphans" : null;
}
