/**
 * As much of the sandbox image's control server as the SDK needs for exec and mkdir, on each of its transports.
 */
import { newWebSocketRpcSession, RpcTarget } from "capnweb";

export interface ServerScript {
  /** The container is killed while it works on a request to this path. */
  diesOn: string | null;
  /** How the server answers a request to create a directory. */
  mkdir: "Works" | "Fails" | "Hangs";
  /** As long as it is set, commands do not end, and what they stream pauses after the first chunk. */
  holdsCommands: boolean;
}

export interface ServerRequest {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

type Handle = (request: ServerRequest) => Promise<{ status: number; body: object }>;

/** What the server does to the machine that it runs on. */
export interface Host {
  readonly script: ServerScript;
  /** The path of everything that the server is asked. */
  readonly requests: string[];
  /** Cut when the container ends. */
  readonly sockets: Set<WebSocket>;
  end(code: number): void;
}

/** All that `/echo` does not repeat. */
export const UNANSWERED = "ssh";

/** Answers one request to the container. */
export async function serve(request: Request, host: Host): Promise<Response> {
  const { pathname: path } = new URL(request.url);
  const handle: Handle = (call) => {
    host.requests.push(call.path);
    if (call.path === host.script.diesOn) {
      host.end(137);
      return Promise.reject(new Error("Network connection lost."));
    }
    return answer(call, host.script);
  };
  if (request.headers.get("Upgrade") === "websocket") {
    host.requests.push(path);
    const [client, server] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    server.accept();
    host.sockets.add(server);
    if (path === "/rpc") newWebSocketRpcSession(server, new ControlTarget(handle, host.script));
    else if (path === "/echo") server.addEventListener("message", ({ data }) => data !== UNANSWERED && server.send(data));
    else answerMessages(server, handle, host.script);
    return new Response(null, { status: 101, webSocket: client });
  }
  if (STREAMS.has(path)) return new Response(streamOf(chunks(host.script)), { headers: { "Content-Type": "text/event-stream" } });
  if (path === "/empty") return new Response(null, { status: 204 });
  const text = await request.text();
  const { status, body } = await handle({ method: request.method, path, body: text === "" ? null : JSON.parse(text) });
  return Response.json(body, { status });
}

async function answer(request: ServerRequest, script: ServerScript): Promise<{ status: number; body: object }> {
  switch (request.path) {
    case "/api/version":
      return { status: 200, body: { version: "0.12.10" } };
    case "/api/execute":
      await released(script);
      return { status: 200, body: { success: true, exitCode: 0, stdout: "done\n", stderr: "", command: "", timestamp: "" } };
    case "/api/process/list":
      return { status: 200, body: { processes: [] } };
    case "/api/mkdir":
      if (script.mkdir === "Hangs") return new Promise(() => {});
      if (script.mkdir === "Fails") return { status: 403, body: { code: "PERMISSION_DENIED", message: "Permission denied", context: {} } };
      return { status: 200, body: { success: true, path: "", timestamp: "" } };
    default:
      return { status: 200, body: { success: true } };
  }
}

/** What a command prints: one chunk at once, and one at its end. */
const STREAMS: ReadonlySet<string> = new Set(["/api/execute/stream", "/download"]);
const FIRST = "1";
const LAST = "2";

async function* chunks(script: ServerScript): AsyncGenerator<string> {
  yield FIRST;
  await released(script);
  yield LAST;
}

/** Looked at rather than told: a test is no part of the object's requests. */
async function released(script: ServerScript): Promise<void> {
  while (script.holdsCommands) await new Promise((resolve) => setTimeout(resolve, 5));
}

function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next();
      if (done === true) controller.close();
      else controller.enqueue(new TextEncoder().encode(`data: ${value}\n\n`));
    },
  });
}

/** The websocket transport: requests and responses as JSON messages on one socket. */
function answerMessages(server: WebSocket, handle: Handle, script: ServerScript): void {
  server.addEventListener("message", (event) => {
    const call = JSON.parse(String(event.data)) as ServerRequest & { id: string };
    if (STREAMS.has(call.path)) return void streamMessages(server, call.id, script);
    void handle(call).then(
      ({ status, body }) => server.send(JSON.stringify({ type: "response", id: call.id, status, body, done: true })),
      () => {},
    );
  });
}

async function streamMessages(server: WebSocket, id: string, script: ServerScript): Promise<void> {
  for await (const data of chunks(script)) server.send(JSON.stringify({ type: "stream", id, data }));
  server.send(JSON.stringify({ type: "response", id, status: 200, body: {}, done: true }));
}

/** The rpc transport: the same calls as objects. */
class ControlTarget extends RpcTarget {
  readonly #handle: Handle;
  readonly #script: ServerScript;

  constructor(handle: Handle, script: ServerScript) {
    super();
    this.#handle = handle;
    this.#script = script;
  }

  get commands() {
    return new CallTarget(this.#handle, this.#script);
  }
  get files() {
    return new CallTarget(this.#handle, this.#script);
  }
  get utils() {
    return new CallTarget(this.#handle, this.#script);
  }
}

class CallTarget extends RpcTarget {
  readonly #handle: Handle;
  readonly #script: ServerScript;

  constructor(handle: Handle, script: ServerScript) {
    super();
    this.#handle = handle;
    this.#script = script;
  }

  readFile() {
    return { success: true, content: streamOf(chunks(this.#script)) };
  }
  executeStream() {
    return streamOf(chunks(this.#script));
  }

  execute(command: string) {
    return this.#call("/api/execute", { command });
  }
  mkdir(path: string) {
    return this.#call("/api/mkdir", { path });
  }
  createSession() {
    return this.#call("/api/session/create", {});
  }
  async getVersion() {
    await this.#call("/api/version", {});
    return "0.12.10";
  }

  async #call(path: string, body: object) {
    const result = await this.#handle({ method: "POST", path, body });
    if (result.status !== 200) throw new Error(JSON.stringify(result.body));
    return result.body;
  }
}
