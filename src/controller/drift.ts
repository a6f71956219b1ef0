/**
 * The drift report: what differs from the wishes, since when, and what will be done about it. From records alone; the differences are
 * those of `compare`, the planned action is that of `plan`, the guards are those of `orphans`, so report and loop cannot disagree.
 */
import type { Unclaimed } from "../unclaimed.ts";
import type { Instant, Observation, WorkspaceName } from "../workspace.ts";
import type { ObservedState, WorkspaceRecord } from "../workspace-record.ts";
import { type Difference, compare } from "./compare.ts";
import { DESTROY_TRIES, type GcContext, guardOf } from "./orphans.ts";
import { isStalled, plan } from "./plan.ts";
import { deservesNewTry } from "./wish.ts";

export const DRIFT_TYPES = [
  "Missing",
  "Unexpected",
  "OutOfSync",
  "Orphaned",
  "Stalled",
  "Unreachable",
  "IdleOverrun",
  "LifetimeOverrun",
  "DestroyNotEffective",
] as const;
export type DriftType = (typeof DRIFT_TYPES)[number];

/** `None`: nothing will be done until somebody acts. */
export type PlannedAction = "Start" | "Stop" | "Suspend" | "Destroy" | "Replace" | "Delete" | "Observe" | "None";

export interface DriftItem {
  readonly type: DriftType;
  readonly workspace: WorkspaceName | null;
  readonly instance: { readonly doId: string; readonly sandboxId: string | null } | null;
  readonly differences: readonly Omit<Difference, "type">[];
  readonly firstSeenTime: Instant;
  /** By passes or sweeps that wrote down what they saw; 0 where none has yet. */
  readonly timesSeen: number;
  readonly plannedAction: PlannedAction;
  /** Why it is not done now; null where it is about to be. */
  readonly blockedBy: string | null;
  readonly reason: string;
  readonly message: string;
}

export interface DriftContext extends GcContext {
  /** The start lane takes nobody before this. */
  readonly brakeUntilTime: Instant | null;
  /** Why the last sweep destroyed no orphan. */
  readonly gcBrake: "TooManyOrphans" | "EmptyDesired" | null;
  /** Whether the last sweep saw everything. */
  readonly isComplete: boolean;
}

/** What differs for one workspace; a deletion under way is no drift, unless its sandbox does not answer. */
export function driftOf(record: WorkspaceRecord, context: DriftContext): readonly DriftItem[] {
  const { deletionTime, spec, unreachableTime } = record;
  const silence = unreachableTime === null ? [] : [ofSilence(record, unreachableTime)];
  if (deletionTime !== null) return silence;
  const differences = spec === null ? [] : compare(record, spec, lastSeen(record), context.now);
  return [
    ...differences.map((difference) => ofDifference(record, difference, context)),
    ...(isStalled(record) || isInvalid(record) ? [ofStall(record)] : []),
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

function about({ namespace, name, instance }: WorkspaceRecord): Pick<DriftItem, "workspace" | "instance"> {
  return { workspace: { namespace, name }, instance: instance === null ? null : { doId: instance.doId, sandboxId: instance.sandboxId } };
}

/** What the loop would do if nothing held it back. */
function plannedActionOf(record: WorkspaceRecord, now: Instant): PlannedAction {
  const spec = record.spec === null ? null : { ...record.spec, paused: false };
  const observed = asObservation(lastSeen(record) ?? NOTHING_SEEN);
  const { kind } = plan({ ...record, spec, nextRetryTime: null }, observed, now, true);
  switch (kind) {
    case "Start":
    case "Stop":
    case "Suspend":
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
  if (action === "None") return isStalled(record) ? "Stalled" : null;
  if (action !== "Start" || record.lane !== null) return null;
  if (!deservesNewTry(record) && record.nextRetryTime !== null && record.nextRetryTime > now) return "Backoff";
  if (record.quotaReached) return "Quota";
  if (brakeUntilTime !== null && brakeUntilTime > now) return "StartBrake";
  return record.queuedTime === null ? null : "StartLane";
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
