/**
 * The controller's side of the store in memory: what `src/store` does with D1, statement by statement, at once and without a database.
 * `test/contract/store.ts` holds both to the same.
 */
import { DEFAULT_SETTINGS } from "../../src/store/controller-settings.ts";
import type { DueQuery, DueWorkspaces } from "../../src/store/due.ts";
import type { Lease } from "../../src/store/lease.ts";
import type { Admission } from "../../src/store/progress.ts";
import type { RunningLimits } from "../../src/store/quota.ts";
import type { InventoryView, SweepResult } from "../../src/store/unclaimed.ts";
import type { Unclaimed } from "../../src/unclaimed.ts";
import type { Instant } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { isChange } from "./memory-change.ts";
import { byPlace, byUrgency, inTurn, isTurn } from "./memory-due.ts";
import { type InstanceRow, type Tables, type WorkspaceRow, toInstance } from "./memory-rows.ts";

const BRAKE_BASE_MS = 5000;
const BRAKE_MAX_MS = 300_000;

export class MemoryStore {
  readonly tables: Tables = {
    workspaces: new Map(),
    instances: new Map(),
    unclaimed: new Map(),
    lane: [],
    controller: null,
    settings: DEFAULT_SETTINGS,
    version: 0,
    events: 0,
  };
  /** The ledger by workspace; `instances` has one row at most for each. */
  readonly #instanceOf = new Map<string, InstanceRow>();

  acquireLease(holder: string, now: Instant, leaseMs: number): Lease | null {
    const { tables } = this;
    const known = tables.controller;
    if (known !== null && known.expiresTime > now) return null;
    const row = (tables.controller ??= { ...FIRST_CONTROLLER, resyncTime: now });
    row.holder = holder;
    row.epoch += 1;
    row.expiresTime = now + leaseMs;
    const { epoch, expiresTime, resyncTime, inventory } = row;
    return { epoch, expiresTime, resyncTime, inventory, settings: tables.settings };
  }

