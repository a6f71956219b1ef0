/** What the tests of the sandbox share: addressing objects, orders and fences. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { Fence, StartOrder } from "../../../src/sandbox/protocol.ts";
import { machineOf, type Machine, type Script } from "./fake-container.ts";
import type { FencedSandbox, StandaloneSandbox, UnfencedSandbox } from "./worker.ts";

interface Bindings {
  readonly FENCED: DurableObjectNamespace<FencedSandbox>;
  readonly STANDALONE: DurableObjectNamespace<StandaloneSandbox>;
  readonly UNFENCED: DurableObjectNamespace<UnfencedSandbox>;
  readonly DB: D1Database;
  readonly BACKUP_BUCKET: R2Bucket;
}

export const bindings = env as unknown as Bindings;

export type Transport = "http" | "rpc" | "websocket";
export const TRANSPORTS: readonly Transport[] = ["http", "rpc", "websocket"];

export const FENCE: Fence = { epoch: 1, incarnation: 1 };

export interface Subject {
  readonly name: string;
  readonly machine: Machine;
  readonly stub: DurableObjectStub<FencedSandbox>;
}

/** Of any class. */
interface Ending {
  readonly machine: Machine;
  readonly stub: DurableObjectStub<FencedSandbox> | DurableObjectStub<StandaloneSandbox> | DurableObjectStub<UnfencedSandbox>;
}

/** A sandbox that nobody has touched yet, on a machine that behaves as scripted. */
export function newSandbox(script: Partial<Script> = {}): Subject {
  const name = crypto.randomUUID();
  const machine = machineOf(bindings.FENCED.idFromName(name));
  Object.assign(machine.script, script);
  return { name, machine, stub: bindings.FENCED.getByName(name) };
}

export function order(change: Partial<StartOrder> = {}): StartOrder {
  return {
    startId: "start-1",
    workspaceUid: "uid-1",
    timeoutMs: 20_000,
    directory: "/workspace",
    env: { NODE_ENV: "test" },
    specHash: "hash-1",
    adopt: false,
    prepareTimeoutMs: 60_000,
    restore: null,
    setup: [],
    ...change,
  };
}

/** Longer than any operation of these tests takes. */
export const LONG_WAIT_MS = 30_000;

/** Waits for something that happens on the machine's side. Fails where it does not happen. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error("the awaited condition did not come true");
    await pause(10);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A sandbox whose container was started and verified. */
export async function runningSandbox(script: Partial<Script> = {}, transport: Transport = "http"): Promise<Subject> {
  const subject = newSandbox(script);
  await subject.stub.setTransport(transport);
  const answer = await subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
  if (answer.facts.operation?.state !== "Succeeded") throw new Error(`start failed: ${JSON.stringify(answer.facts)}`);
  return subject;
}

/** Longer than the SDK waits between two tries of its start loop, several times over. */
export const SEVERAL_TRIES_MS = 1_000;

/** The container ends by itself. Its monitor belongs to the object, and so must the event. */
export async function endContainer({ stub, machine }: Ending, code: number | null, message?: string): Promise<void> {
  await runInDurableObject(stub as DurableObjectStub, async () => {
    machine.end(code, message);
    await pause(1);
  });
}

/** The object loses its memory in the middle of whatever it does; its container lives on. */
export async function loseMemory({ stub, name }: Subject): Promise<DurableObjectStub<FencedSandbox>> {
  await runInDurableObject(stub, (_instance, state) => state.abort("memory lost")).catch(() => {});
  return bindings.FENCED.getByName(name);
}

/** The look that a destroy leaves behind for later is taken now; by the platform, where it is about to call the object's alarm itself. */
export async function runScheduledVerification({ stub }: Subject): Promise<void> {
  await runInDurableObject(stub, (_instance, state) => {
    const { rowsWritten } = state.storage.sql.exec("UPDATE container_schedules SET time = 0 WHERE callback = 'verifyWorkspaceDestroyed'");
    if (rowsWritten === 0) throw new Error("no verification is scheduled");
  });
  await runDurableObjectAlarm(stub);
}

/** D1 answers the object nothing any more. */
export async function withBrokenD1({ stub }: Subject): Promise<void> {
  const first = async () => {
    throw new Error("D1_ERROR: Network connection lost.");
  };
  const prepare = () => ({ bind: () => ({ first }) });
  await runInDurableObject(stub, (instance) => {
    Object.defineProperty(instance, "env", { value: { DB: { prepare } } });
  });
}

/** What a call was rejected with. (`expect(…).rejects` attaches to an RPC promise twice and leaves one rejection unhandled.) */
export async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => new Error("the call went through"),
    (reason: unknown) => reason,
  );
}
