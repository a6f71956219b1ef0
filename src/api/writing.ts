/**
 * PUT and DELETE: compare what is stored with what is asked, write at most once by compare-and-swap. A write that came too
 * late is decided again from what is there now, so that two writers at once never mix and never both succeed on one tag.
 */
import { parseStoredSpec } from "../spec.ts";
import { createWorkspace, replaceWorkspace, requestDeletion } from "../store/intent.ts";
import { getWorkspace } from "../store/reading.ts";
import type { Workspace, WorkspaceName, WorkspaceSpec } from "../workspace.ts";
import { canonicalJson } from "./canonical.ts";
import type { ApiDeps } from "./context.ts";
import { toFieldErrors } from "./pointer.ts";
import { checkPreconditions, type Preconditions, toEtag } from "./precondition.ts";
import { type FieldError, Problem } from "./problem.ts";
import { type ApplyBody, applySchema } from "./schema.ts";

/** Losing this often in a row takes that many other writers of one workspace. */
const MAX_ROUNDS = 8;
const CONFLICT_RETRY_SECONDS = 1;

/** What a PUT wishes, complete: what it leaves out is empty or the default. */
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

export interface Applied {
  readonly created: boolean;
  readonly workspace: Workspace;
}

export async function applyWorkspace(
  deps: ApiDeps,
  workspaceName: WorkspaceName,
  wish: Wish,
  preconditions: Preconditions,
): Promise<Applied> {
  return await untilWritten(async () => {
    const current = await getWorkspace(deps.db, workspaceName);
    if (current === null) {
      checkPreconditions(preconditions, []);
      const { namespace, name } = workspaceName;
      const created = await createWorkspace(deps.db, { ...wish, namespace, name, uid: deps.newUid(), now: deps.now() });
      return created && { created: true, workspace: created };
    }
    // RFC 9110 has preconditions looked at only where the request would succeed without them.
    if (current.deletionTime !== null) {
      throw new Problem("BEING_DELETED", "The workspace is being deleted; its name is free once it is gone.");
    }
    checkPreconditions(preconditions, [toEtag(current)]);
    const specChanged = isOtherWish(current.spec, wish.spec);
    if (!specChanged && hasSameMetadata(current, wish)) return { created: false, workspace: current };
    const replaced = await replaceWorkspace(deps.db, current, { ...wish, specChanged, now: deps.now() });
    return replaced && { created: false, workspace: replaced };
  });
}

/** The workspace as it is being deleted, or null where there is none. */
export async function deleteWorkspace(
  deps: ApiDeps,
  workspaceName: WorkspaceName,
  preconditions: Preconditions,
): Promise<Workspace | null> {
  const { workspace } = await untilWritten(async () => {
    const current = await getWorkspace(deps.db, workspaceName);
    if (current === null) return { workspace: null };
    if (current.deletionTime !== null) {
      checkPreconditions(preconditions, [toEtag(current), tagBeforeDeletion(current)]);
      return { workspace: current };
    }
    checkPreconditions(preconditions, [toEtag(current)]);
    const deleting = await requestDeletion(deps.db, current, deps.now());
    return deleting && { workspace: deleting };
  });
  return workspace;
}

async function untilWritten<Result>(attempt: () => Promise<Result | null>): Promise<Result> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const result = await attempt();
    if (result !== null) return result;
  }
  throw new Problem("CONFLICT", "Others kept writing the workspace at the same time; send the request again.", {
    retryAfterSeconds: CONFLICT_RETRY_SECONDS,
  });
}

/** Nothing can be written after the deletion, so a repeated DELETE may still carry the tag its first one had. */
function tagBeforeDeletion({ uid, revision }: Workspace): string {
  return toEtag({ uid, revision: revision - 1 });
}

/** Compared as normalised: a default that a later version adds is no change. A spec that no longer parses equals nothing. */
function isOtherWish(stored: unknown, spec: WorkspaceSpec): boolean {
  const parsed = parseStoredSpec(stored);
  return parsed === null || canonicalJson(parsed) !== canonicalJson(spec);
}

function hasSameMetadata(current: Workspace, { labels, annotations }: Wish): boolean {
  return canonicalJson([current.labels, current.annotations]) === canonicalJson([labels, annotations]);
}

function findContradictions(metadata: ApplyBody["metadata"], workspaceName: WorkspaceName): readonly FieldError[] {
  const fields = ["namespace", "name"] as const;
  return fields
    .filter((field) => metadata?.[field] !== undefined && metadata[field] !== workspaceName[field])
    .map((field) => ({ pointer: `/metadata/${field}`, detail: "contradicts the path" }));
}

function invalidSpec(errors: readonly FieldError[]): Problem {
  return new Problem("INVALID_SPEC", "The workspace is not valid; see errors.", { errors });
}
