import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

export interface ProcessIdentity {
  readonly pid: number;
  /** Tells this process from a later one that was given the same pid. */
  readonly startTime: string;
}

/** Null when no such process runs. */
export function identify(pid: number): ProcessIdentity | null {
  const startTime = existsSync("/proc/self/stat") ? startTimeFromProc(pid) : startTimeFromPs(pid);
  return startTime === null ? null : { pid, startTime };
}

/** True when exactly this process still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startTime === identity.startTime;
}

export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

function startTimeFromProc(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command, the second field, is in parentheses and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0];
    return state === "Z" || state === "X" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

function startTimeFromPs(pid: number): string | null {
  try {
    const output = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return output.trim() || null;
  } catch {
    return null;
  }
}
