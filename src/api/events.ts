/** The history: of one workspace, also once it is gone, and for operators of everything. */
import { createRoute, z } from "@hono/zod-openapi";
import { listEvents, listEventsOf, type StoredEvent } from "../store/event-reading.ts";
import { authorise } from "./auth.ts";
import type { Api, ApiDeps } from "./context.ts";
import { cutPage, type Paging, readPaging } from "./paging.ts";
import { Problem } from "./problem.ts";
import { json, problem, security } from "./route-parts.ts";
import { instant, nameText, pageQuery, workspacePath } from "./schema.ts";
import { openapiWithVerbs } from "./verbs.ts";
import { toTimestamp } from "./wire.ts";

const eventSchema = z
  .object({
    id: z.int().meta({ description: "Rises with every event." }),
    time: instant,
    type: z.string().meta({ example: "Normal", description: "Normal or Warning." }),
    reason: z.string().meta({ description: "CamelCase; part of the API.", example: "SpecChanged" }),
    message: z.string(),
    namespace: z.string().nullable(),
    name: z.string().nullable(),
    uid: z.string().nullable().meta({ description: "Tells lives of one name apart; null: about no workspace." }),
    doId: z.string().nullable().meta({ description: "Null: about no single instance." }),
    actor: z.string().nullable().meta({ description: "The name of the token that asked for it; null: the controller." }),
  })
  .openapi("Event");

const eventListSchema = z.object({ items: z.array(eventSchema), nextPageToken: z.string().nullable() }).openapi("EventList");

const tags = ["events"];

const listOfWorkspaceRoute = createRoute({
  method: "get",
  path: "/v1/namespaces/{namespace}/workspaces/{name}/events",
  operationId: "listWorkspaceEvents",
  summary: "What happened to the workspaces of this name, newest first",
  description: "Kept after the workspace is gone, for a while. 404 where there is neither a workspace nor any event.",
  tags,
  security,
  request: { params: workspacePath, query: pageQuery },
  responses: { 200: json(eventListSchema, "One page, newest first"), default: problem() },
});

const listRoute = createRoute({
  method: "get",
  path: "/v1/events",
  operationId: "listEvents",
  summary: "What happened in the namespaces that the token operates, newest first",
  description: "A token for every namespace also sees what concerns none: unattributed instances, the controller's settings.",
  tags,
  security,
  request: { query: pageQuery.extend({ namespace: nameText.optional() }) },
  responses: { 200: json(eventListSchema, "One page, newest first"), default: problem() },
});

const positionSchema = z.int().min(0);

export function registerEvents(app: Api, deps: ApiDeps): void {
  const openapi = openapiWithVerbs(app);

  openapi(listOfWorkspaceRoute, async (c) => {
    const path = c.req.valid("param");
    authorise(c.var.principal, "read", path.namespace);
    const paging = await readPaging(c.req.valid("query"), ["events", path.namespace, path.name], positionSchema);
    const found = await listEventsOf(deps.db, path, { after: paging.after, limit: paging.readLimit });
    if (found === null) throw new Problem("NOT_FOUND", "There is no such workspace, and no event of one.");
    return c.json(await toEventList(found, paging), 200);
  });

  openapi(listRoute, async (c) => {
    const { namespace = null, ...options } = c.req.valid("query");
    const { principal } = c.var;
    authorise(principal, "operate", namespace);
    const paging = await readPaging(options, ["events", namespace], positionSchema);
    const namespaces = namespace === null ? principal.namespaces : [namespace];
    const found = await listEvents(deps.db, namespaces, { after: paging.after, limit: paging.readLimit });
    return c.json(await toEventList(found, paging), 200);
  });
}

async function toEventList(found: readonly StoredEvent[], paging: Paging<number>): Promise<z.infer<typeof eventListSchema>> {
  const { items, nextPageToken } = await cutPage(found, paging, ({ id }) => id);
  return { items: items.map(toEventBody), nextPageToken };
}

function toEventBody({ time, ...event }: StoredEvent): z.infer<typeof eventSchema> {
  return { ...event, time: toTimestamp(time) };
}
