/**
 * The environment, parsed once into one object with defaults and units. A bad value is one clear message that names the
 * variable; the value itself is never shown, since secrets come this way too.
 */
import { z } from "zod";

const ROLES = ["viewer", "editor", "operator"] as const;
export type Role = (typeof ROLES)[number];

export interface ApiToken {
  readonly name: string;
  /** SHA-256 of the token, 64 lower-case hex digits. */
  readonly sha256: string;
  readonly role: Role;
  /** Namespaces the token may use; `*` stands for every one. */
  readonly namespaces: readonly string[];
}

export interface Config {
  readonly tokens: readonly ApiToken[];
  /** Container starts in flight at most (invariant 1). */
  readonly startLaneWidth: number;
  /** How long one tick runs rounds. Below the cron's minute, so that ticks seldom overlap. */
  readonly tickBudgetMs: number;
  /** Between two rounds that found nothing to do. */
  readonly pollIntervalMs: number;
  /** Every workspace is looked at once in this time, poked or not. */
  readonly resyncIntervalMs: number;
  /** From the object's acceptance of a start until it is verified or given up. */
  readonly startTimeoutMs: number;
  /** A lease not renewed for this long may be taken over. */
  readonly leaseMs: number;
}

const tokenSchema = z.strictObject({
  name: z.string().min(1),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "must be 64 lower-case hex digits" }),
  role: z.enum(ROLES),
  namespaces: z.array(z.string().min(1)).default(["*"]),
});

const environmentSchema = z.object({
  API_TOKENS: z.string().default("[]").transform(parseJson).pipe(z.array(tokenSchema)),
  START_LANE_WIDTH: integer(1, 100).default(1),
  TICK_BUDGET_SECONDS: integer(1, 840).default(55),
  POLL_INTERVAL_MS: integer(50, 60_000).default(1000),
  RESYNC_INTERVAL_SECONDS: integer(1, 86_400).default(300),
  START_TIMEOUT_SECONDS: integer(1, 900).default(120),
  LEASE_SECONDS: integer(2, 600).default(30),
});

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Throws a `ConfigError` that names every variable that is wrong. */
export function parseConfig(environment: object): Config {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
    throw new ConfigError(`The environment is not usable: ${problems.join("; ")}`);
  }
  const values = parsed.data;
  return {
    tokens: values.API_TOKENS,
    startLaneWidth: values.START_LANE_WIDTH,
    tickBudgetMs: values.TICK_BUDGET_SECONDS * 1000,
    pollIntervalMs: values.POLL_INTERVAL_MS,
    resyncIntervalMs: values.RESYNC_INTERVAL_SECONDS * 1000,
    startTimeoutMs: values.START_TIMEOUT_SECONDS * 1000,
    leaseMs: values.LEASE_SECONDS * 1000,
  };
}

/** Variables arrive as strings from a secret or `vars`, as numbers from JSON `vars`. */
function integer(minimum: number, maximum: number) {
  return z.coerce.number({ error: "must be a number" }).int().min(minimum).max(maximum);
}

function parseJson(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: "custom", message: "must be JSON" });
    return z.NEVER;
  }
}
