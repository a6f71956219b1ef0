import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Engine, EngineEvent, EngineOptions } from "../../dev/engine/contract.ts";
import { startEngine } from "../../dev/engine/engine.ts";
import { identify } from "../../dev/engine/process-identity.ts";
import { PROGRAM } from "./program.ts";
import { WorkerdClient } from "./workerd-client.ts";
import type { ClientOptions } from "./workerd-client.ts";

export interface Bench {
  readonly engine: Engine;
  readonly events: readonly EngineEvent[];
  readonly directory: string;
  readonly client: (object: number, more?: Partial<ClientOptions>) => WorkerdClient;
}

const cleanUps: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

export function atEnd(cleanUp: () => Promise<void> | void): void {
  cleanUps.push(cleanUp);
}

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "mooring-engine-"));
  atEnd(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  return directory;
}

/** An engine of its own for one test, closed at its end. */
export async function bench(options: Partial<EngineOptions> = {}): Promise<Bench> {
  const directory = options.stateDirectory ?? temporaryDirectory();
  const events: EngineEvent[] = [];
  const engine = await startEngine({
    socketPath: join(directory, "engine.sock"),
    stateDirectory: directory,
    image: (reference) => (reference === "unknown" ? null : PROGRAM),
    onEvent: (event) => void events.push(event),
    ...options,
  });
  atEnd(() => engine.close());
  return {
    engine,
    events,
    directory,
    client: (object, more) => new WorkerdClient({ socketPath: engine.socketPath, doId: doId(object), ...more }),
  };
}

export function doId(object: number): string {
  return object.toString(16).padStart(64, "0");
}

export function isRunning(pid: number): boolean {
  return identify(pid) !== null;
}

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
