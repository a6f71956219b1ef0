import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import type { Container } from "./container.ts";
import type { DockerCall, Outcome } from "./docker-call.ts";
import { signalGroup } from "./process-identity.ts";
import { ROOT_VARIABLE } from "./state-directory.ts";

interface Exec {
  readonly container: Container;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
  child?: ChildProcess;
  exitCode?: number;
}

/** Commands run inside a container, as `ctx.container.exec()` asks for them. Terminals are not implemented. */
export class ExecTable {
  readonly #execs = new Map<string, Exec>();

  create(container: Container, call: DockerCall): Outcome {
    if (!container.running) return { status: 409, json: { message: "container is not running" } };
    const body = JSON.parse(call.body.toString("utf8")) as { Cmd?: string[]; Env?: string[]; WorkingDir?: string; Tty?: boolean };
    if (body.Tty === true) return "Unimplemented";
    const id = randomBytes(32).toString("hex");
    this.#execs.set(id, {
      container,
      command: body.Cmd ?? [],
      environment: Object.fromEntries((body.Env ?? []).map((line) => [line.split("=", 1)[0] ?? "", line.slice(line.indexOf("=") + 1)])),
      directory: body.WorkingDir ?? container.root,
    });
    return { status: 201, json: { Id: id } };
  }

  answer({ method }: DockerCall, id: string, action: string | undefined): Outcome {
    const exec = this.#execs.get(id);
    if (exec === undefined) return { status: 404, json: { message: "no such exec" } };
    if (method === "POST" && action === "start") {
      launch(exec);
      return { status: 200 };
    }
    if (method !== "GET" || action !== "json") return "Unimplemented";
    const running = exec.child !== undefined && exec.exitCode === undefined;
    return { status: 200, json: { ID: id, Running: running, ExitCode: exec.exitCode ?? null, Pid: exec.child?.pid ?? 0 } };
  }

  /** Starts a command on an upgraded connection; returns the status it answered with. */
  attach(request: IncomingMessage, socket: Duplex): number {
    const id = /^\/exec\/([0-9a-f]+)\/start$/.exec(request.url ?? "")?.[1];
    const exec = id === undefined ? undefined : this.#execs.get(id);
    if (exec === undefined) {
      socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return 404;
    }
    socket.on("error", () => socket.destroy());
    socket.write("HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    // The request's own body, the options of the start, comes first on the stream.
    const bodyLength = Number(request.headers["content-length"] ?? 0);
    pump(launch(exec), socket, bodyLength);
    return 101;
  }
}

function launch(exec: Exec): ChildProcess {
  const { container } = exec;
  const [file = "", ...args] = exec.command;
  const child = spawn(file, args, {
    cwd: exec.directory,
    env: {
      PATH: process.env["PATH"],
      ...container.program.env,
      ...container.environment,
      ...exec.environment,
      [ROOT_VARIABLE]: container.root,
    },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  exec.child = child;
  const endGroup = () => void (child.pid !== undefined && signalGroup(child.pid, "SIGKILL"));
  const detach = container.attach({ exited: endGroup, cut: () => undefined });
  child.stdin.on("error", () => undefined);
  child.once("error", () => void (exec.exitCode = 127));
  child.once("exit", (code, signal) => {
    exec.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
    detach();
  });
  return child;
}

/** Docker's stream format: eight bytes (stream, three zeros, big-endian length) before each piece of output. */
function pump(child: ChildProcess, socket: Duplex, bodyLength: number): void {
  let toSkip = bodyLength;
  socket.on("data", (chunk: Buffer) => {
    const rest = chunk.subarray(toSkip);
    toSkip = Math.max(toSkip - chunk.length, 0);
    if (rest.length > 0) child.stdin?.write(rest);
  });
  socket.on("end", () => child.stdin?.end());
  const frame = (stream: number) => (chunk: Buffer) => {
    const header = Buffer.alloc(8);
    header.writeUInt8(stream, 0);
    header.writeUInt32BE(chunk.length, 4);
    socket.write(Buffer.concat([header, chunk]));
  };
  child.stdout?.on("data", frame(1));
  child.stderr?.on("data", frame(2));
  child.once("close", () => socket.end());
}
