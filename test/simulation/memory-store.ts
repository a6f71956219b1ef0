/**
 * The controller's side of the store in memory: what `src/store` does with D1, statement by statement, at once and without a database.
 * `test/contract/store.ts` holds both to the same.
 */
import type { DueQuery, DueWorkspaces } from "../../src/store/due.ts";
import type { Admission } from "../../src/store/progress.ts";
import type { RunningLimits } from "../../src/store/quota.ts";
import type { Instant } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { memoryOf } from "./memory-backup-rows.ts";
import { MemoryBackups } from "./memory-backups.ts";
import { isChange } from "./memory-change.ts";
import { byPlace, byUrgency, inTurn, isTurn } from "./memory-due.ts";
import { type WorkspaceRow, toInstance } from "./memory-rows.ts";

const BRAKE_BASE_MS = 5000;
const BRAKE_MAX_MS = 300_000;

export class MemoryStore extends MemoryBackups {
  loadDue(query: DueQuery): DueWorkspaces {
    const { now, resync, resyncIntervalMs, laneWidth, runningLimits, limit } = query;
    const due: WorkspaceRow[] = [];
    const turns: WorkspaceRow[] = [];
    const queue: WorkspaceRow[] = [];
    const isBraked = this.#isBraked(now);
    for (const row of this.tables.workspaces.values()) {
      const { nextReconcileTime: next } = row;
      if (next !== null && next <= now) due.push(row);
      else if (resync !== null && (next === null || next > now + resyncIntervalMs) && isTurn(row, resync)) turns.push(row);
      const isWaiting = row.queuedTime !== null && row.unreachableTime === null && !isBraked;
      if (isWaiting && !this.#isQuotaReached(runningLimits, row.namespace, row.uid)) queue.push(row);
    }
    const held = this.tables.lane.filter(({ deadlineTime }) => deadlineTime > now).length;
    const isBackingUp = ({ uid }: WorkspaceRow) => this.tables.backups.activeOf(uid)?.state === "InProgress";
    const read = (rows: readonly WorkspaceRow[]) => rows.map((row) => this.#toRecord(row, query));
    return {
      due: read(due.toSorted(byUrgency(isBackingUp)).slice(0, limit)),
      resync: resync === null ? [] : read(turns.toSorted(inTurn(resync)).slice(0, limit)),
      startable: read(queue.toSorted(byPlace).slice(0, Math.max(0, laneWidth - held))),
      settings: this.tables.settings,
    };
  }

  saveConclusion(epoch: number, record: WorkspaceRecord, conclusion: Conclusion, now: Instant): boolean {
    if (!isChange(record, conclusion)) return true;
    const version = this.nextVersion();
    const row = this.current(record, epoch);
    if (row === null) return false;
    const isPoked = row.nextReconcileTime !== record.nextReconcileTime;
    this.#remember(row, conclusion);
    row.resourceVersion = version;
    row.queuedTime = conclusion.queuedTime;
    row.unreachableTime = conclusion.unreachableTime;
    if (!isPoked) row.nextReconcileTime = conclusion.nextReconcileTime;
    if (conclusion.laneReleased) this.tables.lane = this.tables.lane.filter(({ uid }) => uid !== record.uid);
    if (conclusion.brake !== null || conclusion.readyTime === now) this.#brake(conclusion, now);
    const instance = record.instance === null ? undefined : this.tables.instances.get(record.instance.doId);
    if (instance !== undefined && record.instance?.running !== conclusion.running) instance.running = conclusion.running;
    if (conclusion.event !== null) this.tables.events += 1;
    if (conclusion.backup !== null) this.endBackup(record, conclusion.backup, now);
    return true;
  }

  admitStart(epoch: number, record: WorkspaceRecord, admission: Admission, now: Instant): number | null {
    const { tables } = this;
    const { instance, startId, deadlineTime, laneWidth, conclusion, restoredBackupId, sourceBackupId } = admission;
    const version = this.nextVersion();
    if (this.holdsLease(epoch)) tables.lane = tables.lane.filter((place) => place.deadlineTime > now);
    const taken = new Set(tables.lane.map(({ slot }) => slot));
    const slot = Array.from({ length: laneWidth }, (_, free) => free).find((free) => !taken.has(free));
    const row = this.current(record, epoch);
    const isGood = restoredBackupId === null || tables.backups.get(restoredBackupId)?.state === "Completed";
    const mayStart = slot !== undefined && tables.lane.length < laneWidth && !this.#isBraked(now) && isGood;
    if (!mayStart || row === null || this.#isQuotaReached(admission.runningLimits, record.namespace, record.uid)) return null;
    if (tables.lane.some(({ uid }) => uid === record.uid)) throw new Error("UNIQUE constraint failed: start_lane.workspace_uid");
    tables.lane = [...tables.lane, { slot, startId, uid: record.uid, queuedTime: record.queuedTime ?? now, deadlineTime }];
    const older = this.instances.get(record.uid);
    if (older !== undefined && older.doId !== instance.doId) this.leaveUnclaimed(older, now);
    this.#admitInstance(record, admission, now);
    this.#remember(row, conclusion);
    const change = { resourceVersion: version, incarnation: instance.incarnation, queuedTime: null, unreachableTime: null };
    Object.assign(row, { ...change, nextReconcileTime: now, startId, sourceBackupId });
    if (conclusion.event !== null) tables.events += 1;
    return version;
  }

  expire(epoch: number, record: WorkspaceRecord, now: Instant): boolean {
    const version = this.nextVersion();
    const row = this.current(record, epoch);
    if (row === null || row.deletionTime !== null) return false;
    const { finalBackup, deadlineSeconds } = record.spec?.deletion ?? { finalBackup: "Skip", deadlineSeconds: 0 };
    Object.assign(row, { finalBackup, finalBackupDeadlineTime: now + deadlineSeconds * 1000 });
    Object.assign(row, { deletionTime: now, revision: row.revision + 1, resourceVersion: version, nextReconcileTime: now });
    this.tables.events += 1;
    return true;
  }

  forget(epoch: number, record: WorkspaceRecord, now: Instant): boolean {
    const { tables } = this;
    this.nextVersion();
    if (this.current(record, epoch) === null) return false;
    const instance = this.instances.get(record.uid);
    if (instance !== undefined) this.leaveUnclaimed(instance, now);
    tables.lane = tables.lane.filter(({ uid }) => uid !== record.uid);
    this.leaveBackups(record.uid, now);
    tables.workspaces.delete(record.uid);
    tables.events += 1;
    return true;
  }

  #remember(row: WorkspaceRow, conclusion: Conclusion): void {
    const { status, failures, nextRetryTime, readyTime, startId, idleTime, observed } = conclusion;
    Object.assign(row, { status, failures, nextRetryTime, readyTime, startId, idleTime, observed, reconcileRequestTime: null });
  }

  #admitInstance({ uid, namespace, name }: WorkspaceRecord, { instance }: Admission, now: Instant): void {
    const { doId, sandboxId, incarnation } = instance;
    const known = this.tables.instances.get(doId);
    const fresh = { doId, sandboxId, uid, namespace, name, incarnation, admittedTime: now, adopted: false };
    const row = { ...(known ?? fresh), running: true, destroyRequestTime: null };
    this.tables.instances.set(doId, row);
    this.tables.unclaimed.delete(doId);
    this.instances.set(uid, row);
  }

  #brake({ brake }: Conclusion, now: Instant): void {
    const row = this.controller;
    const doubled = Math.min(BRAKE_MAX_MS, BRAKE_BASE_MS * 2 ** Math.min(row.brakeFailures, 10));
    const waitMs = Math.min(brake?.retryAfterMs ?? doubled, BRAKE_MAX_MS);
    Object.assign(row, brake === null ? NO_BRAKE : { brakeUntilTime: now + waitMs, brakeFailures: row.brakeFailures + 1 });
  }

