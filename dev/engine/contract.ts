import type { Faults } from "./faults.ts";

/** What an image reference means on this machine: a program that plays the container. */
export interface ContainerProgram {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Container port -> name of the environment variable that tells the process its real local port. The lowest is the main port. */
  readonly ports: Readonly<Record<number, string>>;
}

export interface EngineOptions {
  /** Unix socket on which workerd finds the engine. */
  readonly socketPath: string;
  /** Owned by one engine at a time; one directory per container under it. */
  readonly stateDirectory: string;
  /** Null means: no such image. */
  readonly image: (reference: string) => ContainerProgram | null;
  /** Every draw is a pure function of this seed and the ordinal of the start. */
  readonly seed?: number;
  readonly faults?: Faults;
  readonly onEvent?: (event: EngineEvent) => void;
  /** Names (`<worker>-<class>`) the inventory knows before their first container. */
  readonly applications?: readonly string[];
  /** Loopback port of the inventory; a free one when absent. */
  readonly inventoryPort?: number;
}

export type EngineEventType =
  | "StartAccepted"
  | "StartRefused"
  | "StartFailed"
  | "Listening"
  | "ContactLost"
  | "Exited"
  | "Destroyed"
  | "KeptAfterEviction"
  | "DiedMidOperation";

export interface EngineEvent {
  readonly time: number;
  readonly type: EngineEventType;
  readonly doId: string;
  readonly className: string;
  /** Ordinal of the start this event belongs to; absent for starts that were never accepted. */
  readonly ordinal?: number;
  readonly exitCode?: number;
}

export type InstanceState = "Starting" | "Running" | "Exited";

export interface EngineInstance {
  /** The Durable Object id, 64 hex digits. */
  readonly id: string;
  /** Name workerd gave the container. */
  readonly name: string;
  readonly className: string;
  readonly state: InstanceState;
  readonly startedTime: number;
  readonly ordinal: number;
  /** True while it runs (or comes up) without its object knowing. */
  readonly ghost: boolean;
  readonly frozen: boolean;
  readonly pid?: number;
  readonly exitCode?: number;
  readonly environment?: Readonly<Record<string, string>>;
  /** Directory that stands for the container's disk. */
  readonly root: string;
}

export interface EngineCounters {
  /** Starts that were admitted. */
  readonly starts: number;
  readonly startsByObject: Readonly<Record<string, number>>;
  /** Admitted starts whose main port does not accept connections yet and whose container has not exited. */
  readonly inFlightStarts: number;
  readonly maxConcurrentStarts: number;
  readonly refused: number;
  readonly failedStarts: number;
  /** Containers killed by the overlap fault. */
  readonly killed: number;
  readonly ghosts: number;
  readonly diedMidOperation: number;
  /** Containers removed because their object, or a replacing start, asked for it. */
  readonly destroyed: number;
  /** Running containers that workerd wanted to delete only because it dropped the object from memory. */
  readonly keptAfterEviction: number;
  readonly unimplemented: number;
  readonly calls: number;
}

export interface EngineCall {
  readonly time: number;
  readonly surface: "Docker" | "Ingress" | "Inventory";
  readonly method: string;
  readonly path: string;
  /** 0 until answered; stays 0 when the connection was dropped instead. */
  readonly status: number;
  /** Set when the call names a container of a Durable Object. */
  readonly doId?: string;
}

export interface Engine {
  readonly socketPath: string;
  /** A docker CLI that does nothing, for WRANGLER_DOCKER_BIN. */
  readonly dockerCli: string;
  /** Value for WRANGLER_DOCKER_HOST. */
  readonly dockerHost: string;
  readonly inventoryUrl: string;
  readonly setFaults: (faults: Faults) => void;
  /** Running or starting containers, ghosts included, oldest first. */
  readonly instances: () => readonly EngineInstance[];
  /** The newest container of an object, also when it has exited; undefined when there is none. */
  readonly instance: (doId: string) => EngineInstance | undefined;
  readonly counters: () => EngineCounters;
  readonly resetCounters: () => void;
  readonly calls: () => readonly EngineCall[];
  /** The container dies now; resolves when it is dead. */
  readonly kill: (doId: string, exitCode?: number) => Promise<void>;
  readonly exitAfter: (doId: string, afterMs: number, exitCode: number) => void;
  /** Stops the processes without ending them: connections open, nothing answers. */
  readonly freeze: (doId: string) => void;
  readonly thaw: (doId: string) => void;
  /** Resolves once no container event has happened for this long. */
  readonly quiet: (forMs: number) => Promise<void>;
  readonly close: () => Promise<void>;
}
