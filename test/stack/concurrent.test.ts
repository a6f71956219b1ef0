/** Ten and fifty workspaces at once under the fault models of the engine (sandbox-sdk #794); the engine counts, not Mooring. */
import { describe, expect, test } from "vitest";
import type { Faults } from "../../dev/engine/faults.ts";
import { ticking } from "../../dev/comparison.ts";
import { createAll, removeAll, useStack } from "./support.ts";

const held = useStack();

/** Shorter than a real start, so that ten seeds of each fit into a test run; the windows scale with it. */
const startDelay = { minMs: 100, maxMs: 300 };
const windowMs = 270;

const MODELS: Readonly<Record<string, Faults>> = {
  "overlapping starts are killed": { startDelay, overlapKill: { probability: 0.4, windowMs } },
  "admission is refused while more than six run": { startDelay, refuseAdmission: { whileRunning: 6, times: 2 } },
  "overlapping starts become ghosts": { startDelay, ghostStart: { probability: 0.4, windowMs, upAfterMs: 1000 } },
};
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

const names = (count: number) => Array.from({ length: count }, (_, index) => `w-${index}`);

async function createAndRemove(count: number, faults: Faults, seed: number): Promise<string> {
  const { stack } = held;
  await stack.replaceEngine({ seed, faults });
  const { engine } = stack;
  return ticking(stack, async () => {
    const { elapsedMs, ready } = await createAll(stack, names(count));
    const running = engine.instances();
    expect(ready).toHaveLength(count);
    expect(running.map(({ state }) => state)).toEqual(Array.from({ length: count }, () => "Running"));
    expect(engine.counters().maxConcurrentStarts).toBe(1);

    await removeAll(stack, names(count));
    expect(engine.instances()).toEqual([]);
    return `${count} Ready after ${elapsedMs} ms; ${engine.counters().starts} starts, ${engine.counters().refused} refused`;
  });
}

describe.for(Object.entries(MODELS))("when %s", ([, faults]) => {
  test.for(SEEDS)(
    "ten PUTs at once give ten Ready workspaces, one start at a time, and ten DELETEs leave nothing (seed %i)",
    async (seed) => {
      console.info(await createAndRemove(10, faults, seed));
    },
  );

  test("fifty PUTs at once do the same", { timeout: 240_000 }, async () => {
    console.info(await createAndRemove(50, faults, 11));
  });
});
