/** From a sandbox's facts to an observation. */
import type { SandboxFacts, StartOperation } from "../sandbox/protocol.ts";
import type { Failure, Observation } from "../workspace.ts";
import { classify } from "./failure.ts";

export function interpret(facts: SandboxFacts): Observation {
  const { running, admission, operation } = facts;
  if (admission === "Destroyed") return { kind: running ? "Destroying" : "Destroyed" };
  if (operation?.state === "InProgress") return interpretStart(operation, running);
  if (running) return interpretRunning(facts);
  if (operation?.state === "Failed" || operation?.state === "TimedOut") {
    return { kind: "Failed", startId: operation.startId, specHash: operation.specHash, failure: startFailure(operation) };
  }
  return admission === "None" ? { kind: "Absent" } : { kind: "Stopped", startId: operation?.startId ?? null, exit: exitOf(facts) };
}

/** Once its container runs and is being prepared, no other can come of it. */
function interpretStart({ startId, step }: StartOperation, running: boolean): Observation {
  return running && (step === "Restore" || step === "Setup") ? { kind: "Preparing", startId, step } : { kind: "Starting", startId };
}

/** What was told to stop has not crashed, however it ended. */
function exitOf({ admission, exit }: SandboxFacts): SandboxFacts["exit"] {
  return exit === null || admission === "Admitted" ? exit : { ...exit, signalled: true };
}

function interpretRunning({ admission, operation, ...facts }: SandboxFacts): Observation {
  if (admission !== "Admitted" || operation?.state !== "Succeeded") return { kind: "Unverified" };
  const startedTime = facts.startedTime ?? operation.startedTime;
  // Nobody could use it before, however long its restore took.
  const activityTime = Math.max(startedTime, operation.endedTime ?? 0, facts.activityTime ?? 0);
  const { startId, specHash, directory } = operation;
  return { kind: "Running", startId, specHash, ...(directory !== undefined && { directory }), startedTime, activityTime };
}

function startFailure({ state, failure, step }: StartOperation): Failure {
  const classified = classify(failure ?? { messages: [], code: null, retryAfterMs: null });
  const reason = reasonOf(classified, step);
  const isPreparation = reason === "RestoreFailed" || reason === "SetupFailed";
  if (state !== "TimedOut" || classified.class !== "Transient" || isPreparation) return { ...classified, reason };
  return { class: "Transient", reason: "StartTimeout", message: classified.message || "The start did not become ready in time." };
}

/** What says no more than that the start failed is told by the step that it failed in. */
function reasonOf({ reason }: Failure, step: StartOperation["step"]): Failure["reason"] {
  if (reason !== "StartFailed" || step === undefined || step === "Container") return reason;
  return step === "Restore" ? "RestoreFailed" : "SetupFailed";
}
