/** Ten creations at once, by the imperative handler of sandbox-sdk #794 and by PUTs, on the same seed and faults; prints both. */
import Table from "cli-table3";
import { afterAll, expect, test } from "vitest";
import { createDeclaratively, createImperatively, deleteAll, type Outcome } from "../../dev/comparison.ts";
import type { Faults } from "../../dev/engine/faults.ts";
import { useStack } from "./support.ts";

const held = useStack();

const startDelay = { minMs: 300, maxMs: 900 };

interface Scenario {
  readonly name: string;
  readonly faults: Faults;
  /** The imperative handler gives up after that long, as a request's own limit would make it. */
  readonly deadlineMs?: number;
  /** Longer than anything that comes up late takes to do so. */
  readonly quietMs: number;
}

/** The fault models of the measured baseline; fewer refusals, since each costs Mooring's single lane its time too. */
const SCENARIOS: readonly Scenario[] = [
  { name: "overlapping starts are killed", faults: { startDelay, overlapKill: { probability: 0.4, windowMs: 800 } }, quietMs: 1500 },
  {
    name: "overlapping starts become ghosts",
    faults: { startDelay, ghostStart: { probability: 0.4, windowMs: 800, upAfterMs: 3000 } },
    quietMs: 4000,
  },
  {
    name: "admission is refused for a while",
    faults: { startDelay, refuseAdmission: { whileRunning: 6, times: 6 } },
    deadlineMs: 2500,
    quietMs: 5000,
  },
];

const result = new Table({
  head: ["ten at once", "created", "failed", "leaked", "most starts in flight", "ms"],
  style: { head: [], border: [] },
});
afterAll(() => console.info(`\n${result.toString()}`));

function row(name: string, { succeeded, failed, leaked, maxConcurrentStarts, elapsedMs }: Outcome): void {
  result.push([name, succeeded, failed, leaked, maxConcurrentStarts, elapsedMs]);
}

test.for(SCENARIOS)(
  "when $name, the handler loses creations or containers and Mooring loses none",
  async ({ name, faults, deadlineMs, quietMs }) => {
    const { stack } = held;
    await stack.replaceEngine({ seed: 1, faults });
    const imperative = await createImperatively(stack, {
      count: 10,
      transport: "rpc",
      quietMs,
      ...(deadlineMs !== undefined && { deadlineMs }),
    });
    row(`imperative, ${name}`, imperative);
    expect(imperative.failed + imperative.leaked).toBeGreaterThan(0);

    await stack.replaceEngine({ seed: 1, faults });
    const mooring = await createDeclaratively(stack, { count: 10, timeoutMs: 90_000, quietMs: 500 });
    row(`Mooring, ${name}`, mooring);
    expect(mooring).toMatchObject({ succeeded: 10, failed: 0, leaked: 0, maxConcurrentStarts: 1 });
    await deleteAll(stack);
    expect(stack.engine.instances()).toEqual([]);
  },
);
