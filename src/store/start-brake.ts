/** How long no workspace is started after the platform refused one. */
import { sql } from "drizzle-orm";
import type { Instant } from "../workspace.ts";
import type { Conclusion } from "../workspace-record.ts";
import { controller } from "./schema.ts";

/** Each refusal in a row doubles the wait; a workspace that became Ready lets the brake go. */
export function nextBrake({ brake }: Conclusion, now: Instant) {
  if (brake === null) return { brakeUntilTime: null, brakeFailures: 0, brakeReason: null, brakeMessage: null };
  const doubled = sql`min(${BRAKE_MAX_MS}, ${BRAKE_BASE_MS} << min(${controller.brakeFailures}, 10))`;
  return {
    brakeUntilTime: sql<number>`${now} + ${brake.retryAfterMs === null ? doubled : Math.max(BRAKE_MIN_MS, Math.min(brake.retryAfterMs, BRAKE_MAX_MS))}`,
    brakeFailures: sql<number>`${controller.brakeFailures} + 1`,
    brakeReason: brake.reason,
    brakeMessage: brake.message,
  };
}

/** A platform that asks for no patience at all is not asked again in the same moment. */
const BRAKE_MIN_MS = 1000;
const BRAKE_BASE_MS = 5000;
const BRAKE_MAX_MS = 300_000;
