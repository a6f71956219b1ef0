/** An instance that no record claims is made a workspace's own, as far as that can be told from records. */
import { workspaceSpecSchema } from "../spec.ts";
import { adoptInstance } from "../store/adoption.ts";
import { getInstance } from "../store/instance-reading.ts";
import { getWorkspace } from "../store/reading.ts";
import type { Unclaimed } from "../unclaimed.ts";
import type { Workspace } from "../workspace.ts";
import type { ApiDeps } from "./context.ts";
import { type AdoptBody, adoptSchema } from "./instance-schema.ts";
import { toFieldErrors } from "./pointer.ts";
import { Problem } from "./problem.ts";
import { checkQuota, limitsOfCreation } from "./quota.ts";
import { untilWritten } from "./retrying.ts";
import { checkBackups, checkExpiry, invalidSpec } from "./wish.ts";

/** Throws INVALID_SPEC with every mistake and its place. */
export function parseAdoption(body: unknown): AdoptBody {
  const parsed = adoptSchema.safeParse(body);
  if (!parsed.success) throw invalidSpec(toFieldErrors(parsed.error.issues, "body"));
  return parsed.data;
}

/** The workspace as created. */
export async function adopt(deps: ApiDeps, doId: string, adoption: AdoptBody, actor: string): Promise<Workspace> {
  const { namespace, name, metadata } = adoption;
  const spec = adoption.spec ?? workspaceSpecSchema.parse({});
  return await untilWritten(async () => {
    const [uid, now] = [deps.newUid(), deps.now()];
    checkExpiry(spec, null, now);
    checkBackups(deps.config, spec, null);
    const instance = await readAdoptable(deps, doId);
    const sandboxId = findName(deps, instance, adoption.sandboxId ?? null);
    if ((await getWorkspace(deps.db, { namespace, name })) !== null) {
      throw new Problem("NAME_TAKEN", "There is a workspace of this name.", { errors: [{ pointer: "/name", detail: "is taken" }] });
    }
    const limits = limitsOfCreation(deps.config, namespace, spec.operatingMode);
    await checkQuota(deps, limits, namespace, { uid, doId });
    const wish = { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {}, spec };
    return await adoptInstance(deps.db, { ...wish, namespace, name, uid, now, instance, sandboxId }, { actor, limits });
  });
}

async function readAdoptable({ db }: ApiDeps, doId: string): Promise<Unclaimed> {
  const known = await getInstance(db, doId);
  if (known === null) throw new Problem("NOT_FOUND", "There is no such instance.");
  if (known.claimed || known.instance.ownerLives) {
    throw new Problem("INSTANCE_CLAIMED", "The instance belongs to a workspace that has a record.");
  }
  const { state, destroyAttempts } = known.instance;
  if (state !== "Running") throw new Problem("INSTANCE_NOT_RUNNING", "The last sweep did not see the instance run.");
  if (destroyAttempts > 0) throw new Problem("INSTANCE_BEING_DESTROYED", "The instance was told to go, which is for good.");
  return known.instance;
}

/** A name that is not the one its id is made from would have users work in another sandbox. */
function findName(deps: ApiDeps, { doId, sandboxId }: Unclaimed, given: string | null): string {
  if (given !== null) {
    if (deps.doIdOf(given) === doId) return given;
    throw invalidSpec([{ pointer: "/sandboxId", detail: "is not the name of this instance" }]);
  }
  if (sandboxId !== null && deps.doIdOf(sandboxId) === doId) return sandboxId;
  throw invalidSpec([{ pointer: "/sandboxId", detail: "is required: nobody knows the name of this instance" }]);
}
