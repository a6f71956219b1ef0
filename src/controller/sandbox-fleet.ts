/** The Fleet over the Durable Object namespace of `WorkspaceSandbox`. */
import type { Answer, Fence, WorkspaceControl } from "../sandbox/protocol.ts";
import type { Instance, Instant, Observation } from "../workspace.ts";
import { classify } from "./failure.ts";
import { type Fleet, LeaseLostError } from "./fleet.ts";
import { interpret } from "./observation.ts";

const OBSERVE_TIMEOUT_MS = 5000;
/** On top of what a call was asked to wait for. */
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
/** For the SDK's stop and for the kill after the grace, each of which may hang for a while. */
const STOP_TIMEOUT_MS = STOP_GRACE_MS + 10_000;
/** The object gives the SDK's destroy its own limit before it falls back to the native one. */
const DESTROY_TIMEOUT_MS = 20_000;

type Namespace = Pick<DurableObjectNamespace, "idFromName" | "idFromString" | "get">;

export function createSandboxFleet(namespace: Namespace, now: () => Instant): Fleet {
  /** A stub is made anew for each call: after an error the old one stays broken. */
  const control = ({ doId }: Instance): WorkspaceControl => namespace.get(namespace.idFromString(doId)) as unknown as WorkspaceControl;

  return {
    identify(uid: string, incarnation: number): Instance {
      const sandboxId = `${uid}-${incarnation}`;
      return { sandboxId, incarnation, doId: namespace.idFromName(sandboxId).toString() };
    },
    observe: (instance, epoch) => ask(OBSERVE_TIMEOUT_MS, () => control(instance).observeWorkspace(fence(instance, epoch))),
    start(instance, epoch, request, waitMs) {
      const timeoutMs = waitMs + ANSWER_TIMEOUT_MS;
      const order = { ...request, expiresTime: now() + timeoutMs };
      return ask(timeoutMs, () => control(instance).startWorkspace(fence(instance, epoch), order, waitMs));
    },
    stop: (instance, epoch) => ask(STOP_TIMEOUT_MS, () => control(instance).stopWorkspace(fence(instance, epoch), STOP_GRACE_MS)),
    destroy: (instance, epoch) => ask(DESTROY_TIMEOUT_MS, () => control(instance).destroyWorkspace(fence(instance, epoch))),
  };
}

function fence({ incarnation }: Instance, epoch: number): Fence {
  return { epoch, incarnation };
}

async function ask(timeoutMs: number, call: () => Promise<Answer>): Promise<Observation> {
  let answer: Answer;
  try {
    answer = await withTimeout(timeoutMs, call());
  } catch (error) {
    return { kind: "Unknown", failure: { ...classify(evidence(error)), class: "Uncertain" } };
  }
  if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError("A controller with a higher epoch is at work.");
  if (!answer.accepted && answer.refusal === "OtherIncarnation") {
    const message = "The sandbox belongs to another incarnation.";
    return { kind: "Unknown", failure: { class: "Misconfigured", reason: "Misconfigured", message } };
  }
  return interpret(answer.facts);
}

async function withTimeout<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The sandbox did not answer within ${timeoutMs} ms.`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function evidence(error: unknown) {
  const messages: string[] = [];
  for (let cause = error; cause instanceof Error && messages.length < 8; cause = cause.cause) messages.push(cause.message);
  return { messages: messages.length > 0 ? messages : [String(error)], code: null, retryAfterMs: null };
}
