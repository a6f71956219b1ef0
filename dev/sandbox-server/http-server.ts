import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { asOperationError, errorBody, OperationError, validationError } from "./errors.ts";
import { type Body, type Call, httpRoutes } from "./http-routes.ts";
import type { Operations } from "./operations.ts";

/** Answers the requests of the SDK's HTTP transport. */
export function httpHandler(operations: Operations): (request: IncomingMessage, response: ServerResponse) => void {
  const find = routeFinder(httpRoutes(operations));
  return (request, response) => {
    void answer(find, request, response).catch(() => response.destroy());
  };
}

type Route = (call: Call) => Promise<object | string>;
type Find = (method: string, path: string) => { readonly route: Route; readonly id: string } | undefined;

async function answer(find: Find, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const found = find(request.method ?? "GET", path);
    if (found === undefined) {
      request.resume();
      const missing = new OperationError("UNKNOWN_ERROR", `There is no ${request.method} ${path}`);
      return sendJson(response, 404, errorBody(missing, 404));
    }
    await send(response, await found.route({ body: await readBody(request), id: found.id }));
  } catch (error) {
    const body = errorBody(asOperationError(error));
    sendJson(response, body.httpStatus, body);
  }
}

function routeFinder(routes: ReadonlyMap<string, Route>): Find {
  return (method, path) => {
    const exact = routes.get(`${method} ${path}`);
    if (exact !== undefined) return { route: exact, id: "" };
    // Every route with a parameter has it as the third segment.
    const segments = path.split("/");
    const id = segments[3] ?? "";
    const route = routes.get(`${method} ${segments.with(Math.min(3, segments.length - 1), "{id}").join("/")}`);
    return route === undefined || id === "" ? undefined : { route, id: decodeURIComponent(id) };
  };
}

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return {};
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body;
  } catch {
    // Answered below, like any other body that is no object.
  }
  throw validationError("body", "The body must be a JSON object");
}

async function send(response: ServerResponse, result: object | string): Promise<void> {
  if (typeof result === "string") {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(result);
  } else if (result instanceof ReadableStream) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    await pipeline(Readable.fromWeb(result as NodeReadableStream), response);
  } else {
    sendJson(response, 200, result);
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
