/**
 * Backups that are no longer kept, and objects that nobody keeps, the doing. Each removal is claimed in D1 first; a crash at any point
 * leaves a row that says what is left to be done.
 */
import { log } from "../log.ts";
import type { ControllerSettings } from "../unclaimed.ts";
import { type BackupBucket } from "./backup-bucket.ts";
import { planBackupSweep } from "./backup-orphans.ts";
import { causeOf } from "./cause.ts";
import { LeaseLostError } from "./fleet.ts";
import { isDisposable } from "./retention.ts";
import type { SweepDeps } from "./sweep-deps.ts";
import type { BackupSettings } from "../config.ts";
import type { Instant } from "../workspace.ts";

export interface CollectBackupsDeps extends Pick<SweepDeps, "store" | "config" | "now"> {
  readonly bucket: BackupBucket;
  readonly backups: BackupSettings;
  readonly epoch: number;
  /** As read in the last round. */
  readonly settings: ControllerSettings;
  /** Nothing is begun after this. */
  readonly endTime: Instant;
}

const REMOVALS_AT_ONCE = 100;
const CANDIDATES_AT_ONCE = 500;

/** Removes what was marked for it. Throws what the store throws. */
export async function removeDeleted({ store, bucket, epoch, now, endTime }: CollectBackupsDeps): Promise<number> {
  const deletions = await store.readDeletions(REMOVALS_AT_ONCE);
  let removed = 0;
  for (const { id, objectId } of deletions) {
    if (now() >= endTime) break;
    if (objectId !== null && !(await isRemoved(bucket, objectId))) continue;
    // Whoever else removed it meanwhile has done the same.
    if (await store.forgetBackup(epoch, id)) removed += 1;
    else if (!(await store.holdsLease(epoch))) throw new LeaseLostError("Another controller has taken the lease.");
  }
  return removed;
}

/** Marks what retention keeps no longer; compares the bucket with the rows, and removes what no row knows. */
export async function sweepBackups(deps: CollectBackupsDeps): Promise<void> {
  const { store, config, epoch, now } = deps;
  // First: a newest one that turns out to be lost is none for whose sake another may go.
  await sweepBucket(deps);
  await retain(deps);
  await store.expireBackupRecords(epoch, now() - config.eventRetentionMs);
}

async function retain({ store, backups, epoch, now, endTime }: CollectBackupsDeps): Promise<void> {
  let after: string | null = null;
  while (now() < endTime) {
    const candidates = await store.readRetentionCandidates(after, CANDIDATES_AT_ONCE);
    for (const candidate of candidates) {
      if (!isDisposable(candidate, now(), backups.keepAfterDeletionMs) || now() >= endTime) continue;
      if (await store.claimBackupDeletion(epoch, candidate.id)) log("info", "Backup no longer kept", { backupId: candidate.id });
    }
    const last = candidates.at(-1);
    if (last === undefined || candidates.length < CANDIDATES_AT_ONCE) return;
    after = last.id;
  }
}

async function sweepBucket(deps: CollectBackupsDeps): Promise<void> {
  const { store, bucket, backups, config, settings, epoch, now, endTime } = deps;
  const time = now();
  const listing = await bucket.list();
  if (listing.kind === "Failed") {
    log("warn", "Bucket is not listed", { error: listing.message });
    const record = { ...NOTHING_LEARNT, time, message: listing.message };
    await store.recordBackupSweep(epoch, { unclaimed: [], gone: [], lost: [], found: [], record }, time);
    return;
  }
  const view = await store.readBackupSweepView();
  const mode = settings.gcMode ?? config.gcMode;
  const plan = planBackupSweep(listing.stored, time, view, { now: time, mode, graceMs: backups.orphanGraceMs, settings });
  const { record, remove, ...seen } = plan;
  const isRecorded = await store.recordBackupSweep(epoch, { ...seen, record: { ...record, completeTime: time, message: "" } }, time);
  if (!isRecorded) throw new LeaseLostError("Another controller has taken the lease.");
  for (const objectId of remove) {
    if (now() >= endTime || !(await store.claimObjectRemoval(epoch, objectId, now()))) continue;
    if (await isRemoved(bucket, objectId)) log("warn", "Objects without a row removed", { objectId });
  }
}

const NOTHING_LEARNT = { completeTime: null, outcome: "Failed", stored: 0, eligible: 0, limit: 0, brake: null } as const;

/** What the bucket does not let go is left to the next sweep, and holds up nothing else (invariant 10). */
async function isRemoved(bucket: BackupBucket, objectId: string): Promise<boolean> {
  try {
    await bucket.remove(objectId);
    return true;
  } catch (error) {
    log("error", "Objects are not removed", { objectId, error: causeOf(error) });
    return false;
  }
}
