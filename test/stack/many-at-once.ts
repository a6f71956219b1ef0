/** Ten and fifty workspaces at once under a fault model of the engine (sandbox-sdk #794); the engine counts, not Mooring. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import type { Faults } from "../../dev/engine/faults.ts";
import { createAll, removeAll, useStack } from "./support.ts";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/** Shorter than a real start, so that ten seeds of each model fit into a test run; the windows of the models scale with it. */
export const START_DELAY = { minMs: 50, maxMs: 150 };
export const WINDOW_MS = 140;

export function describeManyAtOnce(model: string, faults: Faults): void {
  const listenings: number[] = [];
  const starts = new Map<string, number>();
  const held = useStack({
    isolation: "paths",
    onEvent: ({ type, doId, time }) => {
      if (type === "StartAccepted") starts.set(doId, time);
      if (type === "Listening") listenings.push(time - (starts.get(doId) ?? time));
    },
  });

  async function createAndRemove(count: number, seed: number): Promise<void> {
    const { stack } = held;
    listenings.length = 0;
    await stack.replaceEngine({ seed, faults });
    const { engine } = stack;
    const names = Array.from({ length: count }, (_, index) => `w-${index}`);
    const { elapsedMs, ready } = await createAll(stack, names);
    const serialMs = listenings.reduce((sum, duration) => sum + duration, 0);
    expect(ready).toHaveLength(count);
    expect(engine.instances().map(({ state }) => state)).toEqual(Array.from({ length: count }, () => "Running"));
    expect(engine.counters().maxConcurrentStarts).toBe(1);

    await removeAll(stack, names);
    expect(engine.instances()).toEqual([]);
    console.info(
      `${model}, seed ${seed}: ${count} Ready in ${(elapsedMs / serialMs).toFixed(1)} times the sum of their start times (${serialMs} ms), ` +
        `${engine.counters().refused} starts refused`,
    );
  }

  let stopTicking = () => {};
  let ticks: Promise<void> = Promise.resolve();
  beforeAll(() => {
    ticks = ticking(held.stack, () => new Promise<void>((resolve) => (stopTicking = resolve)));
  });
  afterAll(async () => {
    stopTicking();
    await ticks;
  });

  describe(`when ${model}`, () => {
    test.for(SEEDS)("ten PUTs at once give ten Ready workspaces, one start at a time, and ten DELETEs leave nothing (seed %i)", (seed) =>
      createAndRemove(10, seed),
    );

    test("fifty PUTs at once do the same", { timeout: 240_000 }, () => createAndRemove(50, 11));
  });
}
