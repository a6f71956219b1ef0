import { mkdirSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { dirname, resolve } from "node:path";
import type { Container } from "./container.ts";
import type { Engine, EngineOptions } from "./contract.ts";
import { createDockerApi } from "./docker-api.ts";
import { writeDockerCli } from "./docker-cli.ts";
import { createInventoryServer } from "./inventory-server.ts";
import { Ledger } from "./ledger.ts";
import { KILLED, Lifecycle } from "./lifecycle.ts";
import { Registry } from "./registry.ts";
import { StateDirectory } from "./state-directory.ts";

/** What the smallest of the common systems takes. */
const MAX_SOCKET_PATH = 103;

/**
 * A stand-in for the Docker Engine: serves workerd's container calls with local processes, keeps containers as the platform
 * does when an object leaves memory, and injects faults that are a function of a seed.
 */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  if (Buffer.byteLength(options.socketPath) > MAX_SOCKET_PATH)
    throw new Error(`The socket path is too long for this system: ${options.socketPath}`);
  const state = new StateDirectory(resolve(options.stateDirectory));
  state.claim();
  try {
    return await openEngine(options, state);
  } catch (error) {
    state.release();
    throw error;
  }
}

async function openEngine(options: EngineOptions, state: StateDirectory): Promise<Engine> {
  const ledger = new Ledger(options.onEvent);
  const registry: Registry = new Registry({ image: options.image, ledger, state }, () => lifecycle);
  const lifecycle = new Lifecycle({ seed: options.seed ?? 0, ledger, state, containers: () => registry.containers() });
  lifecycle.faults = options.faults ?? {};

  const docker = createDockerApi({ ledger, lifecycle, registry });
  const inventory = createInventoryServer({
    ledger,
    lifecycle,
    containers: () => registry.newestContainers(),
    applications: options.applications ?? [],
  });
  mkdirSync(dirname(options.socketPath), { recursive: true });
  rmSync(options.socketPath, { force: true });
  const closeDocker = await listen(docker, (ready) => docker.listen(options.socketPath, ready));
  const closeInventory = await listen(inventory, (ready) => inventory.listen(options.inventoryPort ?? 0, "127.0.0.1", ready));

  const find = (doId: string): Container => {
    const container = registry.byObject(doId);
    if (container === undefined) throw new Error(`The engine holds no container of object ${doId}.`);
    return container;
  };

  return {
    socketPath: options.socketPath,
    dockerCli: writeDockerCli(state.path),
    dockerHost: `unix://${options.socketPath}`,
    inventoryUrl: `http://127.0.0.1:${(inventory.address() as AddressInfo).port}`,
    setFaults: (faults) => void (lifecycle.faults = faults),
    instances: () =>
      registry
        .containers()
        .filter((container) => container.running)
        .toSorted((a, b) => a.ordinal - b.ordinal)
        .map((container) => container.describe()),
    instance: (doId) => registry.byObject(doId)?.describe(),
    counters: () => ledger.counters(),
    resetCounters: () => ledger.reset(),
    calls: () => ledger.calls,
    kill: (doId, exitCode = KILLED) => lifecycle.end(find(doId), exitCode),
    exitAfter: (doId, afterMs, exitCode) => lifecycle.exitAfter(find(doId), afterMs, exitCode),
    freeze: (doId) => lifecycle.freeze(find(doId)),
    thaw: (doId) => lifecycle.thaw(find(doId)),
    quiet: (forMs) => ledger.quiet(forMs),
    close: async () => {
      await registry.close();
      await Promise.all([closeDocker(), closeInventory()]);
      rmSync(options.socketPath, { force: true });
      state.release();
    },
  };
}

/** Returns what closes the server, open connections included. */
async function listen(server: Server, start: (ready: () => void) => void): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((ready, reject) => {
    server.once("error", reject);
    start(ready);
  });
  return async () => {
    const closed = new Promise((done) => server.close(done));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}
