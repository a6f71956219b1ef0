/**
 * The environment, parsed once into one object with defaults and units. A bad value is one clear message that names the
 * variable; the value itself is never shown, since secrets come this way too.
 */
import { z } from "zod";
import type { GcMode } from "./unclaimed.ts";

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

/** What a namespace may have at most; null: no limit. */
export interface Quota {
  readonly maxWorkspaces: number | null;
  /** Instances that run, orphans included. */
  readonly maxRunning: number | null;
}

/** Where the platform's list of instances is to be had. */
export interface PlatformAccess {
  readonly accountId: string;
  readonly apiToken: string;
  /** Name of the container application; by default the platform names it after Worker and class. */
  readonly application: string;
  /** Null: Cloudflare's own. */
  readonly baseUrl: string | null;
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
  /** From the start of one look at the inventory to that of the next. */
  readonly sweepIntervalMs: number;
  /** An orphan younger than this is left alone. */
  readonly orphanGraceMs: number;
  readonly gcMode: GcMode;
  /** By namespace; `*` stands for every one without an entry. */
  readonly quotas: Readonly<Record<string, Quota>>;
  /** Null: the ledger is the only inventory. */
  readonly platform: PlatformAccess | null;
  /** How long an event is kept, its workspace gone or not. */
  readonly eventRetentionMs: number;
}

const tokenSchema = z.strictObject({
  name: z.string().min(1),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: "must be 64 lower-case hex digits" }),
  role: z.enum(ROLES),
  namespaces: z.array(z.string().min(1)).default(["*"]),
});

const quotaSchema = z.strictObject({
  maxWorkspaces: z.int().min(0).nullable().default(null),
  maxRunning: z.int().min(0).nullable().default(null),
});

const environmentSchema = z.object({
  API_TOKENS: z.string().default("[]").transform(parseJson).pipe(z.array(tokenSchema)),
  START_LANE_WIDTH: integer(1, 100).default(1),
  TICK_BUDGET_SECONDS: integer(1, 840).default(55),
  POLL_INTERVAL_MS: integer(50, 60_000).default(1000),
  RESYNC_INTERVAL_SECONDS: integer(1, 86_400).default(300),
  START_TIMEOUT_SECONDS: integer(1, 900).default(120),
  LEASE_SECONDS: integer(2, 600).default(30),
  SWEEP_INTERVAL_SECONDS: integer(1, 3600).default(30),
  ORPHAN_GRACE_SECONDS: integer(0, 86_400).default(120),
  GC_MODE: z.enum(["Off", "Report", "Enforce"]).default("Enforce"),
  NAMESPACE_QUOTAS: z
    .string()
    .default("{}")
    .transform(parseJson)
    .pipe(z.record(z.string().regex(/^(\*|[a-z0-9-]{1,63})$/, { error: "must be a namespace or *" }), quotaSchema)),
  EVENT_RETENTION_SECONDS: integer(60, 366 * 86_400).default(7 * 86_400),
  CLOUDFLARE_ACCOUNT_ID: z.string().min(1).optional(),
  CLOUDFLARE_API_TOKEN: z.string().min(1).optional(),
  CLOUDFLARE_API_BASE_URL: z.url().optional(),
  CONTAINER_APPLICATION: z.string().min(1).default("mooring-workspacesandbox"),
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
    sweepIntervalMs: values.SWEEP_INTERVAL_SECONDS * 1000,
    orphanGraceMs: values.ORPHAN_GRACE_SECONDS * 1000,
    gcMode: values.GC_MODE,
    quotas: values.NAMESPACE_QUOTAS,
    platform: toPlatform(values),
    eventRetentionMs: values.EVENT_RETENTION_SECONDS * 1000,
  };
}

const UNLIMITED: Quota = { maxWorkspaces: null, maxRunning: null };

export function quotaOf(quotas: Config["quotas"], namespace: string): Quota {
  // A namespace may be called `constructor`.
  return (Object.hasOwn(quotas, namespace) ? quotas[namespace] : quotas["*"]) ?? UNLIMITED;
}

export function runningLimitsOf({ quotas }: Pick<Config, "quotas">): Readonly<Record<string, number | null>> {
  return Object.fromEntries(Object.entries(quotas).map(([namespace, { maxRunning }]) => [namespace, maxRunning]));
}

/** Half a pair of credentials is a mistake, not a wish to do without. */
function toPlatform(values: z.infer<typeof environmentSchema>): PlatformAccess | null {
  const { CLOUDFLARE_ACCOUNT_ID: accountId, CLOUDFLARE_API_TOKEN: apiToken } = values;
  if (accountId === undefined && apiToken === undefined) return null;
  if (accountId === undefined || apiToken === undefined) {
    throw new ConfigError("The environment is not usable: CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN go together, and one is missing");
  }
  return { accountId, apiToken, application: values.CONTAINER_APPLICATION, baseUrl: values.CLOUDFLARE_API_BASE_URL ?? null };
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
