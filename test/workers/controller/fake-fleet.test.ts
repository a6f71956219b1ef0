/** The fake keeps the Fleet's contract, so what the other tests see of the controller holds for a real fleet too. */
import { describe, expect, it } from "vitest";
import { fleetContract } from "../../contract/fleet.ts";
import type { Behaviour, ContractWorld } from "../../contract/fleet-subject.ts";
import { FakeWorld, NEVER_READY, NO_CAPACITY, READY, type StartOutcome } from "../../support/fake-fleet.ts";
import { FakeClock } from "./clock.ts";
import { NOW } from "./support.ts";

const order = {
  startId: "s",
  workspaceUid: "uid",
  timeoutMs: 9000,
  directory: "/",
  env: {},
  specHash: "v1:x",
  adopt: false,
  prepareTimeoutMs: 60_000,
  restore: null,
  setup: [],
};

const OUTCOMES: Readonly<Record<Behaviour, StartOutcome>> = {
  Works: READY,
  NeverReady: NEVER_READY,
  NoCapacity: NO_CAPACITY,
  DeafToDestroy: READY,
};

function uidOf(sandboxId: string): string {
  return sandboxId.slice(0, sandboxId.lastIndexOf("-"));
}

fleetContract("the fake", (): ContractWorld => {
  const clock = new FakeClock(NOW);
  const world = new FakeWorld(clock);
  world.defaults.startMs = 300;
  return {
    fleet: world.fleet,
    timeoutMs: 2000,
    run: (work) => clock.run(work),
    pass: (ms) => clock.pass(ms),
    script: ({ sandboxId }, behaviour) => {
      const script = world.script(uidOf(sandboxId));
      script.outcome = () => OUTCOMES[behaviour];
      script.deafKills = behaviour === "DeafToDestroy" ? Infinity : 0;
    },
    exit: async ({ sandboxId }, code) => world.exit(uidOf(sandboxId), code),
    loseMemory: async (instance) => world.sandbox(instance).loseMemory(),
    runs: (instance) => world.sandbox(instance).containerOrNone.length > 0,
    containers: ({ sandboxId }) => world.launchesOf(uidOf(sandboxId)).length,
    use: async ({ sandboxId }) => {
      world.use(uidOf(sandboxId));
    },
    startStranger: async ({ sandboxId }) => {
      world.startStranger({ sandboxId });
    },
    answerRow: async ({ sandboxId }, answer) => {
      world.hasRow = async (uid) => {
        if (answer === "Fails") throw new Error("D1_ERROR: Network connection lost.");
        return uid === uidOf(sandboxId);
      };
    },
  };
});

it.each([
  ["Hangs", 0, 8000],
  ["AnswerLost", 1, 8000],
  ["Breaks", 0, 0],
  ["Fails", 1, 2005],
  ["ResetByDeploy", 1, 105],
] as const)("a call that %s answers Unknown, with %i containers begun, after %i ms", async (fault, containers, elapsedMs) => {
  const clock = new FakeClock(NOW);
  const world = new FakeWorld(clock);
  const instance = world.fleet.identify("uid", 1);
  world.script("uid").faults.push({ call: "start", fault, times: 1 });
  const answer = await clock.run(world.fleet.start(instance, 1, order, 3000));
  expect(answer).toMatchObject({ kind: "Unknown", failure: { class: "Uncertain" } });
  expect(clock.now() - NOW).toBe(elapsedMs);
  expect(world.launches).toHaveLength(containers);
});

describe("behind the controller's back", () => {
  function setUp() {
    const clock = new FakeClock(NOW);
    const world = new FakeWorld(clock);
    const { fleet } = world;
    const instance = fleet.identify("uid", 1);
    return { clock, world, fleet, instance, order };
  }

  it("a stranger runs unclaimed, with a name or without, and is found by its id", async () => {
    const { clock, world, fleet } = setUp();
    const named = world.startStranger({ sandboxId: "somebody" });
    const nameless = world.startStranger({ doId: "ab".repeat(32) });
    expect(world.startStranger({ sandboxId: "somebody" })).toBe(named);
    expect(world.unclaimedRunning.map(({ doId, startId }) => [doId, startId])).toEqual([
      [named.doId, null],
      [nameless.doId, null],
    ]);
    world.script(nameless.uid).deafKills = 1;
    expect(await clock.run(fleet.destroyOrphan(nameless.doId, 1))).toEqual({ kind: "StillRuns" });
    expect(await clock.run(fleet.destroyOrphan(nameless.doId, 1))).toEqual({ kind: "Gone" });
    expect(await clock.run(fleet.destroyOrphan(named.doId, 1))).toEqual({ kind: "Gone" });
    expect(world.unclaimedRunning).toEqual([]);
    expect(world.callsOf(nameless.uid, "destroyOrphan")).toHaveLength(2);
  });

  it("a user's traffic reaches a verified container only", async () => {
    const { clock, world, fleet, instance, order } = setUp();
    expect(world.use("uid")).toBe(false);
    await clock.run(fleet.start(instance, 1, order, 0));
    expect(world.use("uid")).toBe(false);
    await clock.run(fleet.start(instance, 1, order, 9000));
    expect(world.use("uid")).toBe(true);
    expect(world.unclaimedRunning).toEqual([]);
  });

  it("a container flaps for as long as it is told to", async () => {
    const { clock, world, fleet, instance, order } = setUp();
    Object.assign(world.script("uid"), { startMs: 500, flaps: { afterMs: 1000, forMs: 1000 } });
    const look = () => clock.run(fleet.observe(instance, 1)).then(({ kind }) => kind);
    await clock.run(fleet.start(instance, 1, order, 9000));
    expect(await look()).toBe("Running");
    await clock.pass(500);
    expect(await look()).toBe("Stopped");
    await clock.pass(1000);
    expect(await look()).toBe("Running");
  });

  it.each(["stop", "destroy"] as const)("a deploy in the middle of a %s leaves it half done", async (call) => {
    const { clock, world, fleet, instance, order } = setUp();
    await clock.run(fleet.start(instance, 1, order, 9000));
    world.script("uid").faults.push({ call, fault: "ResetByDeploy", times: 1 });
    const message = "Durable Object reset because its code was updated.";
    expect(await clock.run(fleet[call](instance, 1))).toMatchObject({ kind: "Unknown", failure: { class: "Uncertain", message } });
    await clock.pass(10_000);
    expect(world.unclaimedRunning).toHaveLength(1);
    await clock.run(fleet[call](instance, 1));
    expect(world.unclaimedRunning).toEqual([]);
  });

  it("a stop that arrives as an error has stopped the container", async () => {
    const { clock, world, fleet, instance, order } = setUp();
    await clock.run(fleet.start(instance, 1, order, 9000));
    world.script("uid").faults.push({ call: "stop", fault: "Fails", times: 1 });
    expect((await clock.run(fleet.stop(instance, 1))).kind).toBe("Unknown");
    expect(world.running).toEqual([]);
    expect((await clock.run(fleet.observe(instance, 1))).kind).toBe("Stopped");
  });
});
