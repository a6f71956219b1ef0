/** Whether the Worker answers, and whether the controller does its work. */
import { createRoute, z } from "@hono/zod-openapi";
import { readLastSweepTime } from "../store/reading.ts";
import type { Api, ApiDeps } from "./context.ts";
import { Problem } from "./problem.ts";
import { problem } from "./route-parts.ts";
import { toTimestamp } from "./wire.ts";

/** Five cron ticks. */
const MAX_SWEEP_AGE_MS = 5 * 60 * 1000;
const RETRY_AFTER_SECONDS = 60;

const healthzRoute = createRoute({
  method: "get",
  path: "/healthz",
  operationId: "healthz",
  summary: "The API answers",
  tags: ["health"],
  responses: { 200: { description: "Yes", content: { "application/json": { schema: z.object({ status: z.literal("ok") }) } } } },
});

const readyzRoute = createRoute({
  method: "get",
  path: "/readyz",
  operationId: "readyz",
  summary: "The store answers and a sweep was completed within five minutes",
  tags: ["health"],
  responses: {
    200: {
      description: "Yes",
      content: { "application/json": { schema: z.object({ status: z.literal("ready"), lastSweepTime: z.iso.datetime() }) } },
    },
    default: problem(),
  },
});

export function registerHealth(app: Api, deps: ApiDeps): void {
  app.openapi(healthzRoute, (c) => c.json({ status: "ok" as const }, 200));

  app.openapi(readyzRoute, async (c) => {
    const lastSweepTime = await readLastSweepTime(deps.db);
    if (lastSweepTime === null) throw notReady("No sweep was completed yet.");
    if (deps.now() - lastSweepTime > MAX_SWEEP_AGE_MS) throw notReady(`The last sweep was completed at ${toTimestamp(lastSweepTime)}.`);
    return c.json({ status: "ready" as const, lastSweepTime: toTimestamp(lastSweepTime) }, 200);
  });
}

function notReady(detail: string): Problem {
  return new Problem("NOT_READY", detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
