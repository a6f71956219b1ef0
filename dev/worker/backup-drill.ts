/**
 * Backups without a controller, asked for by hand: of the SDK's class as it is (`ungated`), and of Mooring's own with nothing but its
 * non-waking backup (`standalone`).
 */
import type { Sandbox } from "@cloudflare/sandbox";
import { Hono } from "hono";
import type { DevEnv } from "./env.ts";
import { type Transport, transportOf } from "./transport.ts";

export const backupDrill = new Hono<{ Bindings: DevEnv }>();

const OPTIONS = { dir: "/workspace", localBucket: true };

/** Wakes the sandbox, as any call of either class does. */
backupDrill.post("/:kind/:id/exec", async (context) => {
  const { command } = await context.req.json<{ command: string }>();
  const stub = await open(context.env, context.req);
  const { exitCode, stdout } = await stub.exec(command);
  return context.json({ doId: stub.id.toString(), exitCode, stdout });
});

backupDrill.post("/standalone/:id/backup", async (context) => {
  const stub = context.env.STANDALONE.getByName(context.req.param("id"));
  await stub.setTransport(transportOf(context.req.query("transport")));
  return context.json(await stub.createBackupIfRunning(OPTIONS));
});

backupDrill.post("/ungated/:id/backup", async (context) => {
  const stub = context.env.UNGATED.getByName(context.req.param("id"));
  await stub.setTransport(transportOf(context.req.query("transport")));
  return context.json({ status: "Completed", backup: await stub.createBackup(OPTIONS) });
});

backupDrill.get("/:kind/:id", async (context) => {
  const { status } = await (await open(context.env, context.req)).getState();
  return context.json({ status });
});

backupDrill.delete("/:kind/:id", async (context) => {
  await (await open(context.env, context.req)).destroy();
  return context.body(null, 204);
});

backupDrill.onError((error, context) => context.json({ status: "Threw", error: error.name, detail: error.message }, 500));

interface SandboxRequest {
  param(name: "kind" | "id"): string;
  query(name: string): string | undefined;
}

async function open(env: DevEnv, request: SandboxRequest): Promise<DurableObjectStub<Sandbox>> {
  const namespace = request.param("kind") === "standalone" ? (env.STANDALONE as unknown as DevEnv["UNGATED"]) : env.UNGATED;
  const stub = namespace.getByName(request.param("id"));
  const transport: Transport = transportOf(request.query("transport"));
  await stub.setTransport(transport);
  return stub;
}
