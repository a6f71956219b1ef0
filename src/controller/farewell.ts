/**
 * What has to be saved before a container is ended by wish (invariant 6). Pure; the plan acts on it, and the conclusion says it.
 *
 * A container is ended once a backup of it, begun since its end was decided, is there or cannot be. Only what was restored and verified
 * is worth one. What an operator ends, and what ends by itself, is not waited for.
 */
import type { BackupTrigger } from "../backup.ts";
import type { BackupPolicy, Condition, Instant, Observation, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { hasFailed, isUnderWay, retryTime } from "./backup-due.ts";
import { type DifferenceType, compare, toObservedState } from "./compare.ts";
import { idleSince, lifetimeDeadline } from "./wish.ts";

type Running = Extract<Observation, { kind: "Running" }>;

/** The end of a container that runs and was verified. */
export interface PendingEnd {
  readonly startId: string;
  readonly end: "Stop" | "Destroy";
  readonly trigger: Extract<BackupTrigger, "Suspend" | "Final">;
  readonly policy: BackupPolicy;
  /** When it was decided; 0: with this generation of the spec. */
  readonly since: Instant;
}

/** Null where none is wished, or none runs. */
export function pendingEnd(record: WorkspaceRecord, observed: Observation, now: Instant): PendingEnd | null {
  if (observed.kind !== "Running") return null;
  const { deletionTime, spec, finalBackup, finalBackupDeadlineTime } = record;
  if (deletionTime !== null) {
    const isTooLate = finalBackupDeadlineTime === null || now >= finalBackupDeadlineTime;
    const policy = isTooLate ? "Skip" : finalBackup;
    return { startId: observed.startId, end: "Destroy", trigger: "Final", policy, since: deletionTime };
  }
  return spec === null ? null : pendingEndOfSpec(record, spec, observed, now);
}

function pendingEndOfSpec(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Running, now: Instant): PendingEnd | null {
  const [first] = compare(record, spec, toObservedState(observed), now);
  const end = first === undefined ? null : END_FOR[first.type];
  if (first === undefined || end === null) return null;
  const policy = spec.backup?.onSuspend ?? "Skip";
  return { startId: observed.startId, end, trigger: "Suspend", policy, since: since(record, spec, observed, first.type) };
}

/** Null: it goes on to run for now. */
const END_FOR: Readonly<Record<DifferenceType, PendingEnd["end"] | null>> = {
  Unexpected: "Stop",
  LifetimeOverrun: "Stop",
  OutOfSync: "Destroy",
  IdleOverrun: null,
  Missing: null,
};

function since(record: WorkspaceRecord, spec: WorkspaceSpec, { startedTime }: Running, type: DifferenceType): Instant {
  if (type === "LifetimeOverrun") return lifetimeDeadline(spec, startedTime) ?? 0;
  return type === "Unexpected" ? (idleSince(record) ?? 0) : 0;
}

/**
 * `Take`: a backup comes first. `Follow`: one is under way. `Wait`: the last attempt failed a moment ago. `Go`: nothing is left that could
 * be saved.
 */
export type Farewell = { readonly kind: "Take" | "Follow" | "Go" } | { readonly kind: "Wait"; readonly until: Instant };

/** Whatever kept the end from following its backup: what has been written since is worth another. */
const FRESH_MS = 300_000;

export function farewell({ backups, generation }: WorkspaceRecord, pending: PendingEnd, now: Instant): Farewell {
  if (backups === null || pending.policy === "Skip") return { kind: "Go" };
  if (isUnderWay(backups)) return { kind: "Follow" };
  const { last } = backups;
  const isOfThisEnd =
    last !== null && last.startId === pending.startId && last.generation === generation && last.startedTime >= pending.since;
  if (!isOfThisEnd) return { kind: "Take" };
  if (!hasFailed(last) || pending.policy === "BestEffort") return { kind: now < last.endedTime + FRESH_MS ? "Go" : "Take" };
  const until = retryTime(last);
  return now >= until ? { kind: "Take" } : { kind: "Wait", until };
}

/** Why a container that is to be ended still runs; null where nothing is waited for. */
export function waitingReason(record: WorkspaceRecord, observed: Observation, now: Instant): Pick<Condition, "reason" | "message"> | null {
  const pending = pendingEnd(record, observed, now);
  if (pending === null) return null;
  switch (farewell(record, pending, now).kind) {
    case "Take":
    case "Follow":
      return { reason: "BackingUp", message: "A backup is taken first." };
    case "Wait":
      return { reason: "BackingUp", message: `A backup is taken first; the last try failed: ${record.backups?.last?.message ?? ""}` };
    case "Go":
      return null;
  }
}
