/** Composition only: the API, the cron and the Durable Object, wired to the real clock, store and fleet. */
import { createApi } from "./api/app.ts";
import { parseConfig } from "./config.ts";
import { createSandboxFleet } from "./controller/sandbox-fleet.ts";
import { sweep } from "./controller/sweep.ts";
import { openDatabase } from "./store/db.ts";

export { ContainerProxy } from "@cloudflare/sandbox";
export { isWorkspaceNotRunning } from "./sandbox/not-running.ts";
export { WorkspaceSandbox } from "./sandbox/workspace-sandbox.ts";

const newId = () => crypto.randomUUID();

/** Made at the first event of an isolate: a binding cannot be used, nor a bad setting reported, before one. */
let parts: ReturnType<typeof compose> | undefined;

const handler: ExportedHandler<Env> = {
  fetch(request, env) {
    parts ??= compose(env);
    return parts.api.fetch(request);
  },

  async scheduled(_event, env) {
    parts ??= compose(env);
    await sweep(parts.sweepDeps);
  },
};

export default handler;

function compose(env: Env) {
  const shared = { db: openDatabase(env.DB), config: parseConfig(env), now: () => Date.now() };
  return {
    api: createApi({ ...shared, sleep: (ms) => scheduler.wait(ms), newUid: newId, newRequestId: newId }),
    sweepDeps: { ...shared, fleet: createSandboxFleet(env.SANDBOX, shared.now), sleep, chance: () => Math.random(), newId },
  };
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await scheduler.wait(ms, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
