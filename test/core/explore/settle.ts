/** A quiet and obedient world: time passes, starts succeed, every call is answered, nobody wishes anything new. */
import { endBackup } from "./backups.ts";
import { timePasses } from "./events.ts";
import { runPass } from "./pass.ts";
import { isUnderWay, proceed } from "./sandbox.ts";
import { startable } from "./store.ts";
import { UNDISTURBED } from "./walk.ts";
import { LONG_AGO, type World, canonical, hashOf, withSandbox, workspaceOf } from "./world.ts";

/** As long as it takes a lane place that nobody will use any more to run out. */
const LANE_LASTS = 4;

/** Most ways meet after a round or two: each is gone only once. */
export type Memory = Map<string, World>;

/** One round after another; `silent` names a workspace whose sandbox never answers. */
export function roundsOf(world: World, rounds: number, silent: string | null, memory: Memory): World {
  let now = world;
  for (let round = 0; round < rounds; round += 1) {
    const key = `${round} ${JSON.stringify(now)}`;
    const next = memory.get(key) ?? canonical(quietRound(now, round, silent));
    memory.set(key, next);
    now = next;
  }
  return now;
}

function quietRound(world: World, round: number, silent: string | null): World {
  const uids = Object.keys(world.workspaces);
  const verified = uids.reduce((now, uid) => (isUnderWay(workspaceOf(now, uid).sandbox) ? verify(now, uid) : now), world);
  const saved = uids.reduce(complete, verified);
  const passed = uids.reduce(timePasses, { ...saved, brake: false, lane: round === LANE_LASTS ? null : saved.lane });
  const first = startable(passed);
  const order = [...uids].toSorted((a, b) => Number(b === first) - Number(a === first));
  return order.reduce((now, uid) => quietPass(now, uid, uid === first, uid === silent), passed);
}

function verify(world: World, uid: string): World {
  return withSandbox(world, uid, proceed(workspaceOf(world, uid).sandbox, "verified"));
}

function complete(world: World, uid: string): World {
  const { sandbox } = workspaceOf(world, uid);
  return sandbox.backup?.state === "InProgress" ? withSandbox(world, uid, endBackup(sandbox, "Completed")) : world;
}

function quietPass(world: World, uid: string, isTurn: boolean, isSilent: boolean): World {
  const calls = isSilent ? (["lost"] as const) : UNDISTURBED.calls;
  const choose = ([way, other]: readonly string[]) => (isSilent ? (other ?? way ?? "") : (way ?? ""));
  return runPass(world, uid, world.epoch, isTurn, { ...UNDISTURBED, calls, choose, check: () => {} });
}

/** What is still missing, or null where the workspace is where it is wished to be, or stands still for a reason that it shows. */
export function unsettled(world: World, uid: string): string | null {
  const { row, parses, sandbox, doomed, asleep, expired } = workspaceOf(world, uid);
  if (world.lane?.uid === uid) return "holds the lane";
  if (row === null) return null;
  if (row.deletionTime !== null) return "is not forgotten";
  if (row.backups?.active?.state === "InProgress") return "has a backup without an outcome";
  if (!parses) return row.status.phase === "Stalled" ? null : "does not say that its spec is unreadable";
  if (expired) return "is not expired";
  if (row.spec === null || row.spec.paused) return null;
  if (row.instance?.destroyRequested && sandbox.admission !== "Destroyed") return "has the sandbox that was to be replaced";
  if (row.spec.operatingMode === "Suspended" || asleep)
    return sandbox.running || row.status.phase !== "Suspended" ? "is not suspended" : null;
  if (doomed) return row.status.phase === "Stalled" ? null : "failed for good and does not say so";
  if (sandbox.old) return "runs for too long";
  if (row.spec.idle !== null && sandbox.unused && (row.wakeTime ?? 0) <= LONG_AGO) return "is idle and runs";
  const isUp = sandbox.running && sandbox.operation?.state === "Succeeded" && sandbox.operation.specHash === hashOf(row.spec);
  return isUp && row.status.phase === "Ready" ? null : "is not Ready";
}
