/**
 * The API as one Hono app. It reads the store and writes wishes; it never calls a sandbox, and it never writes a status.
 */
import { type Hook, OpenAPIHono } from "@hono/zod-openapi";
import { createMiddleware } from "hono/factory";
import { methodNotAllowed } from "hono/method-not-allowed";
import { type Authenticate, createAuthenticator } from "./auth.ts";
import { registerBackups } from "./backups.ts";
import type { Api, ApiDeps, ApiEnv } from "./context.ts";
import { registerController } from "./controller.ts";
import { registerDrift } from "./drift.ts";
import { registerEvents } from "./events.ts";
import { toProblem } from "./failure.ts";
import { registerHealth } from "./health.ts";
import { registerInstances } from "./instances.ts";
import { registerOpenApi } from "./openapi.ts";
import { toFieldErrors } from "./pointer.ts";
import { Problem, toProblemResponse } from "./problem.ts";
import { registerWorkspaces } from "./workspaces.ts";

export function createApi(deps: ApiDeps): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({ defaultHook: rejectInvalid });
  app.use(finishEvery(deps));
  app.use(rejectOtherMethods(app));
  app.use("/v1/*", authenticateWith(createAuthenticator(deps.config.tokens)));
  registerHealth(app, deps);
  registerWorkspaces(app, deps);
  registerEvents(app, deps);
  registerBackups(app, deps);
  registerDrift(app, deps);
  registerInstances(app, deps);
  registerController(app, deps);
  registerOpenApi(app);
  app.notFound((c) => toProblemResponse(new Problem("ROUTE_NOT_FOUND", "There is nothing at this path."), c.var.requestId));
  app.onError((error, c) => toProblemResponse(toProblem(error, c.var.requestId), c.var.requestId));
  return app;
}

/** A request's id is always our own: one that came with it could be anybody's text in our logs. */
function finishEvery(deps: ApiDeps) {
  return createMiddleware<ApiEnv>(async (c, next) => {
    c.set("requestId", deps.newRequestId());
    await next();
    c.res.headers.set("X-Request-Id", c.var.requestId);
    c.res.headers.set("Cache-Control", "no-store");
    c.res.headers.set("X-Content-Type-Options", "nosniff");
  });
}

function rejectOtherMethods(app: Api) {
  return methodNotAllowed({
    app,
    onMethodNotAllowed: (c, methods) =>
      toProblemResponse(
        new Problem("METHOD_NOT_ALLOWED", "This path has no such method.", { headers: { Allow: methods.join(", ") } }),
        c.get("requestId"),
      ),
  });
}

function authenticateWith(authenticate: Authenticate) {
  return createMiddleware<ApiEnv>(async (c, next) => {
    c.set("principal", await authenticate(c.req.header("Authorization")));
    await next();
  });
}

/** What the routes' own schemas refuse: the path and the query. */
const rejectInvalid: Hook<unknown, ApiEnv, string, unknown> = (result) => {
  if (result.success) return;
  if (result.target === "param") {
    throw new Problem("INVALID_NAME", "The path has a name that is not valid.", { errors: toFieldErrors(result.error.issues, "path") });
  }
  throw new Problem("INVALID_QUERY", "The query is not valid.", { errors: toFieldErrors(result.error.issues, "query") });
};
