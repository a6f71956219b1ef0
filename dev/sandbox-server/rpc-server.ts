import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { newWebSocketRpcSession, RpcTarget } from "capnweb";
import { WebSocketServer } from "ws";
import { asOperationError } from "./errors.ts";
import type { Operations } from "./operations.ts";

/** Takes over a connection that asks for the SDK's RPC transport. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Answers the calls of the SDK's RPC transport: capnweb over one WebSocket per connection. */
export function rpcUpgrade(operations: Operations): Upgrade {
  const server = new WebSocketServer({ noServer: true });
  const api = rpcApi(operations);
  return (request, socket, head) => {
    server.handleUpgrade(request, socket, head, (webSocket) => {
      newWebSocketRpcSession(webSocket as unknown as WebSocket, api);
    });
  };
}

type Group = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;

/** The object the SDK's connection finds: one getter per group. */
function rpcApi(operations: Operations): RpcTarget {
  const api = class extends RpcTarget {};
  for (const [name, group] of Object.entries(operations)) {
    const target = rpcTarget(group);
    Object.defineProperty(api.prototype, name, { get: () => target });
  }
  return new api();
}

/** capnweb offers only what is on the prototype, so each group becomes a class. */
function rpcTarget(group: Group): RpcTarget {
  const target = class extends RpcTarget {};
  for (const [name, operation] of Object.entries(group)) {
    const method = async (...args: never[]): Promise<unknown> => {
      try {
        return await operation(...args);
      } catch (error) {
        throw rpcError(error);
      }
    };
    Object.defineProperty(target.prototype, name, { value: method });
  }
  return new target();
}

/**
 * An error as the SDK's client recognises it: one of its own codes as properties, any other code as JSON in the message.
 * Anything else would reach its caller as a broken connection.
 */
function rpcError(error: unknown): Error {
  const { code, message, context } = asOperationError(error);
  if (code === "NOT_IMPLEMENTED") return new Error(JSON.stringify({ code, message, context }));
  return Object.assign(new Error(message), { code, details: context });
}
