/** The ledger of the memory store, and what no record claims: `src/store/unclaimed.ts`. */
import type { InventoryView, SweepResult } from "../../src/store/unclaimed.ts";
import type { Unclaimed } from "../../src/unclaimed.ts";
import type { Instant } from "../../src/workspace.ts";
import { MemoryLease } from "./memory-lease.ts";
import type { InstanceRow } from "./memory-rows.ts";

export class MemoryInventory extends MemoryLease {
  /** The ledger by workspace; `instances` has one row at most for each. */
  protected readonly instances = new Map<string, InstanceRow>();

  readInventoryView(epoch: number, now: Instant): InventoryView {
    const { workspaces, instances, unclaimed } = this.tables;
    const strays = [...instances.values()].filter(({ uid }) => !workspaces.has(uid));
    if (this.holdsLease(epoch)) for (const stray of strays) this.leaveUnclaimed(stray, now);
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
    const last = this.controller.inventory ?? { completeTime: null, running: 0, eligible: 0, limit: 0, brake: null };
    this.controller.inventory = outcome === "Failed" ? { ...last, time, outcome, message, retryTime } : { ...record, completeTime: time };
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
    return this.instances.get(uid) ?? null;
  }

  protected leaveUnclaimed(instance: InstanceRow, now: Instant): void {
    const { doId, sandboxId, uid, namespace, name, incarnation } = instance;
    const left = { doId, sandboxId, owner: { uid, namespace, name, incarnation }, state: "Expected", firstSeenTime: now } as const;
    const { unclaimed, instances } = this.tables;
    if (!unclaimed.has(doId)) unclaimed.set(doId, { ...left, lastSeenTime: now, timesSeen: 0, startedTime: null, ...UNTOUCHED });
    instances.delete(doId);
    if (this.instances.get(uid) === instance) this.instances.delete(uid);
  }
}

const UNTOUCHED = { protected: false, destroyRequestTime: null, destroyAttempts: 0, lastDestroyTime: null };
