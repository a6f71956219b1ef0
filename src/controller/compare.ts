/** The one definition of "differs": the plan acts on it, and whoever reports a difference reports this one. */
import type { Observation, WorkspaceSpec } from "../workspace.ts";
import { isSameSpec, specHash } from "./spec-hash.ts";

/**
 * - `Missing`: wished Running, and no verified container runs. - `Unexpected`: wished Suspended, and a container runs.
 * - `OutOfSync`: runs with static fields that are no longer wished.
 */
export type Difference = "Missing" | "Unexpected" | "OutOfSync";

/** What separates an observation from the wish; null where the two agree or nothing is known. */
export function compare(spec: WorkspaceSpec, observed: Observation): Difference | null {
  if (observed.kind === "Unknown") return null;
  if (spec.operatingMode === "Suspended") return mayRun(observed) ? "Unexpected" : null;
  if (observed.kind !== "Running") return "Missing";
  return isSameSpec(specHash(spec), observed.specHash) ? null : "OutOfSync";
}

/** Whether a container runs, or something is under way that may start one. */
export function mayRun(observed: Observation): boolean {
  switch (observed.kind) {
    case "Running":
    case "Starting":
    case "Unverified":
    case "Destroying":
    case "Unknown":
      return true;
    case "Absent":
    case "Stopped":
    case "Failed":
    case "Destroyed":
      return false;
  }
}
