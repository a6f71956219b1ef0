/** One workspace, one step toward its wish. Safe to run twice, at any time, by whoever holds the lease. */
import type { BackupOutcome } from "../backup.ts";
import type { RunningLimits } from "../store/quota.ts";
import type { Observation } from "../workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../workspace-record.ts";
import { conclude } from "./conclude.ts";
import { type Fleet, LeaseLostError } from "./fleet.ts";
import { type Action, isExpired, plan } from "./plan.ts";
import { restoreOf, sourceToPin } from "./restore.ts";
import { specHash } from "./spec-hash.ts";
import { type BackupDeps, takeBackup } from "./take-backup.ts";
import { heedReturn } from "./wish.ts";

export interface ReconcileDeps extends BackupDeps {
  /** From 0 up to, not including, 1. */
  readonly chance: () => number;
  readonly startTimeoutMs: number;
  readonly prepareTimeoutMs: number;
  readonly laneWidth: number;
  readonly runningLimits: RunningLimits;
}

export type ReconcileResult =
  /** `conflict`: somebody else wrote the row meanwhile, and the next pass decides afresh. */
  | { readonly kind: "conflict" | "forgotten" | "expired"; readonly action: Action }
  | { readonly kind: "reconciled"; readonly action: Action; readonly conclusion: Conclusion };

/** The lane is kept for a while after the sandbox's own deadline, in which the sandbox destroys what did not become ready. */
const LANE_MARGIN_MS = 15_000;

/**
 * `isTurn`: the lane has room and this workspace is the first in line. Throws `LeaseLostError` where the lease is lost; a sandbox that
 * knows a higher epoch than the database does (one that was restored) only makes its own workspace unreachable.
 */
export async function reconcile(record: WorkspaceRecord, isTurn: boolean, deps: ReconcileDeps): Promise<ReconcileResult> {
  try {
    return await step(record, isTurn, deps);
  } catch (error) {
    if (!(error instanceof LeaseLostError) || !(await deps.store.holdsLease(deps.epoch))) throw error;
    const failure = { class: "Uncertain", reason: "Unreachable", message: error.message } as const;
    const observed = { kind: "Unknown", failure } as const;
    return save({ kind: "Rest" }, { record, observed }, observed, deps);
  }
}

async function step(record: WorkspaceRecord, isTurn: boolean, deps: ReconcileDeps): Promise<ReconcileResult> {
  // What has expired is deleted whatever its sandbox does, and whether or not it answers.
  if (isExpired(record, deps.now())) return expire(record, deps);
  const observed = await observe(record, deps);
  const action = plan(record, observed, deps.now(), isTurn || record.lane !== null);
  if (action.kind === "Forget") {
    const forgotten = await deps.store.forget(deps.epoch, record, deps.now());
    return { kind: forgotten ? "forgotten" : "conflict", action };
  }
  if (action.kind === "Expire") return expire(record, deps);
  const performed = await perform(action, record, observed, deps);
  return performed === null ? { kind: "conflict", action } : save(action, performed, observed, deps);
}

async function expire(record: WorkspaceRecord, { store, epoch, now }: ReconcileDeps): Promise<ReconcileResult> {
  const expired = await store.expire(epoch, record, now());
  return { kind: expired ? "expired" : "conflict", action: { kind: "Expire" } };
}

/** `before`: the look that the action was decided on, the only one that shows a return which the action has ended. */
async function save(
  action: Action,
  { record, observed, outcome }: Performed,
  before: Observation,
  deps: ReconcileDeps,
): Promise<ReconcileResult> {
  const now = deps.now();
  const conclusion = conclude(heedReturn(record, before), action, observed, now, deps.chance(), outcome ?? null);
  const saved = await deps.store.saveConclusion(deps.epoch, record, conclusion, now);
  return saved ? { kind: "reconciled", action, conclusion } : { kind: "conflict", action };
}

/** Without a ledger row nothing was ever admitted: there is no sandbox to ask, and asking would create one. */
async function observe({ instance, startId }: WorkspaceRecord, { fleet, epoch }: ReconcileDeps): Promise<Observation> {
  if (instance === null) return { kind: "Absent" };
  const observed = await fleet.observe(instance, epoch);
  // What another record's start vouched for, this one's has yet to: the container is kept, whatever it was started with.
  const isForeign = instance.adopted && observed.kind === "Running" && observed.startId !== startId;
  return isForeign ? { kind: "Unverified" } : observed;
}

