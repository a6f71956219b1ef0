/** What is wished for now: the spec, what users asked for since, and the controller's own suspension for idleness, taken together. */
import type { Instant, Observation, OperatingMode, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";

/** Of a record whose spec parses. */
export function wishedMode(record: WorkspaceRecord, spec: WorkspaceSpec): OperatingMode {
  return isSuspendedForIdleness(record, spec) ? "Suspended" : spec.operatingMode;
}

export function isSuspendedForIdleness(record: WorkspaceRecord, { idle }: WorkspaceSpec): boolean {
  return idle !== null && idleSince(record) !== null;
}

/** Whoever comes back before it is stopped has ended its idleness, and what they do then must not be lost. */
export function heedReturn(
  record: WorkspaceRecord,
  observed: Pick<Observation, "kind"> & { readonly activityTime?: Instant | null },
): WorkspaceRecord {
  const { idleTime } = record;
  const { kind, activityTime = null } = observed;
  return kind === "Running" && idleTime !== null && activityTime !== null && activityTime > idleTime
    ? { ...record, idleTime: null }
    : record;
}

/** As long as neither a wake nor another generation has ended it; null where one has, or it never was. */
export function idleSince({ idleTime, wakeTime, status, generation }: WorkspaceRecord): Instant | null {
  if (idleTime === null || status.observedGeneration !== generation) return null;
  return wakeTime === null || wakeTime < idleTime ? idleTime : null;
}

/** Null: never. */
export function expiryOf(spec: WorkspaceSpec | null): Instant | null {
  return spec === null || spec.expireTime === null ? null : Date.parse(spec.expireTime);
}

/** When a container that began and was used last at these times has been idle for too long; null: never. */
export function idleDeadline(spec: WorkspaceSpec, activityTime: Instant, wakeTime: Instant | null): Instant | null {
  return spec.idle === null ? null : Math.max(activityTime, wakeTime ?? 0) + spec.idle.timeoutSeconds * 1000;
}

export function lifetimeDeadline(spec: WorkspaceSpec, startedTime: Instant): Instant | null {
  return spec.maxLifetimeSeconds === null ? null : startedTime + spec.maxLifetimeSeconds * 1000;
}

/** Whether somebody asked, or a newer wish means, that what failed before is tried anew. */
export function deservesNewTry({ status, generation, reconcileRequestTime }: WorkspaceRecord): boolean {
  return status.observedGeneration !== generation || reconcileRequestTime !== null;
}
