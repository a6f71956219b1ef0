import { existsSync, readlinkSync } from "node:fs";
import { posix } from "node:path";
import type { Disk } from "./disk.ts";
import { OperationError } from "./errors.ts";
import { type CommandOptions, type CommandOutcome, CommandTimedOut, Shell, ShellEnded } from "./shell.ts";

/** The session id by which the SDK says: a fresh shell for this call, no session. */
export const NO_SESSION = "__DISABLE_SESSION__";

/** Where a session without a directory of its own begins. */
export const DEFAULT_DIRECTORY = "/workspace";

export type Variables = Readonly<Record<string, string | undefined>>;

export interface SessionRequest {
  readonly id: string;
  readonly env?: Variables | undefined;
  readonly cwd?: string | undefined;
  readonly commandTimeoutMs?: number | undefined;
}

/** What a process started in a session inherits from it. */
export interface SessionState {
  readonly cwd: string;
  readonly env: Record<string, string>;
}

interface Session {
  readonly shell: Shell;
  readonly commandTimeoutMs: number | undefined;
  /** Deleted by the caller, as opposed to ended by a command. */
  deleted: boolean;
}

/** The container's sessions: named shells that keep their directory and variables from one command to the next. */
export class Sessions {
  readonly #disk: Disk;
  readonly #env: Record<string, string>;
  readonly #sessions = new Map<string, Session>();
  #opened = 0;

  constructor(disk: Disk, env: Record<string, string>) {
    this.#disk = disk;
    this.#env = env;
  }

  get ids(): readonly string[] {
    return [...this.#sessions.keys()];
  }

  /** Opens a session; one whose shell has ended is replaced. */
  create(request: SessionRequest): void {
    if (this.#sessions.get(request.id)?.shell.exit === undefined && this.#sessions.has(request.id)) {
      const context = { sessionId: request.id, containerPlacementId: this.placementId };
      throw new OperationError("SESSION_ALREADY_EXISTS", `Session '${request.id}' already exists`, context);
    }
    this.#open(request);
  }

  /** Ends a session, and with it the command it may be running. */
  async delete(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) throw new OperationError("INTERNAL_ERROR", `Session '${id}' not found`, { sessionId: id });
    session.deleted = true;
    this.#sessions.delete(id);
    await session.shell.close();
  }

  /** Runs a command in a session, which is opened if it is unknown. */
  async run(id: string, command: string, options: CommandOptions = {}): Promise<CommandOutcome> {
    const session = this.#get(id);
    const cwd = options.cwd === undefined ? undefined : this.#disk.real(options.cwd);
    const env = options.env === undefined ? undefined : this.realVariables(options.env);
    const timeoutMs = options.timeoutMs ?? session.commandTimeoutMs;
    try {
      const outcome = await session.shell.run(this.#disk.command(command), { cwd, env, timeoutMs });
      return { ...outcome, stdout: this.#disk.visible(outcome.stdout), stderr: this.#disk.visible(outcome.stderr) };
    } catch (error) {
      throw this.#commandError(id, session, command, error);
    }
  }

  /** A session's directory and exported variables as they are after the commands before this call. */
  async state(id: string): Promise<SessionState> {
    if (id === NO_SESSION) return { cwd: this.#disk.real(DEFAULT_DIRECTORY), env: this.#env };
    const session = this.#get(id);
    try {
      const { stdout } = await session.shell.run(`builtin printf '%s\\0' "$PWD"; command env -0`);
      const [cwd = "/", ...variables] = stdout.split("\0").filter(Boolean);
      return { cwd, env: Object.fromEntries(variables.map(parseVariable)) };
    } catch (error) {
      throw this.#commandError(id, session, "env", error);
    }
  }

  /** The real path of what a caller named, a relative path being relative to the session's directory. */
  resolve(id: string, path: string): string {
    if (path.startsWith("/")) return this.#disk.real(path);
    const pid = id === NO_SESSION ? undefined : this.#get(id).shell.pid;
    const directory = pid === undefined ? this.#disk.real(DEFAULT_DIRECTORY) : readlinkSync(`/proc/${pid}/cwd`);
    return posix.resolve(directory, path);
  }

  /** Variables as the container's processes must see them. */
  realVariables(env: Variables): Record<string, string> {
    return Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, this.#disk.command(value)]])),
    );
  }

  get placementId(): string | null {
    return this.#env["CLOUDFLARE_PLACEMENT_ID"] ?? null;
  }

  #get(id: string): Session {
    const session = this.#sessions.get(id) ?? this.#open({ id });
    if (session.shell.exit === undefined) return session;
    this.#sessions.delete(id);
    throw terminated(id, session.shell.exit);
  }

  #open(request: SessionRequest): Session {
    const wanted = this.#disk.real(request.cwd ?? DEFAULT_DIRECTORY);
    const cwd = existsSync(wanted) ? wanted : this.#disk.real("/root");
    const env = { ...this.#env, ...this.realVariables(request.env ?? {}) };
    const shell = new Shell({ cwd, env, filePrefix: `${this.#disk.scratch}/shell-${++this.#opened}` });
    const session = { shell, commandTimeoutMs: request.commandTimeoutMs, deleted: false };
    this.#sessions.set(request.id, session);
    return session;
  }

  #commandError(id: string, session: Session, command: string, error: unknown): unknown {
    if (session.deleted) return new OperationError("SESSION_DESTROYED", `Session '${id}' was destroyed`, { sessionId: id });
    if (error instanceof CommandTimedOut) {
      return new OperationError("COMMAND_EXECUTION_ERROR", error.message, { command, stderr: error.message });
    }
    if (!(error instanceof ShellEnded)) return error;
    if (this.#sessions.get(id) === session) this.#sessions.delete(id);
    return terminated(id, error);
  }
}

function terminated(id: string, end: ShellEnded): OperationError {
  const message = `Session '${id}' shell exited (exit code: ${end.exitCode ?? "unknown"})`;
  return new OperationError("SESSION_TERMINATED", message, { sessionId: id, exitCode: end.exitCode });
}

function parseVariable(text: string): [string, string] {
  const end = text.indexOf("=");
  return [text.slice(0, end), text.slice(end + 1)];
}
