import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { BAD_IMAGE, CONNECTION_REFUSED, NO_CAPACITY, RATE_LIMITED, READY } from "../../support/fake-fleet.ts";
import { Controller, all, conditionOf, emptyTables, names, readyTimes, Process } from "./support.ts";

beforeEach(emptyTables);

const SHORT = { TICK_BUDGET_SECONDS: "10" };
const NOTHING = { workspaces: {}, ledger: [], lane: [], running: [] };

async function readyWorkspace(controller: Controller, name = "a") {
  await controller.put(name);
  await controller.untilReady([name], 60_000);
  return await controller.get(name);
}

describe("the life of a workspace", () => {
  it("PUT makes it Ready, on a sandbox named after uid and incarnation", async () => {
    const controller = new Controller(SHORT);
    const { uid } = await controller.put("a", { env: { A: "1" } });
    await controller.tick();
    const workspace = await controller.get("a");
    expect(workspace.status).toMatchObject({ observedGeneration: 1, phase: "Ready" });
    expect(conditionOf(workspace, "Ready")).toEqual({ status: "True", reason: "ContainerHealthy" });
    expect(conditionOf(workspace, "Reconciling")).toEqual({ status: "False", reason: "Settled" });
    expect(workspace.sandboxId).toBe(`${uid}-1`);
    expect(controller.world.running).toMatchObject([{ sandboxId: `${uid}-1`, env: { A: "1" } }]);
    expect(await controller.look()).toMatchObject({ ledger: [`${uid}-1`], lane: [] });
  });

  it("DELETE stops what runs and forgets the row, its ledger and its place in the lane", async () => {
    const controller = new Controller(SHORT);
    await readyWorkspace(controller);
    await controller.delete("a");
    await controller.tick();
    expect(await controller.look()).toEqual(NOTHING);
  });

  it("DELETE of one that never had a sandbox contacts none", async () => {
    const controller = new Controller(SHORT);
    await controller.put("a", { operatingMode: "Suspended" });
    await controller.tick();
    await controller.delete("a");
    await controller.tick();
    expect(await controller.look()).toEqual(NOTHING);
    expect(controller.world.calls).toEqual([]);
  });

  it("proliferate-ai/proliferate#1264: DELETE in the middle of a start ends the start", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    controller.world.defaults.startMs = 40_000;
    await controller.put("a");
    await controller.tick();
    expect(controller.world.startsInFlight).toBe(1);
    await controller.delete("a");
    await controller.tick();
    expect(await controller.look()).toEqual(NOTHING);
    expect(controller.world.startsInFlight).toBe(0);
  });

  it.each([
    ["whose destroy has no effect", (controller: Controller, uid: string) => void (controller.world.script(uid).deafKills = 4)],
    [
      "whose sandbox is silent",
      (controller: Controller, uid: string) => void controller.world.script(uid).faults.push({ call: "any", fault: "Hangs", times: 4 }),
    ],
  ])("iterate/iterate#1747: DELETE of one %s keeps row and ledger until nothing runs", async (_sentence, spoil) => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    const { uid, sandboxId } = await readyWorkspace(controller);
    spoil(controller, uid);
    await controller.delete("a");
    await controller.tick();
    expect((await controller.get("a")).status.phase).toBe("Terminating");
    expect(await controller.look()).toMatchObject({ ledger: [sandboxId], running: [sandboxId] });
    await controller.until(async () => (await controller.find("a")) === null, 120_000);
    expect(await controller.look()).toEqual(NOTHING);
  });

  it("openkruise/agents#756: the same name used again is another life: new uid, new sandbox", async () => {
    const controller = new Controller(SHORT);
    const first = await readyWorkspace(controller);
    await controller.delete("a");
    await controller.tick();
    const second = await readyWorkspace(controller);
    expect(second.uid).not.toBe(first.uid);
    expect(second.sandboxId).not.toBe(first.sandboxId);
    expect(second.incarnation).toBe(1);
  });

  it("another env destroys the sandbox and makes the next incarnation Ready with it", async () => {
    const controller = new Controller(SHORT);
    const { uid } = await readyWorkspace(controller);
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 60_000);
    const workspace = await controller.get("a");
    expect(workspace).toMatchObject({ sandboxId: `${uid}-2`, incarnation: 2, status: { observedGeneration: 2 } });
    expect(controller.world.running).toMatchObject([{ sandboxId: `${uid}-2`, env: { A: "2" } }]);
    expect(await controller.look()).toMatchObject({ ledger: [`${uid}-2`], lane: [] });
    expect(controller.world.maxContainersOf(uid)).toBe(1);
  });

  it("Suspended stops it, and Running starts it again on the same sandbox", async () => {
    const controller = new Controller(SHORT);
    const { uid, sandboxId } = await readyWorkspace(controller);
    await controller.put("a", { operatingMode: "Suspended" });
    await controller.tick();
    expect(conditionOf(await controller.get("a"), "Suspended")).toEqual({ status: "True", reason: "SuspendedByUser" });
    expect(controller.world.running).toEqual([]);
    await controller.put("a");
    await controller.untilReady(["a"], 60_000);
    expect((await controller.get("a")).sandboxId).toBe(sandboxId);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    expect(controller.world.callsOf(uid, "destroy")).toEqual([]);
  });

  it("paused is left alone until it is not", async () => {
    const controller = new Controller(SHORT);
    await controller.put("a", { paused: true });
    await controller.tick();
    expect(conditionOf(await controller.get("a"), "Ready")).toEqual({ status: "False", reason: "Paused" });
    expect(controller.world.calls).toEqual([]);
    await controller.put("a");
    await controller.untilReady(["a"], 60_000);
  });

  it("a crash with 137 is counted, waits and is started again; ten minutes Ready forgive it", async () => {
    const controller = new Controller({ ...SHORT, POLL_INTERVAL_MS: "2000" });
    const { uid } = await readyWorkspace(controller);
    controller.world.exit(uid, 137);
    const crashTime = controller.clock.now();
    await controller.until(() => controller.world.running.length === 1, 60_000);
    await controller.untilReady(["a"], 60_000);
    expect(await controller.get("a")).toMatchObject({ failures: 1, nextRetryTime: null, incarnation: 1 });
    // The backoff of the first failure with a chance of one half.
    expect((controller.world.launchesOf(uid).at(-1)?.time ?? 0) - crashTime).toBeGreaterThanOrEqual(3000);
    await controller.clock.pass(600_000);
    await controller.tick();
    expect(await controller.get("a")).toMatchObject({ failures: 0, status: { phase: "Ready" } });
  });

  it("an end with 143 is started again and counts as no failure", async () => {
    const controller = new Controller(SHORT);
    const { uid } = await readyWorkspace(controller);
    await controller.clock.pass(30_000);
    controller.world.exit(uid, 143);
    await controller.until(() => controller.world.launchesOf(uid).length === 2, 60_000);
    await controller.untilReady(["a"], 60_000);
    expect((await controller.get("a")).failures).toBe(0);
  });

  it("a crash that nobody told of is found by the resync", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5", RESYNC_INTERVAL_SECONDS: "60", POLL_INTERVAL_MS: "2500" });
    const { uid } = await readyWorkspace(controller);
    controller.world.onEvent = () => {};
    controller.world.exit(uid, 143);
    await controller.until(() => controller.world.running.length === 1, 75_000);
  });

  it("a container that exits as soon as it was verified is counted too, and not started over and over", async () => {
    const controller = new Controller({ POLL_INTERVAL_MS: "5000" });
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 4000, exits: { afterMs: 0, code: 1 } });
    await controller.ticks(5);
    expect((await controller.get("a")).failures).toBeGreaterThan(0);
    expect(controller.world.launchesOf(uid).length).toBeLessThanOrEqual(12);
  });
});

