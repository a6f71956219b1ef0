import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

/** Takes over a connection that asks for one of the SDK's transports over WebSockets. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Accepts every connection and hands it over. */
export function webSocketUpgrade(serve: (webSocket: WebSocket) => void): Upgrade {
  const server = new WebSocketServer({ noServer: true });
  return (request, socket, head) => {
    server.handleUpgrade(request, socket, head, (webSocket) => {
      // An error nobody listens for would end the container. The close that follows says enough.
      webSocket.on("error", () => {});
      serve(webSocket);
    });
  };
}
