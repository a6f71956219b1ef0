/** Backups in the memory store: `src/store/backup-progress.ts`, `backup-removal.ts` and `backup-sweep.ts`. */
import type { BackupClaim, BackupEnding, RetentionCandidate } from "../../src/backup.ts";
import type { BackupDeletion } from "../../src/store/backup-removal.ts";
import type { BackupSweepResult, BackupSweepView } from "../../src/store/backup-sweep.ts";
import type { Instant } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { type BackupRow, byAttempt, isActive, isAttempt, newerGood, referredIds } from "./memory-backup-rows.ts";
import { MemoryInventory } from "./memory-inventory.ts";

export class MemoryBackups extends MemoryInventory {
  claimBackup(epoch: number, record: WorkspaceRecord, claim: BackupClaim, now: Instant): boolean {
    const { backups } = this.tables;
    if (this.current(record, epoch) === null) return false;
    const { startId, directory, deadlineTime, failures } = claim;
    const claimed = {
      state: "InProgress",
      startId,
      directory,
      deadlineTime,
      failures,
      generation: record.generation,
      startedTime: now,
    } as const;
    const known = backups.get(claim.id);
    if (record.backups?.active?.id === claim.id) {
      if (known?.state !== "Requested" || known.workspaceUid !== record.uid) return false;
      Object.assign(known, claimed);
      return true;
    }
    if (known !== undefined || backups.activeOf(record.uid) !== null) return false;
    backups.set(claim.id, { ...newBackup(claim.id, record, claim.trigger, directory, now), ...claimed });
    return true;
  }

  readDeletions(limit: number): readonly BackupDeletion[] {
    const deleting = [...this.tables.backups.values()].filter(({ state }) => state === "Deleting");
    return deleting
      .toSorted(byId)
      .slice(0, limit)
      .map(({ id, objectId }) => ({ id, objectId }));
  }

  forgetBackup(epoch: number, id: string): boolean {
    const { backups } = this.tables;
    return backups.get(id)?.state === "Deleting" && this.holdsLease(epoch) && backups.delete(id);
  }

  readRetentionCandidates(after: string | null, limit: number): readonly RetentionCandidate[] {
    const { backups, workspaces } = this.tables;
    const referred = referredIds(backups, workspaces.values());
    const good = [...backups.values()].filter(({ id, state }) => state === "Completed" && id > (after ?? ""));
    const candidates = good.toSorted(byId).map(({ id, endedTime, workspaceUid, workspaceGoneTime }): RetentionCandidate => {
      const row = backups.get(id) as BackupRow;
      const retention = workspaces.get(workspaceUid)?.spec?.backup?.retention ?? null;
      return { id, endedTime: endedTime ?? 0, rank: 1 + newerGood(backups, row), retention, workspaceGoneTime, referred: referred.has(id) };
    });
    return candidates.filter(({ rank, workspaceGoneTime }) => rank > 1 || workspaceGoneTime !== null).slice(0, limit);
  }

  claimBackupDeletion(epoch: number, id: string): boolean {
    const { backups, workspaces, settings } = this.tables;
    const row = backups.get(id);
    if (row?.state !== "Completed" || settings.paused || !this.holdsLease(epoch)) return false;
    const isNewestOfLiving = row.workspaceGoneTime === null && newerGood(backups, row) === 0;
    if (isNewestOfLiving || referredIds(backups, workspaces.values()).has(id)) return false;
    row.state = "Deleting";
    return true;
  }

  expireBackupRecords(epoch: number, before: Instant): void {
    if (!this.holdsLease(epoch)) return;
    for (const row of this.tables.backups.values()) {
      const hasEnded = row.state === "Skipped" || row.state === "Failed" || row.state === "Abandoned";
      if (!hasEnded || row.endedTime === null || row.endedTime >= before) continue;
      const isLast = row.startedTime !== null && row.workspaceGoneTime === null && !this.#isFollowed(row);
      if (!isLast) this.tables.backups.delete(row.id);
    }
  }

