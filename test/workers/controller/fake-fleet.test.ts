/** The fake keeps the Fleet's contract, so what the other tests see of the controller holds for a real fleet too. */
import { expect, it } from "vitest";
import { type Behaviour, type ContractWorld, fleetContract } from "../../contract/fleet.ts";
import { FakeWorld, NEVER_READY, NO_CAPACITY, READY, type StartOutcome } from "../../support/fake-fleet.ts";
import { FakeClock } from "./clock.ts";
import { NOW } from "./support.ts";

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
  };
});

it.each([
  ["Hangs", 0],
  ["AnswerLost", 1],
  ["Breaks", 0],
] as const)("a call that %s answers Unknown within its deadline, with %i containers begun", async (fault, containers) => {
  const clock = new FakeClock(NOW);
  const world = new FakeWorld(clock);
  const instance = world.fleet.identify("uid", 1);
  world.script("uid").faults.push({ call: "start", fault, times: 1 });
  const order = { startId: "s", workspaceUid: "uid", timeoutMs: 9000, directory: "/", env: {}, specHash: "v1:x" };
  const answer = await clock.run(world.fleet.start(instance, 1, order, 3000));
  expect(answer).toMatchObject({ kind: "Unknown", failure: { class: "Uncertain" } });
  expect(clock.now() - NOW).toBe(fault === "Breaks" ? 0 : 8000);
  expect(world.launches).toHaveLength(containers);
});
