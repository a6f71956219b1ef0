/** The controller's one row and the operator's settings, as the API shows them. */
import type { BackupSweepRecord } from "../backup.ts";
import type { ControllerSettings, InventoryRecord } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { toBackupSweepRecord } from "./backup-sweep-record.ts";
import { selectSettings, toSettings } from "./controller-settings.ts";
import type { Database } from "./db.ts";
import { toInventoryRecord } from "./inventory-record.ts";
import { controller } from "./schema.ts";

/** What the controller's row says. */
export interface ControllerState {
  readonly lease: { readonly holder: string; readonly epoch: number; readonly expiresTime: Instant };
  readonly startBrake: { readonly untilTime: Instant | null; readonly reason: string | null; readonly message: string | null };
  /** Null before the first inventory sweep. */
  readonly inventory: InventoryRecord | null;
  /** Null before the first sweep of the bucket. */
  readonly backupSweep: BackupSweepRecord | null;
}

export interface ControllerView {
  /** Null before the first tick. */
  readonly state: ControllerState | null;
  readonly settings: ControllerSettings;
  /** Of the settings; 0 where nobody has set any. */
  readonly revision: number;
}

export async function readController(db: Database): Promise<ControllerView> {
  const [rows, settings] = await db.batch([selectController(db), selectSettings(db)]);
  return toControllerView(rows, settings);
}

/** The statement whose rows `toControllerView` reads. */
export function selectController(db: Database) {
  return db.select().from(controller);
}

export function toControllerView(
  [row]: Awaited<ReturnType<typeof selectController>>,
  settings: Awaited<ReturnType<typeof selectSettings>>,
): ControllerView {
  return { state: row === undefined ? null : toState(row), settings: toSettings(settings), revision: settings[0]?.revision ?? 0 };
}

function toState(row: typeof controller.$inferSelect): ControllerState {
  const { holder, epoch, expiresTime, brakeUntilTime, brakeReason, brakeMessage } = row;
  return {
    lease: { holder, epoch, expiresTime },
    startBrake: { untilTime: brakeUntilTime, reason: brakeReason, message: brakeMessage },
    inventory: toInventoryRecord(row.inventory),
    backupSweep: toBackupSweepRecord(row.backupSweep),
  };
}
