/**
 * The drift report: what differs from the wishes, since when, and what will be done about it. From records alone; the differences are
 * those of `compare`, the planned action is that of `plan`, the guards are those of `orphans`, so report and loop cannot disagree.
 */
import type { Unclaimed } from "../unclaimed.ts";
import type { Instant, Observation } from "../workspace.ts";
import type { ObservedState, WorkspaceRecord } from "../workspace-record.ts";
import { isUnderWay } from "./backup-due.ts";
import { type Difference, compare } from "./compare.ts";
import { driftOfOverdueBackup } from "./drift-backups.ts";
import { type DriftContext, type DriftItem, type PlannedAction, about } from "./drift-item.ts";
import { farewell, pendingEnd } from "./farewell.ts";
import { DESTROY_TRIES, guardOf } from "./orphans.ts";
import { isStalled, plan } from "./plan.ts";
import { deservesNewTry, heedReturn } from "./wish.ts";

/** What differs for one workspace; a deletion under way is no drift, unless its sandbox does not answer. */
export function driftOf(remembered: WorkspaceRecord, context: DriftContext): readonly DriftItem[] {
  const record = remembered.observed === null ? remembered : heedReturn(remembered, remembered.observed);
  const { deletionTime, spec, unreachableTime } = record;
  const silence = unreachableTime === null ? [] : [ofSilence(record, unreachableTime)];
  if (deletionTime !== null) return silence;
  const differences = spec === null ? [] : compare(record, spec, lastSeen(record), context.now);
  return [
    ...differences.map((difference) => ofDifference(record, difference, context)),
    ...(isStalled(record) || isInvalid(record) ? [ofStall(record)] : []),
    ...driftOfOverdueBackup(record, context),
    ...silence,
  ];
}

/** An instance that no record claims is drift as long as it may run. */
export function driftOfUnclaimed(instance: Unclaimed, context: DriftContext): readonly DriftItem[] {
  if (instance.state !== "Running" && instance.state !== "Settling" && instance.state !== "Unknown") return [];
  const isDeaf = instance.destroyAttempts >= DESTROY_TRIES;
  const guard =
    guardOf(instance, context) ??
    (context.isComplete ? null : "InventoryUntrusted") ??
    (instance.destroyRequested || (instance.destroyAttempts > 0 && context.gcBrake === "TooManyOrphans") ? null : context.gcBrake);
  const owner = instance.owner === null ? null : { namespace: instance.owner.namespace, name: instance.owner.name };
  const { doId, sandboxId, firstSeenTime, timesSeen, destroyAttempts } = instance;
  return [
    {
      type: isDeaf ? "DestroyNotEffective" : "Orphaned",
      workspace: owner,
      instance: { doId, sandboxId },
      backup: null,
      differences: [{ field: "/instance/state", desired: "Stopped", observed: instance.state }],
      firstSeenTime,
      timesSeen,
      plannedAction: plannedForUnclaimed(guard),
      blockedBy: guard,
      reason: owner === null ? "Unattributed" : instance.ownerLives ? "OtherIncarnation" : "NoDesiredRecord",
      message: isDeaf ? `Still runs after ${destroyAttempts} destroys.` : "",
    },
  ];
}

/** What settles or is not known has to be seen running first; what somebody else answers for, or decided, stays. */
function plannedForUnclaimed(guard: string | null): PlannedAction {
  if (guard === "OwnerLives" || guard === "NotRunning") return "Observe";
  return guard === "Protected" || guard === "GcOff" || guard === "ReportOnly" ? "None" : "Destroy";
}

/** Before the first admission nothing runs. What was admitted and not looked at since is not known. */
function lastSeen({ observed, instance }: WorkspaceRecord): ObservedState | null {
  return observed ?? (instance === null ? NOTHING_SEEN : null);
}

const NOTHING_SEEN: ObservedState = { kind: "Absent", specHash: null, startedTime: null, activityTime: null, differences: [] };

function ofDifference(record: WorkspaceRecord, { type, ...difference }: Difference, context: DriftContext): DriftItem {
  const seen = record.observed?.differences.find((known) => known.type === type);
  const ready = record.status.conditions.find((condition) => condition.type === "Ready");
  const plannedAction = plannedActionOf(record, context.now);
  return {
    type,
    ...about(record),
    differences: [difference],
    firstSeenTime: seen?.firstSeenTime ?? context.now,
    timesSeen: seen?.timesSeen ?? 0,
    plannedAction,
    blockedBy: blockedBy(record, plannedAction, context),
    reason: ready?.reason ?? "Pending",
    message: ready?.message ?? "",
  };
}

