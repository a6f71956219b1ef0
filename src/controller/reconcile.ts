/** One workspace, one step toward its wish. Safe to run twice, at any time, by whoever holds the lease. */
import type { Database } from "../store/db.ts";
import { holdsLease } from "../store/lease.ts";
import { admitStart, forget, saveConclusion } from "../store/progress.ts";
import type { Conclusion, Instant, Observation, WorkspaceRecord } from "../workspace.ts";
import { conclude } from "./conclude.ts";
import { type Fleet, LeaseLostError } from "./fleet.ts";
import { type Action, plan } from "./plan.ts";
import { specHash } from "./spec-hash.ts";

export interface ReconcileDeps {
  readonly db: Database;
  readonly fleet: Fleet;
  readonly epoch: number;
  readonly now: () => Instant;
  /** From 0 up to, not including, 1. */
  readonly chance: () => number;
  readonly newStartId: () => string;
  readonly startTimeoutMs: number;
  readonly laneWidth: number;
  /** How long a pass may wait for a start; what is left of it is found by the next. */
  readonly startWaitMs: () => number;
}

export type ReconcileResult =
  /** `conflict`: somebody else wrote the row meanwhile, and the next pass decides afresh. */
  | { readonly kind: "conflict" | "forgotten"; readonly action: Action }
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
    if (!(error instanceof LeaseLostError) || !(await holdsLease(deps.db, deps.epoch))) throw error;
    const failure = { class: "Uncertain", reason: "Unreachable", message: error.message } as const;
    return save({ kind: "Rest" }, { record, observed: { kind: "Unknown", failure } }, deps);
  }
}

async function step(record: WorkspaceRecord, isTurn: boolean, deps: ReconcileDeps): Promise<ReconcileResult> {
  const observed = await observe(record, deps);
  const action = plan(record, observed, deps.now(), isTurn || record.lane !== null);
  if (action.kind === "Forget") {
    const forgotten = await forget(deps.db, deps.epoch, record);
    return { kind: forgotten ? "forgotten" : "conflict", action };
  }

  const performed = await perform(action, record, observed, deps);
  return performed === null ? { kind: "conflict", action } : save(action, performed, deps);
}

async function save(action: Action, { record, observed }: Performed, deps: ReconcileDeps): Promise<ReconcileResult> {
  const now = deps.now();
  const conclusion = conclude(record, action, observed, now, deps.chance());
  const saved = await saveConclusion(deps.db, deps.epoch, record, conclusion, now);
  return saved ? { kind: "reconciled", action, conclusion } : { kind: "conflict", action };
}

/** Without a ledger row nothing was ever admitted: there is no sandbox to ask, and asking would create one. */
function observe({ instance }: WorkspaceRecord, { fleet, epoch }: ReconcileDeps): Promise<Observation> | Observation {
  return instance === null ? { kind: "Absent" } : fleet.observe(instance, epoch);
}

interface Performed {
  readonly record: WorkspaceRecord;
  /** After the action. */
  readonly observed: Observation;
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
    case "Rest":
    case "Enqueue":
    case "Forget":
      return { record, observed };
  }
}

async function start(record: WorkspaceRecord, observed: Observation, deps: ReconcileDeps): Promise<Performed | null> {
  const admitted = record.lane === null ? await admit(record, observed, deps) : record;
  const { instance, lane, spec } = admitted ?? {};
  if (!admitted || !instance || !lane || !spec) return null;
  const order = {
    startId: lane.startId,
    workspaceUid: record.uid,
    timeoutMs: Math.max(0, lane.deadlineTime - LANE_MARGIN_MS - deps.now()),
    directory: spec.directory,
    env: spec.env,
    specHash: specHash(spec),
  };
  return { record: admitted, observed: await deps.fleet.start(instance, deps.epoch, order, deps.startWaitMs()) };
}

/** The record as it is once the intent is committed. */
async function admit(record: WorkspaceRecord, observed: Observation, deps: ReconcileDeps): Promise<WorkspaceRecord | null> {
  const now = deps.now();
  const instance = nextInstance(record, observed, deps.fleet);
  const lane = {
    startId: deps.newStartId(),
    queuedTime: record.queuedTime ?? now,
    deadlineTime: now + deps.startTimeoutMs + LANE_MARGIN_MS,
  };
  const starting: Observation = { kind: "Starting", startId: lane.startId };
  const conclusion = conclude(record, { kind: "Start" }, starting, now, deps.chance());
  const admission = { instance, startId: lane.startId, deadlineTime: lane.deadlineTime, laneWidth: deps.laneWidth, conclusion };
  const resourceVersion = await admitStart(deps.db, deps.epoch, record, admission, now);
  if (resourceVersion === null) return null;
  const { status, failures, nextRetryTime, readyTime } = conclusion;
  return {
    ...record,
    resourceVersion,
    status,
    failures,
    nextRetryTime,
    readyTime,
    instance,
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
