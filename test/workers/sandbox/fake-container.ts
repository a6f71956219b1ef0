/**
 * A scripted `ctx.container`. A `Machine` is the platform's side: it outlives the Durable Object that looks at it.
 */
import { FakeDisk } from "./fake-disk.ts";
import type { ServerScript } from "./fake-host.ts";
import { serve } from "./fake-server.ts";

export interface Script extends ServerScript {
  /** So many starts get no instance. */
  refusals: number;
  /** What the platform says then. */
  refusalText: string;
  /** From the start until the server listens; null: never. */
  listensAfterMs: number | null;
  /** The container exits by itself so long after its start. */
  exits: { readonly afterMs: number; readonly code: number } | null;
  /** What the platform does with a destroy. */
  destroy: "Works" | "Hangs" | "DoesNothing" | "Fails";
  /** From SIGTERM until the exit; null: the container ignores the signal. */
  stopsAfterMs: number | null;
  /** The container is killed as soon as its port was found to listen. */
  diesOncePinged: boolean;
  /** What a request to the container meets. */
  network: "Works" | "Lost";
  /** What the image has on its disk. */
  image: Readonly<Record<string, string>>;
}

const NO_INSTANCE = "there is no container instance that can be provided to this durable object";

/** The name under which the SDK asks whether a port listens. */
const PING_HOST = "ping";

/** The containers of one Durable Object over time. */
export class Machine {
  readonly script: Script = {
    refusals: 0,
    refusalText: NO_INSTANCE,
    listensAfterMs: 0,
    exits: null,
    destroy: "Works",
    stopsAfterMs: 0,
    diesOncePinged: false,
    network: "Works",
    image: {},
    diesOn: null,
    diesInStream: null,
    failsArchive: null,
    hangsOn: null,
    mkdir: "Works",
    holdsCommands: false,
  };
  running = false;
  /** When the last container ended. */
  endedTime = 0;
  listensTime = Infinity;
  /** Calls of `start`, whether an instance was given or not. */
  starts = 0;
  /** Containers that really ran. */
  containers = 0;
  destroys = 0;
  readonly environments: unknown[] = [];
  /** Everything that the container was asked. */
  readonly requests: string[] = [];
  readonly commands: { readonly command: string; readonly cwd: unknown }[] = [];
  /** Of the container that runs: a fresh one has a fresh disk. */
  disk = new FakeDisk();
  readonly sockets = new Set<WebSocket>();
  /** Of the object that looks now; an earlier one is gone. */
  onEnd: ((error: Error | undefined) => void) | null = null;

  /** A container runs that no object of these tests started. */
  startUnseen(): void {
    this.running = true;
    this.containers += 1;
    this.listensTime = this.script.listensAfterMs === null ? Infinity : 0;
  }

  end(code: number | null, message?: string): void {
    if (!this.running) return;
    this.running = false;
    this.endedTime = Date.now();
    this.listensTime = Infinity;
    for (const socket of this.sockets) socket.close(1011, "container ended");
    this.sockets.clear();
    const text = message ?? `Container exited with unexpected exit code: ${code}`;
    this.onEnd?.(code === 0 ? undefined : Object.assign(new Error(text), code === null ? {} : { exitCode: code }));
  }
}

const machines = new Map<string, Machine>();

export function machineOf(id: DurableObjectId): Machine {
  const machine = machines.get(id.toString()) ?? new Machine();
  machines.set(id.toString(), machine);
  return machine;
}

/** Puts a fake container on `ctx`, as the platform would have. Call it before the SDK's constructor. */
export function installFakeContainer(ctx: DurableObjectState): void {
  Object.defineProperty(ctx, "container", { configurable: true, value: new FakeContainer(machineOf(ctx.id)) });
}

class FakeContainer {
  readonly #machine: Machine;
  #monitor: Promise<void> | null = null;

  constructor(machine: Machine) {
    this.#machine = machine;
    machine.onEnd = null;
    machine.sockets.clear();
  }

  get running(): boolean {
    return this.#machine.running;
  }

  start(options?: ContainerStartupOptions): void {
    const machine = this.#machine;
    if (machine.running) throw new Error("start() cannot be called on a container that is already running.");
    machine.starts += 1;
    machine.running = true;
    machine.environments.push(options?.env);
    this.#monitor = this.#watch();
    const { refusals, listensAfterMs, exits } = machine.script;
    if (refusals > 0) {
      machine.script.refusals -= 1;
      setTimeout(() => machine.end(null, machine.script.refusalText), 1);
      return;
    }
    machine.containers += 1;
    machine.disk = new FakeDisk();
    for (const [path, content] of Object.entries(machine.script.image)) machine.disk.files.set(path, content);
    const container = machine.containers;
    machine.listensTime = listensAfterMs === null ? Infinity : Date.now() + listensAfterMs;
    if (exits !== null) setTimeout(() => container === machine.containers && machine.end(exits.code), exits.afterMs);
  }

  monitor(): Promise<void> {
    if (!this.running) throw new Error("monitor() cannot be called on a container that is not running.");
    this.#monitor ??= this.#watch();
    return this.#monitor;
  }

  destroy(): Promise<void> {
    const machine = this.#machine;
    machine.destroys += 1;
    switch (machine.script.destroy) {
      case "Works":
        machine.end(137);
        return Promise.resolve();
      case "DoesNothing":
        return Promise.resolve();
      case "Fails":
        return Promise.reject(new Error("Network connection lost."));
      case "Hangs":
        return new Promise(() => {});
    }
  }

  signal(signal: number): void {
    if (!this.running) throw new Error("signal() cannot be called on a container that is not running.");
    const { stopsAfterMs } = this.#machine.script;
    if (stopsAfterMs !== null) setTimeout(() => this.#machine.end(128 + signal), stopsAfterMs);
  }

  getTcpPort(_port: number): { fetch: (input: string, init?: RequestInit) => Promise<Response> } {
    return { fetch: (input, init) => this.#request(new Request(input, init)) };
  }

  async #request(request: Request): Promise<Response> {
    const machine = this.#machine;
    const { hostname } = new URL(request.url);
    machine.requests.push(`connect ${hostname}`);
    // A request to the platform is never answered in the same turn.
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (machine.script.network === "Lost") throw new Error("Network connection lost.");
    if (!machine.running) throw new Error("The container is not running, consider calling start()");
    if (machine.listensTime > Date.now()) throw new Error("The container is not listening in the TCP address 10.0.0.1:3000");
    const response = await serve(request, machine);
    if (hostname === PING_HOST && machine.script.diesOncePinged) machine.end(137);
    return response;
  }

  #watch(): Promise<void> {
    const watched = new Promise<void>((resolve, reject) => {
      this.#machine.onEnd = (error) => (error === undefined ? resolve() : reject(error));
    });
    watched.catch(() => {});
    return watched;
  }
}
