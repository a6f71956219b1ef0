import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { parseContainerName } from "./container-name.ts";
import type { ContainerName } from "./container-name.ts";
import { answerContainerCall } from "./container-routes.ts";
import { ExecTable } from "./exec-table.ts";
import type { DockerApiOptions, DockerCall, Outcome } from "./docker-call.ts";

/** The part of the Docker Engine API that workerd uses. Whatever else is asked for gets a 501 and is counted. */
export function createDockerApi(options: DockerApiOptions): Server {
  const execs = new ExecTable();
  const server = createServer((request, response) => void answer(request, response));
  server.on("upgrade", (request, socket) => {
    const call = options.ledger.call({ surface: "Docker", method: request.method ?? "", path: request.url ?? "" });
    call.status = execs.attach(request, socket);
  });
  // A wait call lasts as long as its container.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  return server;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://engine");
    const segments = url.pathname
      .split("/")
      .filter((segment) => segment !== "")
      .map(decodeURIComponent);
    const named = namedContainer(segments, url.searchParams);
    const entry = options.ledger.call({
      surface: "Docker",
      method: request.method ?? "",
      path: request.url ?? "",
      ...(named === null ? {} : { doId: named.doId }),
    });
    const call = { method: request.method ?? "", segments, query: url.searchParams, body: await readBody(request), response };
    const outcome = await route(call, named).catch((error: unknown): Outcome => ({ status: 500, json: { message: String(error) } }));
    if (outcome === "Dropped") return void response.socket?.destroy();
    if (outcome === "Unimplemented") options.ledger.count("unimplemented");
    const reply = outcome === "Unimplemented" ? { status: 501, json: { message: "not implemented by this engine" } } : outcome;
    entry.status = reply.status;
    const text = reply.json === undefined ? "" : JSON.stringify(reply.json);
    response.writeHead(reply.status, text === "" ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  }

  async function route(call: DockerCall, named: ContainerName | null): Promise<Outcome> {
    const { method, segments } = call;
    const [kind, first, second] = segments;
    if (kind === "exec" && first !== undefined) return execs.answer(call, first, second);
    if (kind === "containers" && named !== null) return answerContainerCall({ ...options, execs, call, named });
    if (kind === "containers" && method === "DELETE") return { status: 404, json: { message: "no such container" } };
    if (method === "POST" && kind === "images" && first === "create") return { status: 404, json: { message: "no such image" } };
    if (method !== "GET") return "Unimplemented";
    return answerLookup(segments);
  }
}

/** Calls that name no container. */
function answerLookup(segments: readonly string[]): Outcome {
  const path = segments.join("/");
  switch (path) {
    case "_ping":
      return { status: 200, json: "OK" };
    case "version":
      return { status: 200, json: { Version: "0.0.0", ApiVersion: "1.44", Os: "linux", Arch: "amd64" } };
    case "info":
      return { status: 200, json: { ID: "mooring", ServerVersion: "0.0.0", OSType: "linux", SecurityOptions: [] } };
    case "volumes":
      return { status: 200, json: { Volumes: [], Warnings: null } };
    case "networks/bridge":
      // workerd binds its egress listener to the gateway, so that must be an address of this machine.
      return { status: 200, json: { Name: "bridge", IPAM: { Config: [{ Subnet: "127.0.0.0/8", Gateway: "127.0.0.1" }] } } };
    case "containers/json":
      // Whoever supervises workerd lists a session's containers in order to delete them at its end; they are to live on.
      return { status: 200, json: [] };
    default:
      return segments[0] === "images" && segments.at(-1) === "json"
        ? { status: 200, json: { Id: "sha256:0", Size: 0, Parent: "" } }
        : "Unimplemented";
  }
}

function namedContainer(segments: readonly string[], query: URLSearchParams): ContainerName | null {
  if (segments[0] !== "containers") return null;
  return parseContainerName(segments[1] === "create" ? (query.get("name") ?? "") : (segments[1] ?? ""));
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
