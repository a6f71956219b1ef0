/**
 * Garbage collection, the decision: from one listing and what is known, which instances no record claims, and which of those may be
 * destroyed now. Pure; every guard of it is here or in the statement that claims the destroy.
 *
 * 1. Only a complete listing teaches anything (invariant 4). 2. The listing was read before the claims were: what was created in
 * between has a claim. 3. An instance of a workspace that still has a record, whatever its incarnation, is that record's affair.
 */
import type { ControllerSettings, GcMode, InventoryRecord, Unclaimed } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { ListedInstance } from "./inventory.ts";

/** Destroys in one sweep: a share of what runs, but always enough for an ordinary leak. */
const MIN_LIMIT = 5;
const LIMIT_SHARE = 0.1;
/** So many complete sweeps in a row must have seen it. */
const MIN_SIGHTINGS = 2;
/** After so many destroys without effect it is said so. */
export const DESTROY_TRIES = 3;

export interface GcContext {
  readonly now: Instant;
  readonly mode: GcMode;
  readonly graceMs: number;
  readonly settings: ControllerSettings;
}

/** Why an unclaimed instance is not destroyed, the first that holds. */
export type Guard =
  | "NotRunning"
  | "OwnerLives"
  | "ControllerPaused"
  | "Protected"
  | "GcOff"
  | "Grace"
  | "SeenOnce"
  | "ReportOnly"
  | "TooManyOrphans"
  | "EmptyDesired";

/** The guards of a single instance; null where all of them let it go. An operator's request passes those that weigh, not those that know. */
export function guardOf(instance: Unclaimed, { now, mode, graceMs, settings }: GcContext): Guard | null {
  if (instance.state !== "Running") return "NotRunning";
  if (instance.ownerLives) return "OwnerLives";
  if (settings.paused) return "ControllerPaused";
  if (instance.protected) return "Protected";
  if (instance.destroyRequested) return null;
  if (mode === "Off") return "GcOff";
  if (now - Math.max(instance.firstSeenTime, instance.startedTime ?? 0) < graceMs) return "Grace";
  if (instance.timesSeen < MIN_SIGHTINGS) return "SeenOnce";
  return mode === "Report" ? "ReportOnly" : null;
}

export function destroyLimit(running: number): number {
  return Math.max(MIN_LIMIT, Math.floor(running * LIMIT_SHARE));
}

export interface Sweep {
  /** `LedgerOnly`: `listed` has what was asked itself; of the others nothing new is known. */
  readonly source: "Complete" | "LedgerOnly";
  readonly listed: readonly ListedInstance[];
  /** How many run in all, as far as is known. */
  readonly running: number;
  /** DO ids that a workspace's current ledger row has. */
  readonly claimed: ReadonlySet<string>;
  /** Workspaces that are wished, running or not. */
  readonly desired: number;
  readonly known: readonly Unclaimed[];
  /** Whom a listed instance that nobody knew belongs to, as far as can be told. */
  readonly attribute: (instance: ListedInstance) => Pick<Unclaimed, "sandboxId" | "owner" | "ownerLives">;
}

export interface SweepPlan {
  /** As to be remembered. */
  readonly unclaimed: readonly Unclaimed[];
  /** Their absence is confirmed. */
  readonly gone: readonly Unclaimed[];
  /** To be destroyed now. */
  readonly destroy: readonly Unclaimed[];
  /** Of another incarnation of a workspace that lives, yet listed as running: only the sandbox itself can say more. */
  readonly reexamine: readonly Unclaimed[];
  readonly record: Omit<InventoryRecord, "completeTime" | "message">;
}

