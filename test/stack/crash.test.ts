/** kill -9 of workerd in the middle of create and delete; the engine and the database files stay (invariants 1, 5, 13). */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import type { EngineEvent } from "../../dev/engine/contract.ts";
import { get, put, remove, useStack, waitFor, waitUntilGone } from "./support.ts";

const events: EngineEvent[] = [];
const held = useStack({ onEvent: (event) => events.push(event) });

beforeEach(async () => {
  await held.stack.replaceEngine({ seed: 1, faults: { startDelay: { minMs: 300, maxMs: 300 } } });
  events.length = 0;
});

/** Resolves when the moment has come. */
type Moment = () => Promise<void>;

const happened = (type: EngineEvent["type"], laterMs = 0): Moment => {
  return async () => {
    await expect.poll(() => events.some((event) => event.type === type), { timeout: 30_000, interval: 2 }).toBe(true);
    await sleep(laterMs);
  };
};

const asked = (method: string, path: RegExp): Moment => {
  return async () => {
    const isAsked = () => held.stack.engine.calls().some((call) => call.method === method && path.test(call.path));
    await expect.poll(isAsked, { timeout: 30_000, interval: 2 }).toBe(true);
  };
};

const isIn = (name: string, phase: string | undefined): Moment => {
  return () => expect.poll(async () => (await get(held.stack, name))?.status.phase, { timeout: 30_000, interval: 5 }).toBe(phase);
};

const CREATE_MOMENTS: readonly (readonly [string, Moment])[] = [
  ["right after the PUT", () => Promise.resolve()],
  ["when it is Starting in the database", isIn("victim", "Starting")],
  ["when the object asks after its container", asked("GET", /^\/containers\/workerd-.*\/json/)],
  ["when the container is created", asked("POST", /^\/containers\/create\?name=(?!.*-proxy)/)],
  ["when the container has been started", happened("StartAccepted")],
  ["while the container boots", happened("StartAccepted", 150)],
  ["when the container listens", happened("Listening")],
  ["shortly after the container listens", happened("Listening", 50)],
  ["when it is Ready", isIn("victim", "Ready")],
];

const DELETE_MOMENTS: readonly (readonly [string, Moment])[] = [
  ["right after the DELETE", () => Promise.resolve()],
  ["when the container has been destroyed", happened("Destroyed")],
  ["shortly after the container was destroyed", happened("Destroyed", 50)],
  ["when the row is gone", isIn("victim", undefined)],
];

/** How many containers ran or started at once, at most, as the engine saw it. */
function mostAtOnce(): number {
  let now = 0;
  let most = 0;
  for (const { type } of events) {
    if (type === "StartAccepted") now += 1;
    if (type === "Exited") now -= 1;
    most = Math.max(most, now);
  }
  return most;
}

async function deleteAndExpectNothing(): Promise<void> {
  await remove(held.stack, "victim");
  await waitUntilGone(held.stack, "victim");
  expect(held.stack.engine.instances()).toEqual([]);
  expect(mostAtOnce()).toBe(1);
}

describe("workerd is killed during a create", () => {
  test.for(CREATE_MOMENTS)("%s: the workspace becomes Ready with one container, and is deleted", async ([, moment]) => {
    const { stack } = held;
    await ticking(stack, async () => {
      await put(stack, "victim");
      await moment();
      await stack.crashWorker();
      await waitFor(stack, "victim", "Ready");
      expect(stack.engine.instances()).toHaveLength(1);
      await deleteAndExpectNothing();
    });
  });
});

describe("workerd is killed during a delete", () => {
  test.for(DELETE_MOMENTS)("%s: the workspace goes, and nothing runs", async ([, moment]) => {
    const { stack } = held;
    await ticking(stack, async () => {
      await put(stack, "victim");
      await waitFor(stack, "victim", "Ready");
      await remove(stack, "victim");
      await moment();
      await stack.crashWorker();
      await deleteAndExpectNothing();
    });
  });
});
