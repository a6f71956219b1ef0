/**
 * The one schema of a workspace's spec: what the API accepts and what a stored row must still satisfy.
 *
 * Every field has a default, so a normalised spec is complete and two specs are the same wish exactly if they are equal.
 */
import { z } from "zod";
import type { WorkspaceSpec } from "./workspace.ts";

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

export const workspaceSpecSchema = z.strictObject({
  operatingMode: z.enum(["Running", "Suspended"]).default("Running"),
  directory: directory.default("/workspace"),
  env: env.default({}),
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