describe("failures of a start", () => {
  it("transient ones are counted and tried again until it is Ready", async () => {
    const controller = new Controller(SHORT);
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth <= 2 ? CONNECTION_REFUSED : READY);
    await controller.untilReady(["a"], 120_000);
    expect((await controller.get("a")).failures).toBe(2);
    expect(controller.world.launchesOf(uid)).toHaveLength(3);
  });

  it("mitos-run/mitos#637: a permanent one stalls it until its spec changes", async () => {
    const controller = new Controller({ ...SHORT, POLL_INTERVAL_MS: "2000" });
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth === 1 ? BAD_IMAGE : READY);
    await controller.ticks(4);
    expect(conditionOf(await controller.get("a"), "Stalled")).toMatchObject({ status: "True" });
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(await controller.look()).toMatchObject({ lane: [], running: [] });
    await controller.put("a", { env: { A: "1" } });
    await controller.untilReady(["a"], 60_000);
    expect((await controller.get("a")).failures).toBe(0);
  });

  it("a permanent one of the old spec does not stall the new one", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    const { uid } = await controller.put("a", { env: { A: "bad" } });
    Object.assign(controller.world.script(uid), { startMs: 8000, outcome: (nth: number) => (nth === 1 ? BAD_IMAGE : READY) });
    await controller.tick();
    expect(controller.world.startsInFlight).toBe(1);
    await controller.put("a", { env: { A: "good" } });
    await controller.untilReady(["a"], 60_000);
    expect(controller.world.running).toMatchObject([{ env: { A: "good" } }]);
  });

  it("cloudflare/workerd#5996: one of no container in time is destroyed at its deadline and tried again", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20", START_TIMEOUT_SECONDS: "10" });
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth === 1 ? { kind: "NeverReady" } : READY);
    await controller.untilReady(["a"], 60_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    expect(controller.world.maxContainersOf(uid)).toBe(1);
    expect((await controller.get("a")).failures).toBe(1);
  });

  it("cloudflare/containers#191: one whose container cannot be removed does not spin: a look or two per second at most", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20", START_TIMEOUT_SECONDS: "60" });
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { outcome: () => CONNECTION_REFUSED, deafKills: 1000 });
    const process = new Process();
    await controller.tick(process);
    expect(controller.world.callsOf(uid).length).toBeLessThan(60);
    expect(process.statements.length).toBeLessThan(300);
  });

  it.each([
    ["no capacity", NO_CAPACITY],
    ["a rate limit", RATE_LIMITED],
  ])("%s brakes the lane for all, counts against nobody and keeps the place in the queue", async (_sentence, refusal) => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    const first = await controller.put("a");
    controller.world.script(first.uid).outcome = (nth) => (nth <= 2 ? refusal : READY);
    await controller.tick();
    await controller.put("b");
    await controller.put("c");
    await controller.untilReady(["a", "b", "c"], 120_000);
    const { launches } = controller.world;
    expect(launches.map(({ uid }) => uid).slice(0, 3)).toEqual([first.uid, first.uid, first.uid]);
    const [one, two, three] = launches.map(({ time }) => time);
    expect((two ?? 0) - (one ?? 0)).toBeGreaterThanOrEqual(5000);
    expect((three ?? 0) - (two ?? 0)).toBeGreaterThanOrEqual(10_000);
    expect((three ?? 0) - (two ?? 0)).toBeLessThan(15_000);
    for (const name of ["a", "b", "c"]) expect((await controller.get(name)).failures).toBe(0);
    expect(await all("SELECT brake_until_time, brake_failures FROM controller")).toEqual([{ brake_until_time: null, brake_failures: 0 }]);
  });

  it("the brake is let go by a success also where the clock moves between two readings", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20" });
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth === 1 ? NO_CAPACITY : READY);
    const deps = controller.deps();
    let readings = 0;
    await controller.clock.run(sweep({ ...deps, now: () => deps.now() + (readings += 1) }));
    expect(await controller.isReady("a")).toBe(true);
    expect(await all("SELECT brake_failures FROM controller")).toEqual([{ brake_failures: 0 }]);
  });

  it("a braked lane delays no deletion", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    await readyWorkspace(controller, "old");
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = () => NO_CAPACITY;
    await controller.tick();
    await controller.delete("old");
    await controller.delete("a");
    await controller.tick();
    expect(await controller.look()).toEqual(NOTHING);
  });
});

