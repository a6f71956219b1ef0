/** The sweeps beside the passes, one of each kind at a time; a failure ends the one that met it. */
import { log } from "../log.ts";
import type { ControllerSettings } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { causeOf } from "./cause.ts";
import { removeDeleted, sweepBackups } from "./collect-backups.ts";
import { collectGarbage } from "./collect.ts";
import { LeaseLostError } from "./fleet.ts";
import type { Passes } from "./passes.ts";
import type { SweepDeps } from "./sweep-deps.ts";

export interface Sweeps {
  /** Begins a sweep of the inventory, unless one is under way. */
  collect(settings: ControllerSettings, lastTime: Instant): void;
  /** Removes deleted backups and, where it `isSweep`, looks through the bucket, unless that is under way. */
  collectBackups(settings: ControllerSettings, isSweep: boolean): void;
  /** The platform's list is not to be asked for before. */
  inventoryRetryTime(): Instant;
}

interface Told {
  count(key: string): void;
  leaseLost(): void;
}

interface SweepsDeps extends SweepDeps {
  readonly epoch: number;
  readonly endTime: Instant;
}

export function createSweeps(deps: SweepsDeps, passes: Passes, told: Told): Sweeps {
  let inventoryRetryTime: Instant = 0;

  async function guarded(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      told.count("sweepError");
      if (error instanceof LeaseLostError) told.leaseLost();
      log("error", "Sweep failed", { what, error: causeOf(error) });
    }
  }

  return {
    inventoryRetryTime: () => inventoryRetryTime,
    collect(settings, lastTime) {
      const sweep = async () => {
        const { destroyed, retryTime } = await collectGarbage({ ...deps, settings, lastTime });
        inventoryRetryTime = retryTime ?? 0;
        for (let left = destroyed; left > 0; left -= 1) told.count("DestroyOrphan");
      };
      passes.begin("sweep", "inventory", () => guarded("inventory", sweep));
    },
    collectBackups(settings, isSweep) {
      const { bucket, config } = deps;
      const { backups } = config;
      if (bucket === null || backups === null || settings.paused) return;
      const sweep = async () => {
        const collectDeps = { ...deps, bucket, backups, settings };
        for (let left = await removeDeleted(collectDeps); left > 0; left -= 1) told.count("RemoveBackup");
        if (isSweep) await sweepBackups(collectDeps);
      };
      passes.begin("bucket", "backups", () => guarded("bucket", sweep));
    },
  };
}
