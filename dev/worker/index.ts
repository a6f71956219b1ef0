/**
 * The Worker of a developer's machine: the product, and beside it what a team would have itself.
 *
 * - `/dev/workspaces/{sandboxId}/…`: a user's Worker that works in a workspace through the SDK.
 * - `/dev/imperative`: the handler of cloudflare/sandbox-sdk #794 over the unmodified class, which creates sandboxes without Mooring.
 * - `/dev/backups/{ungated|standalone}/{id}/…`: backups of the unmodified class, and of one that has only the non-waking backup.
 */
import { Sandbox } from "@cloudflare/sandbox";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import product, { NoWakeSandbox } from "../../src/index.ts";
import { backupDrill } from "./backup-drill.ts";
import type { DevEnv } from "./env.ts";
import { imperative } from "./imperative.ts";
import { workspaceAccess } from "./workspace-access.ts";

export { ContainerProxy, WorkspaceSandbox } from "../../src/index.ts";

/** What a team uses today. */
export class UngatedSandbox extends Sandbox<DevEnv> {}

/** The same with a backup that never wakes it, as anybody may use it without Mooring's controller. */
export class StandaloneSandbox extends NoWakeSandbox<DevEnv> {}

const app = new Hono<{ Bindings: DevEnv }>();

/** A page that a developer's browser shows can reach the port under a name of its own (DNS rebinding); it cannot choose this header. */
const LOOPBACK_NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

app.use("*", async (context, next) => {
  if (!LOOPBACK_NAMES.has(new URL(context.req.url).hostname)) return context.text("This port is for this machine alone.", 421);
  return next();
});

app.use("/dev/*", bearerAuth({ token: ["dev-operator", "dev-editor"] }));
app.route("/dev/workspaces", workspaceAccess);
app.route("/dev/imperative", imperative);
app.route("/dev/backups", backupDrill);
app.all("*", (context) => product.fetch?.(context.req.raw as never, context.env, context.executionCtx as never) as Promise<Response>);

const worker: ExportedHandler<DevEnv> = {
  fetch: app.fetch,
  scheduled: (event, env, context) => product.scheduled?.(event, env, context),
};

export default worker;
