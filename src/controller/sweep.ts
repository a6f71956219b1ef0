/**
 * One tick: take the lease, run rounds until the time is spent, give the lease back. Assume zero, one, two or overlapping ticks: not
 * getting the lease is normal, and losing it ends the tick.
 */
import { log } from "../log.ts";
import type { Lease } from "../store/lease.ts";
import type { Instant } from "../workspace.ts";
import { causeOf } from "./cause.ts";
import { type Dispatcher, createDispatcher } from "./dispatch.ts";
import { resyncTime } from "./resync.ts";
import { type RoundState, runRound } from "./round.ts";
import type { SweepDeps } from "./sweep-deps.ts";

export interface SweepSummary {
  readonly rounds: number;
  /** Whether the tick ran to its end with the lease held all the time. */
  readonly complete: boolean;
  /** How often each action was taken, and each outcome met. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Rounds that fail one after the other before the tick leaves it to the next. */
const FAILED_ROUNDS_LIMIT = 5;

/** Null where somebody else holds the lease. */
export async function sweep(deps: SweepDeps): Promise<SweepSummary | null> {
  const startTime = deps.now();
  const endTime = startTime + deps.config.tickBudgetMs;
  // The tick before may still wait for its last calls, or have crashed: without patience nobody would sweep until the next one.
  const patienceMs = deps.config.leaseMs + deps.config.pollIntervalMs;
  const lease = await waitForLease(deps, Math.min(endTime, startTime + patienceMs));
  if (lease === null) return null;
  const summary = await runTick(deps, lease, endTime);
  log("info", "Sweep finished", { epoch: lease.epoch, durationMs: deps.now() - startTime, ...summary });
  return summary;
}

async function waitForLease(deps: SweepDeps, until: Instant): Promise<Lease | null> {
  const { store, config, now, newId } = deps;
  for (;;) {
    const lease = await store.acquireLease(newId(), now(), config.leaseMs);
    if (lease !== null || now() + config.pollIntervalMs > until) return lease;
    await deps.sleep(config.pollIntervalMs, new AbortController().signal);
  }
}

async function runTick(deps: SweepDeps, lease: Lease, endTime: Instant): Promise<SweepSummary> {
  const tick = new Tick(deps, lease, endTime);
  let complete = false;
  try {
    complete = await tick.runRounds();
  } finally {
    // Also after an error: otherwise nobody could sweep until the lease expires.
    await tick.drain();
    complete = (await tick.release(complete)) && complete;
  }
  return { rounds: tick.rounds, complete, counts: tick.counts() };
}

/** What a tick remembers: its lease, how far the resync has come, and the passes under way. */
class Tick {
  rounds = 0;
  readonly #deps: SweepDeps;
  readonly #epoch: number;
  readonly #endTime: Instant;
  readonly #dispatcher: Dispatcher;
  #expiresTime: Instant;
  #state: RoundState;
  /** Of the last sweep of the inventory; 0 before the first. */
  #inventoryTime: Instant;
  #nextInventoryTime: Instant;
  #nextRemovalTime: Instant = 0;
  #nextBucketTime: Instant;

  constructor(deps: SweepDeps, lease: Lease, endTime: Instant) {
    this.#deps = deps;
    this.#epoch = lease.epoch;
    this.#endTime = endTime;
    this.#dispatcher = createDispatcher(deps, lease.epoch, endTime);
    this.#expiresTime = lease.expiresTime;
    this.#state = { settings: lease.settings, resync: { time: lease.resyncTime, place: null } };
    const { time = 0, retryTime = null } = lease.inventory ?? {};
    this.#inventoryTime = time;
    this.#nextInventoryTime = Math.max(time + deps.config.sweepIntervalMs, retryTime ?? 0);
    this.#nextBucketTime = (lease.backupSweep?.time ?? 0) + (deps.config.backups?.sweepIntervalMs ?? 0);
  }

  counts(): Readonly<Record<string, number>> {
    return this.#dispatcher.counts();
  }

  /** True where the time is spent, the lease still held and the last round went through. */
  async runRounds(): Promise<boolean> {
    const { config, now } = this.#deps;
    let failedInARow = 0;
    while (now() < this.#endTime && !this.#dispatcher.leaseLost()) {
      try {
        if (!(await this.#keepLease())) return false;
        this.#state = await runRound(this.#deps, this.#dispatcher, this.#state);
        this.#sweepInventory();
        this.#lookAfterBackups();
        this.rounds += 1;
        failedInARow = 0;
      } catch (error) {
        failedInARow += 1;
        log("warn", "Round failed", { error: causeOf(error), failedInARow });
        if (failedInARow === FAILED_ROUNDS_LIMIT) throw error;
      }
      await this.#dispatcher.idle(Math.max(0, Math.min(config.pollIntervalMs, this.#heartbeatMs(), this.#endTime - now())));
    }
    return this.rounds > 0 && failedInARow === 0 && !this.#dispatcher.leaseLost();
  }

  /** Waits for the passes under way; the lease is kept as long as they need it. */
  async drain(): Promise<void> {
    const done = new AbortController();
    const drained = this.#dispatcher.drain().finally(() => done.abort());
    while (!done.signal.aborted) {
      await this.#deps.sleep(this.#heartbeatMs(), done.signal);
      if (!done.signal.aborted && !(await this.#keepLease().catch(() => false))) break;
    }
    await drained;
  }

  /** False where the lease was lost. */
  release(isThrough: boolean): Promise<boolean> {
    return this.#deps.store.releaseLease(this.#epoch, this.#resyncTime(), isThrough ? this.#deps.now() : null);
  }

  async #keepLease(): Promise<boolean> {
    const { store, config, now } = this.#deps;
    if (this.#expiresTime - now() >= (config.leaseMs * 2) / 3) return true;
    const expiresTime = now() + config.leaseMs;
    const isKept = await store.renewLease(this.#epoch, expiresTime, this.#resyncTime());
    if (isKept) this.#expiresTime = expiresTime;
    return isKept;
  }

  /** Beside the rounds: a slow list delays nobody. */
  #sweepInventory(): void {
    const now = this.#deps.now();
    if (now < Math.max(this.#nextInventoryTime, this.#dispatcher.inventoryRetryTime())) return;
    this.#nextInventoryTime = now + this.#deps.config.sweepIntervalMs;
    this.#dispatcher.collect(this.#state.settings, this.#inventoryTime);
    this.#inventoryTime = now;
  }

  /** Beside the rounds, too: what is marked for removal as often as the inventory is read, the whole bucket seldom. */
  #lookAfterBackups(): void {
    const { now, config } = this.#deps;
    const time = now();
    if (config.backups === null || time < this.#nextRemovalTime) return;
    const isSweep = time >= this.#nextBucketTime;
    this.#nextRemovalTime = time + config.sweepIntervalMs;
    if (isSweep) this.#nextBucketTime = time + config.backups.sweepIntervalMs;
    this.#dispatcher.collectBackups(this.#state.settings, isSweep);
  }

  #heartbeatMs(): number {
    return Math.floor(this.#deps.config.leaseMs / 3);
  }

  #resyncTime(): Instant {
    return resyncTime(this.#state.resync, this.#deps.now(), this.#deps.config.resyncIntervalMs);
  }
}
