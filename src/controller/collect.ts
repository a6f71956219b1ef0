/**
 * Garbage collection, the doing: one sweep of the inventory. The order of its reads is a guard: what runs first, then what is wished, so
 * that what was created in between has a record; and each destroy begins with one more look at its own row.
 */
import { log } from "../log.ts";
import type { InventoryView } from "../store/unclaimed.ts";
import type { ControllerSettings, Unclaimed } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { createAttribution } from "./attribution.ts";
import { LeaseLostError } from "./fleet.ts";
import type { Listing } from "./inventory.ts";
import { addressOf, listFromLedger } from "./ledger-inventory.ts";
import { type Sweep, planSweep } from "./orphans.ts";
import type { SweepDeps } from "./sweep-deps.ts";

export interface CollectDeps extends SweepDeps {
  readonly epoch: number;
  /** As read in the last round. */
  readonly settings: ControllerSettings;
  /** When the sweep before this one began; 0: there was none. */
  readonly lastTime: Instant;
  /** Nothing is begun after this: what is left over waits for the next sweep, and the lease is not kept for it. */
  readonly endTime: Instant;
}

/** Calls under way at once; each may hang for its own deadline. */
const CALLS_AT_ONCE = 4;
const HOUR_MS = 3_600_000;
/** However long the platform asks for patience, orphans cost meanwhile. */
const MAX_RETRY_AFTER_MS = 600_000;

export interface Collected {
  /** Orphans that were told to go. */
  readonly destroyed: number;
  /** The platform asked not to be asked again before. */
  readonly retryTime: Instant | null;
}

/** Throws `LeaseLostError`, and what the store throws. */
export async function collectGarbage(deps: CollectDeps): Promise<Collected> {
  const { store, config, settings, now, epoch } = deps;
  const time = now();
  const mode = settings.gcMode ?? config.gcMode;
  if (deps.lastTime > 0 && hourOf(time) !== hourOf(deps.lastTime)) await store.expireEvents(time - config.eventRetentionMs);
  const listing = await (deps.inventory?.list() ?? null);
  if (listing?.kind === "Failed") {
    const message = `${listing.reason}: ${listing.message}`;
    log("warn", "Inventory is not complete", { reason: listing.reason, message: listing.message });
    const retryTime = listing.retryAfterMs === null ? null : now() + Math.min(listing.retryAfterMs, MAX_RETRY_AFTER_MS);
    await store.recordSweep(epoch, { unclaimed: [], gone: [], record: { ...NOTHING_LEARNT, time, message, retryTime } }, time);
    return { destroyed: 0, retryTime };
  }
  const view = await store.readInventoryView(epoch, time);
  const sweep = await toSweep(deps, listing, view);
  const plan = planSweep(sweep, { now: time, mode, graceMs: config.orphanGraceMs, settings });
  const message = listing?.kind === "NotEnabled" ? listing.message : "";
  const isRecorded = await store.recordSweep(epoch, { ...plan, record: { ...plan.record, message } }, time);
  if (!isRecorded) throw new LeaseLostError("Another controller has taken the lease.");
  if (settings.paused) return { destroyed: 0, retryTime: null };
  await inParallel(deps, plan.reexamine, (instance) => unlessSuperseded(deps, () => endLeftOver(deps, instance)));
  const claimed = await inParallel(deps, plan.destroy, (instance) => destroyOrphan(deps, instance));
  return { destroyed: claimed.filter(Boolean).length, retryTime: null };
}

const NOTHING_LEARNT = { outcome: "Failed", running: 0, eligible: 0, limit: 0, brake: null } as const;

async function toSweep(deps: CollectDeps, listing: Exclude<Listing, { kind: "Failed" }> | null, view: InventoryView): Promise<Sweep> {
  const { claims, claimed, unclaimed } = view;
  const shared = { claimed, desired: claims.length, known: unclaimed, attribute: createAttribution(deps.fleet, claims) };
  if (listing?.kind === "Complete") {
    const running = listing.instances.filter(({ state }) => state === "Running").length;
    return { ...shared, source: "Complete", listed: listing.instances, running };
  }
  // To look is to settle what is under way, so what an operator has paused is not asked.
  const asked = deps.settings.paused
    ? []
    : await inParallel(deps, unclaimed, (instance) => unlessSuperseded(deps, () => listFromLedger(instance, deps.fleet, deps.epoch)));
  const listed = asked.filter((instance) => instance !== null);
  const running = view.ledgerRunning + listed.filter(({ state }) => state === "Running").length;
  return { ...shared, source: "LedgerOnly", listed, running };
}

/** True where it was told to go, whatever came of that: the next sweep will show. */
async function destroyOrphan(deps: CollectDeps, instance: Unclaimed): Promise<boolean> {
  const { store, fleet, epoch, now } = deps;
  if (!(await store.claimDestroy(epoch, instance, now()))) return false;
  const outcome = await unlessSuperseded(deps, () => fleet.destroyOrphan(instance.doId, epoch));
  const fields = {
    doId: instance.doId,
    sandboxId: instance.sandboxId,
    attempt: instance.destroyAttempts + 1,
    ageMs: now() - instance.firstSeenTime,
  };
  const kind = outcome?.kind ?? "StaleEpoch";
  log(kind === "Gone" ? "info" : "warn", "Orphan told to go", { ...fields, outcome: kind });
  return true;
}

/** An older incarnation that still runs is ended by its own sandbox's word only: that it is over for good. */
async function endLeftOver({ fleet, epoch }: CollectDeps, unclaimed: Unclaimed): Promise<void> {
  const instance = addressOf(unclaimed);
  if (instance === null) return;
  const observed = await fleet.observe(instance, epoch);
  if (observed.kind !== "Destroying") return;
  log("warn", "Older incarnation still runs", { doId: instance.doId, incarnation: instance.incarnation });
  await fleet.destroy(instance, epoch);
}

/**
 * Null where the sandbox knows a higher epoch although the lease is held: a controller whose database is not this one ran it. That
 * concerns nobody else.
 */
async function unlessSuperseded<Result>({ store, epoch }: CollectDeps, call: () => Promise<Result>): Promise<Result | null> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof LeaseLostError) || !(await store.holdsLease(epoch))) throw error;
    return null;
  }
}

function hourOf(time: Instant): number {
  return Math.floor(time / HOUR_MS);
}

/** Of those that were begun before the end of the tick. */
async function inParallel<Item, Result>(
  { now, endTime }: CollectDeps,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length && now() < endTime; start += CALLS_AT_ONCE) {
    results.push(...(await Promise.all(items.slice(start, start + CALLS_AT_ONCE).map(work))));
  }
  return results;
}
