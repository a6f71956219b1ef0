/**
 * The one schema of a workspace's spec: what the API accepts and what a stored row must still satisfy.
 *
 * Every field has a default, so a normalised spec is complete and two specs are the same wish exactly if they are equal.
 */
import { z } from "zod";
import type { BackupPolicy, WorkspaceSpec } from "./workspace.ts";

/** The roots the sandbox SDK can back up (its `BackupOptions.dir`); a directory elsewhere could never survive. */
const DIRECTORY_ROOTS = ["/workspace", "/home", "/tmp", "/var/tmp", "/app"];
const DIRECTORY_MAX_LENGTH = 1024;
const ENV_MAX_ENTRIES = 100;
const ENV_MAX_VALUE_LENGTH = 8192;
/** Shorter than this, a workspace would be suspended between two keystrokes. */
const IDLE_MIN_SECONDS = 10;
/** Shorter than this, a container would spend its life being started. */
const LIFETIME_MIN_SECONDS = 60;
const DURATION_MAX_SECONDS = 366 * 86_400;
/** Taken more often, backups would follow one another without a pause. */
const BACKUP_MIN_SECONDS = 60;
const SETUP_MAX_COMMANDS = 20;
const SETUP_MAX_LENGTH = 4096;
const EXCLUDES_MAX = 100;
const EXCLUDE_MAX_LENGTH = 1024;
const KEEP_LAST_MAX = 1000;
/** Shorter than this, a final backup could not even be begun. */
const DELETION_MIN_SECONDS = 10;
const DELETION_MAX_SECONDS = 86_400;
/** Of workspaces and namespaces. */
export const NAME_PATTERN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

const directory = z
  .string()
  .max(DIRECTORY_MAX_LENGTH)
  .refine(isWorkingDirectory, {
    error: `must be a normalised absolute path in one of ${DIRECTORY_ROOTS.join(", ")}`,
  });

const env = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, {
      error: "must be a name of letters, digits and underscores, not starting with a digit",
    }),
    z
      .string()
      .max(ENV_MAX_VALUE_LENGTH)
      // eslint-disable-next-line no-control-regex
      .regex(/^[^\u0000]*$/, { error: "must not contain a NUL character" }),
  )
  .refine((entries) => Object.keys(entries).length <= ENV_MAX_ENTRIES, {
    error: `must have at most ${ENV_MAX_ENTRIES} entries`,
  });

const command = z
  .string()
  .max(SETUP_MAX_LENGTH)
  .regex(/\S/, { error: "must not be empty" })
  // eslint-disable-next-line no-control-regex
  .regex(/^[^\u0000]*$/, { error: "must not contain a NUL character" });

const exclude = z.string().min(1).max(EXCLUDE_MAX_LENGTH).refine(isRelativePattern, {
  error: "must be a pattern relative to the directory, without '.' or '..' in its path, a '-' at its front or a control character",
});

export const BACKUP_POLICIES = ["Require", "BestEffort", "Skip"] as const satisfies readonly BackupPolicy[];
const policy = z.enum(BACKUP_POLICIES);

const source = z.union(
  [
    z.strictObject({ backup: z.uuid({ error: "must be the id of a backup, a UUID" }).toLowerCase() }),
    z.strictObject({ workspace: z.string().regex(NAME_PATTERN, { error: "must be the name of a workspace in the same namespace" }) }),
  ],
  { error: "must be {backup: <id>}, {workspace: <name>} or null" },
);

const retention = z.strictObject({
  keepLast: z.int().min(1).max(KEEP_LAST_MAX).default(5),
  keepForSeconds: z
    .int()
    .min(0)
    .max(10 * DURATION_MAX_SECONDS)
    .nullable()
    .default(7 * 86_400),
});

const backup = z.strictObject({
  everySeconds: z.int().min(BACKUP_MIN_SECONDS).max(DURATION_MAX_SECONDS).nullable().default(null),
  onSuspend: policy.default("BestEffort"),
  excludes: z.array(exclude).max(EXCLUDES_MAX).default([]),
  retention: retention.prefault({}),
});

const deletion = z.strictObject({
  finalBackup: policy.default("Skip"),
  deadlineSeconds: z.int().min(DELETION_MIN_SECONDS).max(DELETION_MAX_SECONDS).default(600),
});

export const workspaceSpecSchema = z.strictObject({
  operatingMode: z.enum(["Running", "Suspended"]).default("Running"),
  directory: directory.default("/workspace"),
  source: source.nullable().default(null),
  env: env.default({}),
  setup: z.array(command).max(SETUP_MAX_COMMANDS).default([]),
  idle: z
    .strictObject({ timeoutSeconds: z.int().min(IDLE_MIN_SECONDS).max(DURATION_MAX_SECONDS) })
    .nullable()
    .default(null),
  maxLifetimeSeconds: z.int().min(LIFETIME_MIN_SECONDS).max(DURATION_MAX_SECONDS).nullable().default(null),
  expireTime: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text).toISOString())
    .refine((text) => /^\d{4}-/.test(text), { error: "must lie in the years 0000 to 9999 in UTC" })
    .nullable()
    .default(null),
  backup: backup.nullable().prefault({}),
  deletion: deletion.prefault({}),
  paused: z.boolean().default(false),
});

/** The spec a stored JSON value stands for, or null where it no longer satisfies the schema. */
export function parseStoredSpec(stored: unknown): WorkspaceSpec | null {
  const parsed = workspaceSpecSchema.safeParse(stored);
  return parsed.success ? parsed.data : null;
}

/** 255 bytes are what a file name may have on Linux. */
function isSegment(segment: string): boolean {
  return segment !== "" && segment !== "." && segment !== ".." && new TextEncoder().encode(segment).length <= 255;
}

function isWorkingDirectory(path: string): boolean {
  const segments = path.split("/").slice(1);
  const normalised = path.startsWith("/") && segments.every(isSegment);
  return normalised && /^[^\u0000-\u001f]*$/.test(path) && DIRECTORY_ROOTS.some((root) => path === root || path.startsWith(`${root}/`));
}

/** mksquashfs takes what begins with `/`, `./` or `../` for a path from elsewhere, and what begins with `-` for an option. */
function isRelativePattern(pattern: string): boolean {
  const isInside = pattern.split("/").every((segment) => segment !== "." && segment !== "..");
  return isInside && /^[^/\u0000-\u001f\u007f-][^\u0000-\u001f\u007f]*$/.test(pattern);
}