  #isBraked(now: Instant): boolean {
    return (this.tables.controller?.brakeUntilTime ?? 0) > now;
  }

  #isQuotaReached(limits: RunningLimits, namespace: string, exceptUid: string): boolean {
    const limit = (namespace in limits ? limits[namespace] : limits["*"]) ?? null;
    if (limit === null) return false;
    const { instances, unclaimed } = this.tables;
    let running = 0;
    for (const row of instances.values()) if (row.running && row.namespace === namespace && row.uid !== exceptUid) running += 1;
    for (const { owner, state } of unclaimed.values()) if (state === "Running" && owner?.namespace === namespace) running += 1;
    return running >= limit;
  }

  #toRecord(row: WorkspaceRow, { now, runningLimits, backups }: DueQuery): WorkspaceRecord {
    const { revision: _, creationTime: __, ...fields } = row;
    const instance = this.instances.get(row.uid);
    const place = this.tables.lane.find(({ uid, deadlineTime }) => uid === row.uid && deadlineTime > now);
    return {
      ...fields,
      instance: instance === undefined ? null : toInstance(instance),
      lane: place === undefined ? null : { startId: place.startId, queuedTime: place.queuedTime, deadlineTime: place.deadlineTime },
      backups: backups ? memoryOf(this.tables.backups, row) : null,
      unrestorable: !backups && memoryOf(this.tables.backups, row).newest !== null,
      quotaReached: this.#isQuotaReached(runningLimits, row.namespace, row.uid),
    };
  }
}

const NO_BRAKE = { brakeUntilTime: null, brakeFailures: 0 };
