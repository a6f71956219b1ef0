/** The wire shapes: what the API accepts and what it answers. The OpenAPI document is made from these same schemas. */
import { z } from "@hono/zod-openapi";
import { BACKUP_POLICIES, NAME_PATTERN, workspaceSpecSchema } from "../spec.ts";
import { annotationsSchema, labelsSchema } from "./metadata.ts";

export const MAX_WAIT_SECONDS = 25;
export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 500;

export const nameText = z.string().regex(NAME_PATTERN, { error: "must be 1 to 63 lower-case letters, digits and '-', not at an end" });

export const namespacePath = z.object({ namespace: nameText });
export const workspacePath = z.object({ namespace: nameText, name: nameText });

/** Query strings are strict: an option of a later version must never be read as its absence. */
export const noQuery = z.strictObject({});

export const getQuery = z
  .strictObject({
    waitFor: z.enum(["Ready", "Reconciling", "Stalled", "Suspended", "BackupCurrent"]).optional().meta({
      description: "Answer when this condition is True for the current generation.",
    }),
    timeoutSeconds: integerText(0, MAX_WAIT_SECONDS)
      .optional()
      .meta({ description: `With waitFor: at most ${MAX_WAIT_SECONDS}, which is the default.` }),
  })
  .refine(({ waitFor, timeoutSeconds }) => waitFor !== undefined || timeoutSeconds === undefined, {
    error: "has a meaning only with waitFor",
    path: ["timeoutSeconds"],
  });

export const deleteQuery = z.strictObject({
  allowMissing: z.enum(["true", "false"]).optional().meta({ description: "true: 204 instead of 404 where there is no such workspace." }),
  finalBackup: z
    .enum(BACKUP_POLICIES)
    .optional()
    .meta({
      description:
        "Whether the deletion waits for a last backup; by default spec.deletion.finalBackup. Of a workspace that is being deleted already it " +
        "can be weakened, and not strengthened.",
    }),
});

/** Of every list. */
export const pageQuery = z.strictObject({
  limit: integerText(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .meta({ description: `${DEFAULT_LIMIT} by default; more than ${MAX_LIMIT} is taken as ${MAX_LIMIT}.` }),
  pageToken: z.string().optional().meta({ description: "nextPageToken of the page before, with the same query otherwise." }),
});

export const listQuery = pageQuery.extend({
  labelSelector: z.string().optional().meta({ description: "As in Kubernetes.", example: "team=a,tier in (web,db),!legacy" }),
});

/** Written by the server; accepted so that what was read can be sent back, and ignored. */
export const serverOwned = z.unknown().optional();

/** What a client says about a workspace beside its spec. */
export const userMetadata = z.strictObject({ labels: labelsSchema.optional(), annotations: annotationsSchema.optional() });

/** What a PUT sends. */
export const applySchema = z.strictObject({
  metadata: userMetadata
    .extend({
      namespace: nameText.optional(),
      name: nameText.optional(),
      uid: serverOwned,
      generation: serverOwned,
      revision: serverOwned,
      resourceVersion: serverOwned,
      etag: serverOwned,
      creationTime: serverOwned,
      deletionTime: serverOwned,
    })
    .optional(),
  spec: workspaceSpecSchema,
  status: serverOwned,
});

export type ApplyBody = z.infer<typeof applySchema>;

export const instant = z.iso.datetime().meta({ example: "2026-11-30T12:00:00.000Z" });

const conditionSchema = z
  .object({
    type: z.string().meta({ description: "Ready, Reconciling, Stalled, Suspended or BackupCurrent.", example: "Ready" }),
    status: z.enum(["True", "False", "Unknown"]),
    reason: z.string().meta({ description: "CamelCase; part of the API.", example: "ContainerHealthy" }),
    message: z.string(),
    observedGeneration: z.int(),
    lastTransitionTime: instant,
  })
  .openapi("Condition");

export const workspaceSchema = z
  .object({
    metadata: z.object({
      namespace: z.string(),
      name: z.string(),
      uid: z.string(),
      generation: z.int().meta({ description: "Rises when the spec changes." }),
      revision: z.int().meta({ description: "Rises with every accepted write of a client." }),
      resourceVersion: z.string().meta({ description: "Opaque; changes with every write, the controller's too." }),
      etag: z.string().meta({ description: "The ETag; stands for the revision, not for the status.", example: '"7f2c91aa-r5"' }),
      creationTime: instant,
      deletionTime: instant.nullable(),
      labels: z.record(z.string(), z.string()),
      annotations: z.record(z.string(), z.string()),
    }),
    // Whatever is stored: a spec of an earlier version may no longer satisfy the schema, and is shown all the same.
    spec: z.unknown().openapi({ allOf: [{ $ref: "#/components/schemas/WorkspaceSpec" }] }),
    status: z.object({
      observedGeneration: z.int().meta({ description: "The generation this status is about; 0: not looked at yet." }),
      phase: z.string().meta({ description: "A summary to print; decide on the conditions.", example: "Ready" }),
      sandboxId: z.string().nullable().meta({ description: "For getSandbox(env.SANDBOX, id)." }),
      incarnation: z.int(),
      failures: z.int(),
      nextRetryTime: instant.nullable(),
      lastBackup: z.object({ id: z.string(), time: instant }).nullable().meta({ description: "The newest good one of this workspace." }),
      conditions: z.array(conditionSchema),
    }),
  })
  .openapi("Workspace");

export const workspaceListSchema = z
  .object({
    items: z.array(workspaceSchema),
    nextPageToken: z.string().nullable(),
    resourceVersion: z.string(),
  })
  .openapi("WorkspaceList");

export type WorkspaceBody = z.infer<typeof workspaceSchema>;
export type WorkspaceListBody = z.infer<typeof workspaceListSchema>;

function integerText(minimum: number, maximum: number) {
  return z
    .string()
    .regex(/^[0-9]{1,15}$/, { error: "must be a whole number" })
    .transform(Number)
    .pipe(z.int().min(minimum).max(maximum))
    .openapi({ type: "integer", minimum, ...(maximum < Number.MAX_SAFE_INTEGER && { maximum }) });
}
