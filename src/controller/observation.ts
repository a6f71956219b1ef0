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
  return admission === "None" ? { kind: "Absent" } : { kind: "Stopped", startId: operation?.startId ?? null, exit: exitOf(facts) };
}

/** What was told to stop has not crashed, however it ended. */
function exitOf({ admission, exit }: SandboxFacts): SandboxFacts["exit"] {
  return exit === null || admission === "Admitted" ? exit : { ...exit, signalled: true };
}

function interpretRunning({ admission, operation, ...facts }: SandboxFacts): Observation {
  if (admission !== "Admitted" || operation?.state !== "Succeeded") return { kind: "Unverified" };
  const startedTime = facts.startedTime ?? operation.startedTime;
  const activityTime = Math.max(startedTime, facts.activityTime ?? 0);
  return { kind: "Running", startId: operation.startId, specHash: operation.specHash, startedTime, activityTime };
}

function startFailure({ state, failure }: StartOperation): Failure {
  const classified = classify(failure ?? { messages: [], code: null, retryAfterMs: null });
  if (state !== "TimedOut" || classified.class !== "Transient") return classified;
  return { class: "Transient", reason: "StartTimeout", message: classified.message || "The start did not become ready in time." };
}
