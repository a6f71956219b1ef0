/**
 * What a failure is, from its texts and codes. Never from `instanceof`: errors cross realms and arrive wrapped in others, so every
 * text of the chain is looked at, case ignored. What nothing here knows is Transient.
 */
import { START_CANCELLED } from "../sandbox/protocol.ts";
import type { Failure, FailureClass, Reason } from "../workspace.ts";

export interface FailureEvidence {
  /** Messages of the error and of all that it wraps, outermost first. */
  readonly messages: readonly string[];
  readonly code: string | null;
  readonly retryAfterMs: number | null;
}

interface Signature {
  readonly class: FailureClass;
  readonly reason: Reason;
  /** Lower case. */
  readonly texts: readonly string[];
  readonly codes?: readonly string[];
}

/** First match wins, so a cause that says more comes before the wrappers that it arrives in. */
const SIGNATURES: readonly Signature[] = [
  // Somebody wished so: no failure of the workspace's.
  { class: "Progressing", reason: "Starting", texts: [], codes: [START_CANCELLED] },
  {
    class: "RateLimited",
    reason: "RateLimited",
    texts: ["you are requesting too many containers per second", "generating too much load on durable objects"],
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
    ],
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
    texts: [
      "there is no container instance that can be provided to this durable object",
      "there is no container instance available at this time",
      "maximum number of running container instances exceeded",
      "surpassed_base_limits",
      "surpassed_total_limits",
    ],
  },
  {
    class: "Uncertain",
    reason: "StartFailed",
    texts: ["cannot be called on a container that is already running"],
  },
  {
    class: "NotRunning",
    reason: "ContainerExited",
    texts: ["cannot be called on a container that is not running", "the container is not running, consider calling start()"],
  },
];

export function classify(evidence: FailureEvidence): Failure {
  const texts = evidence.messages.map((message) => message.toLowerCase());
  const signature = SIGNATURES.find(
    (candidate) =>
      (evidence.code !== null && candidate.codes?.includes(evidence.code)) ||
      candidate.texts.some((known) => texts.some((text) => text.includes(known))),
  );
  return {
    class: signature?.class ?? "Transient",
    reason: signature?.reason ?? "StartFailed",
    message: summarise(evidence.messages),
    ...(evidence.retryAfterMs !== null && { retryAfterMs: evidence.retryAfterMs }),
  };
}

/** A status message is for a glance; the whole chain is in the log. */
const MESSAGE_MAX_LENGTH = 300;

function summarise(messages: readonly string[]): string {
  const distinct = messages.filter((message, index) => message !== "" && messages.indexOf(message) === index);
  const text = distinct.join(" < ");
  return text.length > MESSAGE_MAX_LENGTH ? `${text.slice(0, MESSAGE_MAX_LENGTH - 1)}…` : text;
}
