/** All of Mooring on one machine: the engine, the local database, the Worker in workerd. The start script, the demo and the tests use it. */
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Engine, EngineEvent, EngineOptions } from "./engine/contract.ts";
import { startEngine } from "./engine/engine.ts";
import type { Faults } from "./engine/faults.ts";
import { sandboxProgram } from "./sandbox-server/program.ts";
import { applyMigrations, localTokens, startWranglerDev, type WranglerDev } from "./wrangler-dev.ts";

export const LOCAL_TOKENS = [
  { token: "dev-operator", role: "operator" },
  { token: "dev-editor", role: "editor" },
  { token: "dev-viewer", role: "viewer" },
] as const;

/** Everything local that a run leaves behind, below the repository. */
export const LOCAL_DIRECTORY = fileURLToPath(new URL("../.mooring", import.meta.url));

export interface StackOptions {
  /** One stack at a time uses it; what is in it survives the stack. */
  readonly directory: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly variables?: Readonly<Record<string, string>>;
  readonly seed?: number;
  readonly faults?: Faults;
  readonly onEvent?: (event: EngineEvent) => void;
}

export interface Stack {
  readonly engine: Engine;
  readonly url: string;
  readonly worker: WranglerDev;
  /** Another engine behind the same socket, as if the run had begun with it; what ran on the old one is gone. */
  replaceEngine(options: Pick<StackOptions, "seed" | "faults">): Promise<void>;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 120_000;

export async function startStack(options: StackOptions): Promise<Stack> {
  const persistDirectory = join(options.directory, "state");
  const port = options.port === 0 ? await freePort() : options.port;
  // The next engine has to be found where this one was.
  const inventoryPort = await freePort();
  let engine = await startLocalEngine({ ...options, inventoryPort });
  applyMigrations(persistDirectory);
  const worker = startWranglerDev({
    port,
    persistDirectory,
    logFile: join(options.directory, "worker.log"),
    engine,
    variables: { API_TOKENS: localTokens(LOCAL_TOKENS), ...platformVariables(engine), ...options.variables },
  });
  const stack: Stack = {
    get engine() {
      return engine;
    },
    url: `http://127.0.0.1:${port}`,
    worker,
    async replaceEngine(changes) {
      await engine.close();
      engine = await startLocalEngine({ ...options, ...changes, inventoryPort });
    },
    async stop() {
      await worker.stop();
      await engine.close();
    },
  };
  try {
    await worker.ready(READY_TIMEOUT_MS);
  } catch (error) {
    await stack.stop();
    throw error;
  }
  return stack;
}

export interface LocalEngineOptions extends Pick<StackOptions, "directory" | "seed" | "faults" | "onEvent"> {
  readonly inventoryPort: number;
  /** By default the stand-in for the sandbox image, whatever the reference. */
  readonly image?: EngineOptions["image"];
}

/** What makes the Worker take the engine for the platform's API. */
export function platformVariables({ inventoryUrl }: Engine): Readonly<Record<string, string>> {
  return {
    CLOUDFLARE_ACCOUNT_ID: "local",
    CLOUDFLARE_API_TOKEN: "local",
    CLOUDFLARE_API_BASE_URL: `${inventoryUrl}/client/v4`,
    CONTAINER_APPLICATION: APPLICATION,
  };
}

/** As the platform names it: Worker and class. */
const APPLICATION = "mooring-dev-workspacesandbox";

export function startLocalEngine(options: LocalEngineOptions): Promise<Engine> {
  const { directory, seed, faults, onEvent, inventoryPort, image } = options;
  mkdirSync(directory, { recursive: true });
  return startEngine({
    socketPath: socketPath(directory),
    stateDirectory: join(directory, "engine"),
    image: image ?? (() => sandboxProgram()),
    inventoryPort,
    applications: [APPLICATION],
    ...(seed !== undefined && { seed }),
    ...(faults !== undefined && { faults }),
    ...(onEvent !== undefined && { onEvent }),
  });
}

/** The path of a unix socket may have about 100 bytes; a checkout's own may have more. */
function socketPath(directory: string): string {
  return join(tmpdir(), `mooring-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}.sock`);
}

export async function freePort(): Promise<number> {
  const port = await listen(0);
  if (port === null) throw new Error("No port of this machine is free.");
  return port;
}

export async function isFree(port: number): Promise<boolean> {
  return (await listen(port)) !== null;
}

/** The port listened on for a moment, or null where that is not possible. */
function listen(port: number): Promise<number | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(null));
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : null));
    });
  });
}
