/** What the routes of the OpenAPI document have in common. */
import type { z } from "@hono/zod-openapi";
import { problemSchema } from "./problem.ts";

export const security = [{ bearer: [] }];
export const etag = { ETag: { schema: { type: "string" as const }, description: "The tag for If-Match." } };
export const ifMatch = header("If-Match", "Only if what is there has one of these tags; otherwise 412.");
export const ifNoneMatch = header("If-None-Match", "`*`: only if there is nothing yet; otherwise 412.");

export function json<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/** By reference: the handler reads the body itself, bounded in size and depth before anything parses it. */
export function jsonBody(component: string, required: boolean) {
  return { required, content: { "application/json": { schema: { $ref: `#/components/schemas/${component}` } } } };
}

export function problem() {
  return { description: "A problem (RFC 9457)", content: { "application/problem+json": { schema: problemSchema } } };
}

function header(name: string, description: string) {
  return { name, in: "header" as const, required: false, description, schema: { type: "string" as const } };
}
