/**
 * By what each failure is known: the texts of the platform, of @cloudflare/containers 0.3.7, @cloudflare/sandbox 0.12.10, workerd and
 * D1, and the codes and reasons of the SDK's errors. What is not here is Transient.
 *
 * 1. The first match wins, so what says more stands above what says less, and above the wrappers that it arrives in.
 * 2. `there is no container instance…` is also said of any start that ran out of tries. What proves that a container ran, or why none
 *    could, stands above it. A lost connection or a ping without an answer proves neither.
 */
import { SETUP_FAILED, START_CANCELLED } from "../sandbox/protocol.ts";
import type { FailureClass, Reason } from "../workspace.ts";

export interface Signature {
  readonly class: FailureClass;
  readonly reason: Reason;
  /** Parts of a message. All lower case, as are the codes and reasons. */
  readonly texts: readonly string[];
  readonly codes?: readonly string[];
  /** Values of `context.reason`. */
  readonly reasons?: readonly string[];
}

export const SIGNATURES: readonly Signature[] = [
  // Its message has the output of a user's command: nothing in that is the platform's word.
  { class: "Transient", reason: "SetupFailed", texts: [], codes: [SETUP_FAILED.toLowerCase()] },
  // Somebody wished so: no failure of the workspace's.
  { class: "Progressing", reason: "Starting", texts: [], codes: [START_CANCELLED.toLowerCase()] },
  {
    class: "Progressing",
    reason: "Terminating",
    texts: ["the sandbox was destroyed while the operation was pending"],
    reasons: ["sandbox_lifetime_changed"],
  },
  {
    class: "RateLimited",
    reason: "RateLimited",
    texts: ["you are requesting too many containers per second", "generating too much load on durable objects"],
  },
  // What was asked of a backup, as opposed to what the deployment lacks for one: both have the code INVALID_BACKUP_CONFIG.
  {
    class: "Permanent",
    reason: "StartFailed",
    texts: ["backupoptions.", "invalid backup: "],
  },
  {
    class: "Permanent",
    reason: "SourceNotFound",
    texts: [
      "backup not found:",
      "backup archive not found in r2",
      "has expired (created:",
      "backup metadata has invalid createdat timestamp",
    ],
    codes: ["backup_not_found", "backup_expired"],
  },
  {
    class: "Misconfigured",
    reason: "Misconfigured",
    texts: [
      "containers have not been enabled for this durable object class",
      "websocket upgrade failed: 404",
      "no application that matches",
      "no container application assigned",
      "ctx.exports is undefined",
      "ctx.exports.containerproxy is undefined",
      "backup not configured.",
      "backup requires r2 presigned url credentials",
      "backup_bucket r2 binding not found in env",
      "backup_bucket r2 binding is using local storage",
      // Our own statements are wrong.
      "d1_type_error",
      "d1_column_notfound",
      "too many sql variables",
      "failed query: begin",
    ],
    codes: ["invalid_backup_config"],
  },
  {
    class: "Permanent",
    reason: "StartFailed",
    texts: [
      "no such image",
      "ran out of memory",
      "too many subprocesses",
      "did not call start",
      "due to a permanent error",
      "container already exists",
    ],
  },
  {
    class: "Capacity",
    reason: "CapacityUnavailable",
    texts: ["maximum number of running container instances exceeded", "surpassed_base_limits", "surpassed_total_limits"],
    reasons: ["max_container_instances_exceeded"],
  },
  // It may have happened, or still go on.
  {
    class: "Uncertain",
    reason: "StartFailed",
    texts: ["start() cannot be called on a container that is already running", "was interrupted while the"],
    reasons: ["transport_disposed"],
  },
  // Transient like what is not known at all; here because each proves that there was an instance.
  {
    class: "Transient",
    reason: "StartFailed",
    texts: [
      "container exited with unexpected exit code",
      "container exited before we could determine",
      "runtime signalled the container to exit",
      "container crashed while checking for ports",
      "the container ended before it was verified",
      "the container is not listening",
      "failed to verify port",
      "container port not found",
      "connection refused: container port",
    ],
  },
  {
    class: "Capacity",
    reason: "CapacityUnavailable",
    texts: [
      "there is no container instance that can be provided to this durable object",
      "there is no container instance available at this time",
    ],
    reasons: ["no_container_instance_available"],
  },
  {
    class: "NotRunning",
    reason: "ContainerExited",
    texts: ["cannot be called on a container that is not running", "the container is not running, consider calling start()"],
  },
  { class: "Progressing", reason: "Starting", texts: [], reasons: ["container_starting"] },
  // workerd's wrapper for what a local engine answers.
  { class: "Permanent", reason: "StartFailed", texts: ["starting container failed with:"] },
];
