/** The vocabulary of garbage collection: what no record claims, and what an operator decides about it. Types only. */
import type { Instant, WorkspaceName } from "./workspace.ts";

/** What the garbage collector may do. */
export type GcMode = "Off" | "Report" | "Enforce";

/** What an operator set for the whole controller; null: as configured. */
export interface ControllerSettings {
  /** Nothing is started, stopped, destroyed or deleted while true. */
  readonly paused: boolean;
  readonly gcMode: GcMode | null;
  /** Orphans may be destroyed although not one workspace is wished. */
  readonly allowEmpty: boolean;
  readonly laneWidth: number | null;
  /** Until then, any number of orphans may be destroyed in one sweep. */
  readonly brakeReleasedUntilTime: Instant | null;
}

/**
 * An instance that no desired record claims: seen by a sweep, or left by an incarnation that is over. It is kept until its absence is
 * confirmed. An *orphan* is one that runs.
 */
export interface Unclaimed {
  /** 64 hex digits. */
  readonly doId: string;
  /** Null where nobody knows its name. */
  readonly sandboxId: string | null;
  /** Of the workspace it once belonged to, where that is known. */
  readonly owner: (WorkspaceName & { readonly uid: string; readonly incarnation: number }) | null;
  /** The workspace it once belonged to still has a record: that one's own loop answers for it. */
  readonly ownerLives: boolean;
  /** As of the last complete sweep. `Expected`: no sweep has looked since it was left. */
  readonly state: "Expected" | "Running" | "Settling" | "Stopped" | "Unknown";
  readonly firstSeenTime: Instant;
  readonly lastSeenTime: Instant;
  /** In how many complete sweeps in a row it was seen Running. */
  readonly timesSeen: number;
  readonly startedTime: Instant | null;
  readonly protected: boolean;
  /** An operator asked for it, guards or not. */
  readonly destroyRequested: boolean;
  readonly destroyAttempts: number;
  readonly lastDestroyTime: Instant | null;
}

/** How the last inventory sweep went. */
export interface InventoryRecord {
  readonly time: Instant;
  /** Of the last sweep that saw every page; null before the first. */
  readonly completeTime: Instant | null;
  /** `Complete`: the platform's list; `LedgerOnly`: the platform offers none; otherwise why nothing was concluded. */
  readonly outcome: "Complete" | "LedgerOnly" | "Failed";
  readonly message: string;
  /** Running, as far as the sweep knew. */
  readonly running: number;
  /** Orphans past every guard but the brake. */
  readonly eligible: number;
  /** How many may be destroyed in one sweep. */
  readonly limit: number;
  /** Why no orphan is destroyed; null where they are. */
  readonly brake: "TooManyOrphans" | "EmptyDesired" | null;
  /** The platform asked not to be asked again before; null where it did not. */
  readonly retryTime: Instant | null;
}
