import type { Disk } from "./disk.ts";
import { eventStream, now } from "./event-stream.ts";
import { launch } from "./one-off.ts";
import { follow, type Processes, type StartOptions } from "./processes.ts";
import { NO_SESSION, type Sessions, type Variables } from "./sessions.ts";
import type { CommandOutcome } from "./shell.ts";
import { asUnpacking, unpack } from "./unsquashfs.ts";

export interface ExecuteOptions {
  readonly timeoutMs?: number | undefined;
  readonly env?: Variables | undefined;
  readonly cwd?: string | undefined;
}

/** The exit code of timeout(1), which the real server gives to a command without a session that ran too long. */
const TIMED_OUT = 124;

/** The command operations, with the arguments and answers of the SDK's own interface. */
export function commandOperations(sessions: Sessions, processes: Processes, disk: Disk) {
  return {
    async execute(command: string, sessionId: string, options: ExecuteOptions = {}) {
      const unpacking = asUnpacking(command);
      const outcome = await (unpacking !== undefined
        ? unpack(unpacking, disk, (path) => sessions.resolve(sessionId, path))
        : sessionId === NO_SESSION
          ? runAlone(sessions, disk, command, options)
          : sessions.run(sessionId, command, options));
      return { success: outcome.exitCode === 0, ...outcome, command, timestamp: now() };
    },
    async executeStream(command: string, sessionId: string, options: StartOptions = {}) {
      const process = await processes.start(command, sessionId, options);
      return eventStream(({ emit, close, signal }) => {
        emit({ type: "start", command, sessionId, pid: process.running.pid, timestamp: now() });
        follow(
          process,
          (event) => {
            if (event.type !== "end") return void emit({ ...event, timestamp: now() });
            emit({ type: "complete", exitCode: event.exitCode, timestamp: now() });
            close();
          },
          signal,
        );
      });
    },
  };
}

async function runAlone(sessions: Sessions, disk: Disk, command: string, options: ExecuteOptions): Promise<CommandOutcome> {
  const state = await sessions.state(NO_SESSION);
  const output = { stdout: "", stderr: "" };
  const running = launch({
    command: disk.command(command),
    cwd: options.cwd === undefined ? state.cwd : disk.real(options.cwd),
    env: { ...state.env, ...sessions.realVariables(options.env ?? {}) },
    onOutput: (stream, text) => (output[stream] += text),
  });
  let timedOut = false;
  const expire = (): void => {
    timedOut = true;
    void running.kill(0);
  };
  const timeout = options.timeoutMs === undefined ? undefined : setTimeout(expire, options.timeoutMs);
  const exitCode = await running.ended.finally(() => clearTimeout(timeout));
  const stderr = timedOut ? `${output.stderr}Command timed out after ${options.timeoutMs}ms` : output.stderr;
  return { exitCode: timedOut ? TIMED_OUT : exitCode, stdout: disk.visible(output.stdout), stderr: disk.visible(stderr) };
}
