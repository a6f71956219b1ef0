/**
 * As much of the sandbox image's control server as the SDK needs for exec, mkdir and backups, on each of its transports.
 */
import { env } from "cloudflare:workers";
import { newWebSocketRpcSession } from "capnweb";
import { type Body, createArchive } from "./fake-backup.ts";
import type { Handle, Host, ServerRequest } from "./fake-host.ts";
import { ControlTarget } from "./fake-rpc.ts";
import { pauseOf, released, STREAMS, streamed, streamOf } from "./fake-streams.ts";
import { transfer } from "./fake-transfer.ts";

/** All that `/echo` does not repeat. */
export const UNANSWERED = "ssh";

/** Answers one request to the container. */
export async function serve(request: Request, host: Host): Promise<Response> {
  const { pathname: path } = new URL(request.url);
  const handle: Handle = async (call) => {
    const { script } = host;
    host.requests.push(call.path);
    while (isAt(script.hangsOn, call)) await pauseOf(5);
    if (isAt(script.diesOn, call)) {
      host.end(137);
      throw new Error("Network connection lost.");
    }
    return answer(call, host);
  };
  if (request.headers.get("Upgrade") === "websocket") {
    host.requests.push(path);
    const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    server.accept();
    host.sockets.add(server);
    if (path === "/rpc") newWebSocketRpcSession(server, new ControlTarget(handle, host));
    else if (path === "/echo") server.addEventListener("message", ({ data }) => data !== UNANSWERED && server.send(data));
    else answerMessages(server, handle, host);
    return new Response(null, { status: 101, webSocket: client });
  }
  if (path === "/empty") return new Response(null, { status: 204 });
  const text = await request.text();
  const call: ServerRequest = { method: request.method, path, body: text === "" ? {} : (JSON.parse(text) as Body) };
  const stream = STREAMS.has(path) ? streamed(call, host) : null;
  if (stream !== null) return new Response(streamOf(stream), { headers: { "Content-Type": "text/event-stream" } });
  const { status, body } = await handle(call);
  return Response.json(body, { status });
}

/** Whether a scripted event is for this request. */
function isAt(place: string | null, { path, body }: ServerRequest): boolean {
  return place !== null && (place === path || (place.startsWith(`${path} `) && `${path} ${String(body["command"])}`.startsWith(place)));
}

async function answer(request: ServerRequest, host: Host): Promise<{ status: number; body: object }> {
  const { script, disk } = host;
  const { path, body } = request;
  switch (path) {
    case "/api/version":
      return { status: 200, body: { version: "0.12.10" } };
    case "/api/execute": {
      host.commands.push({ command: String(body["command"]), cwd: body["cwd"] });
      await released(script);
      const command = String(body["command"]);
      if (command.startsWith("unrunnable ")) {
        return { status: 500, body: failure("COMMAND_EXECUTION_ERROR", `Failed to execute command '${command}': no such directory`) };
      }
      const result = (await transfer(command, disk, (env as { BACKUP_BUCKET: R2Bucket }).BACKUP_BUCKET)) ?? disk.run(command);
      return { status: 200, body: { success: result.exitCode === 0, ...result, command: "", timestamp: "" } };
    }
    case "/api/backup/create":
      if (script.failsArchive !== null) return { status: 500, body: failure("BACKUP_CREATE_FAILED", script.failsArchive) };
      return { status: 200, body: createArchive(disk, body) };
    case "/api/backup/restore":
      disk.clear(String(body["dir"]));
      disk.unpack(disk.read(String(body["archivePath"])), String(body["dir"]));
      return { status: 200, body: { success: true } };
    case "/api/write":
      disk.files.set(String(body["path"]), String(body["content"]));
      return { status: 200, body: { success: true, path: body["path"], timestamp: "" } };
    case "/api/process/list":
      return { status: 200, body: { processes: [] } };
    case "/api/mkdir":
      if (script.mkdir === "Hangs") return new Promise(() => {});
      if (script.mkdir === "Fails") return { status: 403, body: failure("PERMISSION_DENIED", "Permission denied") };
      return { status: 200, body: { success: true, path: "", timestamp: "" } };
    default:
      return { status: 200, body: { success: true } };
  }
}

function failure(code: string, message: string): object {
  return { code, message, context: {} };
}

/** The websocket transport: requests and responses as JSON messages on one socket. */
function answerMessages(server: WebSocket, handle: Handle, host: Host): void {
  server.addEventListener("message", (event) => {
    const message = JSON.parse(String(event.data)) as ServerRequest & { id: string };
    const call = { ...message, body: message.body ?? {} };
    if (STREAMS.has(call.path)) return void streamMessages(server, call.id, streamed(call, host)).catch(() => {});
    void handle(call).then(
      ({ status, body }) => {
        if (server.readyState === WebSocket.OPEN) server.send(JSON.stringify({ type: "response", id: call.id, status, body, done: true }));
      },
      () => {},
    );
  });
}

async function streamMessages(server: WebSocket, id: string, texts: AsyncGenerator<string>): Promise<void> {
  for await (const data of texts) server.send(JSON.stringify({ type: "stream", id, data }));
  server.send(JSON.stringify({ type: "response", id, status: 200, body: {}, done: true }));
}
