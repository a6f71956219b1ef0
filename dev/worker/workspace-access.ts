/** How a user's own Worker works in a workspace: `getSandbox` with the id from the workspace's status, and the SDK's calls. */
import { getSandbox } from "@cloudflare/sandbox";
import { Hono } from "hono";
import { isWorkspaceNotRunning } from "../../src/index.ts";
import type { DevEnv } from "./env.ts";
import { transportOf } from "./transport.ts";

export const workspaceAccess = new Hono<{ Bindings: DevEnv }>();

workspaceAccess.post("/:sandboxId/exec", async (context) => {
  const { command } = await context.req.json<{ command: string }>();
  const { exitCode, stdout, stderr } = await open(context.env, context.req).exec(command);
  return context.json({ exitCode, stdout, stderr });
});

workspaceAccess.put("/:sandboxId/files", async (context) => {
  await open(context.env, context.req).writeFile(context.req.query("path") ?? "", await context.req.text());
  return context.body(null, 204);
});

workspaceAccess.get("/:sandboxId/files", async (context) => {
  const { content } = await open(context.env, context.req).readFile(context.req.query("path") ?? "");
  return context.text(content);
});

workspaceAccess.onError((error, context) => {
  const notRunning = isWorkspaceNotRunning(error);
  return context.json({ notRunning, error: error.name, detail: error.message }, notRunning ? 409 : 500);
});

interface SandboxRequest {
  param(name: "sandboxId"): string;
  query(name: string): string | undefined;
}

function open(env: DevEnv, request: SandboxRequest) {
  return getSandbox(env.SANDBOX as never, request.param("sandboxId"), { transport: transportOf(request.query("transport")) });
}
