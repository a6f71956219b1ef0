/** Composition only: the API, the cron and the Durable Object, wired to the real clock, store and fleet. */
import { createApi } from "./api/app.ts";
import { Problem, toProblemResponse } from "./api/problem.ts";
import { ConfigError, type PlatformAccess, parseConfig } from "./config.ts";
import { createInstanceList } from "./controller/instance-list.ts";
import { openR2Bucket } from "./controller/r2-bucket.ts";
import { createSandboxFleet } from "./controller/sandbox-fleet.ts";
import { sweep } from "./controller/sweep.ts";
import { log } from "./log.ts";
import { createControllerStore } from "./store/controller-store.ts";
import { openDatabase } from "./store/db.ts";

export { ContainerProxy } from "@cloudflare/sandbox";
export { isWorkspaceNotRunning } from "./sandbox/not-running.ts";
export { NoWakeSandbox } from "./sandbox/no-wake-sandbox.ts";
export { WorkspaceSandbox } from "./sandbox/workspace-sandbox.ts";

const MISCONFIGURED = new Problem("NOT_READY", "A setting of the service is not usable; its log says which.");
const newId = () => crypto.randomUUID();
const now = () => Date.now();

const handler: ExportedHandler<Env> = {
  fetch(request, env) {
    const parts = composeOnce(env);
    return parts instanceof ConfigError ? toProblemResponse(MISCONFIGURED, newId()) : parts.api.fetch(request);
  },

  async scheduled(_event, env) {
    const parts = composeOnce(env);
    if (!(parts instanceof ConfigError)) await sweep(parts.sweepDeps);
  },
};

export default handler;

let composed: ReturnType<typeof compose> | ConfigError | undefined;

/** At the first event of an isolate: before one a binding cannot be used, nor a bad setting reported. */
function composeOnce(env: Env): ReturnType<typeof compose> | ConfigError {
  try {
    composed ??= compose(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log("error", "Configuration is not usable", { error: error.message });
    composed = error;
  }
  return composed;
}

function compose(env: Env) {
  const db = openDatabase(env.DB);
  const config = parseConfig(env);
  return {
    api: createApi({
      db,
      config,
      now,
      sleep: (ms) => scheduler.wait(ms),
      newUid: newId,
      newRequestId: newId,
      doIdOf: (sandboxId) => env.SANDBOX.idFromName(sandboxId).toString(),
    }),
    sweepDeps: {
      store: createControllerStore(db),
      config,
      now,
      fleet: createSandboxFleet(env.SANDBOX, now),
      inventory: config.platform && openInventory(config.platform),
      bucket: config.backups && openR2Bucket(env.BACKUP_BUCKET),
      sleep,
      chance: () => Math.random(),
      newId,
    },
  };
}

/** A page takes a second or two; the whole of it has to end well within a tick. */
const PAGE_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 40_000;

function openInventory({ baseUrl, ...access }: PlatformAccess) {
  const limits = { pageTimeoutMs: PAGE_TIMEOUT_MS, listTimeoutMs: LIST_TIMEOUT_MS };
  return createInstanceList({ ...access, ...limits, now, ...(baseUrl !== null && { baseUrl }) });
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await scheduler.wait(ms, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
