/**
 * Paths with a verb, such as `/workspaces/{name}:wake`. hono has no suffix after a parameter, so a path's last parameters are matched by
 * patterns that keep them apart: one with the verb in it, and one without any colon for the same path without a verb.
 */
import type { RouteConfig } from "@hono/zod-openapi";
import { z } from "@hono/zod-openapi";
import type { Api } from "./context.ts";

const PARAMETER = /\{(\w+)\}(:\w+)?/g;

/** As `app.openapi`, for paths some of which have verbs: the document shows the path as it is. */
export function openapiWithVerbs(app: Api): Api["openapi"] {
  return (route: RouteConfig, handler: Parameters<Api["openapi"]>[1]) => {
    app.openAPIRegistry.registerPath(route);
    return app.openapi({ ...route, path: toPattern(route.path), hide: true }, handler);
  };
}

function toPattern(path: string): string {
  return path.replaceAll(PARAMETER, (_match, name: string, verb: string | undefined) => `:${name}{[^/:]+${verb ?? ""}}`);
}

/** A parameter that has the verb behind it, without the verb. */
export function before<Schema extends z.ZodType<string, string>>(verb: string, schema: Schema) {
  return z
    .string()
    .transform((segment) => segment.slice(0, -verb.length))
    .pipe(schema)
    .openapi({ type: "string" });
}
