/** The handlers of instances: an operator lists, destroys, protects and adopts them. Each records a request; nothing is called. */
import type { Context } from "hono";
import { type ClaimedInstance, getInstance, type KnownInstance, listInstances } from "../store/instance-reading.ts";
import { requestOrphanDestroy, requestReplacement, setProtected } from "../store/operator-intent.ts";
import type { Unclaimed } from "../unclaimed.ts";
import { adopt, parseAdoption } from "./adopting.ts";
import { authoriseEverywhere } from "./auth.ts";
import { readOptionalBody, readEmptyBody, readJsonBody } from "./body.ts";
import type { Api, ApiDeps, ApiEnv } from "./context.ts";
import {
  adoptInstanceRoute,
  destroyInstanceRoute,
  type InstanceBody,
  listInstancesRoute,
  positionSchema,
  protectInstanceRoute,
  protectSchema,
} from "./instance-schema.ts";
import { cutPage, readPaging } from "./paging.ts";
import { toEtag } from "./precondition.ts";
import { Problem } from "./problem.ts";
import { untilWritten } from "./retrying.ts";
import { openapiWithVerbs } from "./verbs.ts";
import { toLocation, toOptionalTimestamp, toTimestamp, toWorkspaceBody } from "./wire.ts";

export function registerInstances(app: Api, deps: ApiDeps): void {
  const openapi = openapiWithVerbs(app);

  openapi(listInstancesRoute, async (c) => {
    authoriseEverywhere(c.var.principal);
    const { claimed, namespace = null, ...options } = c.req.valid("query");
    const paging = await readPaging(options, ["instances", claimed ?? null, namespace], positionSchema);
    const query = { claimed: claimed === undefined ? null : claimed === "true", namespace, after: paging.after, limit: paging.readLimit };
    const { items, nextPageToken } = await cutPage(await listInstances(deps.db, query), paging, ({ doId }) => doId);
    return c.json({ items: items.map(toInstanceBody), nextPageToken }, 200);
  });

  openapi(destroyInstanceRoute, async (c) => {
    authoriseEverywhere(c.var.principal);
    await readEmptyBody(c.req.raw);
    return c.json(await change(deps, c, c.req.valid("param").doId, requestDestroy), 202);
  });

  openapi(protectInstanceRoute, async (c) => {
    authoriseEverywhere(c.var.principal);
    const { protected: value } = await readOptionalBody(c.req.raw, protectSchema);
    return c.json(await change(deps, c, c.req.valid("param").doId, (...given) => protect(value, ...given)), 202);
  });

  openapi(adoptInstanceRoute, async (c) => {
    authoriseEverywhere(c.var.principal);
    const adoption = parseAdoption(await readJsonBody(c.req.raw));
    const workspace = await adopt(deps, c.req.valid("param").doId, adoption, c.var.principal.name);
    return c.json(toWorkspaceBody(workspace), 201, { ETag: toEtag(workspace), Location: toLocation(workspace) });
  });
}

type Write = (deps: ApiDeps, known: KnownInstance, actor: string) => Promise<boolean>;

/** The instance after the write. Throws NOT_FOUND. */
async function change(deps: ApiDeps, c: Context<ApiEnv>, doId: string, write: Write): Promise<InstanceBody> {
  const read = async () => {
    const known = await getInstance(deps.db, doId);
    if (known === null) throw new Problem("NOT_FOUND", "There is no such instance.");
    return known;
  };
  await untilWritten(async () => ((await write(deps, await read(), c.var.principal.name)) ? doId : null));
  return toInstanceBody(await read());
}

async function requestDestroy(deps: ApiDeps, known: KnownInstance, actor: string): Promise<boolean> {
  if (known.claimed) return await requestReplacement(deps.db, known.instance, actor, deps.now());
  if (known.instance.protected) throw new Problem("INSTANCE_PROTECTED", "The instance is protected; end that first.");
  return await requestOrphanDestroy(deps.db, known.instance, actor, deps.now());
}

async function protect(value: boolean, deps: ApiDeps, known: KnownInstance, actor: string): Promise<boolean> {
  if (known.claimed) throw new Problem("INSTANCE_CLAIMED", "A workspace's record stands behind the instance and protects it.");
  return await setProtected(deps.db, known.instance, value, actor, deps.now());
}

function toInstanceBody(known: KnownInstance): InstanceBody {
  return known.claimed ? ofClaimed(known.instance) : ofUnclaimed(known.instance);
}

function ofClaimed({ doId, sandboxId, owner, observed, destroyRequested, adopted }: ClaimedInstance): InstanceBody {
  return {
    doId,
    sandboxId,
    claimed: true,
    state: observed?.kind ?? "Unknown",
    workspace: { namespace: owner.namespace, name: owner.name, uid: owner.uid },
    incarnation: owner.incarnation,
    firstSeenTime: null,
    lastSeenTime: null,
    timesSeen: 0,
    startedTime: toOptionalTimestamp(observed?.startedTime ?? null),
    protected: false,
    destroyRequested,
    destroyAttempts: 0,
    lastDestroyTime: null,
    adopted,
  };
}

function ofUnclaimed(instance: Unclaimed): InstanceBody {
  const { doId, sandboxId, owner, state, timesSeen, destroyRequested, destroyAttempts } = instance;
  return {
    doId,
    sandboxId,
    claimed: false,
    state,
    workspace: owner && { namespace: owner.namespace, name: owner.name, uid: owner.uid },
    incarnation: owner && owner.incarnation,
    firstSeenTime: toTimestamp(instance.firstSeenTime),
    lastSeenTime: toTimestamp(instance.lastSeenTime),
    timesSeen,
    startedTime: toOptionalTimestamp(instance.startedTime),
    protected: instance.protected,
    destroyRequested,
    destroyAttempts,
    lastDestroyTime: toOptionalTimestamp(instance.lastDestroyTime),
    adopted: false,
  };
}
