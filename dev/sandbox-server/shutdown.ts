import { endAll, processesOf, signalAll } from "./process-tree.ts";
import type { Settings } from "./settings.ts";

/** How long the container's processes may take to end by themselves when it is stopped. */
const STOP_GRACE_MS = 500;

/** Ends this process and all of the container's: politely on SIGTERM, at once when the engine is gone. */
export function endOnSignals(settings: Settings): void {
  process.on("SIGTERM", () => {
    if (!settings.ignoreSigterm) void stop(settings.containerId);
  });
  // The engine holds the other end of stdin, and its death is the only one that closes it.
  process.stdin.once("end", () => end(settings.containerId));
  process.stdin.once("error", () => end(settings.containerId));
  process.stdin.resume();
}

async function stop(containerId: string): Promise<never> {
  await endAll(processesOf(containerId), STOP_GRACE_MS);
  return end(containerId);
}

function end(containerId: string): never {
  signalAll(processesOf(containerId), "SIGKILL");
  process.exit(0);
}
