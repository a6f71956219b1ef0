/**
 * Thirty instances that nobody wished, among thirty that somebody did, while every fifth call to the engine fails: exactly the strangers
 * go, and the drift report shows each of them before. The strangers are started on the engine itself, behind every Worker's back.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import { sandboxProgram } from "../../dev/sandbox-server/program.ts";
import { WorkerdClient } from "../engine/workerd-client.ts";
import { call, createAll, useStack } from "./support.ts";

const COUNT = 30;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const FLAKY = { flaky: { share: 0.2 } };

/** Nothing talks to a stranger, so anything that runs will do; it ends with its standard input, so with the engine. */
const STRANGER = { command: ["/bin/sh", "-c", "read -r line"], env: {}, ports: {} };

const held = useStack({
  isolation: "paths",
  image: (reference) => (reference === "stranger" ? STRANGER : sandboxProgram()),
  variables: { SWEEP_INTERVAL_SECONDS: "1", ORPHAN_GRACE_SECONDS: "1", RESYNC_INTERVAL_SECONDS: "60" },
});

interface Drift {
  readonly complete: boolean;
  readonly items: readonly {
    readonly type: string;
    readonly instance: { readonly doId: string } | null;
    readonly ageSeconds: number;
    readonly timesSeen: number;
    readonly plannedAction: string;
  }[];
}

let stopTicking = () => {};
let ticks: Promise<void> = Promise.resolve();
/** The wished ones, with the ordinal of the one start that each had. */
let wished: readonly string[] = [];

beforeAll(async () => {
  ticks = ticking(held.stack, () => new Promise<void>((resolve) => (stopTicking = resolve)));
  await createAll(
    held.stack,
    Array.from({ length: COUNT }, (_, index) => `wished-${index}`),
  );
  wished = running();
  const released = new Date(Date.now() + 3_600_000).toISOString();
  const answer = await call(held.stack, "PUT", "/v1/controller", { brakeReleasedUntilTime: released }, "operator");
  if (!answer.ok) throw new Error(await answer.text());
}, 180_000);

afterAll(async () => {
  stopTicking();
  await ticks;
});

test.for(SEEDS)("thirty strangers among thirty wished go, and nothing else does (%i)", async () => {
  const { stack } = held;
  const strangers = await Promise.all(Array.from({ length: COUNT }, () => stack.doIdOf(randomUUID())));
  await Promise.all(strangers.map(startStranger));
  expect(running()).toHaveLength(2 * COUNT);
  stack.engine.setFaults(FLAKY);

  const seen = new Map<string, Drift["items"][number]>();
  while (running().length > COUNT) {
    for (const item of (await drift()).items) if (item.instance !== null) seen.set(item.instance.doId, item);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  stack.engine.setFaults({});

  expect(running()).toEqual(wished);
  // Those of the seed before are shown until a sweep has confirmed that they are gone.
  expect(strangers.filter((doId) => !seen.has(doId))).toEqual([]);
  expect([...seen.keys()].filter((doId) => wished.some((known) => known.startsWith(doId)))).toEqual([]);
  for (const { type, plannedAction, ageSeconds } of seen.values()) {
    expect(["Orphaned", "DestroyNotEffective"]).toContain(type);
    expect(plannedAction).toBe("Destroy");
    expect(ageSeconds).toBeGreaterThanOrEqual(0);
  }
});

async function startStranger(doId: string): Promise<void> {
  const { socketPath } = held.stack.engine;
  const client = new WorkerdClient({ socketPath, doId, worker: "mooring-dev", className: "WorkspaceSandbox" });
  expect((await client.start("stranger")).status).toBe(204);
}

async function drift(): Promise<Drift> {
  const answer = await call(held.stack, "GET", "/v1/drift?limit=500", undefined, "operator");
  return answer.status === 503 ? { complete: false, items: [] } : await answer.json<Drift>();
}

function running(): readonly string[] {
  return held.stack.engine
    .instances()
    .map(({ id, ordinal }) => `${id} ${ordinal}`)
    .toSorted();
}
