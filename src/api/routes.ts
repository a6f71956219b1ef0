/** The routes of workspaces as the OpenAPI document shows them. */
import { createRoute, z } from "@hono/zod-openapi";
import { etag, ifMatch, ifNoneMatch, json, jsonBody, problem, security } from "./route-parts.ts";
import {
  deleteQuery,
  getQuery,
  listQuery,
  namespacePath,
  nameText,
  noQuery,
  workspaceListSchema,
  workspacePath,
  workspaceSchema,
} from "./schema.ts";
import { before } from "./verbs.ts";

const WORKSPACE = "/v1/namespaces/{namespace}/workspaces/{name}";
const tags = ["workspaces"];

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
    body: jsonBody("WorkspaceApply", true),
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
  description: "A final backup is waited for until spec.deletion.deadlineSeconds have passed; then the deletion goes on without it.",
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

export const wakeRoute = createRoute({
  method: "post",
  path: `${WORKSPACE}:wake`,
  operationId: "wakeWorkspace",
  summary: "Ask for a workspace that is suspended for idleness to run again",
  description: "Of one that runs, the idle time begins anew. One whose spec says Suspended stays so.",
  tags,
  security,
  parameters: [ifMatch],
  request: { params: z.object({ namespace: nameText, name: before(":wake", nameText) }), query: noQuery, body: jsonBody("Empty", false) },
  responses: { 202: { ...json(workspaceSchema, "Asked for"), headers: etag }, default: problem() },
});

export const reconcileRoute = createRoute({
  method: "post",
  path: `${WORKSPACE}:reconcile`,
  operationId: "reconcileWorkspace",
  summary: "Ask for a workspace's backoff and stall to be forgotten, and for a new try",
  tags,
  security,
  parameters: [ifMatch],
  request: {
    params: z.object({ namespace: nameText, name: before(":reconcile", nameText) }),
    query: noQuery,
    body: jsonBody("Empty", false),
  },
  responses: { 202: { ...json(workspaceSchema, "Asked for"), headers: etag }, default: problem() },
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
