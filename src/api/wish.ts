/** What a PUT wishes, and how it differs from what was wished before. */
import type { Config } from "../config.ts";
import { parseStoredSpec, workspaceSpecSchema } from "../spec.ts";
import type { Instant, Workspace, WorkspaceName, WorkspaceSpec } from "../workspace.ts";
import { canonicalJson } from "./canonical.ts";
import { toFieldErrors } from "./pointer.ts";
import { type FieldError, Problem } from "./problem.ts";
import { type ApplyBody, applySchema } from "./schema.ts";

/** Complete: what a PUT leaves out is empty or the default. */
export interface Wish {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: WorkspaceSpec;
}

/** Throws INVALID_SPEC with every mistake and its place. */
export function parseWish(body: unknown, workspaceName: WorkspaceName): Wish {
  const parsed = applySchema.safeParse(body);
  if (!parsed.success) throw invalidSpec(toFieldErrors(parsed.error.issues, "body"));
  const { metadata, spec } = parsed.data;
  const contradictions = findContradictions(metadata, workspaceName);
  if (contradictions.length > 0) throw invalidSpec(contradictions);
  return { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {}, spec };
}

/** Throws INVALID_SPEC for a time that is over, unless it was wished before: the workspace would be gone at once. */
export function checkExpiry({ expireTime }: WorkspaceSpec, before: WorkspaceSpec | null, now: Instant): void {
  if (expireTime === null || expireTime === before?.expireTime || Date.parse(expireTime) > now) return;
  throw invalidSpec([{ pointer: "/spec/expireTime", detail: "must lie in the future" }]);
}

/** Throws INVALID_SPEC for what an installation without backups can never fulfil, unless it was wished before. */
export function checkBackups({ backups }: Pick<Config, "backups">, spec: WorkspaceSpec, before: WorkspaceSpec | null): void {
  if (backups !== null) return;
  const wishes = backupWishes(spec);
  const known = before === null ? {} : backupWishes(before);
  const errors = Object.entries(wishes)
    .filter(([pointer, wish]) => wish !== null && canonicalJson(wish) !== canonicalJson(known[pointer]))
    .map(([pointer]) => ({ pointer, detail: "this installation takes no backups (BACKUP_MODE)" }));
  if (errors.length > 0) throw invalidSpec(errors);
}

/** What cannot be without backups, by its place; null: not wished. */
function backupWishes({ source, backup, deletion }: WorkspaceSpec): Readonly<Record<string, unknown>> {
  return {
    "/spec/source": source,
    "/spec/backup/everySeconds": backup?.everySeconds ?? null,
    "/spec/backup/onSuspend": backup?.onSuspend === "Require" ? "Require" : null,
    "/spec/deletion/finalBackup": deletion.finalBackup === "Require" ? "Require" : null,
  };
}

export interface SpecChange {
  /** Null where the stored one no longer parses. */
  readonly before: WorkspaceSpec | null;
  /** The names of the fields that differ; none: the same wish. */
  readonly fields: readonly string[];
}

/** Compared as normalised: a default that a later version adds is no change. A spec that no longer parses equals nothing. */
export function compareSpecs(stored: unknown, spec: WorkspaceSpec): SpecChange {
  const before = parseStoredSpec(stored);
  if (before === null) return { before, fields: Object.keys(spec) };
  const fields = (Object.keys(spec) as (keyof WorkspaceSpec)[]).filter(
    (field) => canonicalJson(before[field]) !== canonicalJson(spec[field]),
  );
  return { before, fields };
}

/** For what must be said of any workspace: the defaults, where the stored spec no longer parses. */
export function readSpec({ spec }: Workspace): WorkspaceSpec {
  return parseStoredSpec(spec) ?? workspaceSpecSchema.parse({});
}

export function hasSameMetadata(current: Workspace, { labels, annotations }: Wish): boolean {
  return canonicalJson([current.labels, current.annotations]) === canonicalJson([labels, annotations]);
}

/** Wished to run, and not put to rest by the controller for idleness. */
export function isWishedRunning({ status, generation }: Workspace, spec: WorkspaceSpec | null): boolean {
  if (spec === null || spec.operatingMode !== "Running") return false;
  return !status.conditions.some(({ type, status: value, observedGeneration }) => {
    return type === "Suspended" && value === "True" && observedGeneration === generation;
  });
}

export function invalidSpec(errors: readonly FieldError[]): Problem {
  return new Problem("INVALID_SPEC", "The workspace is not valid; see errors.", { errors });
}

function findContradictions(metadata: ApplyBody["metadata"], workspaceName: WorkspaceName): readonly FieldError[] {
  const fields = ["namespace", "name"] as const;
  return fields
    .filter((field) => metadata?.[field] !== undefined && metadata[field] !== workspaceName[field])
    .map((field) => ({ pointer: `/metadata/${field}`, detail: "contradicts the path" }));
}
