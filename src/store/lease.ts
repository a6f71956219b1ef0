/**
 * Who may sweep. One row, taken by compare-and-swap; every taking raises the epoch, and the epoch is what fences: `progress` writes
 * only while the row still has it, and a sandbox refuses calls with a lower one (invariant 11).
 */
import { and, eq, lte, type SQL, sql } from "drizzle-orm";
import type { BackupSweepRecord } from "../backup.ts";
import type { ControllerSettings, InventoryRecord } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { toBackupSweepRecord } from "./backup-sweep-record.ts";
import { selectSettings, toSettings } from "./controller-settings.ts";
import type { Database } from "./db.ts";
import { toInventoryRecord } from "./inventory-record.ts";
import { controller } from "./schema.ts";

export interface Lease {
  readonly epoch: number;
  readonly expiresTime: Instant;
  /** As of the taking: the resync has looked at every workspace whose turn came before this. */
  readonly resyncTime: Instant;
  /** How the last inventory sweep went; null before the first. */
  readonly inventory: InventoryRecord | null;
  /** How the last sweep of the bucket went; null before the first. */
  readonly backupSweep: BackupSweepRecord | null;
  readonly settings: ControllerSettings;
}

const ROW = 1;

/** The lease, or null while somebody else holds it: that is normal. */
export async function acquireLease(db: Database, holder: string, now: Instant, leaseMs: number): Promise<Lease | null> {
  const take = db
    .insert(controller)
    .values({ id: ROW, holder, epoch: 1, expiresTime: now + leaseMs, resyncTime: now })
    .onConflictDoUpdate({
      target: controller.id,
      set: { holder, epoch: sql`${controller.epoch} + 1`, expiresTime: now + leaseMs },
      setWhere: lte(controller.expiresTime, now),
    })
    .returning();
  // In one round trip: a lease that was taken by a call that then failed would be nobody's until it expires.
  const [[row], settings] = await db.batch([take, selectSettings(db)]);
  if (row === undefined) return null;
  return {
    epoch: row.epoch,
    expiresTime: row.expiresTime,
    resyncTime: row.resyncTime,
    inventory: toInventoryRecord(row.inventory),
    backupSweep: toBackupSweepRecord(row.backupSweep),
    settings: toSettings(settings),
  };
}

/** The heartbeat. False where the lease is somebody else's by now. */
export async function renewLease(db: Database, epoch: number, expiresTime: Instant, resyncTime: Instant): Promise<boolean> {
  const renewed = await db
    .update(controller)
    .set({ expiresTime, resyncTime })
    .where(hasEpoch(epoch))
    .returning({ epoch: controller.epoch });
  return renewed.length === 1;
}

/** Gives the lease up, and records the sweep where it went through. False, and nothing done, where the lease is somebody else's. */
export async function releaseLease(db: Database, epoch: number, resyncTime: Instant, sweptTime: Instant | null): Promise<boolean> {
  const released = await db
    .update(controller)
    .set({ expiresTime: 0, resyncTime, ...(sweptTime !== null && { lastSweepTime: sweptTime }) })
    .where(hasEpoch(epoch))
    .returning({ epoch: controller.epoch });
  return released.length === 1;
}

export async function holdsLease(db: Database, epoch: number): Promise<boolean> {
  const [row] = await db.select({ epoch: controller.epoch }).from(controller).where(hasEpoch(epoch));
  return row !== undefined;
}

function hasEpoch(epoch: number) {
  return and(eq(controller.id, ROW), eq(controller.epoch, epoch));
}

/** For the writes of others that hang on the lease. */
export function isHeld(epoch: number): SQL {
  return sql`EXISTS (SELECT 1 FROM ${controller} WHERE ${hasEpoch(epoch)})`;
}
