/** The tables of `src/store/schema.ts` as the memory store keeps them. */
import type { BackupSweepRecord, UnclaimedBackup } from "../../src/backup.ts";
import type { ControllerSettings, InventoryRecord, Unclaimed } from "../../src/unclaimed.ts";
import type { Instance, Instant, WorkspaceName } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import type { BackupTable } from "./memory-backup-rows.ts";

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

export interface WorkspaceRow extends Mutable<Omit<WorkspaceRecord, "instance" | "lane" | "quotaReached" | "backups" | "unrestorable">> {
  revision: number;
  readonly creationTime: Instant;
}

/** A row of the ledger. */
export interface InstanceRow extends WorkspaceName {
  readonly doId: string;
  readonly sandboxId: string;
  readonly uid: string;
  readonly incarnation: number;
  readonly admittedTime: Instant;
  running: boolean;
  destroyRequestTime: Instant | null;
  readonly adopted: boolean;
}

export interface LanePlace {
  readonly slot: number;
  readonly startId: string;
  readonly uid: string;
  readonly queuedTime: Instant;
  readonly deadlineTime: Instant;
}

export interface UnclaimedRow extends Mutable<Omit<Unclaimed, "ownerLives" | "destroyRequested">> {
  destroyRequestTime: Instant | null;
}

export interface ControllerRow {
  holder: string;
  epoch: number;
  expiresTime: Instant;
  resyncTime: Instant;
  lastSweepTime: Instant | null;
  brakeUntilTime: Instant | null;
  brakeFailures: number;
  inventory: InventoryRecord | null;
  backupSweep: BackupSweepRecord | null;
}

export interface Tables {
  /** By uid. */
  readonly workspaces: Map<string, WorkspaceRow>;
  /** By DO id. */
  readonly instances: Map<string, InstanceRow>;
  readonly unclaimed: Map<string, UnclaimedRow>;
  readonly backups: BackupTable;
  /** By object id. */
  readonly unclaimedBackups: Map<string, UnclaimedBackup>;
  lane: readonly LanePlace[];
  controller: ControllerRow | null;
  settings: ControllerSettings;
  /** The last resource version given out. */
  version: number;
  /** Written so far; their texts are not kept. */
  events: number;
}

export function toInstance(row: InstanceRow): Instance {
  const { doId, sandboxId, incarnation, running, destroyRequestTime, adopted } = row;
  return { doId, sandboxId, incarnation, running, destroyRequested: destroyRequestTime !== null, adopted };
}
