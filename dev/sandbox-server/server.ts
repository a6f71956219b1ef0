import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { httpHandler } from "./http-server.ts";
import { createOperations } from "./operations.ts";
import type { Upgrade } from "./rpc-server.ts";
import { readSettings } from "./settings.ts";
import { endOnSignals } from "./shutdown.ts";

/** Runs the sandbox server until the engine ends it. */
export async function startServer(): Promise<void> {
  const settings = readSettings(process.env);
  endOnSignals(settings);
  const operations = createOperations(settings, process.env);
  const server = createServer(httpHandler(operations));
  // What nobody waits for any more (a peer that left in mid-call) must not end the container.
  process.on("unhandledRejection", (reason) => console.error("unhandled rejection", reason));
  // One entry per transport over WebSockets. A sandbox asked over HTTP alone never needs their libraries, which take
  // longer to load than all the rest.
  let rpc: Promise<Upgrade> | undefined;
  const upgrades: Readonly<Record<string, () => Promise<Upgrade>>> = {
    "/rpc": () => (rpc ??= import("./rpc-server.ts").then(({ rpcUpgrade }) => rpcUpgrade(operations))),
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
