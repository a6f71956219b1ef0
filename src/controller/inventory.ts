/**
 * The port to what the platform says runs: the only way to learn of an instance that no row of ours names.
 *
 * The list is the last state that was reported, so it may be behind. One listing is evidence, not proof: who acts on it looks again.
 */
import type { Instant } from "../workspace.ts";

export interface Inventory {
  /** Every instance of the application. Ends in bounded time and never rejects; costs no container anything and wakes none. */
  list(): Promise<Listing>;
}

/** Only `Complete` says anything about instances, and about the absence of those that are not in it. */
export type Listing =
  | {
      readonly kind: "Complete";
      /** Each instance once, in no particular order; those that stopped too, as long as the platform remembers them. */
      readonly instances: readonly ListedInstance[];
    }
  /** The platform does not offer the list for this application. */
  | { readonly kind: "NotEnabled"; readonly message: string }
  /**
   * Anything less than every page: nothing may be concluded from it. No message carries a secret.
   *
   * - `Unauthorised`: the token is not valid, or may not read containers.
   * - `NotFound`: there is not exactly one application of the name, or it went away just now.
   * - `RateLimited`, `Unavailable`, `Timeout`: it may work next time.
   * - `Malformed`: the platform answered something that this version does not understand.
   * - `Changed`: the pages do not fit together.
   */
  | {
      readonly kind: "Failed";
      readonly reason: "Unauthorised" | "NotFound" | "RateLimited" | "Unavailable" | "Timeout" | "Malformed" | "Changed";
      readonly message: string;
      /** As the platform asked, where it did. */
      readonly retryAfterMs: number | null;
    };

export interface ListedInstance {
  /** 64 hex digits, lower case. */
  readonly doId: string;
  /** The name the object was made with, where the platform knows it; nothing is decided by it. */
  readonly name: string | null;
  readonly state: InstanceState;
  /** Of the current placement, where the platform says it. */
  readonly startedTime: Instant | null;
}

/**
 * What the platform's list says an instance does.
 *
 * - `Running`: it runs and costs, healthy or not.
 * - `Settling`: provisioning or stopping.
 * - `Stopped`: nothing runs; how it ended does not matter here.
 * - `Unknown`: no word, or one that this version does not know; nothing destructive follows it.
 */
export type InstanceState = "Running" | "Settling" | "Stopped" | "Unknown";
