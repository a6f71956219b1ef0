/** The routes of instances, and their wire shapes. */
import { createRoute, z } from "@hono/zod-openapi";
import { workspaceSpecSchema } from "../spec.ts";
import { etag, json, jsonBody, problem, security } from "./route-parts.ts";
import { instant, nameText, noQuery, pageQuery, userMetadata, workspaceSchema } from "./schema.ts";
import { before } from "./verbs.ts";

const MAX_SANDBOX_ID_LENGTH = 256;

/** Of a Durable Object. */
const doIdText = z.string().regex(/^[0-9a-f]{64}$/, { error: "must be 64 lower-case hex digits" });
export const positionSchema = doIdText;

export const instanceSchema = z
  .object({
    doId: z.string(),
    sandboxId: z.string().nullable().meta({ description: "Null where nobody knows its name." }),
    claimed: z.boolean().meta({ description: "Whether a workspace's record stands behind it." }),
    state: z.string().meta({ description: "Of a claimed one what its workspace's last pass saw, of another what the last sweep saw." }),
    workspace: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }).nullable(),
    incarnation: z.int().nullable(),
    firstSeenTime: instant.nullable(),
    lastSeenTime: instant.nullable(),
    timesSeen: z.int().meta({ description: "In how many complete sweeps in a row an unclaimed one was seen running." }),
    startedTime: instant.nullable(),
    protected: z.boolean(),
    destroyRequested: z.boolean(),
    destroyAttempts: z.int(),
    lastDestroyTime: instant.nullable(),
    adopted: z.boolean().meta({ description: "It ran before there was a record of it." }),
  })
  .openapi("Instance");

export type InstanceBody = z.infer<typeof instanceSchema>;

const instanceListSchema = z.object({ items: z.array(instanceSchema), nextPageToken: z.string().nullable() }).openapi("InstanceList");

export const protectSchema = z.strictObject({ protected: z.boolean().default(true) });

/** The running container cannot take up another environment, and it runs. */
export const adoptSchema = z.strictObject({
  namespace: nameText,
  name: nameText,
  sandboxId: z.string().min(1).max(MAX_SANDBOX_ID_LENGTH).optional(),
  metadata: userMetadata.optional(),
  spec: workspaceSpecSchema
    .refine(({ env }) => Object.keys(env).length === 0, { error: "must be empty: the container already runs", path: ["env"] })
    .refine(({ operatingMode }) => operatingMode === "Running", { error: "must be Running", path: ["operatingMode"] })
    .optional(),
});

export type AdoptBody = z.infer<typeof adoptSchema>;

const INSTANCE = "/v1/instances/{doId}";
const tags = ["operations"];

export const listInstancesRoute = createRoute({
  method: "get",
  path: "/v1/instances",
  operationId: "listInstances",
  summary: "List every instance that is known, claimed by a workspace or not",
  tags,
  security,
  request: { query: pageQuery.extend({ claimed: z.enum(["true", "false"]).optional(), namespace: nameText.optional() }) },
  responses: { 200: json(instanceListSchema, "One page, ordered by DO id"), default: problem() },
});

export const destroyInstanceRoute = createRoute({
  method: "post",
  path: `${INSTANCE}:destroy`,
  operationId: "destroyInstance",
  summary: "Ask for an instance to be destroyed: the next sweep does so, or replaces it where it is a workspace's",
  description: "Grace, sightings, brake and the mode Report do not hold it back; protection does.",
  tags,
  security,
  request: { params: z.object({ doId: before(":destroy", doIdText) }), query: noQuery, body: jsonBody("Empty", false) },
  responses: { 202: json(instanceSchema, "Asked for"), default: problem() },
});

export const protectInstanceRoute = createRoute({
  method: "post",
  path: `${INSTANCE}:protect`,
  operationId: "protectInstance",
  summary: "Keep an unclaimed instance from being destroyed, or no longer",
  description: "Protecting one voids an earlier request to destroy it.",
  tags,
  security,
  request: { params: z.object({ doId: before(":protect", doIdText) }), query: noQuery, body: jsonBody("InstanceProtect", false) },
  responses: { 202: json(instanceSchema, "As asked for"), default: problem() },
});

export const adoptInstanceRoute = createRoute({
  method: "post",
  path: `${INSTANCE}:adopt`,
  operationId: "adoptInstance",
  summary: "Make a running instance that no record claims a workspace's own",
  description: "`spec.env` must be empty and `spec.operatingMode` Running. `sandboxId` is needed where nobody knows it.",
  tags,
  security,
  request: { params: z.object({ doId: before(":adopt", doIdText) }), query: noQuery, body: jsonBody("InstanceAdopt", true) },
  responses: {
    201: { ...json(workspaceSchema, "Created"), headers: { ...etag, Location: { schema: { type: "string" as const } } } },
    default: problem(),
  },
});
