import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { constants } from "node:os";
import { signalGroup } from "./process-identity.ts";

/** As a shell answers for a command it cannot run. */
const CANNOT_RUN = 127;

export interface LaunchOptions {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly logFile: string;
}

/** The main process of a container, the leader of a process group of its own. */
export class ContainerProcess {
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;
  #forcedExitCode: number | undefined;
  #killedItself = false;

  constructor(options: LaunchOptions) {
    const [file = "", ...args] = options.command;
    const log = openSync(options.logFile, "a");
    // Standard input stays open for as long as the engine lives: a program that watches it notices when the engine is killed.
    this.#child = spawn(file, args, {
      cwd: options.directory,
      env: options.environment,
      detached: true,
      stdio: ["pipe", log, log],
    });
    closeSync(log);
    this.#child.stdin?.on("error", () => undefined);
    this.exited = this.#exit();
  }

  /** 0 when the command could not be run at all. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** It ended by a SIGKILL that was not the engine's. */
  get killedItself(): boolean {
    return this.#killedItself;
  }

  /** A line on its standard input. */
  tell(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  signal(name: NodeJS.Signals): void {
    if (this.pid !== 0) this.#child.kill(name);
  }

  stop(): void {
    if (this.pid !== 0) signalGroup(this.pid, "SIGSTOP");
  }

  resume(): void {
    if (this.pid !== 0) signalGroup(this.pid, "SIGCONT");
  }

  /** Ends the whole group; the container reports this exit code. */
  async end(exitCode: number): Promise<void> {
    this.#forcedExitCode ??= exitCode;
    if (this.pid !== 0) signalGroup(this.pid, "SIGKILL");
    await this.exited;
  }

  #exit(): Promise<number> {
    return new Promise((resolve) => {
      this.#child.once("error", () => resolve(this.#forcedExitCode ?? CANNOT_RUN));
      this.#child.once("exit", (code, signal) => {
        // As when PID 1 of a container dies: nothing else in it survives.
        if (this.pid !== 0) signalGroup(this.pid, "SIGKILL");
        this.#killedItself = signal === "SIGKILL" && this.#forcedExitCode === undefined;
        resolve(this.#forcedExitCode ?? code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
      });
    });
  }
}

/** True when something listens on this local port. */
export function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => settle(true)).once("error", () => settle(false));
  });
}
