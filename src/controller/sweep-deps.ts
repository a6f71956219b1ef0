/** What a tick works with: the ports, the settings, and time, chance and ids as inputs. */
import type { Config } from "../config.ts";
import type { ControllerStore } from "../store/controller-store.ts";
import type { Instant } from "../workspace.ts";
import type { BackupBucket } from "./backup-bucket.ts";
import type { Fleet } from "./fleet.ts";
import type { Inventory } from "./inventory.ts";

export interface SweepDeps {
  readonly store: ControllerStore;
  readonly fleet: Fleet;
  /** Null: the ledger is the only inventory. */
  readonly inventory: Inventory | null;
  /** Where backups lie; null: none are taken. */
  readonly bucket: BackupBucket | null;
  readonly config: Config;
  readonly now: () => Instant;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 up to, not including, 1. */
  readonly chance: () => number;
  readonly newId: () => string;
}
