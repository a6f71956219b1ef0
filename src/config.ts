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

/** How backups are taken and looked after. */
export interface BackupSettings {
  /** `local`: archives pass through the object by the bucket's binding; `presigned`: containers talk to R2 themselves. */
  readonly mode: "local" | "presigned";
  /** From the claim of a backup until it is given up. */
  readonly timeoutMs: number;
  /** From one sweep of the bucket to the next. */
  readonly sweepIntervalMs: number;
  /** Objects without a row that are younger than this are left alone. */
  readonly orphanGraceMs: number;
  /** The backups of a workspace are kept for so long after it is gone. */
  readonly keepAfterDeletionMs: number;
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
  /** From the answer of a container until it is restored and set up, or given up. */
  readonly prepareTimeoutMs: number;
  /** Null: none are taken, and none restored. */
  readonly backups: BackupSettings | null;
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
  PREPARE_TIMEOUT_SECONDS: integer(1, 7200).default(900),
  BACKUP_MODE: z.enum(["local", "presigned"]).optional(),
  BACKUP_TIMEOUT_SECONDS: integer(1, 7200).default(600),
  BACKUP_SWEEP_INTERVAL_SECONDS: integer(1, 86_400).default(3600),
  BACKUP_ORPHAN_GRACE_SECONDS: integer(0, 30 * 86_400).default(86_400),
  DELETED_BACKUP_RETENTION_SECONDS: integer(0, 10 * 366 * 86_400).default(30 * 86_400),
  BACKUP_BUCKET: z.unknown().optional(),
  BACKUP_BUCKET_NAME: z.string().min(1).optional(),
  R2_ACCESS_KEY_ID: z.string().min(1).optional(),
  R2_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  CLOUDFLARE_R2_ACCOUNT_ID: z.string().min(1).optional(),
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
    prepareTimeoutMs: values.PREPARE_TIMEOUT_SECONDS * 1000,
    backups: toBackups(values),
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

/** All that is missing, in one message. */
function toBackups(values: z.infer<typeof environmentSchema>): BackupSettings | null {
  const { BACKUP_MODE: mode } = values;
  if (mode === undefined) return null;
  const missing = [
    typeof values.BACKUP_BUCKET === "object" && values.BACKUP_BUCKET !== null ? null : "BACKUP_BUCKET (an R2 binding)",
    ...(mode === "local" ? [] : PRESIGNED_SETTINGS.map((name) => (values[name] === undefined ? name : null))),
    mode === "local" || (values.CLOUDFLARE_R2_ACCOUNT_ID ?? values.CLOUDFLARE_ACCOUNT_ID) !== undefined
      ? null
      : "CLOUDFLARE_R2_ACCOUNT_ID or CLOUDFLARE_ACCOUNT_ID",
  ].filter((name) => name !== null);
  if (missing.length > 0) {
    throw new ConfigError(`The environment is not usable: BACKUP_MODE is ${mode}, and these are missing: ${missing.join(", ")}`);
  }
  return {
    mode,
    timeoutMs: values.BACKUP_TIMEOUT_SECONDS * 1000,
    sweepIntervalMs: values.BACKUP_SWEEP_INTERVAL_SECONDS * 1000,
    orphanGraceMs: Math.max(values.BACKUP_ORPHAN_GRACE_SECONDS, 2 * values.BACKUP_TIMEOUT_SECONDS) * 1000,
    keepAfterDeletionMs: values.DELETED_BACKUP_RETENTION_SECONDS * 1000,
  };
}

/** What the SDK signs its URLs with, beside the account. */
const PRESIGNED_SETTINGS = ["BACKUP_BUCKET_NAME", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"] as const;

/** Half a pair of credentials is a mistake, not a wish to do without. */
function toPlatform(values: z.infer<typeof environmentSchema>): PlatformAccess | null {
  const { CLOUDFLARE_ACCOUNT_ID: accountId, CLOUDFLARE_API_TOKEN: apiToken } = values;
  // The account alone may be there for the backups' sake.
  if (apiToken === undefined && (accountId === undefined || values.BACKUP_MODE === "presigned")) return null;
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
