import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newWebSocketRpcSession } from "capnweb";
import { vi } from "vitest";
import type { Operations } from "../../dev/sandbox-server/operations.ts";
import { sandboxProgram } from "../../dev/sandbox-server/program.ts";

// A start takes a quarter of a second on an idle machine, and many times that on a busy one.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

export type Isolation = "namespace" | "paths";

/** What of an answer these tests look at. */
export interface Answer {
  readonly status: number;
  readonly body: {
    readonly stdout?: string;
    readonly exitCode?: number;
    readonly content?: string;
    readonly exists?: boolean;
    readonly version?: string;
    readonly message?: string;
    readonly files?: readonly { readonly relativePath: string }[];
    readonly process?: { readonly pid: number };
  };
}

export interface StreamEvent {
  readonly type: string;
  readonly data?: string;
}

export interface RunningServer {
  readonly process: ChildProcess;
  /** The directory that is this container's disk. */
  readonly root: string;
  readonly url: string;
  call(method: string, path: string, body?: object): Promise<Answer>;
  post(path: string, body: object): Promise<Answer>;
  run(command: string, fields?: object): Promise<Answer["body"]>;
  rpc(): Operations & Disposable;
  exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  stop(): Promise<void>;
}

/** Whether this machine lets an ordinary process have a mount namespace. Where not, the server falls back to paths. */
export const canIsolate = ["--mount", "--user --map-root-user --mount"].some(
  (flags) => spawnSync("unshare", [...flags.split(" "), "true"]).status === 0,
);

export const isolations: readonly Isolation[] = canIsolate ? ["namespace", "paths"] : ["paths"];

/** Starts the server as the engine does, and waits until it answers. */
export async function startServer(
  isolation: Isolation,
  options: { env?: Record<string, string>; uid?: number } = {},
): Promise<RunningServer> {
  const { command, env, ports } = sandboxProgram();
  const root = mkdtempSync(join(tmpdir(), "sandbox-server-"));
  chmodSync(root, 0o777);
  const port = await freePort();
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    env: {
      ...process.env,
      ...env,
      [ports[3000] ?? ""]: String(port),
      MOORING_CONTAINER_ROOT: root,
      MOORING_CONTAINER_ID: `test-${port}-${process.pid}`,
      ...(isolation === "paths" ? { MOORING_ISOLATION: "paths" } : {}),
      ...options.env,
    },
    stdio: ["pipe", "ignore", "inherit"],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const exit = new Promise<Awaited<RunningServer["exit"]>>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  const server = client(child, root, `http://127.0.0.1:${port}`, exit);
  await until("the server answers", () => fetch(server.url).then(({ ok }) => ok));
  return server;
}

function client(child: ChildProcess, root: string, url: string, exit: RunningServer["exit"]): RunningServer {
  const call: RunningServer["call"] = async (method, path, body) => {
    const response = await fetch(url + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const answer: Answer["body"] = JSON.parse(await response.text());
    return { status: response.status, body: answer };
  };
  return {
    process: child,
    root,
    url,
    exit,
    call,
    post: (path, body) => call("POST", path, body),
    run: async (command, fields = {}) => (await call("POST", "/api/execute", { command, ...fields })).body,
    rpc: () => newWebSocketRpcSession(`${url.replace("http", "ws")}/rpc`) as unknown as Operations & Disposable,
    async stop() {
      child.stdin?.end();
      await exit;
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Waits until a condition holds, asking again and again; fails when it takes unreasonably long. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await Promise.resolve(holds()).catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`Waited in vain until ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether a process lives; one that only waits for its parent to take note of its end does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** The events of a stream, once it has ended. */
export async function eventsOf(stream: ReadableStream<Uint8Array>): Promise<readonly StreamEvent[]> {
  const text = await new Response(stream).text();
  return text
    .split("\n\n")
    .filter(Boolean)
    .map((event) => JSON.parse(event.replace(/^data: /, "")) as StreamEvent);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
