/** The product's Worker in real workerd inside wrangler's test harness, over an engine of this process. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createTestHarness } from "wrangler";
import type { Engine, EngineEvent, EngineOptions } from "../../dev/engine/contract.ts";
import type { Faults } from "../../dev/engine/faults.ts";
import { freePort, LOCAL_TOKENS, platformVariables, startLocalEngine } from "../../dev/stack.ts";
import { localTokens } from "../../dev/wrangler-dev.ts";

export interface TestStackOptions {
  readonly directory: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly onEvent?: (event: EngineEvent) => void;
  /** By path: what a sandbox sees of the disk is not its own namespace, and it is up sooner. */
  readonly isolation?: "paths";
  /** By default the stand-in for the sandbox image, whatever the reference. */
  readonly image?: EngineOptions["image"];
}

export interface TestStack {
  readonly engine: Engine;
  readonly url: string;
  /** Another engine behind the same socket, as if the run had begun with it; what ran on the old one is gone. */
  replaceEngine(options: { readonly seed: number; readonly faults: Faults }): Promise<void>;
  /** kill -9 of workerd. The harness starts it again over the same files; the engine stays. */
  crashWorker(): Promise<void>;
  /** The Worker's own database, for situations that no client can bring about. */
  database(): Promise<D1Database>;
  /** The bucket of its backups. */
  bucket(): Promise<R2Bucket>;
  /** The id that the name stands for in the namespace of the product's class. */
  doIdOf(sandboxId: string): Promise<string>;
  stop(): Promise<void>;
}

const CONFIG = fileURLToPath(new URL("../../dev/wrangler.jsonc", import.meta.url));

export async function startTestStack(options: TestStackOptions): Promise<TestStack> {
  const { directory, variables, onEvent, isolation, image } = options;
  if (isolation !== undefined) process.env["MOORING_ISOLATION"] = isolation;
  const shared = { directory, inventoryPort: await freePort(), ...(image && { image }), ...(onEvent && { onEvent }) };
  let engine = await startLocalEngine(shared);
  Object.assign(process.env, {
    WRANGLER_DOCKER_BIN: engine.dockerCli,
    WRANGLER_DOCKER_HOST: engine.dockerHost,
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    WRANGLER_SEND_METRICS: "false",
  });
  const vars = { API_TOKENS: localTokens(LOCAL_TOKENS), ...platformVariables(engine), ...variables };
  const harness = createTestHarness({ workers: [{ configPath: CONFIG, vars }] });
  const { url } = await harness.listen();
  await harness.getWorker().applyD1Migrations("DB");
  const bindings = () => harness.getWorker<Pick<Env, "DB" | "SANDBOX" | "BACKUP_BUCKET">>().getEnv();
  // In the order of their start: the harness's own proxy comes before the runtime, and is not to be killed.
  const [proxy] = childWorkerds();

  return {
    get engine() {
      return engine;
    },
    url: url.origin,
    async replaceEngine({ seed, faults }) {
      await engine.close();
      engine = await startLocalEngine({ ...shared, seed, faults });
    },
    async crashWorker() {
      for (const pid of childWorkerds()) if (pid !== proxy) process.kill(pid, "SIGKILL");
      // The harness's own proxy answers 500 until the new runtime is there.
      while (!(await isUp(url))) await new Promise((resolve) => setTimeout(resolve, 20));
    },
    database: async () => (await bindings()).DB,
    bucket: async () => (await bindings()).BACKUP_BUCKET,
    doIdOf: async (sandboxId) => (await bindings()).SANDBOX.idFromName(sandboxId).toString(),
    async stop() {
      await harness.close();
      await engine.close();
    },
  };
}

async function isUp(url: URL): Promise<boolean> {
  const answer = await fetch(new URL("/healthz", url)).catch(() => null);
  return answer?.ok ?? false;
}

/** The workerd processes of this process, oldest first. */
function childWorkerds(): readonly number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter(isChildWorkerd).toSorted((a, b) => a - b);
}

function isChildWorkerd(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("bin/workerd");
  } catch {
    return false;
  }
}
