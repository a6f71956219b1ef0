import { type ChildProcess, spawn } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { childrenOf, signalAll, treeOf } from "./process-tree.ts";
import { type CommandFiles, type CommandScope, shellScript } from "./shell-script.ts";

export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions extends CommandScope {
  readonly timeoutMs?: number | undefined;
}

/** The command ended the shell (`exit 7`), or somebody did. */
export class ShellEnded extends Error {
  override readonly name = "ShellEnded";
  readonly exitCode: number | null;

  constructor(exitCode: number | null) {
    super(`the shell ended with code ${exitCode ?? "unknown"}`);
    this.exitCode = exitCode;
  }
}

export class CommandTimedOut extends Error {
  override readonly name = "CommandTimedOut";
}

/** How long a shell may take to notice that the command it waits for was killed. */
const KILL_GRACE_MS = 1_000;

interface Running {
  readonly number: number;
  readonly resolve: (exitCode: number) => void;
  readonly reject: (error: Error) => void;
}

/** A shell that lives as long as its session and runs one command at a time, in the order they came. */
export class Shell {
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #filePrefix: string;
  readonly #ended: Promise<void>;
  #queue: Promise<unknown> = Promise.resolve();
  #running: Running | undefined;
  #count = 0;
  #exit: ShellEnded | undefined;

  constructor(options: { cwd: string; env: Record<string, string>; filePrefix: string }) {
    this.#filePrefix = options.filePrefix;
    this.#child = spawn("bash", ["--norc", "--noprofile"], {
      cwd: options.cwd,
      env: options.env,
      stdio: ["pipe", "ignore", "ignore", "pipe"],
    });
    const [input, , , reports] = this.#child.stdio;
    this.#input = input as Writable;
    // The shell may end between a check and a write; its exit event says so, and says it better.
    this.#input.on("error", () => {});
    this.#readReports(reports as Readable);
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", () => this.#end(null, resolve));
      this.#child.once("exit", (code) => this.#end(code, resolve));
    });
  }

  /** How the shell ended, or undefined while it lives. */
  get exit(): ShellEnded | undefined {
    return this.#exit;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Runs a command after all earlier ones; fails with ShellEnded or CommandTimedOut. */
  run(command: string, options: CommandOptions = {}): Promise<CommandOutcome> {
    const result = this.#queue.then(() => this.#runNow(command, options));
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Ends the shell and everything it started, whether or not a command is running. */
  async close(): Promise<void> {
    if (this.#exit === undefined && this.#child.pid !== undefined) signalAll(treeOf(this.#child.pid), "SIGKILL");
    await this.#ended;
  }

  async #runNow(command: string, options: CommandOptions): Promise<CommandOutcome> {
    if (this.#exit !== undefined) throw this.#exit;
    const number = ++this.#count;
    const files = { stdout: `${this.#filePrefix}-${number}.out`, stderr: `${this.#filePrefix}-${number}.err` };
    try {
      const exitCode = await this.#report(number, shellScript(number, command, files, options), options.timeoutMs);
      const [stdout, stderr] = await Promise.all([readOutput(files.stdout), readOutput(files.stderr)]);
      return { exitCode, stdout, stderr };
    } finally {
      await removeFiles(files);
    }
  }

  #report(number: number, script: string, timeoutMs: number | undefined): Promise<number> {
    const before = new Set(childrenOf(this.#child.pid ?? 0));
    return new Promise<number>((resolve, reject) => {
      const timeout = timeoutMs === undefined ? undefined : setTimeout(() => this.#interrupt(before, timeoutMs), timeoutMs);
      const settle =
        <T>(done: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timeout);
          this.#running = undefined;
          done(value);
        };
      this.#running = { number, resolve: settle(resolve), reject: settle(reject) };
      this.#input.write(script);
    });
  }

  /** Kills what the running command started. A command that is the shell itself (a loop) takes the shell with it. */
  #interrupt(before: ReadonlySet<number>, timeoutMs: number): void {
    const running = this.#running;
    const pid = this.#child.pid;
    if (running === undefined || pid === undefined) return;
    const kill = (): void =>
      signalAll(
        childrenOf(pid)
          .filter((child) => !before.has(child))
          .flatMap(treeOf),
        "SIGKILL",
      );
    // A list of commands (`sleep 9; sleep 9`) starts the next one when the first is killed.
    const again = setInterval(kill, 20);
    const last = setTimeout(() => signalAll(treeOf(pid), "SIGKILL"), KILL_GRACE_MS);
    const fail = (): void => {
      clearInterval(again);
      clearTimeout(last);
      running.reject(new CommandTimedOut(`Command timeout after ${timeoutMs}ms`));
    };
    this.#running = { number: running.number, resolve: fail, reject: fail };
    kill();
  }

  #readReports(reports: Readable): void {
    let text = "";
    reports.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        const [number, exitCode] = line.split(" ").map(Number);
        if (this.#running?.number === number) this.#running?.resolve(exitCode ?? 1);
      }
    });
  }

  #end(exitCode: number | null, resolve: () => void): void {
    this.#exit ??= new ShellEnded(exitCode);
    this.#running?.reject(this.#exit);
    resolve();
  }
}

/** A command's output, without the newline that ends its last line: the SDK's callers compare with plain text. */
async function readOutput(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

async function removeFiles(files: CommandFiles): Promise<void> {
  await Promise.all([rm(files.stdout, { force: true }), rm(files.stderr, { force: true })]);
}
