import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Container } from "./container.ts";
import { CAPACITY_MESSAGE } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { OperationWatch } from "./operation-watch.ts";

export interface IngressOptions {
  readonly doId: string;
  readonly ledger: Ledger;
  readonly lifecycle: Lifecycle;
  readonly container: () => Container | undefined;
}

/** What a sidecar is for: workerd's only way to the ports of a container. */
export class Ingress {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server;
    this.#sockets = sockets;
    this.port = (server.address() as AddressInfo).port;
  }

  static async open(options: IngressOptions): Promise<Ingress> {
    const sockets = new Set<Socket>();
    const server = createServer((request, response) => {
      const call = options.ledger.call({ surface: "Ingress", method: request.method ?? "", path: request.url ?? "", doId: options.doId });
      request.resume();
      // Egress is not intercepted, so the settings of PUT /egress have nothing to act on and the certificate is never used.
      call.status = request.url === "/egress" || request.url === "/ca" ? 200 : 501;
      if (call.status === 501) options.ledger.count("unimplemented");
      response.writeHead(call.status).end(request.url === "/ca" ? "no interception\n" : "");
    });
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    server.on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => void relay(options, request, client as Socket, head));
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    return new Ingress(server, sockets);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

async function relay(options: IngressOptions, request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
  const target = request.url ?? "";
  const call = options.ledger.call({ surface: "Ingress", method: "CONNECT", path: target, doId: options.doId });
  client.on("error", () => client.destroy());
  const refuse = (status: number, reason: string, body: string) => {
    call.status = status;
    client.end(
      `HTTP/1.1 ${status} ${reason}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  };
  const container = options.container();
  if (container?.state === "Refused") return refuse(503, "Service Unavailable", CAPACITY_MESSAGE);
  if (container?.ghost === true) return void client.destroy();
  const port = Number(target.slice(target.lastIndexOf(":") + 1));
  const server = container === undefined ? null : await dial(options.lifecycle, container, port);
  if (container === undefined || server === null) return refuse(400, "Bad Request", `nothing listens on port ${port}`);
  call.status = 200;
  client.write("HTTP/1.1 200 OK\r\n\r\n");
  join(options.lifecycle, container, client, server, head);
}

/** A connection to the container's port; null while the container does not listen there. */
async function dial(lifecycle: Lifecycle, container: Container, port: number): Promise<Socket | null> {
  const local = container.ports.get(port);
  const hangs = lifecycle.faultsOf(container).hangStart === true && !container.listening;
  if (!container.running || local === undefined || hangs || Date.now() < container.delayUntil) return null;
  const server = connect({ host: "127.0.0.1", port: local, noDelay: true });
  const connected = await new Promise<boolean>((resolve) => {
    server.once("connect", () => resolve(true)).once("error", () => resolve(false));
  });
  if (!connected) return null;
  if (port === container.mainPort) lifecycle.markListening(container);
  return server;
}

function join(lifecycle: Lifecycle, container: Container, client: Socket, server: Socket, head: Buffer): void {
  const sever = () => {
    client.destroy();
    server.destroy();
  };
  const detach = container.attach({ exited: sever, cut: sever });
  client.once("close", detach).once("close", () => server.destroy());
  server.on("error", sever).once("close", () => client.destroySoon());
  const watch = new OperationWatch(lifecycle, container);
  const forward = (chunk: Buffer) => {
    if (watch.isFatal(chunk)) return lifecycle.dieMidOperation(container, watch.exitCode);
    if (!server.write(chunk)) client.pause();
  };
  if (head.length > 0) forward(head);
  client.on("data", forward).on("end", () => server.end());
  server.on("drain", () => client.resume());
  server.pipe(client);
}
