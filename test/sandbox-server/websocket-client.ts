import { WebSocket } from "ws";
import type { Answer, RunningServer, StreamEvent } from "./running-server.ts";

/** As much of a message of the server as these tests look at. */
interface Message extends Answer {
  readonly type: "response" | "stream" | "error";
  readonly id?: string;
  readonly data: string;
  readonly done?: boolean;
  readonly code?: string;
}

/** One connection of the SDK's websocket transport. */
export interface Connection {
  readonly webSocket: WebSocket;
  /** Everything the server has sent, in order. */
  readonly messages: readonly Message[];
  /** Sends a request and answers its id. */
  request(method: string, path: string, body?: object): string;
  cancel(id: string): void;
  /** The next message that belongs to a request, or to none. */
  next(id: string | undefined, belongs?: (message: Message) => boolean): Promise<Message>;
  call(method: string, path: string, body?: object): Promise<Message>;
  post(path: string, body: object): Promise<Message>;
  /** The events of a request, and the response that ended them. */
  stream(method: string, path: string, body?: object): Promise<{ readonly events: readonly StreamEvent[]; readonly end: Message }>;
}

export async function connect({ url }: Pick<RunningServer, "url">): Promise<Connection> {
  const webSocket = new WebSocket(`${url.replace("http", "ws")}/ws`);
  const messages: Message[] = [];
  const waiting = new Set<() => void>();
  webSocket.on("message", (data: Buffer) => {
    messages.push(JSON.parse(data.toString("utf8")) as Message);
    for (const look of waiting) look();
  });
  await new Promise((resolve, reject) => webSocket.once("open", resolve).once("error", reject));

  let requests = 0;
  const connection: Connection = {
    webSocket,
    messages,
    request(method, path, body) {
      const id = `request-${(requests += 1)}`;
      webSocket.send(JSON.stringify({ type: "request", id, method, path, body, headers: { "content-type": "application/json" } }));
      return id;
    },
    cancel: (id) => webSocket.send(JSON.stringify({ type: "cancel", id })),
    next: (id, belongs = () => true) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = messages.find((message) => message.id === id && belongs(message));
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    call: (method, path, body) => connection.next(connection.request(method, path, body), ({ type }) => type === "response"),
    post: (path, body) => connection.call("POST", path, body),
    async stream(method, path, body) {
      const id = connection.request(method, path, body);
      const end = await connection.next(id, ({ type }) => type !== "stream");
      const events = messages.filter((message) => message.id === id && message.type === "stream");
      return { events: events.map(({ data }) => JSON.parse(data) as StreamEvent), end };
    },
  };
  return connection;
}