  renewLease(epoch: number, expiresTime: Instant, resyncTime: Instant): boolean {
    if (!this.holdsLease(epoch)) return false;
    Object.assign(this.#controller, { expiresTime, resyncTime });
    return true;
  }

  releaseLease(epoch: number, resyncTime: Instant, sweptTime: Instant | null): boolean {
    if (!this.holdsLease(epoch)) return false;
    Object.assign(this.#controller, { expiresTime: 0, resyncTime, ...(sweptTime !== null && { lastSweepTime: sweptTime }) });
    return true;
  }

  holdsLease(epoch: number): boolean {
    return this.tables.controller?.epoch === epoch;
  }

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
    const read = (rows: readonly WorkspaceRow[]) => rows.map((row) => this.#toRecord(row, now, runningLimits));
    return {
      due: read(due.toSorted(byUrgency).slice(0, limit)),
      resync: resync === null ? [] : read(turns.toSorted(inTurn(resync)).slice(0, limit)),
      startable: read(queue.toSorted(byPlace).slice(0, Math.max(0, laneWidth - held))),
      settings: this.tables.settings,
    };
  }

  saveConclusion(epoch: number, record: WorkspaceRecord, conclusion: Conclusion, now: Instant): boolean {
    if (!isChange(record, conclusion)) return true;
    const version = this.nextVersion();
    const row = this.#current(record, epoch);
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
    return true;
  }

  admitStart(epoch: number, record: WorkspaceRecord, admission: Admission, now: Instant): number | null {
    const { tables } = this;
    const { instance, startId, deadlineTime, laneWidth, conclusion } = admission;
    const version = this.nextVersion();
    if (this.holdsLease(epoch)) tables.lane = tables.lane.filter((place) => place.deadlineTime > now);
    const taken = new Set(tables.lane.map(({ slot }) => slot));
    const slot = Array.from({ length: laneWidth }, (_, free) => free).find((free) => !taken.has(free));
    const row = this.#current(record, epoch);
    const mayStart = slot !== undefined && tables.lane.length < laneWidth && !this.#isBraked(now);
    if (!mayStart || row === null || this.#isQuotaReached(admission.runningLimits, record.namespace, record.uid)) return null;
    if (tables.lane.some(({ uid }) => uid === record.uid)) throw new Error("UNIQUE constraint failed: start_lane.workspace_uid");
    tables.lane = [...tables.lane, { slot, startId, uid: record.uid, queuedTime: record.queuedTime ?? now, deadlineTime }];
    const older = this.#instanceOf.get(record.uid);
    if (older !== undefined && older.doId !== instance.doId) this.#leaveUnclaimed(older, now);
    this.#admitInstance(record, admission, now);
    this.#remember(row, conclusion);
    const change = { resourceVersion: version, incarnation: instance.incarnation, queuedTime: null, unreachableTime: null };
    Object.assign(row, { ...change, nextReconcileTime: now, startId });
    if (conclusion.event !== null) tables.events += 1;
    return version;
  }

  expire(epoch: number, record: WorkspaceRecord, now: Instant): boolean {
    const version = this.nextVersion();
    const row = this.#current(record, epoch);
    if (row === null || row.deletionTime !== null) return false;
    Object.assign(row, { deletionTime: now, revision: row.revision + 1, resourceVersion: version, nextReconcileTime: now });
    this.tables.events += 1;
    return true;
  }

  forget(epoch: number, record: WorkspaceRecord, now: Instant): boolean {
    const { tables } = this;
    this.nextVersion();
    if (this.#current(record, epoch) === null) return false;
    const instance = this.#instanceOf.get(record.uid);
    if (instance !== undefined) this.#leaveUnclaimed(instance, now);
    tables.lane = tables.lane.filter(({ uid }) => uid !== record.uid);
    tables.workspaces.delete(record.uid);
    tables.events += 1;
    return true;
  }

  readInventoryView(epoch: number, now: Instant): InventoryView {
    const { workspaces, instances, unclaimed } = this.tables;
    const strays = [...instances.values()].filter(({ uid }) => !workspaces.has(uid));
    if (this.holdsLease(epoch)) for (const stray of strays) this.#leaveUnclaimed(stray, now);
    return {
      claims: [...workspaces.values()].map(({ uid, namespace, name, incarnation }) => ({ uid, namespace, name, incarnation })),
      claimed: new Set(instances.keys()),
      unclaimed: [...unclaimed.keys()].flatMap((doId) => this.unclaimed(doId) ?? []),
      ledgerRunning: [...instances.values()].filter(({ running }) => running).length,
    };
  }

  recordSweep(epoch: number, { record, unclaimed: seen, gone }: SweepResult, _now: Instant): boolean {
    if (!this.holdsLease(epoch)) return false;
    const { instances, unclaimed } = this.tables;
    const { time, outcome, message, retryTime } = record;
    const last = this.#controller.inventory ?? { completeTime: null, running: 0, eligible: 0, limit: 0, brake: null };
    this.#controller.inventory = outcome === "Failed" ? { ...last, time, outcome, message, retryTime } : { ...record, completeTime: time };
    for (const { ownerLives: _, destroyRequested: __, ...instance } of seen) {
      if (instances.has(instance.doId)) continue;
      const known = unclaimed.get(instance.doId);
      const { sandboxId, state, firstSeenTime, lastSeenTime, timesSeen, startedTime } = instance;
      if (known === undefined) unclaimed.set(instance.doId, { ...instance, ...UNTOUCHED });
      else Object.assign(known, { sandboxId, state, firstSeenTime, lastSeenTime, timesSeen, startedTime });
    }
    for (const { doId, destroyAttempts } of gone) {
      unclaimed.delete(doId);
      if (destroyAttempts > 0) this.tables.events += 1;
    }
    return true;
  }

  claimDestroy(epoch: number, { doId, destroyRequested, destroyAttempts }: Unclaimed, now: Instant): boolean {
    const { instances, unclaimed, workspaces } = this.tables;
    const row = unclaimed.get(doId);
    if (row === undefined || row.protected || !this.holdsLease(epoch) || instances.has(doId)) return false;
    if (row.owner !== null && workspaces.has(row.owner.uid)) return false;
    const { paused, gcMode } = this.tables.settings;
    if (paused || ((gcMode === "Off" || gcMode === "Report") && row.destroyRequestTime === null)) return false;
    if (destroyRequested && row.destroyRequestTime === null) return false;
    row.destroyAttempts += 1;
    row.lastDestroyTime = now;
    if (destroyAttempts < 3) this.tables.events += 1;
    return true;
  }

  /** As a sweep reads it. */
  unclaimed(doId: string): Unclaimed | null {
    const row = this.tables.unclaimed.get(doId);
    if (row === undefined) return null;
    const { destroyRequestTime, ...instance } = row;
    const ownerLives = row.owner !== null && this.tables.workspaces.has(row.owner.uid);
    return { ...instance, ownerLives, destroyRequested: destroyRequestTime !== null };
  }

  /** The ledger row of the workspace. */
  instanceOf(uid: string): InstanceRow | null {
    return this.#instanceOf.get(uid) ?? null;
  }

  nextVersion(): number {
    return (this.tables.version += 1);
  }

  get #controller() {
    if (this.tables.controller === null) throw new Error("nobody ever took the lease");
    return this.tables.controller;
  }

  #current(record: WorkspaceRecord, epoch: number): WorkspaceRow | null {
    const row = this.tables.workspaces.get(record.uid);
    return row?.resourceVersion === record.resourceVersion && this.holdsLease(epoch) ? row : null;
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
    this.#instanceOf.set(uid, row);
  }

  #leaveUnclaimed(instance: InstanceRow, now: Instant): void {
    const { doId, sandboxId, uid, namespace, name, incarnation } = instance;
    const left = { doId, sandboxId, owner: { uid, namespace, name, incarnation }, state: "Expected", firstSeenTime: now } as const;
    const { unclaimed, instances } = this.tables;
    if (!unclaimed.has(doId)) unclaimed.set(doId, { ...left, lastSeenTime: now, timesSeen: 0, startedTime: null, ...UNTOUCHED });
    instances.delete(doId);
    if (this.#instanceOf.get(uid) === instance) this.#instanceOf.delete(uid);
  }

  #brake({ brake }: Conclusion, now: Instant): void {
    const row = this.#controller;
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

  #toRecord(row: WorkspaceRow, now: Instant, limits: RunningLimits): WorkspaceRecord {
    const { revision: _, creationTime: __, ...fields } = row;
    const instance = this.#instanceOf.get(row.uid);
    const place = this.tables.lane.find(({ uid, deadlineTime }) => uid === row.uid && deadlineTime > now);
    return {
      ...fields,
      instance: instance === undefined ? null : toInstance(instance),
      lane: place === undefined ? null : { startId: place.startId, queuedTime: place.queuedTime, deadlineTime: place.deadlineTime },
      quotaReached: this.#isQuotaReached(limits, row.namespace, row.uid),
    };
  }
}

const FIRST_CONTROLLER = {
  holder: "",
  epoch: 0,
  expiresTime: 0,
  lastSweepTime: null,
  brakeUntilTime: null,
  brakeFailures: 0,
  inventory: null,
};
const NO_BRAKE = { brakeUntilTime: null, brakeFailures: 0 };
const UNTOUCHED = { protected: false, destroyRequestTime: null, destroyAttempts: 0, lastDestroyTime: null };
