/** The control experiment: on the same engine and the same faults, the unmodified SDK class leaks and the gated one does not. */
import { describe, expect, test } from "vitest";
import { createImperatively, ticking } from "../../dev/comparison.ts";
import { get, put, remove, useStack, waitUntilGone } from "./support.ts";

const held = useStack();

/** Longer than the SDK waits before it tries again, which is three seconds at first. */
const QUIET_MS = 5000;

const startDelay = { minMs: 100, maxMs: 300 };

describe.for(["http", "rpc"] as const)("over %s, with a deadline and admission refused for a while", (transport) => {
  test("the unmodified class starts a container after its destroy() returned", async () => {
    const { stack } = held;
    await stack.replaceEngine({ seed: 1, faults: { startDelay, refuseAdmission: { whileRunning: 0, times: 10 } } });
    const outcome = await createImperatively(stack, { count: 1, transport, deadlineMs: 1500, quietMs: QUIET_MS });
    expect(outcome).toMatchObject({ succeeded: 0, failed: 1, leaked: 1 });
  });
});

test("with Mooring a workspace that is deleted while its admission is refused leaves nothing running, then or later", async () => {
  const { stack } = held;
  await stack.replaceEngine({ seed: 1, faults: { startDelay, refuseAdmission: { whileRunning: 0, times: 10 } } });
  await ticking(stack, async () => {
    await put(stack, "short-lived");
    await expect.poll(() => stack.engine.counters().refused, { timeout: 20_000, interval: 20 }).toBeGreaterThan(2);
    await remove(stack, "short-lived");
    await waitUntilGone(stack, "short-lived");
  });
  const { refused } = stack.engine.counters();
  await stack.engine.quiet(QUIET_MS);
  expect(await get(stack, "short-lived")).toBeNull();
  expect(stack.engine.instances()).toEqual([]);
  expect(stack.engine.counters()).toMatchObject({ starts: 0, refused });
});
