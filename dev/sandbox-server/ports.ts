import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type EventSource, eventStream } from "./event-stream.ts";
import type { Processes } from "./processes.ts";

export interface PortWatch {
  readonly port: number;
  readonly mode: "http" | "tcp";
  readonly path?: string | undefined;
  readonly statusMin?: number | undefined;
  readonly statusMax?: number | undefined;
  readonly processId?: string | undefined;
  readonly interval?: number | undefined;
}

interface Answer {
  readonly ready: boolean;
  readonly statusCode?: number;
}

/** The port operations, with the arguments and answers of the SDK's own interface. */
export function portOperations(processes: Processes) {
  return {
    watchPort: async (watch: PortWatch) =>
      eventStream(async (source) => {
        await untilReady(processes, watch, source);
        source.close();
      }),
  };
}

async function untilReady(processes: Processes, watch: PortWatch, { emit, signal }: EventSource): Promise<void> {
  const { port, processId } = watch;
  emit({ type: "watching", port });
  while (!signal.aborted) {
    const exitCode = processId === undefined ? undefined : processes.get(processId).exitCode;
    if (exitCode !== undefined) return void emit({ type: "process_exited", port, exitCode });
    const { ready, ...answer } = watch.mode === "tcp" ? await tryConnection(port) : await tryRequest(watch);
    if (ready) return void emit({ type: "ready", port, ...answer });
    await delay(watch.interval ?? 500, undefined, { signal }).catch(() => {});
  }
}

function tryConnection(port: number): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const answer = (ready: boolean) => (): void => {
      socket.destroy();
      resolve({ ready });
    };
    socket.once("connect", answer(true)).once("error", answer(false));
  });
}

async function tryRequest({ port, path = "/", statusMin = 200, statusMax = 399 }: PortWatch): Promise<Answer> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { redirect: "manual" });
    await response.body?.cancel();
    return { ready: response.status >= statusMin && response.status <= statusMax, statusCode: response.status };
  } catch {
    return { ready: false };
  }
}
