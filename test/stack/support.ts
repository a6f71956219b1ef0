/** A stack for a test file, and the calls a client makes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { startTestStack, type TestStack, type TestStackOptions } from "./test-stack.ts";

export interface Wire {
  readonly metadata: { readonly uid: string; readonly generation: number };
  readonly status: {
    readonly phase: string;
    readonly sandboxId: string | null;
    readonly incarnation: number;
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  };
}

/** Short ticks one after the other: the cron of a busy minute, with the lease handed over all the time. */
const VARIABLES = {
  TICK_BUDGET_SECONDS: "1",
  POLL_INTERVAL_MS: "100",
  RESYNC_INTERVAL_SECONDS: "5",
  LEASE_SECONDS: "2",
  START_TIMEOUT_SECONDS: "30",
};

/** One for the tests of a file. */
export function useStack(options: Partial<Omit<TestStackOptions, "directory">> = {}): { readonly stack: TestStack } {
  const directory = mkdtempSync(join(tmpdir(), "mooring-test-"));
  const held: { stack: TestStack } = { stack: undefined as never };
  beforeAll(async () => {
    held.stack = await startTestStack({ ...options, directory, variables: { ...VARIABLES, ...options.variables } });
  }, 120_000);
  afterAll(async () => {
    await held.stack?.stop();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);
  return held;
}

type Role = "editor" | "operator";

export function call(stack: TestStack, method: string, path: string, body?: unknown, role: Role = "editor"): Promise<Response> {
  const headers = { authorization: `Bearer dev-${role}`, "content-type": "application/json" };
  return fetch(`${stack.url}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

const pathOf = (name: string) => `/v1/namespaces/default/workspaces/${name}`;

export async function put(stack: TestStack, name: string, spec: object = {}): Promise<Wire> {
  const answer = await call(stack, "PUT", pathOf(name), { spec });
  expect(answer.status, await answer.clone().text()).toBeLessThan(300);
  return await answer.json<Wire>();
}

export async function get(stack: TestStack, name: string): Promise<Wire | null> {
  const answer = await call(stack, "GET", pathOf(name));
  if (answer.status === 404) return null;
  expect(answer.status).toBe(200);
  return await answer.json<Wire>();
}

/** The workspace once the condition holds for its newest generation. */
export async function waitFor(stack: TestStack, name: string, condition: string, timeoutMs = 60_000): Promise<Wire> {
  for (const end = Date.now() + timeoutMs; ;) {
    const answer = await call(stack, "GET", `${pathOf(name)}?waitFor=${condition}&timeoutSeconds=10`);
    if (answer.status === 200) return await answer.json<Wire>();
    if (Date.now() > end) throw new Error(`${name} is not ${condition}: ${JSON.stringify(await get(stack, name))}`);
  }
}

export async function remove(stack: TestStack, name: string): Promise<void> {
  const answer = await call(stack, "DELETE", `${pathOf(name)}?allowMissing=true`);
  expect([202, 204], await answer.clone().text()).toContain(answer.status);
}

export async function waitUntilGone(stack: TestStack, name: string, timeoutMs = 60_000): Promise<void> {
  for (const end = Date.now() + timeoutMs; (await get(stack, name)) !== null;) {
    if (Date.now() > end) throw new Error(`${name} is still there: ${JSON.stringify(await get(stack, name))}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Creates them all at once and answers how long it took until all were Ready. */
export async function createAll(
  stack: TestStack,
  names: readonly string[],
): Promise<{ readonly elapsedMs: number; readonly ready: readonly Wire[] }> {
  const startTime = Date.now();
  await Promise.all(names.map((name) => put(stack, name)));
  const ready = await Promise.all(names.map((name) => waitFor(stack, name, "Ready", 180_000)));
  return { elapsedMs: Date.now() - startTime, ready };
}

export async function removeAll(stack: TestStack, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => remove(stack, name)));
  await Promise.all(names.map((name) => waitUntilGone(stack, name, 120_000)));
}
