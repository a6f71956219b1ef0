/** What a sandbox of the simulation asks of the world around it, and tells it. */
import type { Instant } from "../../src/workspace.ts";
import type { Clock } from "./clock.ts";
import type { Sandbox } from "./sandbox.ts";

/** What the platform does with a start. */
export type Fate =
  | { readonly kind: "Ready" | "NeverReady"; readonly ms: number }
  /** No instance is given: nothing runs. */
  | { readonly kind: "Refused"; readonly ms: number; readonly message: string; readonly retryAfterMs: number | null }
  /** A container runs until the failure shows. */
  | { readonly kind: "Fails"; readonly ms: number; readonly message: string }
  /** It ends by itself before it is ready. */
  | { readonly kind: "Exits"; readonly ms: number };

export interface Container {
  readonly sandbox: Sandbox;
  /** Null where nobody ordered it, or no start may vouch for it any more. */
  startId: string | null;
  readonly specHash: string | null;
  readonly startedTime: Instant;
  activityTime: Instant | null;
  /** Before the last time it was used. */
  earlierActivityTime: Instant | null;
  endedTime: Instant | null;
  /** Its start was verified. */
  isVerified: boolean;
  /** Somebody had a reason to end it. */
  isCondemned: boolean;
}

export type Killer = "stop" | "destroy" | "destroyOrphan" | "start" | "itself";

export interface Surroundings {
  readonly clock: Clock;
  fateOf(sandbox: Sandbox): Fate;
  /** From SIGTERM until the exit; null where it is ignored. */
  stopMs(): number | null;
  killMs(): number;
  isDeaf(sandbox: Sandbox): boolean;
  poke(uid: string): void;
  startBegan(sandbox: Sandbox): void;
  containerStarted(container: Container): void;
  /** Before it is gone. */
  containerEnds(container: Container, killer: Killer): void;
  startFailed(sandbox: Sandbox, isWorkspacesFault: boolean): void;
}
