/** Waiting, by the day's clock. */
import type { Clock } from "./clock.ts";

/** Resolves after `ms`, or as soon as what `onWake` was given is called. */
export function pause(clock: Clock, ms: number, onWake: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = ms === Number.POSITIVE_INFINITY ? null : clock.after(ms, resolve);
    onWake(() => {
      if (timer !== null) timer.fire = null;
      resolve();
    });
  });
}

/** Settles with the work, or after `ms`. */
export function within(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, resolve);
    void work.then(() => {
      timer.fire = null;
      resolve();
    });
  });
}