function ofStall(record: WorkspaceRecord): DriftItem {
  const stalled = record.status.conditions.find(({ type }) => type === "Stalled");
  return {
    type: "Stalled",
    ...about(record),
    differences: [],
    firstSeenTime: stalled?.lastTransitionTime ?? 0,
    timesSeen: record.failures,
    plannedAction: "None",
    blockedBy: "Stalled",
    reason: stalled?.reason ?? "Stalled",
    message: stalled?.message ?? "",
  };
}

function ofSilence(record: WorkspaceRecord, unreachableTime: Instant): DriftItem {
  const ready = record.status.conditions.find(({ type }) => type === "Ready");
  return {
    type: "Unreachable",
    ...about(record),
    differences: [],
    firstSeenTime: unreachableTime,
    timesSeen: 0,
    plannedAction: "Observe",
    blockedBy: null,
    reason: "Unreachable",
    message: ready?.message ?? "",
  };
}

/** What the loop would do if nothing held it back. */
function plannedActionOf(record: WorkspaceRecord, now: Instant): PlannedAction {
  // Of the backup that may come first, the answer tells with `blockedBy`.
  const spec = record.spec === null ? null : { ...record.spec, paused: false, backup: null };
  const backups = record.backups === null ? null : { ...record.backups, active: null };
  const observed = asObservation(lastSeen(record) ?? NOTHING_SEEN);
  const { kind } = plan({ ...record, spec, backups, nextRetryTime: null }, observed, now, true);
  switch (kind) {
    case "Start":
    case "Stop":
    case "Suspend":
      return kind;
    case "Backup":
      return kind;
    case "Destroy":
      return "Replace";
    case "Expire":
    case "Forget":
      return "Delete";
    case "Rest":
    case "Enqueue":
      return "None";
  }
}

function blockedBy(record: WorkspaceRecord, action: PlannedAction, { now, settings, brakeUntilTime }: DriftContext): string | null {
  if (settings.paused) return "ControllerPaused";
  if (record.spec?.paused) return "Paused";
  if (record.unreachableTime !== null) return "Unreachable";
  if (waitsForBackup(record, action, now)) return "Backup";
  if (record.observed?.kind === "Preparing" && action === "None" && !isStalled(record)) return "Preparation";
  if (action === "None") return isStalled(record) ? "Stalled" : null;
  if (action !== "Start" || record.lane !== null) return null;
  if (!deservesNewTry(record) && record.nextRetryTime !== null && record.nextRetryTime > now) return "Backoff";
  if (record.quotaReached) return "Quota";
  if (brakeUntilTime !== null && brakeUntilTime > now) return "StartBrake";
  return record.queuedTime === null ? null : "StartLane";
}

/** What is under way is waited for whatever is to be done; an end waits for more, but not the one that an operator asked for. */
function waitsForBackup(record: WorkspaceRecord, action: PlannedAction, now: Instant): boolean {
  const { backups, instance } = record;
  if (backups === null || instance === null || instance.destroyRequested || action === "Delete") return false;
  if (isUnderWay(backups)) return true;
  // No report knows the start; the last attempt was of what runs, or is older than the wish to end it.
  const startId = backups.last?.startId ?? "";
  const seen = asObservation(lastSeen(record) ?? NOTHING_SEEN);
  const observed = seen.kind === "Running" ? { ...seen, startId } : seen;
  const pending = pendingEnd(record, observed, now);
  return pending !== null && farewell(record, pending, now).kind !== "Go";
}

function isInvalid({ spec, status }: WorkspaceRecord): boolean {
  if (spec !== null) return false;
  return status.conditions.some(({ type, status: value, reason }) => type === "Stalled" && value === "True" && reason === "InvalidSpec");
}

/** The look that a record remembers, for the plan: what it counted then is counted. */
function asObservation({ kind, specHash, startedTime, activityTime }: ObservedState): Observation {
  switch (kind) {
    case "Running":
      return { kind, startId: "", specHash: specHash ?? "", startedTime: startedTime ?? 0, activityTime: activityTime ?? 0 };
    case "Stopped":
      return { kind, startId: null, exit: null };
    case "Starting":
      return { kind, startId: "" };
    case "Preparing":
      return { kind, startId: "", step: "Restore" };
    case "Failed":
      return { kind: "Stopped", startId: null, exit: null };
    case "Unknown":
      return { kind: "Unverified" };
    case "Absent":
    case "Unverified":
    case "Destroying":
    case "Destroyed":
      return { kind };
  }
}
