/** `wrangler dev` as a child process: real workerd with the D1 files of a directory, and the engine of a socket. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHash } from "node:crypto";

export interface WranglerDevOptions {
  readonly port: number;
  /** Where D1 and Durable Object storage live; they survive the process. */
  readonly persistDirectory: string;
  readonly logFile: string;
  /** Null where a Docker engine of the machine is to be used. */
  readonly engine: { readonly dockerHost: string; readonly dockerCli: string } | null;
  /** Variables of the Worker. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface WranglerDev {
  readonly url: string;
  /** Rejects as soon as the process has ended, or when it is not there in time. */
  ready(timeoutMs: number): Promise<void>;
  readonly exited: Promise<number | null>;
  stop(): Promise<void>;
}

const CONFIG = fileURLToPath(new URL("wrangler.jsonc", import.meta.url));
const BIN = fileURLToPath(new URL("../node_modules/.bin", import.meta.url));

export function startWranglerDev(options: WranglerDevOptions): WranglerDev {
  const { port, persistDirectory, engine } = options;
  const variables = Object.entries(options.variables).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  const parameters = [
    "dev",
    "--config",
    CONFIG,
    "--ip",
    "127.0.0.1",
    "--port",
    String(port),
    "--inspector-port",
    "0",
    "--persist-to",
    persistDirectory,
  ];
  const child = run([...parameters, "--show-interactive-dev-session=false", ...variables], engine, options.logFile);
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const url = `http://127.0.0.1:${port}`;

  return {
    url,
    exited,
    async ready(timeoutMs) {
      const early = exited.then((code) => Promise.reject(new Error(`wrangler dev ended with code ${code}: see ${options.logFile}`)));
      await Promise.race([early, untilAnswers(`${url}/healthz`, timeoutMs)]);
    },
    async stop() {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGINT");
      await exited;
    },
  };
}

/** Applies the migrations that the local database lacks. */
export function applyMigrations(persistDirectory: string): void {
  const parameters = ["d1", "migrations", "apply", "mooring", "--local", "--config", CONFIG, "--persist-to", persistDirectory];
  const { status, stdout, stderr } = spawnSync(join(BIN, "wrangler"), parameters, { encoding: "utf8", env: environment(null) });
  if (status !== 0) throw new Error(`The migrations were not applied:\n${stdout}${stderr}`);
}

/** `API_TOKENS` for tokens that stand in clear on a developer's machine. */
export function localTokens(tokens: readonly { readonly token: string; readonly role: string }[]): string {
  const entries = tokens.map(({ token, role }) => ({ name: token, role, sha256: createHash("sha256").update(token).digest("hex") }));
  return JSON.stringify(entries);
}

/** In a process group of its own: a terminal's Ctrl-C must not reach it before the containers are stopped. */
function run(parameters: readonly string[], engine: WranglerDevOptions["engine"], logFile: string): ChildProcess {
  mkdirSync(dirname(logFile), { recursive: true });
  const log = createWriteStream(logFile, { flags: "a" });
  const child = spawn(join(BIN, "wrangler"), parameters, { stdio: ["ignore", "pipe", "pipe"], env: environment(engine), detached: true });
  process.once("exit", () => killGroup(child));
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  return child;
}

/** The last resort: an orderly stop leaves nothing to kill. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It ended by itself in this moment.
  }
}

function environment(engine: WranglerDevOptions["engine"]): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${BIN}:${process.env["PATH"]}`,
    CI: "true",
    WRANGLER_SEND_METRICS: "false",
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    ...(engine !== null && { WRANGLER_DOCKER_HOST: engine.dockerHost, WRANGLER_DOCKER_BIN: engine.dockerCli }),
  };
}

async function untilAnswers(url: string, timeoutMs: number): Promise<void> {
  for (const end = Date.now() + timeoutMs; Date.now() < end;) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} did not answer within ${timeoutMs} ms.`);
}
