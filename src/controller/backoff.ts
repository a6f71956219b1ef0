/** When to try again. Chance is an input, as a number from 0 up to, not including, 1. */

const BASE_MS = 5000;
const FLOOR_MS = 1000;
const CAP_MS = 300_000;

/** Failures that lie this long in the past of a Ready workspace are forgiven. */
export const FORGIVE_AFTER_MS = 600_000;

/** Full jitter: anything from the floor up to a bound that doubles with each failure, 1 for the first. */
export function backoffMs(failures: number, chance: number): number {
  const bound = Math.min(CAP_MS, BASE_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(FLOOR_MS + chance * (bound - FLOOR_MS));
}

/** For a look that has to be repeated until the answer changes: waits half as long again as it has waited so far. */
export function patienceMs(elapsedMs: number, floorMs: number, capMs: number): number {
  return Math.min(capMs, Math.max(floorMs, Math.round(elapsedMs / 2)));
}
