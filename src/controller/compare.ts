/** The one definition of "differs": the plan acts on it, and the drift report shows it. */
import type { Instant, Observation, WorkspaceSpec } from "../workspace.ts";
import type { ObservedState, WorkspaceRecord } from "../workspace-record.ts";
import { isSameSpec, specHash } from "./spec-hash.ts";
import { idleDeadline, lifetimeDeadline, wishedMode } from "./wish.ts";

/**
 * - `Missing`: wished Running, and no verified container runs. - `Unexpected`: wished Suspended, and a container runs.
 * - `OutOfSync`: runs with static fields that are no longer wished. - `IdleOverrun`: runs unused for longer than it may.
 * - `LifetimeOverrun`: its container runs for longer than one may.
 */
export type DifferenceType = "Missing" | "Unexpected" | "OutOfSync" | "IdleOverrun" | "LifetimeOverrun";

export interface Difference {
  readonly type: DifferenceType;
  /** A JSON pointer into the workspace. */
  readonly field: string;
  /** Never a value of `env`. */
  readonly desired: string;
  readonly observed: string;
}

/** What separates what was seen from the wish, the one to act on first at the front; none where nothing is known. */
export function compare(record: WorkspaceRecord, spec: WorkspaceSpec, observed: ObservedState | null, now: Instant): readonly Difference[] {
  if (observed === null || observed.kind === "Unknown") return [];
  const { kind } = observed;
  if (wishedMode(record, spec) === "Suspended") return mayRun(kind) ? [ofMode("Unexpected", "Suspended", kind)] : [];
  if (kind !== "Running") return [ofMode("Missing", "Running", kind)];
  return [outOfSync(spec, observed), idleOverrun(record, spec, observed, now), lifetimeOverrun(spec, observed, now)].filter(
    (difference) => difference !== null,
  );
}

/** What is kept of a look, and what a report compares; null where the look gave no answer. */
export function toObservedState(observed: Observation): ObservedState | null {
  switch (observed.kind) {
    case "Unknown":
      return null;
    case "Running": {
      const { kind, specHash: hash, startedTime, activityTime } = observed;
      return { kind, specHash: hash, startedTime, activityTime, differences: [] };
    }
    case "Absent":
    case "Stopped":
    case "Starting":
    case "Preparing":
    case "Failed":
    case "Unverified":
    case "Destroying":
    case "Destroyed":
      return { kind: observed.kind, specHash: null, startedTime: null, activityTime: null, differences: [] };
  }
}

/** Whether a container runs, or something is under way that may start one. */
export function mayRun(kind: Observation["kind"]): boolean {
  switch (kind) {
    case "Running":
    case "Starting":
    case "Preparing":
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

function ofMode(type: "Missing" | "Unexpected", desired: string, observed: string): Difference {
  return { type, field: "/spec/operatingMode", desired, observed };
}

function outOfSync(spec: WorkspaceSpec, { specHash: observed }: ObservedState): Difference | null {
  const desired = specHash(spec);
  if (observed === null || isSameSpec(desired, observed)) return null;
  return { type: "OutOfSync", field: "/spec", desired, observed };
}

function idleOverrun({ wakeTime }: WorkspaceRecord, spec: WorkspaceSpec, { activityTime }: ObservedState, now: Instant): Difference | null {
  if (activityTime === null || spec.idle === null) return null;
  const deadline = idleDeadline(spec, activityTime, wakeTime);
  if (deadline === null || now < deadline) return null;
  const observed = `${Math.floor((now - deadline) / 1000) + spec.idle.timeoutSeconds} s`;
  return { type: "IdleOverrun", field: "/spec/idle/timeoutSeconds", desired: `${spec.idle.timeoutSeconds} s`, observed };
}

function lifetimeOverrun(spec: WorkspaceSpec, { startedTime }: ObservedState, now: Instant): Difference | null {
  const deadline = startedTime === null ? null : lifetimeDeadline(spec, startedTime);
  if (startedTime === null || deadline === null || now < deadline) return null;
  const observed = `${Math.floor((now - startedTime) / 1000)} s`;
  return { type: "LifetimeOverrun", field: "/spec/maxLifetimeSeconds", desired: `${spec.maxLifetimeSeconds} s`, observed };
}
