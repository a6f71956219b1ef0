/** Which calls go wrong, and how: drawn per call, at the day's rate. */
import type { Chance } from "./chance.ts";

export const FAULT_KINDS = [
  // A database call that does not arrive, whose answer is lost, or that takes long.
  "storeFails",
  "storeAnswerLost",
  "storeSlow",
  // A call to a sandbox that does not arrive, at once or after a silence; that is done and not answered; that arrives late; that meets a reset.
  "callBreaks",
  "callHangs",
  "callAnswerLost",
  "callLate",
  "callReset",
  // A start that fails, whose container ends, that never gets ready, that finds no instance, that comes too soon after others.
  "startFails",
  "startExits",
  "startHangs",
  "startNoCapacity",
  "startRateLimited",
  // A kill that does nothing.
  "killDeaf",
  "pokeLost",
  // A restore or a setup that fails, or comes to no end; a backup that does.
  "restoreFails",
  "restoreHangs",
  "setupFails",
  "backupFails",
  "backupHangs",
  // A call of the bucket that fails, done or not, or takes long.
  "bucketFails",
  "bucketSlow",
  "listFails",
  "listSlow",
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

export const STORE_FAULTS = ["storeFails", "storeAnswerLost", "storeSlow"] as const;
export const CALL_FAULTS = ["callBreaks", "callHangs", "callAnswerLost", "callLate", "callReset"] as const;
export const START_FAULTS = ["startFails", "startExits", "startHangs", "startNoCapacity", "startRateLimited"] as const;
export const RESTORE_FAULTS = ["restoreFails", "restoreHangs"] as const;
export const BACKUP_FAULTS = ["backupFails", "backupHangs"] as const;
export const BUCKET_FAULTS = ["bucketFails", "bucketSlow"] as const;
export const LIST_FAULTS = ["listFails", "listSlow"] as const;

export class Faults {
  /** How often they happened. */
  readonly counts: Partial<Record<FaultKind, number>> = {};
  readonly #chance: Chance;
  readonly #kinds: ReadonlySet<FaultKind>;
  #rate: number;

  constructor(chance: Chance, rate: number, kinds: readonly FaultKind[]) {
    this.#chance = chance;
    this.#rate = rate;
    this.#kinds = new Set(kinds);
  }

  /** Null: it goes well. */
  draw<Kind extends FaultKind>(among: readonly Kind[]): Kind | null {
    if (this.#rate === 0 || this.#chance.next() >= this.#rate) return null;
    const kind = this.#chance.pick(among);
    if (!this.#kinds.has(kind)) return null;
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    return kind;
  }

  /** From now on all goes well. */
  end(): void {
    this.#rate = 0;
  }
}