export function planSweep(sweep: Sweep, context: GcContext): SweepPlan {
  const { now } = context;
  const listed = new Map(sweep.listed.map((instance) => [instance.doId, instance]));
  const known = new Map(sweep.known.map((instance) => [instance.doId, instance]));
  const strangers = sweep.listed.filter(({ doId, state }) => state !== "Stopped" && !known.has(doId) && !sweep.claimed.has(doId));
  const isUnasked = ({ doId }: Unclaimed) => sweep.source === "LedgerOnly" && !listed.has(doId);
  const watched = sweep.known.filter(({ doId }) => !sweep.claimed.has(doId));
  const seen = [
    ...watched.filter(isUnasked).map(unseen),
    ...watched.filter((instance) => !isUnasked(instance)).map((instance) => lookAgain(instance, listed.get(instance.doId), context)),
    ...strangers.map((instance) => firstSeen(instance, sweep.attribute(instance), now)),
  ];
  // A platform's list may be behind; a sandbox that was asked itself is not. What is protected stays so while it does not run.
  const isGone = (instance: Unclaimed) =>
    !instance.protected &&
    !isUnasked(instance) &&
    isAbsent(listed.get(instance.doId)) &&
    (sweep.source === "LedgerOnly" || !isTooFresh(instance, context));
  const remaining = seen.filter((instance) => !isGone(instance));
  const ripe = remaining.filter((instance) => guardOf(instance, context) === null);
  const requested = ripe.filter(({ destroyRequested }) => destroyRequested);
  const orphans = ripe.filter(({ destroyRequested }) => !destroyRequested);
  // Those that were told before have passed the brake, and may be listed for a while yet.
  const [told, eligible] = [orphans.filter(wasTold), orphans.filter((instance) => !wasTold(instance))];
  const limit = destroyLimit(sweep.running);
  const brake = brakeOf(orphans.length, eligible.length, limit, sweep.desired, context);
  const longestAgo = told.toSorted((one, other) => (one.lastDestroyTime ?? 0) - (other.lastDestroyTime ?? 0));
  const automatic =
    brake === "EmptyDesired" ? [] : [...(brake === null ? eligible : []), ...longestAgo].slice(0, isReleased(context) ? undefined : limit);
  return {
    unclaimed: remaining,
    gone: seen.filter(isGone),
    destroy: [...requested, ...automatic],
    reexamine: remaining.filter((instance) => mayBeLeftOver(instance, context)),
    record: { time: now, outcome: sweep.source, running: sweep.running, eligible: eligible.length, limit, brake, retryTime: null },
  };
}

function unseen(instance: Unclaimed): Unclaimed {
  return { ...instance, timesSeen: 0 };
}

function lookAgain(instance: Unclaimed, now: ListedInstance | undefined, context: GcContext): Unclaimed {
  if (isAbsent(now)) return isTooFresh(instance, context) ? instance : { ...instance, state: "Stopped", timesSeen: 0 };
  const state = now.state === "Stopped" ? "Unknown" : now.state;
  const isRunning = state === "Running";
  const wasWatched = instance.state === "Running" || instance.state === "Expected";
  return {
    ...instance,
    state,
    sandboxId: instance.sandboxId ?? now.name,
    startedTime: now.startedTime ?? instance.startedTime,
    firstSeenTime: isRunning && !wasWatched ? context.now : instance.firstSeenTime,
    lastSeenTime: context.now,
    timesSeen: isRunning ? instance.timesSeen + 1 : 0,
  };
}

function firstSeen(instance: ListedInstance, attribution: Pick<Unclaimed, "sandboxId" | "owner" | "ownerLives">, now: Instant): Unclaimed {
  const state = instance.state === "Stopped" ? "Unknown" : instance.state;
  return {
    doId: instance.doId,
    ...attribution,
    state,
    firstSeenTime: now,
    lastSeenTime: now,
    timesSeen: state === "Running" ? 1 : 0,
    startedTime: instance.startedTime,
    protected: false,
    destroyRequested: false,
    destroyAttempts: 0,
    lastDestroyTime: null,
  };
}

function wasTold({ destroyAttempts }: Unclaimed): boolean {
  return destroyAttempts > 0;
}

function isAbsent(instance: ListedInstance | undefined): instance is undefined {
  return instance === undefined || instance.state === "Stopped";
}

/** What was left a moment ago may not be listed yet, should it have been started behind our back. */
function isTooFresh({ state, firstSeenTime }: Unclaimed, { now, graceMs }: GcContext): boolean {
  return state === "Expected" && now - firstSeenTime < graceMs;
}

function mayBeLeftOver(instance: Unclaimed, context: GcContext): boolean {
  return (
    instance.owner !== null && guardOf(instance, context) === "OwnerLives" && guardOf({ ...instance, ownerLives: false }, context) === null
  );
}

/** Many orphans at once are more likely a mistake of ours than a leak; so is a world in which nobody wishes anything. */
function brakeOf(orphans: number, eligible: number, limit: number, desired: number, context: GcContext): InventoryRecord["brake"] {
  if (orphans === 0) return null;
  if (desired === 0 && !context.settings.allowEmpty) return "EmptyDesired";
  return eligible > limit && !isReleased(context) ? "TooManyOrphans" : null;
}

/** An operator lets any number go for a time. */
export function isReleased({ now, settings: { brakeReleasedUntilTime } }: GcContext): boolean {
  return brakeReleasedUntilTime !== null && now < brakeReleasedUntilTime;
}
