/** One round: what is due goes to the dispatcher, deletions first; then whoever is first in line for the start lane. */
import { runningLimitsOf } from "../config.ts";
import type { DueWorkspaces } from "../store/due.ts";
import type { ControllerSettings } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { Dispatcher } from "./dispatch.ts";
import { type ResyncProgress, completeResync, resyncWindow } from "./resync.ts";
import type { SweepDeps } from "./sweep-deps.ts";

/** A round's lists are short, so that what became due meanwhile is seen soon. */
const ROUND_LIMIT = 100;

export interface RoundState {
  /** As read in the last round. */
  readonly settings: ControllerSettings;
  /** How far the resync has come. */
  readonly resync: ResyncProgress;
}

export async function runRound(deps: SweepDeps, dispatcher: Dispatcher, state: RoundState): Promise<RoundState> {
  const { store, config } = deps;
  const now = deps.now();
  const laneWidth = state.settings.laneWidth ?? config.startLaneWidth;
  dispatcher.widen(laneWidth);
  const { settings, ...lists } = await store.loadDue({
    now,
    resync: resyncWindow(state.resync, now, config.resyncIntervalMs),
    resyncIntervalMs: config.resyncIntervalMs,
    laneWidth,
    runningLimits: runningLimitsOf(config),
    backups: config.backups !== null,
    limit: ROUND_LIMIT,
  });
  // What an operator has paused is not even looked at: a look may settle what is under way.
  return { settings, resync: settings.paused ? state.resync : dispatchAll(lists, dispatcher, state.resync, now) };
}

/** Answers how far the resync has come. */
function dispatchAll(
  { due, resync, startable }: Omit<DueWorkspaces, "settings">,
  dispatcher: Dispatcher,
  progress: ResyncProgress,
  now: Instant,
): ResyncProgress {
  for (const record of startable) dispatcher.start(record);
  for (const record of due) dispatcher.dispatch(record);
  // Only a turn that found room counts as taken; the others come again.
  const refused = resync.findIndex((record) => !dispatcher.dispatch(record));
  if (refused === -1 && resync.length < ROUND_LIMIT) return completeResync(progress, now);
  const last = resync[(refused === -1 ? resync.length : refused) - 1];
  return last === undefined ? progress : { time: progress.time, place: { phase: last.resyncPhase, uid: last.uid } };
}
