/** What a tick works with: the ports, the settings, and time, chance and ids as inputs. */
import type { Config } from "../config.ts";
import type { Database } from "../store/db.ts";
import type { Instant } from "../workspace.ts";
import type { Fleet } from "./fleet.ts";

export interface SweepDeps {
  readonly db: Database;
  readonly fleet: Fleet;
  readonly config: Config;
  readonly now: () => Instant;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 up to, not including, 1. */
  readonly chance: () => number;
  readonly newId: () => string;
}
