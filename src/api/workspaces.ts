/** The handlers of workspaces: authorise, read the request, decide, answer. */
import type { Context } from "hono";
import type { Workspace, WorkspaceName } from "../workspace.ts";
import { authorise } from "./auth.ts";
import { readEmptyBody, readJsonBody } from "./body.ts";
import type { Api, ApiDeps, ApiEnv } from "./context.ts";
import { listPage } from "./listing.ts";
import { readPreconditions, toEtag } from "./precondition.ts";
import { Problem } from "./problem.ts";
import { deleteRoute, getRoute, listAllRoute, listRoute, putRoute, reconcileRoute, wakeRoute } from "./routes.ts";
import { MAX_WAIT_SECONDS } from "./schema.ts";
import { openapiWithVerbs } from "./verbs.ts";
import { awaitCondition, readWorkspace } from "./waiting.ts";
import { parseWish } from "./wish.ts";
import { toLocation, toWorkspaceBody } from "./wire.ts";
import { applyWorkspace, type Asked, deleteWorkspace, reconcileWorkspace, wakeWorkspace } from "./writing.ts";

export function registerWorkspaces(app: Api, deps: ApiDeps): void {
  const openapi = openapiWithVerbs(app);

  openapi(putRoute, async (c) => {
    const path = c.req.valid("param");
    authorise(c.var.principal, "write", path.namespace);
    const wish = parseWish(await readJsonBody(c.req.raw), path);
    const { created, workspace } = await applyWorkspace(deps, path, wish, askedBy(c));
    // RFC 9110, section 9.3.4: a tag alone would be taken for that of the body as sent. This one is of the body in the answer,
    // which is what is stored, defaults included.
    const headers = { ...tagged(workspace), "Content-Location": toLocation(workspace) };
    if (!created) return c.json(toWorkspaceBody(workspace), 200, headers);
    return c.json(toWorkspaceBody(workspace), 201, { ...headers, Location: toLocation(workspace) });
  });

  openapi(getRoute, async (c) => {
    const path = c.req.valid("param");
    const { waitFor, timeoutSeconds = MAX_WAIT_SECONDS } = c.req.valid("query");
    authorise(c.var.principal, "read", path.namespace);
    const workspace =
      waitFor === undefined ? await readWorkspace(deps, path) : await awaitCondition(deps, path, waitFor, timeoutSeconds * 1000);
    return c.json(toWorkspaceBody(workspace), 200, tagged(workspace));
  });

  openapi(deleteRoute, async (c) => {
    const path = c.req.valid("param");
    authorise(c.var.principal, "write", path.namespace);
    const { allowMissing, finalBackup = null } = c.req.valid("query");
    const workspace = await deleteWorkspace(deps, path, finalBackup, askedBy(c));
    if (workspace !== null) return c.json(toWorkspaceBody(workspace), 202, tagged(workspace));
    if (allowMissing === "true") return c.body(null, 204);
    throw new Problem("NOT_FOUND", "There is no such workspace.");
  });

  openapi(wakeRoute, async (c) => answerRequest(c, deps, c.req.valid("param"), wakeWorkspace));
  openapi(reconcileRoute, async (c) => answerRequest(c, deps, c.req.valid("param"), reconcileWorkspace));

  openapi(listRoute, async (c) => {
    const { namespace } = c.req.valid("param");
    return c.json(await readPage(c, deps, namespace, c.req.valid("query")), 200);
  });

  openapi(listAllRoute, async (c) => c.json(await readPage(c, deps, null, c.req.valid("query")), 200));
}

async function answerRequest(
  c: Context<ApiEnv>,
  deps: ApiDeps,
  path: WorkspaceName,
  record: (deps: ApiDeps, path: WorkspaceName, asked: Asked) => Promise<Workspace>,
) {
  authorise(c.var.principal, "write", path.namespace);
  await readEmptyBody(c.req.raw);
  const workspace = await record(deps, path, askedBy(c));
  return c.json(toWorkspaceBody(workspace), 202, tagged(workspace));
}

async function readPage(c: Context<ApiEnv>, deps: ApiDeps, namespace: string | null, options: Parameters<typeof listPage>[3]) {
  authorise(c.var.principal, "read", namespace);
  return await listPage(deps, c.var.principal, namespace, options);
}

function askedBy(c: Context<ApiEnv>): Asked {
  return { actor: c.var.principal.name, preconditions: readPreconditions(c.req.raw.headers) };
}

function tagged(workspace: Workspace): { ETag: string } {
  return { ETag: toEtag(workspace) };
}
