import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { DeathWatch } from "./death-rule.ts";
import { createDispatch } from "./dispatch.ts";
import { httpHandler } from "./http-server.ts";
import { createOperations } from "./operations.ts";
import { readSettings } from "./settings.ts";
import { endOnSignals } from "./shutdown.ts";
import type { Upgrade } from "./upgrade.ts";

/** Runs the sandbox server until the engine ends it. */
export async function startServer(): Promise<void> {
  const settings = readSettings(process.env);
  endOnSignals(settings);
  const deathWatch = new DeathWatch();
  deathWatch.follow(process.stdin);
  const operations = deathWatch.over(createOperations(settings, process.env));
  const dispatch = createDispatch(operations);
  const server = createServer(httpHandler(dispatch));
  // What nobody waits for any more (a peer that left in mid-call) must not end the container.
  process.on("unhandledRejection", (reason) => console.error("unhandled rejection", reason));
  // One entry per transport over WebSockets. A sandbox asked over HTTP alone never needs their libraries, which take
  // longer to load than all the rest.
  const upgrades: Readonly<Record<string, () => Promise<Upgrade>>> = {
    "/rpc": once(async () => (await import("./rpc-server.ts")).rpcUpgrade(operations)),
    "/ws": once(async () => (await import("./websocket-server.ts")).websocketUpgrade(dispatch)),
  };
  server.on("upgrade", (request, socket: Duplex, head) => {
    const load = upgrades[new URL(request.url ?? "/", "http://container").pathname];
    if (load === undefined) return void socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    load().then(
      (upgrade) => upgrade(request, socket, head),
      () => socket.destroy(),
    );
  });
  // The SDK holds idle connections open for as long as it likes.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => server.listen(settings.port, "127.0.0.1", resolve));
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
