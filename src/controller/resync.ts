/**
 * The resync: every workspace has a fixed turn in the interval, so that each is looked at once per interval, spread evenly, and
 * without a write that would remember when. Only the time up to which turns were taken is kept, with the lease.
 */
import type { ResyncPlace, ResyncWindow } from "../store/due.ts";
import type { Instant } from "../workspace.ts";

const PHASES = 1_000_000;
/** Above every uid: a turn that has been taken is over for all workspaces that share it. */
const AFTER_EVERY_UID = "~";

/** How far the resync has come: every turn before `time` was taken, and of those since then all up to `place`. */
export interface ResyncProgress {
  readonly time: Instant;
  readonly place: ResyncPlace | null;
}

/** The turns that have come and were not taken; null where there is none. */
export function resyncWindow({ time, place }: ResyncProgress, now: Instant, intervalMs: number): ResyncWindow | null {
  if (now <= time) return null;
  const start = Math.max(time, now - intervalMs);
  const to = phaseAt(now, intervalMs);
  // Having come as far as the turn `to` means to be in it, never to have a whole interval ahead.
  if (place !== null) return { from: place, to, wraps: place.phase > to };
  const from = { phase: phaseAt(start, intervalMs), uid: AFTER_EVERY_UID };
  const isEmpty = from.phase === to && now - start < intervalMs / 2;
  return isEmpty ? null : { from, to, wraps: from.phase >= to };
}

/** All turns up to `now` were taken. A clock that was set back does not give turns a second time. */
export function completeResync({ time }: ResyncProgress, now: Instant): ResyncProgress {
  return { time: Math.max(time, now), place: null };
}

/** The time to keep: never later than a turn that was not taken, so a few may be taken again. */
export function resyncTime({ time, place }: ResyncProgress, now: Instant, intervalMs: number): Instant {
  if (place === null) return time;
  const start = Math.max(time, now - intervalMs);
  const turns = (place.phase - phaseAt(start, intervalMs) + PHASES) % PHASES;
  // Before the turn itself, which others may share.
  return Math.min(now, Math.max(start, start + Math.floor(((turns - 1) / PHASES) * intervalMs)));
}

function phaseAt(time: Instant, intervalMs: number): number {
  return Math.floor(((time % intervalMs) / intervalMs) * PHASES);
}
