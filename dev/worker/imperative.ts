/**
 * Creation as the report describes it (cloudflare/sandbox-sdk #794): a fresh id, the sandbox, a directory, a file; on an error destroy
 * and rethrow. `deadlineMs` bounds the work, as a request's own limit would.
 */
import { getSandbox } from "@cloudflare/sandbox";
import { Hono } from "hono";
import type { DevEnv } from "./env.ts";
import { transportOf } from "./transport.ts";

export const imperative = new Hono<{ Bindings: DevEnv }>();

imperative.post("/", async (context) => {
  const id = crypto.randomUUID();
  const sandbox = getSandbox(context.env.UNGATED as never, id, { transport: transportOf(context.req.query("transport")) });
  const doId = context.env.UNGATED.idFromName(id).toString();
  const deadlineMs = Number(context.req.query("deadlineMs") ?? Number.POSITIVE_INFINITY);
  try {
    await within(deadlineMs, create(sandbox));
    return context.json({ id, doId, created: true }, 201);
  } catch (error) {
    await sandbox.destroy().catch(() => undefined);
    return context.json({ id, doId, created: false, error: error instanceof Error ? error.message : String(error) }, 500);
  }
});

imperative.delete("/:id", async (context) => {
  await getSandbox(context.env.UNGATED as never, context.req.param("id")).destroy();
  return context.body(null, 204);
});

async function create(sandbox: ReturnType<typeof getSandbox>): Promise<void> {
  await sandbox.mkdir("/workspace/project", { recursive: true });
  await sandbox.writeFile("/workspace/project/ready.txt", "ready");
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  if (!Number.isFinite(ms)) return work;
  const late = scheduler.wait(ms).then(() => Promise.reject(new Error(`The creation did not end within ${ms} ms.`)));
  return Promise.race([work, late]);
}
