/** What a sandbox of the simulation asks of the world around it, and tells it. */
import type { Instant } from "../../src/workspace.ts";
import type { Bucket } from "./bucket.ts";
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

/** What becomes of one step of a preparation, or of a backup. */
export interface Course {
  readonly kind: "Succeeds" | "Fails" | "Hangs";
  readonly ms: number;
}

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
  verifiedTime: Instant | null;
  /** Somebody had a reason to end it. */
  isCondemned: boolean;
  /** What its directory holds, as a number that no other content has. */
  files: number;
  /** From then on, whoever looks finds other files. */
  changesFromTime: Instant;
}

/** Of a directory that holds nothing. */
export const NO_FILES = 0;

export type Killer = "stop" | "destroy" | "destroyOrphan" | "start" | "itself";

/** A backup that its sandbox calls good. */
export interface TakenBackup {
  readonly backupId: string;
  readonly objectId: string;
  readonly container: Container;
  readonly files: number;
  /** When its files were read. */
  readonly readTime: Instant;
}

export interface Surroundings {
  readonly clock: Clock;
  readonly bucket: Bucket;
  /** Also from a container that no start vouches for: a mistake. */
  backsUpAnything(): boolean;
  /** A start that was interrupted in its restore is resumed, for as long as that might have taken: a mistake. */
  resumesLate(): boolean;
  fateOf(sandbox: Sandbox): Fate;
  /** From SIGTERM until the exit; null where it is ignored. */
  stopMs(): number | null;
  killMs(): number;
  isDeaf(sandbox: Sandbox): boolean;
  restoreCourse(): Course;
  setupCourse(): Course;
  backupCourse(): Course;
  /** The SDK, or what is left of it, gets something done after its caller is gone. */
  happensUnseen(): boolean;
  /** From a verified start until something is written; null: nothing ever is. */
  firstWriteMs(): number | null;
  newFiles(): number;
  poke(uid: string): void;
  startBegan(sandbox: Sandbox): void;
  containerStarted(container: Container): void;
  containerVerified(container: Container): void;
  /** Before it is gone. */
  containerEnds(container: Container, killer: Killer): void;
  startFailed(sandbox: Sandbox, isWorkspacesFault: boolean): void;
  backupTaken(backup: TakenBackup): void;
}
