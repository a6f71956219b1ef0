/** Gives workspaces to passes: counts and logs what came of each, and keeps every failure to the workspace that met it. */
import { log } from "../log.ts";
import { runningLimitsOf } from "../config.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { isUnderWay } from "./backup-due.ts";
import { causeOf } from "./cause.ts";
import { LeaseLostError } from "./fleet.ts";
import { type PassKind, type Passes, createPasses } from "./passes.ts";
import { type ReconcileDeps, type ReconcileResult, reconcile } from "./reconcile.ts";
import type { SweepDeps } from "./sweep-deps.ts";
import { type Sweeps, createSweeps } from "./sweeps.ts";

export interface Dispatcher extends Pick<Passes, "idle" | "drain">, Sweeps {
  /** False where there is no room now: offer it again in the next round. */
  dispatch(record: WorkspaceRecord): boolean;
  /** Begins a pass that may take the lane. */
  start(record: WorkspaceRecord): void;
  /** How many starts may be in flight from now on. */
  widen(laneWidth: number): void;
  leaseLost(): boolean;
  /** How often each action was taken and each outcome met. */
  counts(): Readonly<Record<string, number>>;
}

/** Long enough to see most starts and backups end in the pass that began them, short enough not to keep a deletion waiting. */
const WAIT_MS = 3000;

export function createDispatcher(deps: SweepDeps, epoch: number, endTime: Instant): Dispatcher {
  const passes = createPasses(deps.sleep);
  let reconcileDeps = forPasses(deps, epoch, endTime);
  const counts: Record<string, number> = {};
  /** Workspaces whose pass came to nothing: offered again at once, they would keep the rounds going without a pause. */
  const restUntil = new Map<string, Instant>();
  let lost = false;

  function count(key: string): void {
    counts[key] = (counts[key] ?? 0) + 1;
  }

  async function pass(record: WorkspaceRecord, isTurn: boolean): Promise<void> {
    const fields = { namespace: record.namespace, workspace: record.name, generation: record.generation };
    try {
      const result = await reconcile(record, isTurn, reconcileDeps);
      count(result.action.kind);
      if (result.kind !== "reconciled") count(result.kind);
      if (result.kind === "conflict") rest(record);
      if (result.action.kind !== "Rest") log("info", "Workspace reconciled", { ...fields, ...describe(result) });
      if (leavesMoreToDo(result, deps.now())) passes.wake();
    } catch (error) {
      count("error");
      rest(record);
      if (error instanceof LeaseLostError) lost = true;
      log("error", "Reconciliation failed", { ...fields, error: causeOf(error) });
    }
  }

  function rest({ uid }: WorkspaceRecord): void {
    restUntil.set(uid, deps.now() + deps.config.pollIntervalMs / 2);
  }

  function begin(record: WorkspaceRecord, isTurn: boolean): boolean {
    const kind = kindOf(record, isTurn);
    if (lost || (restUntil.get(record.uid) ?? 0) > deps.now()) return true;
    return passes.begin(kind, record.uid, () => pass(record, isTurn));
  }

  return {
    ...createSweeps({ ...deps, epoch, endTime }, passes, { count, leaseLost: () => (lost = true) }),
    widen: (laneWidth) => {
      reconcileDeps = { ...reconcileDeps, laneWidth };
    },
    dispatch: (record) => begin(record, false),
    start: (record) => void begin(record, true),
    idle: (ms) => passes.idle(ms),
    drain: () => passes.drain(),
    leaseLost: () => lost,
    counts: () => counts,
  };
}

/** Starts come in their own turn, and whoever does not answer, or is busy with a backup, waits only for its like. */
function kindOf(record: WorkspaceRecord, isTurn: boolean): PassKind {
  if (isTurn || record.lane !== null) return "start";
  if (record.unreachableTime !== null) return "unreachable";
  return record.deletionTime === null && isUnderWay(record.backups) ? "backup" : "ordinary";
}

function forPasses(deps: SweepDeps, epoch: number, endTime: Instant): ReconcileDeps {
  const { store, fleet, config, now, chance, newId } = deps;
  return {
    store,
    fleet,
    epoch,
    now,
    chance,
    newId,
    startTimeoutMs: config.startTimeoutMs,
    prepareTimeoutMs: config.prepareTimeoutMs,
    backups: config.backups,
    laneWidth: config.startLaneWidth,
    runningLimits: runningLimitsOf(config),
    waitMs: () => Math.max(0, Math.min(WAIT_MS, endTime - now())),
  };
}

function describe(result: ReconcileResult) {
  const action = result.action.kind;
  if (result.kind !== "reconciled") return { action, outcome: result.kind };
  const { status, failures } = result.conclusion;
  return { action, phase: status.phase, reason: status.conditions[0]?.reason, failures };
}

/** A conflict does not: whoever wrote the row made it due, and the next round is soon. */
function leavesMoreToDo(result: ReconcileResult, now: Instant): boolean {
  if (result.kind !== "reconciled") return false;
  const { nextReconcileTime, laneReleased } = result.conclusion;
  return laneReleased || result.action.kind === "Enqueue" || (nextReconcileTime !== null && nextReconcileTime <= now);
}
