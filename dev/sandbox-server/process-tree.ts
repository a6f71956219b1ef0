import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;

/** The children a process has now. */
export function childrenOf(pid: number): readonly number[] {
  return readOr("", `/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
}

/** A process and all its descendants, parents first: a shell that lost its child would go on to the next command. */
export function treeOf(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** Signals each process; one that is gone already is what the caller wanted. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended between the listing and the signal.
    }
  }
}

/** Ends processes: asked first, made to after the grace. Resolves when they are gone, or were made to go. */
export async function endAll(pids: readonly number[], graceMs: number): Promise<void> {
  signalAll(pids, "SIGTERM");
  const deadline = Date.now() + graceMs;
  while (pids.some(isAlive) && Date.now() < deadline) await delay(POLL_MS);
  signalAll(pids.filter(isAlive), "SIGKILL");
}

/**
 * Every process of a container but this one, found by the mark in its environment: a daemon that left its session and
 * its parent still carries it.
 */
export function processesOf(containerId: string): readonly number[] {
  const mark = `MOORING_CONTAINER_ID=${containerId}\0`;
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && readOr("", `/proc/${pid}/environ`).includes(mark));
}

/** Whether a process runs still; one that waits for its parent to take note of its end does not. */
function isAlive(pid: number): boolean {
  // The state follows the name, which stands in parentheses and may hold anything.
  const state = /\) (\S)/.exec(readOr("", `/proc/${pid}/stat`))?.[1];
  return state !== undefined && state !== "Z" && state !== "X";
}

function readOr(fallback: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return fallback;
  }
}