  readBackupSweepView(): BackupSweepView {
    const { backups, unclaimedBackups } = this.tables;
    const rows = [...backups.values()].toSorted(byId);
    const known = new Set(rows.flatMap(({ objectId }) => objectId ?? []));
    const claimTimes = rows.flatMap(({ state, startedTime }) => (state === "InProgress" && startedTime !== null ? [startedTime] : []));
    return {
      stored: rows.flatMap(({ id, state, objectId, endedTime, lostTime }) =>
        state === "Completed" && objectId !== null && endedTime !== null ? [{ id, objectId, endedTime, lostTime }] : [],
      ),
      known,
      unclaimed: [...unclaimedBackups.values()]
        .filter(({ objectId }) => !known.has(objectId))
        .toSorted((one, other) => (one.objectId < other.objectId ? -1 : 1)),
      oldestClaimTime: claimTimes.length === 0 ? null : Math.min(...claimTimes),
    };
  }

  recordBackupSweep(epoch: number, { record, unclaimed, gone, lost, found }: BackupSweepResult, now: Instant): boolean {
    if (!this.holdsLease(epoch)) return false;
    const { backups, unclaimedBackups } = this.tables;
    const { time, outcome, message } = record;
    const last = this.controller.backupSweep ?? { completeTime: null, stored: 0, eligible: 0, limit: 0, brake: null };
    this.controller.backupSweep = outcome === "Failed" ? { ...last, time, outcome, message } : { ...record, completeTime: time };
    const { known } = this.readBackupSweepView();
    for (const seen of unclaimed) unclaimedBackups.set(seen.objectId, seen);
    for (const objectId of [...gone, ...known]) unclaimedBackups.delete(objectId);
    for (const row of lost.flatMap((id) => backups.get(id) ?? [])) if (row.state === "Completed") row.lostTime ??= now;
    for (const row of found.flatMap((id) => backups.get(id) ?? [])) row.lostTime = null;
    return true;
  }

  claimObjectRemoval(epoch: number, objectId: string, _now: Instant): boolean {
    const { settings } = this.tables;
    const isHeldBack = settings.paused || settings.gcMode === "Off" || settings.gcMode === "Report";
    const isKnown = this.readBackupSweepView().known.has(objectId);
    if (isHeldBack || isKnown || !this.tables.unclaimedBackups.has(objectId) || !this.holdsLease(epoch)) return false;
    this.tables.events += 1;
    return true;
  }

  protected endBackup({ uid }: WorkspaceRecord, ending: BackupEnding, now: Instant): void {
    const row = this.tables.backups.get(ending.id);
    if (row === undefined || row.workspaceUid !== uid || !isActive(row)) return;
    const { state, reason, message, objectId, sizeBytes } = ending;
    const hasFailed = state === "Failed" || state === "Abandoned";
    const failures = hasFailed ? row.failures + 1 : row.failures;
    Object.assign(row, { state, reason, message, objectId, sizeBytes, endedTime: now, failures: state === "Completed" ? 0 : failures });
    if (hasFailed || ending.trigger !== "Schedule") this.tables.events += 1;
  }

  protected leaveBackups(uid: string, now: Instant): void {
    for (const row of this.tables.backups.of(uid)) {
      row.workspaceGoneTime = now;
      if (row.state === "Requested") Object.assign(row, { state: "Skipped", reason: "Cancelled", endedTime: now });
      if (row.state === "InProgress") Object.assign(row, { state: "Abandoned", reason: "WorkspaceDeleted", endedTime: now });
    }
  }

  #isFollowed(row: BackupRow): boolean {
    return [...this.tables.backups.of(row.workspaceUid)].some((other) => isAttempt(other) && byAttempt(other, row) > 0);
  }
}

type Owner = Pick<WorkspaceRecord, "uid" | "namespace" | "name">;

/** As it is asked for. */
export function newBackup(
  id: string,
  { uid, namespace, name }: Owner,
  trigger: BackupRow["trigger"],
  directory: string,
  now: Instant,
): BackupRow {
  const asked = { id, workspaceUid: uid, namespace, name, trigger, state: "Requested", directory, requestedTime: now } as const;
  return { ...asked, ...NOT_CLAIMED };
}

const NOT_CLAIMED = {
  reason: "",
  message: "",
  startId: null,
  generation: null,
  startedTime: null,
  deadlineTime: null,
  failures: 0,
  endedTime: null,
  objectId: null,
  sizeBytes: null,
  lostTime: null,
  workspaceGoneTime: null,
};

function byId(one: { readonly id: string }, other: { readonly id: string }): number {
  return one.id < other.id ? -1 : 1;
}
