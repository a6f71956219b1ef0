import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import type { Answer, Dispatch } from "./dispatch.ts";

/** Answers the requests of the SDK's HTTP transport. */
export function httpHandler(dispatch: Dispatch): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    void answer(dispatch, request, response).catch(() => response.destroy());
  };
}

async function answer(dispatch: Dispatch, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "GET", url = "/" } = request;
  const found = await dispatch({ method, path: url, readBody: () => readBody(request) });
  // The body of a request that no route asked for.
  request.resume();
  await send(response, found);
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Refused as a body that is no object.
    return text;
  }
}

async function send(response: ServerResponse, { status, content }: Answer): Promise<void> {
  if (typeof content === "string") {
    response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(content);
  } else if (content instanceof ReadableStream) {
    response.writeHead(status, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    await pipeline(Readable.fromWeb(content as NodeReadableStream), response);
  } else {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(content));
  }
}
