/** The drift report as JSON. */
import { createRoute, z } from "@hono/zod-openapi";
import { DRIFT_TYPES } from "../controller/drift-item.ts";
import { brakeSchema } from "./brake.ts";
import { json, problem, security } from "./route-parts.ts";
import { instant, nameText, pageQuery } from "./schema.ts";

const workspaceName = z.object({ namespace: z.string(), name: z.string() });

const driftItemSchema = z
  .object({
    type: z.enum(DRIFT_TYPES),
    workspace: workspaceName.optional().meta({ description: "Whose it is, where that is known." }),
    instance: z.object({ doId: z.string(), sandboxId: z.string().nullable() }).optional(),
    backup: z
      .object({ id: z.string().nullable().meta({ description: "Null where no record knows it." }), objectId: z.string() })
      .optional()
      .meta({ description: "Which archive in the bucket, or missing from it." }),
    differences: z
      .array(
        z.object({
          field: z.string().meta({ description: "A JSON pointer into the workspace." }),
          desired: z.string(),
          observed: z.string(),
        }),
      )
      .optional(),
    firstSeenTime: instant,
    timesSeen: z.int().meta({ description: "By passes or sweeps that wrote down what they saw." }),
    ageSeconds: z.int(),
    plannedAction: z
      .enum(["Start", "Stop", "Suspend", "Destroy", "Replace", "Delete", "Observe", "Backup", "Remove", "None"])
      .meta({ description: "None: nothing will be done until somebody acts." }),
    blockedBy: z.string().optional().meta({ description: "Why it is not done now; absent: it is about to be." }),
    reason: z.string(),
    message: z.string(),
  })
  .openapi("DriftItem");

export const driftSchema = z
  .object({
    asOf: instant,
    complete: z.boolean().meta({ description: "Whether the last inventory sweep saw everything, and lately." }),
    lastSweep: z.object({ time: instant, ok: z.boolean(), ageSeconds: z.int() }),
    summary: z.partialRecord(z.enum(DRIFT_TYPES), z.int()).meta({ description: "How many of each type, over all pages; none: absent." }),
    items: z.array(driftItemSchema),
    brake: brakeSchema,
    unreachable: z.array(workspaceName).meta({ description: "Workspaces whose sandbox does not answer: what is said of them is old." }),
    nextPageToken: z.string().nullable(),
  })
  .openapi("Drift");

export type DriftBody = z.infer<typeof driftSchema>;
export type DriftItemBody = z.infer<typeof driftItemSchema>;

const driftQuery = pageQuery.extend({ type: z.enum(DRIFT_TYPES).optional(), namespace: nameText.optional() });

export type DriftOptions = z.infer<typeof driftQuery>;

export const driftRoute = createRoute({
  method: "get",
  path: "/v1/drift",
  operationId: "getDrift",
  summary: "What differs from the wishes, since when, and what will be done about it",
  description: "From records alone: no sandbox is asked. 503 before the first inventory sweep.",
  tags: ["operations"],
  security,
  request: { query: driftQuery },
  responses: {
    200: json(
      driftSchema,
      "Unclaimed instances first, oldest first; then workspaces by namespace, name and type; then backups, oldest first",
    ),
    default: problem(),
  },
});
