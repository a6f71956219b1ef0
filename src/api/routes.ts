/** The routes of workspaces as the OpenAPI document shows them. */
import { createRoute, type z } from "@hono/zod-openapi";
import { problemSchema } from "./problem.ts";
import { deleteQuery, getQuery, listQuery, namespacePath, noQuery, workspaceListSchema, workspacePath, workspaceSchema } from "./schema.ts";

const WORKSPACE = "/v1/namespaces/{namespace}/workspaces/{name}";
const security = [{ bearer: [] }];
const tags = ["workspaces"];
const etag = { ETag: { schema: { type: "string" as const }, description: "metadata.etag" } };
const ifMatch = header("If-Match", "Only if the workspace has one of these tags; otherwise 412.");
const ifNoneMatch = header("If-None-Match", "`*`: only if there is no such workspace; otherwise 412.");

export const putRoute = createRoute({
  method: "put",
  path: WORKSPACE,
  operationId: "putWorkspace",
  summary: "Create a workspace or replace its spec, labels and annotations as a whole",
  description: "A request that changes nothing changes no counter. Fields that the server owns are ignored.",
  tags,
  security,
  parameters: [ifMatch, ifNoneMatch],
  request: {
    params: workspacePath,
    query: noQuery,
    // By reference: the handler reads the body itself, bounded in size and depth before anything parses it.
    body: { required: true, content: { "application/json": { schema: { $ref: "#/components/schemas/WorkspaceApply" } } } },
  },
  responses: {
    200: { ...json(workspaceSchema, "Replaced, or as wished already"), headers: etag },
    201: { ...json(workspaceSchema, "Created"), headers: { ...etag, Location: { schema: { type: "string" as const } } } },
    default: problem(),
  },
});

export const getRoute = createRoute({
  method: "get",
  path: WORKSPACE,
  operationId: "getWorkspace",
  summary: "Read a workspace, at once or when a condition is met",
  description: "If-None-Match is not looked at: the tag stands for the revision, and the status changes without it.",
  tags,
  security,
  request: { params: workspacePath, query: getQuery },
  responses: { 200: { ...json(workspaceSchema, "The workspace"), headers: etag }, default: problem() },
});

export const deleteRoute = createRoute({
  method: "delete",
  path: WORKSPACE,
  operationId: "deleteWorkspace",
  summary: "Ask for a workspace to be deleted, in any phase and as often as you like",
  tags,
  security,
  parameters: [ifMatch],
  request: { params: workspacePath, query: deleteQuery },
  responses: {
    202: { ...json(workspaceSchema, "Being deleted since deletionTime"), headers: etag },
    204: { description: "There is none, and allowMissing was true" },
    default: problem(),
  },
});

export const listRoute = createRoute({
  method: "get",
  path: "/v1/namespaces/{namespace}/workspaces",
  operationId: "listWorkspaces",
  summary: "List the workspaces of a namespace",
  tags,
  security,
  request: { params: namespacePath, query: listQuery },
  responses: { 200: json(workspaceListSchema, "One page, ordered by name"), default: problem() },
});

export const listAllRoute = createRoute({
  method: "get",
  path: "/v1/workspaces",
  operationId: "listAllWorkspaces",
  summary: "List the workspaces of every namespace that the token may read",
  tags,
  security,
  request: { query: listQuery },
  responses: { 200: json(workspaceListSchema, "One page, ordered by namespace and name"), default: problem() },
});

function json<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { "application/json": { schema } } };
}

export function problem() {
  return { description: "A problem (RFC 9457)", content: { "application/problem+json": { schema: problemSchema } } };
}

function header(name: string, description: string) {
  return { name, in: "header" as const, required: false, description, schema: { type: "string" as const } };
}
