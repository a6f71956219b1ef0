/**
 * Whether a renewal of the SDK's idle limit is a backup's doing (invariant 6).
 *
 * The SDK renews in the call itself, and again from its timers and its alarm as long as anything is pending and once it is not; those
 * cannot tell whose it was. So they do not count while nothing but a backup is, and has been since its begin, what keeps the SDK busy.
 */
import type { NoWakeFence } from "./no-wake-fence.ts";

/** The SDK's timer that looks for what is pending runs every second. */
const TIMER_LAG_MS = 2_500;
const LOOK_AGAIN_MS = 5_000;

export class Renewals {
  readonly #fence: NoWakeFence;
  readonly #now: () => number;
  #quietUntil = 0;

  constructor(fence: NoWakeFence, now: () => number) {
    this.#fence = fence;
    this.#now = now;
  }

  /** Whether a renewal at this moment is to be left out. */
  get isOfBackup(): boolean {
    return this.#fence.isWithin || this.#now() < this.#quietUntil;
  }

  /** When the limit is to be looked at again: the SDK's alarm calls itself without a pause for as long as its time has passed. */
  deferred(limitTime: number): number {
    const now = this.#now();
    return limitTime > now ? limitTime : now + LOOK_AGAIN_MS;
  }

  /** `isAlone`: nothing else is pending at its begin. */
  async backup<T>(isAlone: boolean, work: () => Promise<T>): Promise<T> {
    if (isAlone) this.#quietUntil = Infinity;
    try {
      return await work();
    } finally {
      if (this.#quietUntil === Infinity) this.#quietUntil = this.#now() + TIMER_LAG_MS;
    }
  }

  /** Passes on somebody's call, after which the backup is not alone any more. */
  call<T>(work: () => T): T {
    if (!this.#fence.isWithin) this.#quietUntil = 0;
    return work();
  }
}
