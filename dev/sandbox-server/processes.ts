import { randomUUID } from "node:crypto";
import type { Disk } from "./disk.ts";
import { OperationError } from "./errors.ts";
import { eventStream, now } from "./event-stream.ts";
import { launch, type Launched } from "./one-off.ts";
import type { Sessions, Variables } from "./sessions.ts";

/** How long a process may take to end by itself when it is killed, as in the real server. */
const KILL_GRACE_MS = 5_000;

export interface StartOptions {
  readonly processId?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly env?: Variables | undefined;
  readonly cwd?: string | undefined;
}

type Status = "running" | "completed" | "failed" | "killed";

/** What happens to a process, in order. */
export type ProcessEvent =
  | { readonly type: "stdout" | "stderr"; readonly data: string }
  | { readonly type: "end"; readonly exitCode: number };

export interface Process {
  readonly id: string;
  readonly command: string;
  readonly startTime: string;
  readonly running: Launched;
  readonly listeners: Set<(event: ProcessEvent) => void>;
  status: Status;
  stdout: string;
  stderr: string;
  endTime?: string;
  exitCode?: number;
}

/** The container's background processes. Every session sees all of them. */
export class Processes {
  readonly #sessions: Sessions;
  readonly #disk: Disk;
  readonly #processes = new Map<string, Process>();

  constructor(sessions: Sessions, disk: Disk) {
    this.#sessions = sessions;
    this.#disk = disk;
  }

  get all(): readonly Process[] {
    return [...this.#processes.values()];
  }

  /** Starts a command in a session's directory and with its variables, beside the session's shell. */
  async start(command: string, sessionId: string, options: StartOptions = {}): Promise<Process> {
    if (typeof command !== "string" || command.trim() === "")
      throw new OperationError("INVALID_COMMAND", "Invalid command: empty", { command });
    const id = options.processId ?? `proc_${randomUUID()}`;
    if (this.#processes.get(id)?.status === "running") {
      throw new OperationError("PROCESS_ERROR", `Process ${id} is already running`, { processId: id });
    }
    const state = await this.#sessions.state(sessionId);
    const running = launch({
      command: this.#disk.command(command),
      cwd: options.cwd === undefined ? state.cwd : this.#disk.real(options.cwd),
      env: { ...state.env, ...this.#sessions.realVariables(options.env ?? {}) },
      onOutput: (stream, text) => this.#output(process, stream, this.#disk.visible(text)),
    });
    const process: Process = { id, command, startTime: now(), running, listeners: new Set(), status: "running", stdout: "", stderr: "" };
    this.#processes.set(id, process);
    void this.#awaitEnd(process, options.timeoutMs);
    return process;
  }

  /** The process of that id; PROCESS_NOT_FOUND if there never was one. */
  get(id: string): Process {
    const process = this.#processes.get(id);
    if (process === undefined) throw new OperationError("PROCESS_NOT_FOUND", `Process ${id} not found`, { processId: id });
    return process;
  }

  /** Ends a process and all it started. */
  async kill(process: Process): Promise<void> {
    if (process.status !== "running") {
      throw new OperationError("COMMAND_NOT_FOUND", `Command '${process.id}' not found or already completed`, { command: process.id });
    }
    await process.running.kill(KILL_GRACE_MS);
    process.status = "killed";
  }

  #output(process: Process, stream: "stdout" | "stderr", data: string): void {
    process[stream] += data;
    for (const listener of process.listeners) listener({ type: stream, data });
  }

  async #awaitEnd(process: Process, timeoutMs: number | undefined): Promise<void> {
    const timeout = timeoutMs === undefined ? undefined : setTimeout(() => void process.running.kill(KILL_GRACE_MS), timeoutMs);
    const exitCode = await process.running.ended;
    clearTimeout(timeout);
    process.exitCode = exitCode;
    process.endTime = now();
    process.status = exitCode === 0 ? "completed" : exitCode > 128 ? "killed" : "failed";
    for (const listener of process.listeners) listener({ type: "end", exitCode });
    process.listeners.clear();
  }
}

/** The process operations, with the arguments and answers of the SDK's own interface. */
export function processOperations(processes: Processes) {
  return {
    async startProcess(command: string, sessionId: string, options?: StartOptions) {
      const process = await processes.start(command, sessionId, options);
      return { success: true, processId: process.id, pid: process.running.pid, command, timestamp: process.startTime };
    },
    listProcesses: async () => ({ success: true, processes: processes.all.map(describe), timestamp: now() }),
    getProcess: async (id: string) => ({ success: true, process: describe(processes.get(id)), timestamp: now() }),
    async killProcess(id: string) {
      await processes.kill(processes.get(id));
      return { success: true, processId: id, timestamp: now() };
    },
    async killAllProcesses() {
      const running = processes.all.filter(({ status }) => status === "running");
      // One that ends by itself meanwhile is not this call's doing.
      const kills = await Promise.allSettled(running.map((process) => processes.kill(process)));
      return { success: true, cleanedCount: kills.filter(({ status }) => status === "fulfilled").length, timestamp: now() };
    },
    async getProcessLogs(id: string) {
      const { stdout, stderr } = processes.get(id);
      return { success: true, processId: id, stdout, stderr, timestamp: now() };
    },
    streamProcessLogs: async (id: string) => streamLogs(processes.get(id)),
  };
}

/** Follows a process: what it has written so far, what it writes from now on, its end. */
export function follow(process: Process, listener: (event: ProcessEvent) => void, signal: AbortSignal): void {
  if (process.stdout !== "") listener({ type: "stdout", data: process.stdout });
  if (process.stderr !== "") listener({ type: "stderr", data: process.stderr });
  if (process.exitCode !== undefined) return listener({ type: "end", exitCode: process.exitCode });
  process.listeners.add(listener);
  signal.addEventListener("abort", () => process.listeners.delete(listener));
}

function describe({ id, running, command, status, startTime, endTime, exitCode }: Process) {
  return { id, pid: running.pid, command, status, startTime, endTime, exitCode };
}

function streamLogs(process: Process): ReadableStream<Uint8Array> {
  const processId = process.id;
  return eventStream(({ emit, close, signal }) => {
    emit({ type: "process_info", processId, command: process.command, status: process.status, timestamp: now() });
    follow(
      process,
      (event) => {
        if (event.type !== "end") return void emit({ ...event, processId, timestamp: now() });
        const data = `Process ${process.status} with exit code ${event.exitCode}`;
        emit({ type: "exit", processId, exitCode: event.exitCode, data, timestamp: now() });
        close();
      },
      signal,
    );
  });
}
