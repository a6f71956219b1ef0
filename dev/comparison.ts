/** Creating many sandboxes at once, twice over the same engine: by the imperative handler, and by PUTs to Mooring. */
import { setTimeout as sleep } from "node:timers/promises";
import { fireCron } from "./cron.ts";
import type { Engine } from "./engine/contract.ts";
import type { Transport } from "./worker/transport.ts";

export interface Outcome {
  readonly requested: number;
  /** Answered as created, or Ready. */
  readonly succeeded: number;
  readonly failed: number;
  /** Containers that still run although no successful creation owns them, once the engine has become quiet. */
  readonly leaked: number;
  readonly maxConcurrentStarts: number;
  readonly elapsedMs: number;
}

export interface Progress {
  readonly succeeded: number;
  readonly failed: number;
  readonly running: number;
}

/** Mooring as it runs somewhere on this machine. */
export interface Running {
  readonly engine: Engine;
  readonly url: string;
}

export type OnProgress = (progress: Progress) => void;

const HEADERS = { authorization: "Bearer dev-operator", "content-type": "application/json" };

export interface ImperativeOptions {
  readonly count: number;
  readonly transport: Transport;
  /** After which a creation is given up, as a request's own limit would. */
  readonly deadlineMs?: number;
  readonly quietMs: number;
  readonly onProgress?: OnProgress;
}

/** The handler of the report, called for all at once. */
export async function createImperatively({ engine, url }: Running, options: ImperativeOptions): Promise<Outcome> {
  const { count, transport, deadlineMs, quietMs, onProgress } = options;
  const query = new URLSearchParams({ transport, ...(deadlineMs !== undefined && { deadlineMs: String(deadlineMs) }) });
  const owned = new Set<string>();
  let failed = 0;
  const report = () => onProgress?.({ succeeded: owned.size, failed, running: engine.instances().length });
  const startTime = Date.now();
  await Promise.all(
    Array.from({ length: count }, async () => {
      const answer = await fetch(`${url}/dev/imperative?${query.toString()}`, { method: "POST", headers: HEADERS });
      const { doId, created } = await answer.json<{ doId: string; created: boolean }>();
      if (created) owned.add(doId);
      else failed += 1;
      report();
    }),
  );
  const elapsedMs = Date.now() - startTime;
  await engine.quiet(quietMs);
  report();
  return { requested: count, succeeded: owned.size, failed, leaked: countLeaks(engine, owned), ...counted(engine), elapsedMs };
}

export interface DeclarativeOptions {
  readonly count: number;
  readonly timeoutMs: number;
  readonly quietMs: number;
  readonly onProgress?: OnProgress;
}

/** A PUT for all at once, and the cron. Leaves the workspaces there. */
export async function createDeclaratively(stack: Running, options: DeclarativeOptions): Promise<Outcome> {
  const { count, timeoutMs, quietMs, onProgress } = options;
  const { engine, url } = stack;
  const startTime = Date.now();
  const names = Array.from({ length: count }, (_, index) => `demo-${index + 1}`);
  const owned = new Set<string>();
  let elapsedMs = 0;
  await ticking(stack, async () => {
    await Promise.all(names.map((name) => putWorkspace(url, name)));
    while (owned.size < count && Date.now() - startTime < timeoutMs) {
      for (const sandboxId of await listReady(url)) owned.add(sandboxId);
      onProgress?.({ succeeded: owned.size, failed: 0, running: engine.instances().length });
      await sleep(100);
    }
    elapsedMs = Date.now() - startTime;
    await engine.quiet(quietMs);
  });
  const leaked = Math.max(0, engine.instances().length - owned.size);
  return { requested: count, succeeded: owned.size, failed: count - owned.size, leaked, ...counted(engine), elapsedMs };
}

export async function deleteAll(stack: Running): Promise<void> {
  await ticking(stack, async () => {
    for (;;) {
      const workspaces = await list(stack.url);
      if (workspaces.length === 0) return;
      await Promise.all(workspaces.map(({ metadata }) => fetch(pathOf(stack.url, metadata.name), { method: "DELETE", headers: HEADERS })));
      await sleep(200);
    }
  });
}

/** A Worker that does not answer is being started again. */
const RETRY_MS = 50;

/** Ticks one after the other until the work is done. */
export async function ticking<T>({ url }: Pick<Running, "url">, work: () => Promise<T>): Promise<T> {
  const until = new AbortController();
  const ticks = (async () => {
    while (!until.signal.aborted) {
      if (!(await fireCron(url))) await sleep(RETRY_MS);
    }
  })();
  try {
    return await work();
  } finally {
    until.abort();
    await ticks;
  }
}

interface Listed {
  readonly metadata: { readonly name: string };
  readonly status: { readonly phase: string; readonly sandboxId: string };
}

const pathOf = (url: string, name: string) => `${url}/v1/namespaces/default/workspaces/${name}`;

async function putWorkspace(url: string, name: string): Promise<void> {
  const answer = await fetch(pathOf(url, name), { method: "PUT", headers: HEADERS, body: JSON.stringify({ spec: {} }) });
  if (!answer.ok) throw new Error(`PUT ${name} was answered with ${answer.status}.`);
  await answer.body?.cancel();
}

async function list(url: string): Promise<readonly Listed[]> {
  const answer = await fetch(`${url}/v1/namespaces/default/workspaces?limit=500`, { headers: HEADERS });
  return (await answer.json<{ items: readonly Listed[] }>()).items;
}

async function listReady(url: string): Promise<readonly string[]> {
  return (await list(url)).filter(({ status }) => status.phase === "Ready").map(({ status }) => status.sandboxId);
}

function countLeaks(engine: Engine, owned: ReadonlySet<string>): number {
  return engine.instances().filter(({ id, ghost }) => ghost || !owned.has(id)).length;
}

function counted(engine: Engine) {
  return { maxConcurrentStarts: engine.counters().maxConcurrentStarts };
}
