/**
 * Tells a user's traffic from everything else that reaches the container, and keeps account of it (invariants 6 and 7).
 *
 * What counts, and from when to when:
 *  1. A call of the SDK's client, on each of its transports: from its begin to its end, and its stream to the last chunk.
 *  2. A request to one of the container's ports, by which `fetch`, `containerFetch`, a preview or a terminal get there: from the moment it
 *     is passed on to the last chunk of its answer.
 *  3. Each message on a WebSocket that such a request opened, in both directions. That the socket is open does not count.
 *
 * What does not: whatever happens in a start or in the object's alarm, what the gate refused, a call that asks the container nothing
 * (`getState`, `setSleepAfter`, a preview URL that has become stale), and what the SDK itself takes for activity, which is all of that.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Activity, Visit } from "./activity.ts";

export class Traffic {
  readonly #activity: Activity;
  /** Set where what reaches the container is not a user's, or has been counted already. */
  readonly #apart = new AsyncLocalStorage<true>();

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  /** Whatever `work` does, and sets going, is not counted. */
  apart<T>(work: () => T): T {
    return this.#apart.run(true, work);
  }

  /** Counts a call of the client, if it is a user's. */
  call<T>(work: () => T): T {
    if (this.#apart.getStore() === true) return work();
    const visit = this.#activity.begin();
    try {
      // Its requests are counted with it, and the connection that it may open is not a user's.
      const result = this.apart(work);
      if (result instanceof Promise) return followCall(result, visit) as T;
      visit.end();
      return result;
    } catch (error) {
      visit.end();
      throw error;
    }
  }

  /** A port of the container. Everything passes one, but for calls on a connection that is open. */
  port(port: Fetcher): Fetcher {
    const fetch: Fetcher["fetch"] = async (...request) => {
      if (this.#apart.getStore() === true) return port.fetch(...request);
      const visit = this.#activity.begin();
      return followResponse(() => port.fetch(...request), visit);
    };
    return new Proxy(port, {
      get(target, property) {
        if (property === "fetch") return fetch;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
}

async function followCall(call: Promise<unknown>, visit: Visit): Promise<unknown> {
  const result = await endingOnFailure(visit, () => call);
  if (result instanceof ReadableStream) return followStream(result, visit);
  if (hasStream(result)) result.content = followStream(result.content, visit);
  else visit.end();
  return result;
}

/** A file that is read without decoding, over the rpc transport. */
function hasStream(result: unknown): result is { content: ReadableStream } {
  return typeof result === "object" && result !== null && "content" in result && result.content instanceof ReadableStream;
}

async function followResponse(request: () => Promise<Response>, visit: Visit): Promise<Response> {
  const response = await endingOnFailure(visit, request);
  if (response.body !== null) return new Response(followStream(response.body, visit), response);
  visit.end();
  if (response.webSocket !== null) followSocket(response.webSocket, visit);
  return response;
}

function followStream(stream: ReadableStream, visit: Visit): ReadableStream {
  const reader = stream.getReader();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await endingOnFailure(visit, () => reader.read());
        if (done) {
          visit.end();
          controller.close();
        } else {
          visit.touch();
          controller.enqueue(value);
        }
      },
      async cancel(reason) {
        visit.end();
        await reader.cancel(reason);
      },
    },
    // Nothing is read ahead of the reader.
    { highWaterMark: 0 },
  );
}

/** The SDK accepts the socket later, and passes on what it receives and what it sends. */
function followSocket(socket: WebSocket, visit: Visit): void {
  socket.addEventListener("message", () => visit.touch());
  const send = socket.send.bind(socket);
  socket.send = (message) => {
    visit.touch();
    send(message);
  };
}

async function endingOnFailure<T>(visit: Visit, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    visit.end();
    throw error;
  }
}
