import { type ChildProcess, spawn } from "node:child_process";
import { endAll, treeOf } from "./process-tree.ts";

export interface Launch {
  readonly command: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly onOutput: (stream: "stdout" | "stderr", text: string) => void;
}

/** A command in a shell of its own. */
export interface Launched {
  readonly pid: number | undefined;
  /** Its exit code, or 128 and the signal's number; settles when its output has been handed over. Never fails. */
  readonly ended: Promise<number>;
  /** Ends it with everything it started: asked first, made to after the grace. */
  kill(graceMs: number): Promise<void>;
}

/** What still comes through the pipes after the exit, when a background job keeps them open. */
const DRAIN_MS = 100;

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
};

/** Starts a command in a fresh shell. */
export function launch({ command, cwd, env, onOutput }: Launch): Launched {
  const child = spawn("bash", ["--norc", "-c", command], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.setEncoding("utf8").on("data", (text: string) => onOutput("stdout", text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => onOutput("stderr", text));
  const ended = endOf(child, onOutput);
  return {
    pid: child.pid,
    ended,
    async kill(graceMs) {
      if (child.pid === undefined) return;
      await endAll(treeOf(child.pid), graceMs);
      await ended;
    },
  };
}

function endOf(child: ChildProcess, onOutput: Launch["onOutput"]): Promise<number> {
  return new Promise((resolve) => {
    child.once("error", (error) => {
      onOutput("stderr", `${error.message}\n`);
      resolve(127);
    });
    child.once("exit", (code, signal) => {
      const exitCode = code ?? 128 + (SIGNAL_NUMBERS[signal ?? ""] ?? 0);
      const drained = setTimeout(() => resolve(exitCode), DRAIN_MS);
      child.once("close", () => {
        clearTimeout(drained);
        resolve(exitCode);
      });
    });
  });
}
