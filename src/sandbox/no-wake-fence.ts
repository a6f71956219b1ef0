/**
 * Binds work to the container that runs, so that it can neither start another nor reach one (invariant 6).
 *
 * 1. Work within the fence is refused from the moment its container ends, at the native start itself and at every way there.
 * 2. The scope follows the work through its awaits, the SDK's clean-up included, and nobody else's: another caller may start a container.
 * 3. A container is known by the count of starts: one that was replaced is not the same, however soon the next one ran.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { WORKSPACE_NOT_RUNNING, type RefusalCode } from "./not-running.ts";
import { StartRefusedError } from "./refusal.ts";
import { replaceMethods } from "./replaced-methods.ts";

/** `Ended`: it runs no more, and no other was started. */
export type HoldState = "Holds" | "Ended" | "Replaced";

/** One container, from the moment it was looked at. */
export interface Hold {
  readonly state: HoldState;
}

export class NoWakeFence {
  /** What the SDK gets to see. */
  readonly container: Container;
  readonly #scope = new AsyncLocalStorage<Hold>();
  #starts = 0;

  /** `started` is told of each start. */
  constructor(native: Container, started: () => void = () => {}) {
    this.container = replaceMethods(native, {
      start: (options) => {
        if (this.isWithin) throw new StartRefusedError(WORKSPACE_NOT_RUNNING);
        native.start(options);
        this.#starts += 1;
        started();
      },
    });
  }

  /** Whether the caller's work is bound to a container. */
  get isWithin(): boolean {
    return this.#scope.getStore() !== undefined;
  }

  /** The container that runs now. */
  hold(): Hold {
    const { container } = this;
    const startsNow = () => this.#starts;
    const starts = startsNow();
    return {
      get state() {
        if (startsNow() !== starts) return "Replaced";
        return container.running ? "Holds" : "Ended";
      },
    };
  }

  within<T>(hold: Hold, work: () => Promise<T>): Promise<T> {
    return this.#scope.run(hold, work);
  }

  /** Why the caller's call is refused, or null where it may pass. */
  refusal(): RefusalCode | null {
    const hold = this.#scope.getStore();
    return hold === undefined || hold.state === "Holds" ? null : WORKSPACE_NOT_RUNNING;
  }

  assertHolds(): void {
    const code = this.refusal();
    if (code !== null) throw new StartRefusedError(code);
  }
}
