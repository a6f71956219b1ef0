/** From a sandbox's facts to an observation. */
import type { SandboxFacts, StartOperation } from "../sandbox/protocol.ts";
import type { Failure, Observation } from "../workspace.ts";
import { classify } from "./failure.ts";

export function interpret(facts: SandboxFacts): Observation {
  const { running, admission, operation } = facts;
  if (admission === "Destroyed") return { kind: running ? "Destroying" : "Destroyed" };
  if (operation?.state === "InProgress") return { kind: "Starting", startId: operation.startId };
  if (running) return interpretRunning(facts);
  if (operation?.state === "Failed" || operation?.state === "TimedOut") {
    return { kind: "Failed", startId: operation.startId, specHash: operation.specHash, failure: startFailure(operation) };
  }
  return admission === "None" ? { kind: "Absent" } : { kind: "Stopped", startId: operation?.startId ?? null, exit: facts.exit };
}

function interpretRunning({ admission, operation }: SandboxFacts): Observation {
  const isVerified = admission === "Admitted" && operation?.state === "Succeeded";
  return isVerified ? { kind: "Running", startId: operation.startId, specHash: operation.specHash } : { kind: "Unverified" };
}

function startFailure({ state, failure }: StartOperation): Failure {
  const evidence = { messages: failure?.messages ?? [], code: failure?.code ?? null, retryAfterMs: failure?.retryAfterMs ?? null };
  const classified = classify(evidence);
  if (state !== "TimedOut" || classified.class !== "Transient") return classified;
  return { class: "Transient", reason: "StartTimeout", message: classified.message || "The start did not become ready in time." };
}
