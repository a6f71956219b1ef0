import { newWebSocketRpcSession, RpcTarget } from "capnweb";
import { asOperationError } from "./errors.ts";
import type { Operations } from "./operations.ts";
import { type Upgrade, webSocketUpgrade } from "./upgrade.ts";

/** Answers the calls of the SDK's RPC transport: capnweb over one WebSocket per connection. */
export function rpcUpgrade(operations: Operations): Upgrade {
  const api = rpcApi(operations);
  return webSocketUpgrade((webSocket) => void newWebSocketRpcSession(webSocket as unknown as WebSocket, api));
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