interface Performed {
  readonly record: WorkspaceRecord;
  /** After the action. */
  readonly observed: Observation;
  /** What the sandbox answered about the active backup, where it was asked. */
  readonly outcome?: BackupOutcome | null;
}

/** Null where the intent could not be committed. */
async function perform(action: Action, record: WorkspaceRecord, observed: Observation, deps: ReconcileDeps): Promise<Performed | null> {
  const { fleet, epoch } = deps;
  const { instance } = record;
  switch (action.kind) {
    case "Start":
      return start(record, observed, deps);
    case "Stop":
      return { record, observed: instance === null ? observed : await fleet.stop(instance, epoch) };
    case "Destroy":
      return { record, observed: instance === null ? observed : await fleet.destroy(instance, epoch) };
    case "Backup": {
      const taken = await takeBackup(record, action.trigger, observed, deps);
      return taken && { ...taken, observed };
    }
    case "Rest":
    case "Enqueue":
    case "Suspend":
    case "Expire":
    case "Forget":
      return { record, observed };
  }
}

async function start(record: WorkspaceRecord, observed: Observation, deps: ReconcileDeps): Promise<Performed | null> {
  const admitted = record.lane === null ? await admit(record, observed, deps) : record;
  const { instance, lane, spec } = admitted ?? {};
  if (!admitted || !instance || !lane || !spec) return null;
  const timeoutMs = lane.deadlineTime - LANE_MARGIN_MS - deps.now();
  // The place is, or soon will be, somebody else's.
  if (timeoutMs <= 0) return null;
  const restore = restoreOf(admitted, spec);
  if (restore.kind === "Missing") return null;
  // A running container cannot take up an environment, and has its files.
  const adopt = instance.adopted && Object.keys(spec.env).length === 0;
  const order = {
    startId: lane.startId,
    workspaceUid: record.uid,
    timeoutMs,
    directory: spec.directory,
    env: spec.env,
    specHash: specHash(spec),
    prepareTimeoutMs: deps.prepareTimeoutMs,
    adopt,
    restore: adopt || restore.kind !== "Backup" ? null : { objectId: restore.backup.objectId, localBucket: deps.backups?.mode === "local" },
    setup: adopt ? [] : spec.setup,
  };
  return { record: admitted, observed: await deps.fleet.start(instance, deps.epoch, order, deps.waitMs()) };
}

/** The record as it is once the intent is committed. */
async function admit(record: WorkspaceRecord, observed: Observation, deps: ReconcileDeps): Promise<WorkspaceRecord | null> {
  const now = deps.now();
  const instance = nextInstance(record, observed, deps.fleet);
  const lane = {
    startId: deps.newId(),
    queuedTime: record.queuedTime ?? now,
    deadlineTime: now + deps.startTimeoutMs + LANE_MARGIN_MS,
  };
  const starting: Observation = { kind: "Starting", startId: lane.startId };
  const conclusion = conclude(record, { kind: "Start" }, starting, now, deps.chance());
  const { laneWidth, runningLimits } = deps;
  const restore = record.spec === null ? null : restoreOf(record, record.spec);
  const restoredBackupId = restore?.kind === "Backup" ? restore.backup.id : null;
  const sourceBackupId = restore === null ? null : sourceToPin(record, restore);
  const { startId, deadlineTime } = lane;
  const admission = { instance, startId, deadlineTime, laneWidth, runningLimits, restoredBackupId, sourceBackupId, conclusion };
  const resourceVersion = await deps.store.admitStart(deps.epoch, record, admission, now);
  if (resourceVersion === null) return null;
  const { status, failures, nextRetryTime, readyTime, observed: seen } = conclusion;
  return {
    ...record,
    resourceVersion,
    status,
    failures,
    nextRetryTime,
    readyTime,
    observed: seen,
    startId,
    sourceBackupId,
    idleTime: null,
    reconcileRequestTime: null,
    instance: { ...instance, running: true, destroyRequested: false },
    lane,
    incarnation: instance.incarnation,
    queuedTime: null,
    unreachableTime: null,
    nextReconcileTime: now,
  };
}

/** A sandbox that was destroyed is never used again. */
function nextInstance({ instance, uid, incarnation }: WorkspaceRecord, observed: Observation, fleet: Fleet) {
  return instance === null || observed.kind === "Destroyed" ? fleet.identify(uid, incarnation + 1) : instance;
}
