/** The tables of the memory store, and the lease on them. */
import { DEFAULT_SETTINGS } from "../../src/store/controller-settings.ts";
import type { Lease } from "../../src/store/lease.ts";
import type { Instant } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { BackupTable } from "./memory-backup-rows.ts";
import type { ControllerRow, Tables, WorkspaceRow } from "./memory-rows.ts";

export class MemoryLease {
  readonly tables: Tables = {
    workspaces: new Map(),
    instances: new Map(),
    unclaimed: new Map(),
    backups: new BackupTable(),
    unclaimedBackups: new Map(),
    lane: [],
    controller: null,
    settings: DEFAULT_SETTINGS,
    version: 0,
    events: 0,
  };

  acquireLease(holder: string, now: Instant, leaseMs: number): Lease | null {
    const { tables } = this;
    const known = tables.controller;
    if (known !== null && known.expiresTime > now) return null;
    const row = (tables.controller ??= { ...FIRST_CONTROLLER, resyncTime: now });
    row.holder = holder;
    row.epoch += 1;
    row.expiresTime = now + leaseMs;
    const { epoch, expiresTime, resyncTime, inventory, backupSweep } = row;
    return { epoch, expiresTime, resyncTime, inventory, backupSweep, settings: tables.settings };
  }

  renewLease(epoch: number, expiresTime: Instant, resyncTime: Instant): boolean {
    if (!this.holdsLease(epoch)) return false;
    Object.assign(this.controller, { expiresTime, resyncTime });
    return true;
  }

  releaseLease(epoch: number, resyncTime: Instant, sweptTime: Instant | null): boolean {
    if (!this.holdsLease(epoch)) return false;
    Object.assign(this.controller, { expiresTime: 0, resyncTime, ...(sweptTime !== null && { lastSweepTime: sweptTime }) });
    return true;
  }

  holdsLease(epoch: number): boolean {
    return this.tables.controller?.epoch === epoch;
  }

  nextVersion(): number {
    return (this.tables.version += 1);
  }

  protected get controller(): ControllerRow {
    if (this.tables.controller === null) throw new Error("nobody ever took the lease");
    return this.tables.controller;
  }

  protected current(record: WorkspaceRecord, epoch: number): WorkspaceRow | null {
    const row = this.tables.workspaces.get(record.uid);
    return row?.resourceVersion === record.resourceVersion && this.holdsLease(epoch) ? row : null;
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
  backupSweep: null,
};
