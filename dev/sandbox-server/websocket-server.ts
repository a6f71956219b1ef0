import type { WebSocket } from "ws";
import type { Dispatch } from "./dispatch.ts";
import { eventData } from "./event-stream.ts";
import { type Upgrade, webSocketUpgrade } from "./upgrade.ts";

/** Answers the messages of the SDK's websocket transport: the requests of its HTTP transport, any number at once on one connection. */
export function websocketUpgrade(dispatch: Dispatch): Upgrade {
  return webSocketUpgrade((webSocket) => serve(webSocket, dispatch));
}

interface RequestMessage {
  readonly type: "request";
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Whoever read the stream that answers this request has gone. */
interface CancelMessage {
  readonly type: "cancel";
  readonly id: string;
}

/** A request is answered with one response, or with the events of a stream and then a response that ends it. */
type ServerMessage =
  | { readonly type: "response"; readonly id: string; readonly status: number; readonly body?: object; readonly done: true }
  | { readonly type: "stream"; readonly id: string; readonly data: string }
  | ErrorMessage;

/** The answer to a message that is no request. */
interface ErrorMessage {
  readonly type: "error";
  readonly code: "PARSE_ERROR" | "INVALID_REQUEST";
  readonly message: string;
  readonly status: 400;
}

type Send = (message: ServerMessage) => void;

function serve(webSocket: WebSocket, dispatch: Dispatch): void {
  /** What ends the stream that answers a request, by the request's id. */
  const unanswered = new Map<string, AbortController>();
  const send: Send = (message) => webSocket.send(JSON.stringify(message));

  webSocket.on("message", (data: Buffer) => {
    const message = readMessage(data.toString("utf8"));
    switch (message.type) {
      case "error":
        return send(message);
      case "cancel":
        return unanswered.get(message.id)?.abort();
      case "request": {
        const gone = new AbortController();
        unanswered.set(message.id, gone);
        void answer(dispatch, message, gone.signal, send).finally(() => unanswered.delete(message.id));
      }
    }
  });
  // As in the real server, what the requests have begun goes on; only nobody is told of it.
  webSocket.on("close", () => {
    for (const gone of unanswered.values()) gone.abort();
  });
}

function readMessage(text: string): RequestMessage | CancelMessage | ErrorMessage {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return { type: "error", code: "PARSE_ERROR", message: "The message is no JSON", status: 400 };
  }
  if (isClientMessage(message)) return message;
  return { type: "error", code: "INVALID_REQUEST", message: "The message is neither a request nor a cancellation", status: 400 };
}

function isClientMessage(message: unknown): message is RequestMessage | CancelMessage {
  const { type, id, method, path } = Object(message) as Readonly<Record<string, unknown>>;
  if (typeof id !== "string") return false;
  return type === "cancel" || (type === "request" && typeof method === "string" && typeof path === "string");
}

async function answer(dispatch: Dispatch, request: RequestMessage, gone: AbortSignal, send: Send): Promise<void> {
  const { id, method, path, body } = request;
  const { status, content } = await dispatch({ method, path, readBody: async () => body });
  if (content instanceof ReadableStream) {
    const events = new WritableStream<Uint8Array>({ write: (event) => send({ type: "stream", id, data: eventData(event) }) });
    await content.pipeTo(events, { signal: gone }).catch(() => {});
    if (!gone.aborted) send({ type: "response", id, status, done: true });
  } else {
    // A text is no JSON: the real server leaves it out.
    send({ type: "response", id, status, ...(typeof content === "object" && { body: content }), done: true });
  }
}
