/**
 * Makes sure that no container runs (invariant 2).
 *
 * The platform's destroy may hang, fail, or succeed and do nothing; so its answer counts for nothing, and `running` decides.
 */
import { log } from "../log.ts";
import { messageOf } from "./container-errors.ts";
import type { Ledger } from "./ledger.ts";
import { holdsWithin } from "./waiting.ts";

const KILL_LIMIT_MS = 3_000;
const POLL_INTERVAL_MS = 25;
/** The monitor settles a moment after `running` turned false. */
const EXIT_LIMIT_MS = 500;

export class Teardown {
  readonly #native: Container;
  readonly #ledger: Ledger;
  #inFlight: Promise<boolean> | null = null;

  constructor(native: Container, ledger: Ledger) {
    this.#native = native;
    this.#ledger = ledger;
  }

  /** Kills what runs; true once nothing does. Calls share one attempt. Never rejects. */
  kill(): Promise<boolean> {
    this.#inFlight ??= this.#killOnce().finally(() => {
      this.#inFlight = null;
    });
    return this.#inFlight;
  }

  /** Waits for the container to end by itself. */
  async ended(limitMs: number, giveUp: () => boolean = () => false): Promise<boolean> {
    await holdsWithin(() => !this.#native.running || giveUp(), limitMs, POLL_INTERVAL_MS);
    if (this.#native.running) return false;
    await holdsWithin(() => this.#ledger.record.container === null, EXIT_LIMIT_MS, POLL_INTERVAL_MS);
    return true;
  }

  async #killOnce(): Promise<boolean> {
    if (this.#native.running) void this.#destroy();
    return this.ended(KILL_LIMIT_MS);
  }

  async #destroy(): Promise<void> {
    try {
      await this.#native.destroy();
    } catch (error) {
      log("warn", "Container destroy failed", { error: messageOf(error) });
    }
  }
}
