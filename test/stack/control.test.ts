/** The control experiment: on the same engine and the same faults, the unmodified SDK class leaks and the gated one does not. */
import { expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import { type Transport, TRANSPORTS } from "../../dev/worker/transport.ts";
import { call, get, put, remove, useStack, waitUntilGone } from "./support.ts";
import type { TestStack } from "./test-stack.ts";

const held = useStack();

/** Longer than the SDK waits before it tries again, which is three seconds at first. */
const QUIET_MS = 5000;

/** Admission is refused for a while. */
const faults = { startDelay: { minMs: 100, maxMs: 300 }, refuseAdmission: { whileRunning: 0, times: 10 } };

test("the unmodified class starts a container after its destroy() returned, on every transport", async () => {
  const { stack } = held;
  await stack.replaceEngine({ seed: 1, faults });
  const creations = await Promise.all(TRANSPORTS.map((transport) => createWithDeadline(stack, transport)));
  await stack.engine.quiet(QUIET_MS);
  const running = new Set(stack.engine.instances().map(({ id }) => id));
  const outcomes = creations.map(({ transport, created, doId }) => ({ transport, created, leaked: running.has(doId) }));
  expect(outcomes).toEqual(TRANSPORTS.map((transport) => ({ transport, created: false, leaked: true })));
  // No destroy() found a container: each came up after it.
  expect(stack.engine.counters()).toMatchObject({ starts: TRANSPORTS.length, destroyed: 0 });
});

test("with Mooring a workspace that is called and deleted while its admission is refused leaves nothing running, then or later", async () => {
  const { stack } = held;
  await stack.replaceEngine({ seed: 1, faults });
  await ticking(stack, async () => {
    await put(stack, "short-lived");
    await expect.poll(() => stack.engine.counters().refused, { timeout: 20_000, interval: 20 }).toBeGreaterThan(2);
    const sandboxId = (await get(stack, "short-lived"))?.status.sandboxId;
    for (const transport of TRANSPORTS) {
      const ran = await call(stack, "POST", `/dev/workspaces/${sandboxId}/exec?transport=${transport}`, { command: "true" });
      expect([transport, ran.status, await ran.json()]).toMatchObject([transport, 409, { notRunning: true }]);
    }
    await remove(stack, "short-lived");
    await waitUntilGone(stack, "short-lived");
  });
  const { refused } = stack.engine.counters();
  await stack.engine.quiet(QUIET_MS);
  expect(await get(stack, "short-lived")).toBeNull();
  expect(stack.engine.instances()).toEqual([]);
  expect(stack.engine.counters()).toMatchObject({ starts: 0, refused });
});

/** The handler of the report, which destroys what did not come up in time. */
async function createWithDeadline(stack: TestStack, transport: Transport) {
  const answer = await call(stack, "POST", `/dev/imperative?transport=${transport}&deadlineMs=1500`);
  const { doId, created } = await answer.json<{ readonly doId: string; readonly created: boolean }>();
  return { transport, doId, created };
}
