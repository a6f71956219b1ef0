/** The controller as JSON: what an operator set, what follows from it, and what the controller itself says. */
import { createRoute, z } from "@hono/zod-openapi";
import { brakeSchema } from "./brake.ts";
import { instantText } from "./instant.ts";
import { etag, ifMatch, json, jsonBody, problem, security } from "./route-parts.ts";
import { instant, noQuery, serverOwned } from "./schema.ts";

const MAX_LANE_WIDTH = 100;
const gcMode = z.enum(["Off", "Report", "Enforce"]);

/** Replaced whole: what a PUT leaves out is as configured. */
export const settingsSchema = z.strictObject({
  paused: z.boolean().default(false).meta({ description: "Nothing is started, stopped, destroyed or deleted while true." }),
  gcMode: gcMode.nullable().default(null).meta({ description: "Null: as configured." }),
  allowEmpty: z.boolean().default(false).meta({ description: "Orphans may be destroyed although not one workspace is wished." }),
  laneWidth: z.int().min(1).max(MAX_LANE_WIDTH).nullable().default(null).meta({ description: "Null: as configured." }),
  brakeReleasedUntilTime: instantText
    .nullable()
    .default(null)
    .openapi({ description: "Until then any number of orphans may be destroyed in one sweep; at most 24 hours ahead." }),
  revision: serverOwned,
  etag: serverOwned,
  effective: serverOwned,
  lease: serverOwned,
  lastSweep: serverOwned,
  brake: serverOwned,
  startBrake: serverOwned,
  conditions: serverOwned,
  backups: serverOwned,
});

export const controllerSchema = z
  .object({
    paused: z.boolean(),
    gcMode: gcMode.nullable(),
    allowEmpty: z.boolean(),
    laneWidth: z.int().nullable(),
    brakeReleasedUntilTime: instant.nullable(),
    revision: z.int().meta({ description: "Rises with every change of the settings." }),
    etag: z.string().meta({ example: '"settings-r3"' }),
    effective: z.object({ gcMode, laneWidth: z.int() }).meta({ description: "With null settings as configured." }),
    lease: z
      .object({ holder: z.string(), epoch: z.int(), expiresTime: instant.nullable().meta({ description: "Null: given up." }) })
      .nullable()
      .meta({ description: "Null before the first tick." }),
    lastSweep: z
      .object({
        time: instant,
        completeTime: instant.nullable(),
        outcome: z.enum(["Complete", "LedgerOnly", "Failed"]),
        message: z.string(),
        running: z.int(),
        eligible: z.int(),
        limit: z.int(),
      })
      .nullable()
      .meta({ description: "Of the inventory; null before the first." }),
    brake: brakeSchema,
    startBrake: z.object({
      engaged: z.boolean(),
      untilTime: instant.nullable(),
      reason: z.string().nullable(),
      message: z.string().nullable(),
    }),
    backups: z
      .object({
        mode: z.enum(["local", "presigned"]),
        lastSweep: z
          .object({
            time: instant,
            completeTime: instant.nullable(),
            outcome: z.enum(["Complete", "Failed"]),
            message: z.string(),
            stored: z.int().meta({ description: "Backups with objects in the bucket." }),
            eligible: z.int().meta({ description: "Objects of no record past every other guard." }),
            limit: z.int().meta({ description: "How many of them one sweep may remove." }),
            brake: z.enum(["TooManyOrphans", "EmptyDesired"]).nullable(),
          })
          .nullable()
          .meta({ description: "Of the bucket; null before the first." }),
      })
      .nullable()
      .meta({ description: "Null where this installation takes none." }),
    conditions: z.array(
      z.object({
        type: z.enum(["StartsAllowed", "InventoryTrusted", "GarbageCollectionAllowed"]),
        status: z.enum(["True", "False", "Unknown"]),
        reason: z.string(),
        message: z.string(),
      }),
    ),
  })
  .openapi("Controller");

export type ControllerBody = z.infer<typeof controllerSchema>;

const CONTROLLER = "/v1/controller";
const tags = ["operations"];

export const getControllerRoute = createRoute({
  method: "get",
  path: CONTROLLER,
  operationId: "getController",
  summary: "The controller's settings and state",
  tags,
  security,
  request: { query: noQuery },
  responses: { 200: { ...json(controllerSchema, "The controller"), headers: etag }, default: problem() },
});

export const putControllerRoute = createRoute({
  method: "put",
  path: CONTROLLER,
  operationId: "putController",
  summary: "Replace the controller's settings as a whole",
  description: "What was read can be sent back: fields that the server owns are ignored. A request that changes nothing writes nothing.",
  tags,
  security,
  parameters: [ifMatch],
  request: { query: noQuery, body: jsonBody("ControllerSettings", true) },
  responses: { 200: { ...json(controllerSchema, "As it is now"), headers: etag }, default: problem() },
});
