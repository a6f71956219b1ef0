/**
 * One tick: take the lease, run rounds until the time is spent, give the lease back. Assume zero, one, two or overlapping ticks: not
 * getting the lease is normal, and losing it ends the tick.
 */
import { log } from "../log.ts";
import { type Lease, acquireLease, releaseLease, renewLease } from "../store/lease.ts";
import type { Instant } from "../workspace.ts";
import { createDispatcher } from "./dispatch.ts";
import { type ResyncProgress, resyncTime } from "./resync.ts";
import { runRound } from "./round.ts";
import type { SweepDeps } from "./sweep-deps.ts";

export interface SweepSummary {
  readonly rounds: number;
  /** Whether the tick ran to its end with the lease held all the time. */
  readonly complete: boolean;
  /** How often each action was taken, and each outcome met. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Null where somebody else holds the lease. */
export async function sweep(deps: SweepDeps): Promise<SweepSummary | null> {
  const startTime = deps.now();
  const lease = await acquireLease(deps.db, deps.newId(), startTime, deps.config.leaseMs);
  if (lease === null) return null;
  const summary = await runRounds(deps, lease, startTime + deps.config.tickBudgetMs);
  log("info", "Sweep finished", { epoch: lease.epoch, durationMs: deps.now() - startTime, ...summary });
  return summary;
}

async function runRounds(deps: SweepDeps, lease: Lease, endTime: Instant): Promise<SweepSummary> {
  const { config, now } = deps;
  let { expiresTime } = lease;
  let progress: ResyncProgress = { time: lease.resyncTime, place: null };
  const keep = () => resyncTime(progress, now(), config.resyncIntervalMs);
  const dispatcher = createDispatcher(deps, lease.epoch, endTime);
  let rounds = 0;
  let complete = false;
  try {
    while (now() < endTime && !dispatcher.leaseLost()) {
      if (expiresTime - now() < (config.leaseMs * 2) / 3) {
        expiresTime = now() + config.leaseMs;
        if (!(await renewLease(deps.db, lease.epoch, expiresTime, keep()))) break;
      }
      progress = await runRound(deps, dispatcher, progress);
      rounds += 1;
      await dispatcher.idle(Math.min(config.pollIntervalMs, endTime - now()));
    }
  } finally {
    // Also after an error of the database: otherwise nobody could sweep until the lease expires.
    await dispatcher.drain();
    const isThrough = now() >= endTime && !dispatcher.leaseLost();
    const isHeld = await releaseLease(deps.db, lease.epoch, keep(), isThrough ? now() : null);
    complete = isThrough && isHeld;
  }
  return { rounds, complete, counts: dispatcher.counts() };
}
