/**
 * The port to the sandboxes: all that the controller knows of the platform. One Durable Object class behind the 0.x SDK implements it
 * today; another on the native container API would implement the same.
 */
import type { BackupOutcome } from "../backup.ts";
import type { BackupOrder, StartOrder } from "../sandbox/protocol.ts";
import type { Failure, Instance, Observation } from "../workspace.ts";

/**
 * Every call carries the lease's epoch, has its own deadline and answers with a look at the sandbox after it. A call that failed or timed
 * out answers `Unknown`: its outcome is uncertain, and the next look tells. The only error thrown is `LeaseLostError`.
 */
export interface Fleet {
  /** The sandbox of one incarnation. Pure: the same arguments give the same ids, other ones give others. */
  identify(uid: string, incarnation: number): Instance;
  /** Wakes no container, renews no activity. */
  observe(instance: Instance, epoch: number): Promise<Observation>;
  /** Admits the start and waits up to `waitMs` for its end. Repeating it with the same start id joins the same start. */
  start(instance: Instance, epoch: number, request: StartRequest, waitMs: number): Promise<Observation>;
  /** Takes a backup, or joins it where its id is known. Starts nothing. `Unknown` where no answer came. */
  backup(instance: Instance, epoch: number, request: BackupOrder, waitMs: number): Promise<BackupOutcome>;
  stop(instance: Instance, epoch: number): Promise<Observation>;
  /** Ends the incarnation for good. */
  destroy(instance: Instance, epoch: number): Promise<Observation>;
  /** Ends for good what runs in a sandbox that no record claims, unless the sandbox knows of one. */
  destroyOrphan(doId: string, epoch: number): Promise<OrphanOutcome>;
}

/** `Wanted`: the sandbox belongs to a workspace that has a row, and nothing was done. `Unknown`: nothing is known of what was done. */
export type OrphanOutcome =
  | { readonly kind: "Gone" }
  | { readonly kind: "StillRuns" }
  | { readonly kind: "Wanted" }
  | { readonly kind: "Unknown"; readonly failure: Failure };

export type StartRequest = StartOrder;

/** A sandbox has heard from a controller with a higher epoch: unless the lease says otherwise, this one must not act any more. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}