describe("many at once", () => {
  it.each([
    [10, 1],
    [50, 1],
    [30, 3],
  ])(
    "cloudflare/sandbox-sdk#794: %i creates with a lane of %i: never more starts in flight, first come first served, and hardly a pause between",
    async (count, width) => {
      const controller = new Controller({ START_LANE_WIDTH: String(width) });
      const order = names("w", count);
      const uids: string[] = [];
      for (const name of order) {
        uids.push((await controller.put(name)).uid);
        await controller.clock.pass(1);
      }
      const beginTime = controller.clock.now();
      await controller.untilReady(order, count * 6000);
      const { world } = controller;
      expect(world.maxStartsInFlight).toBe(width);
      expect(world.launches).toHaveLength(count);
      expect(world.launches.map(({ uid }) => uid)).toEqual(uids);
      const endTime = Math.max(...[...(await readyTimes()).values()].map((time) => time ?? 0));
      // A start takes 2 s; every whole minute has 5 s without a tick.
      const perfectMs = (count / width) * 2000;
      expect(endTime - beginTime).toBeLessThan(perfectMs * 1.25 + 10_000);
      expect(await controller.look()).toMatchObject({ lane: [], running: uids.map((uid) => `${uid}-1`).toSorted() });
    },
  );

  it("fifty deletions are done while a slow start goes on", async () => {
    const controller = new Controller({ START_LANE_WIDTH: "50" });
    const old = names("old", 50);
    for (const name of old) await controller.put(name);
    await controller.untilReady(old, 120_000);
    controller.world.defaults.startMs = 100_000;
    await controller.put("slow");
    await controller.clock.pass(1000);
    for (const name of old) await controller.delete(name);
    await controller.tick();
    expect(Object.keys((await controller.look()).workspaces)).toEqual(["slow"]);
    expect(controller.world.startsInFlight).toBe(1);
  });
});
