/** One round: what is due goes to the dispatcher, deletions first; then whoever is first in line for the start lane. */
import { loadDue } from "../store/due.ts";
import type { Dispatcher } from "./dispatch.ts";
import { type ResyncProgress, completeResync, resyncWindow } from "./resync.ts";
import type { SweepDeps } from "./sweep-deps.ts";

/** A round's lists are short, so that what became due meanwhile is seen soon. */
const ROUND_LIMIT = 100;

/** Answers how far the resync has come. */
export async function runRound(deps: SweepDeps, dispatcher: Dispatcher, progress: ResyncProgress): Promise<ResyncProgress> {
  const { db, config } = deps;
  const now = deps.now();
  const { due, resync, startable } = await loadDue(db, {
    now,
    resync: resyncWindow(progress, now, config.resyncIntervalMs),
    laneWidth: config.startLaneWidth,
    limit: ROUND_LIMIT,
  });
  for (const record of startable) dispatcher.start(record);
  for (const record of due) dispatcher.dispatch(record);
  // Only a turn that found room counts as taken; the others come again.
  const refused = resync.findIndex((record) => !dispatcher.dispatch(record));
  if (refused === -1 && resync.length < ROUND_LIMIT) return completeResync(progress, now);
  const last = resync[(refused === -1 ? resync.length : refused) - 1];
  return last === undefined ? progress : { time: progress.time, place: { phase: last.resyncPhase, uid: last.uid } };
}
