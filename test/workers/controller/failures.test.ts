/** Failures as the field met them: each converges, never to two containers, and none is counted as a crash that is not one (invariant 12). */
import { beforeEach, describe, expect, it } from "vitest";
import { runningLimitsOf } from "../../../src/config.ts";
import type { Fleet } from "../../../src/controller/fleet.ts";
import type { Instant } from "../../../src/workspace.ts";
import {
  BAD_IMAGE,
  CONNECTION_REFUSED,
  type CallKind,
  type Fault,
  NEVER_READY,
  NO_CAPACITY,
  RATE_LIMITED,
  READY,
  type StartOutcome,
} from "../../support/fake-fleet.ts";
import { Controller, all, conditionOf, emptyTables, names } from "./support.ts";

beforeEach(emptyTables);

const SETTINGS = { TICK_BUDGET_SECONDS: "20", POLL_INTERVAL_MS: "4000", RESYNC_INTERVAL_SECONDS: "60", SWEEP_INTERVAL_SECONDS: "60" };
const NOT_ENABLED: StartOutcome = { kind: "Refused", message: "Containers have not been enabled for this Durable Object class." };

async function ready(controller: Controller, ...wanted: readonly string[]): Promise<readonly string[]> {
  const workspaces = [];
  for (const name of wanted) workspaces.push(await controller.put(name));
  await controller.untilReady(wanted, wanted.length * 60_000);
  return workspaces.map(({ uid }) => uid);
}

/** Each exit is one that the platform asked for. */
function signallingExits(fleet: Fleet): Fleet {
  return {
    ...fleet,
    observe: async (...call) => {
      const observed = await fleet.observe(...call);
      return observed.kind === "Stopped" && observed.exit !== null
        ? { ...observed, exit: { ...observed.exit, signalled: true } }
        : observed;
    },
  };
}

async function reasonsOf(name: string): Promise<readonly string[]> {
  return (await all<{ reason: string }>("SELECT reason FROM events WHERE name = ? ORDER BY id", name)).map(({ reason }) => reason);
}

describe("cloudflare/containers#255: a rollout ends every container within a minute", () => {
  it.each([
    ["with 143, a while after it was Ready", 143, 60_000, false],
    ["with 0, a while after it was Ready", 0, 60_000, false],
    ["with 143, as the platform signalled, just after it was Ready", 143, 0, true],
    ["with 0, as the platform signalled, just after it was Ready", 0, 0, true],
    ["with 137, as the platform signalled", 137, 60_000, true],
  ])("%s: none is counted, and each is started again, one at a time", async (_sentence, code, afterMs, signalled) => {
    const controller = new Controller(SETTINGS);
    const wanted = names("w", 6);
    const uids = await ready(controller, ...wanted);
    await controller.clock.pass(afterMs);
    controller.world.maxStartsInFlight = 0;
    if (signalled) controller.wrapFleet = signallingExits;
    for (const uid of uids) {
      controller.world.exit(uid, code);
      await controller.clock.pass(5000);
    }
    await controller.until(() => controller.world.launches.length === 12, 120_000);
    await controller.untilReady(wanted, 60_000);
    for (const name of wanted) expect(await controller.get(name)).toMatchObject({ failures: 0, incarnation: 1 });
    expect(controller.world.maxStartsInFlight).toBe(1);
    for (const uid of uids) {
      expect(controller.world.launchesOf(uid)).toHaveLength(2);
      expect(controller.world.maxContainersOf(uid)).toBe(1);
    }
    expect(await all("SELECT reason FROM events WHERE reason IN ('ContainerExited', 'CrashLoopBackOff')")).toEqual([]);
  });

  it("a wish that is written meanwhile is met all the same", async () => {
    const controller = new Controller(SETTINGS);
    const [uid = ""] = await ready(controller, "a");
    await controller.clock.pass(60_000);
    controller.world.exit(uid, 143);
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 60_000);
    expect(controller.world.running).toMatchObject([{ env: { A: "2" } }]);
  });
});

describe("daytonaio/daytona#3289: a container that crashes again and again", () => {
  it("is tried ever more seldom, and said to be in a loop with its exit code", async () => {
    const controller = new Controller(SETTINGS);
    controller.chance = 0.99;
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 500, exits: { afterMs: 1000, code: 3 } });
    await controller.ticks(30);
    const times = controller.world.launchesOf(uid).map(({ time }) => time);
    expect(times.length).toBeGreaterThanOrEqual(6);
    expect(times.length).toBeLessThanOrEqual(9);
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    for (const [index, wait] of waits.slice(1).entries()) expect(wait).toBeGreaterThan(waits[index] ?? 0);
    const crashes = (await all<{ reason: string }>("SELECT reason FROM events WHERE reason LIKE 'C%'")).map(({ reason }) => reason);
    expect(crashes).toContain("CrashLoopBackOff");
    const [last] = await all<{ message: string }>("SELECT message FROM events WHERE reason = 'CrashLoopBackOff' ORDER BY id DESC LIMIT 1");
    expect(last?.message).toBe("The container exited with code 3.");
    expect((await controller.get("a")).failures).toBe(times.length);
  });

  it("a new wish begins anew", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 500, exits: { afterMs: 1000, code: 3 } });
    await controller.ticks(10);
    expect((await controller.get("a")).failures).toBeGreaterThan(2);
    controller.world.script(uid).exits = null;
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 30_000);
    expect(await controller.get("a")).toMatchObject({ failures: 0, nextRetryTime: null });
  });

  it("a request to try again begins anew", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 500, exits: { afterMs: 1000, code: 3 } });
    await controller.ticks(30);
    const before = controller.world.launchesOf(uid).length;
    controller.world.script(uid).exits = null;
    expect((await controller.get("a")).nextRetryTime ?? 0).toBeGreaterThan(controller.clock.now() + 10_000);
    await controller.requestReconcile("a");
    await controller.untilReady(["a"], 30_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(before + 1);
    expect(await controller.get("a")).toMatchObject({ failures: 0, generation: 1 });
  });
});

describe("cloudflare/containers#45: the platform refuses a start for everybody", () => {
  it.each([
    ["no capacity", NO_CAPACITY, "CapacityUnavailable"],
    ["civictechdc/spicy-regs#163: a rate limit", RATE_LIMITED, "RateLimited"],
  ] as const)("%s: all wait in their order, and none is counted", async (_sentence, refusal, reason) => {
    const controller = new Controller(SETTINGS);
    const wanted = names("w", 4);
    let isFull = true;
    controller.world.defaults.outcome = () => (isFull ? refusal : READY);
    const uids: string[] = [];
    for (const name of wanted) {
      uids.push((await controller.put(name)).uid);
      await controller.clock.pass(1);
    }
    await controller.ticks(6);
    expect(conditionOf(await controller.get("w-1"), "Ready")).toEqual({ status: "False", reason });
    // Only the first in line has tried, ever more seldom.
    expect(new Set(controller.world.launches.map(({ uid }) => uid))).toEqual(new Set([uids[0]]));
    expect(controller.world.launches.length).toBeGreaterThanOrEqual(3);
    expect(controller.world.launches.length).toBeLessThanOrEqual(6);
    isFull = false;
    await controller.untilReady(wanted, 180_000);
    expect([...new Set(controller.world.launches.map(({ uid }) => uid))]).toEqual(uids);
    for (const name of wanted) expect((await controller.get(name)).failures).toBe(0);
    expect(controller.world.running).toHaveLength(4);
  });

  it("waits as long as the platform asks for", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    const refusal: StartOutcome = {
      kind: "Refused",
      message: "There is no container instance available at this time.",
      retryAfterMs: 90_000,
    };
    controller.world.script(uid).outcome = (nth) => (nth === 1 ? refusal : READY);
    await controller.untilReady(["a"], 180_000);
    const [first, second] = controller.world.launchesOf(uid).map(({ time }) => time);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(90_000);
    expect((second ?? 0) - (first ?? 0)).toBeLessThan(100_000);
  });

  it("what is misconfigured for all stalls nobody: each gets its turn, and all recover by themselves", async () => {
    const controller = new Controller(SETTINGS);
    let isEnabled = false;
    controller.world.defaults.outcome = () => (isEnabled ? READY : NOT_ENABLED);
    const wanted = names("w", 3);
    const uids: string[] = [];
    for (const name of wanted) uids.push((await controller.put(name)).uid);
    await controller.ticks(6);
    expect(new Set(controller.world.launches.map(({ uid }) => uid))).toEqual(new Set(uids));
    for (const name of wanted) {
      const workspace = await controller.get(name);
      expect(conditionOf(workspace, "Stalled")).toMatchObject({ status: "False" });
      expect(conditionOf(workspace, "Ready")).toEqual({ status: "False", reason: "Misconfigured" });
      expect(workspace.failures).toBe(0);
    }
    expect(await all("SELECT brake_reason AS reason FROM controller")).toEqual([{ reason: "Misconfigured" }]);
    isEnabled = true;
    await controller.untilReady(wanted, 400_000);
  });
});

describe("cloudflare/workerd#5996: a start that never becomes ready", () => {
  const DEADLINES = { ...SETTINGS, START_TIMEOUT_SECONDS: "20" };

  it("is ended at its deadline, counted, and tried ever more seldom, while the others get their turn", async () => {
    const controller = new Controller(DEADLINES);
    controller.chance = 0.99;
    const { uid } = await controller.put("stuck");
    controller.world.script(uid).outcome = () => NEVER_READY;
    await controller.clock.pass(10);
    await controller.put("b");
    await controller.untilReady(["b"], 60_000);
    await controller.ticks(15);
    const stuck = await controller.get("stuck");
    const launches = controller.world.launchesOf(uid);
    expect(launches.length).toBeGreaterThanOrEqual(4);
    expect(stuck.failures).toBeGreaterThanOrEqual(launches.length - 1);
    expect((await reasonsOf("stuck")).filter((reason) => reason === "StartTimeout").length).toBeGreaterThanOrEqual(launches.length - 1);
    const waits = launches.slice(1).map(({ time }, index) => time - (launches[index]?.time ?? 0));
    expect(waits.at(-1) ?? 0).toBeGreaterThan((waits[0] ?? 0) + 20_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });

  it("whose outcome nobody saw before its place in the lane was over is counted all the same", async () => {
    const controller = new Controller(DEADLINES);
    const { uid } = await controller.put("stuck");
    controller.world.script(uid).outcome = (nth) => (nth <= 2 ? NEVER_READY : READY);
    // Silent until well after the deadline and the margin of the lane.
    const { faults } = controller.world.script(uid);
    faults.push({ call: "observe", fault: "Hangs", times: Number.POSITIVE_INFINITY });
    await controller.put("b");
    await controller.untilReady(["b"], 90_000);
    expect(await all("SELECT start_id FROM start_lane WHERE deadline_time > ?", controller.clock.now())).toEqual([]);
    faults.length = 0;
    await controller.until(async () => (await controller.get("stuck")).failures > 0, 180_000);
    await controller.untilReady(["stuck"], 300_000);
    expect((await controller.get("stuck")).failures).toBe(2);
    expect(controller.world.launchesOf(uid)).toHaveLength(3);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });
});

describe("daytonaio/daytona#3289: a start that cannot work", () => {
  async function stalled(controller: Controller): Promise<string> {
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth === 1 ? BAD_IMAGE : READY);
    await controller.ticks(4);
    expect(conditionOf(await controller.get("a"), "Stalled")).toMatchObject({ status: "True" });
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    return uid;
  }

  it("stalls at once, and nothing but a wish or a request tries again: no label, no wake, no hour", async () => {
    const controller = new Controller({ ...SETTINGS, POLL_INTERVAL_MS: "10000" });
    const uid = await stalled(controller);
    await controller.put("a", {}, { team: "b" });
    await controller.wake("a");
    await controller.ticks(30);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(conditionOf(await controller.get("a"), "Stalled")).toMatchObject({ status: "True", reason: "StartFailed" });
  });

  it("a new wish tries again", async () => {
    const controller = new Controller(SETTINGS);
    await stalled(controller);
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 60_000);
    expect(conditionOf(await controller.get("a"), "Stalled")).toMatchObject({ status: "False" });
  });

  it("a request tries again, once", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await stalled(controller);
    controller.world.script(uid).outcome = (nth) => (nth <= 2 ? BAD_IMAGE : READY);
    await controller.requestReconcile("a");
    await controller.ticks(4);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    expect(conditionOf(await controller.get("a"), "Stalled")).toMatchObject({ status: "True" });
    await controller.requestReconcile("a");
    await controller.untilReady(["a"], 60_000);
    expect(await controller.get("a")).toMatchObject({ failures: 0, generation: 1 });
  });
});

describe("cloudflare/containers#124: what the platform says of a container is not yet, or no longer, true", () => {
  it("`running` that flaps while it boots: one start, and no crash", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 8000, flaps: { afterMs: 3000, forMs: 3000 } });
    await controller.untilReady(["a"], 60_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect((await controller.get("a")).failures).toBe(0);
  });

  it("`running` that flaps once it was verified: never two containers, and it comes back", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { startMs: 1000, flaps: { afterMs: 30_000, forMs: 4000 } });
    await controller.untilReady(["a"], 60_000);
    await controller.ticks(5);
    expect(controller.world.maxContainersOf(uid)).toBe(1);
    expect(await controller.isReady("a")).toBe(true);
    expect((await controller.get("a")).failures).toBe(0);
  });

  it("nikolanovoselec/codeflare#476: no hook is ever delivered: the state comes from looking alone", async () => {
    const controller = new Controller(SETTINGS);
    const [uid = ""] = await ready(controller, "a");
    controller.world.onEvent = () => {};
    await controller.clock.pass(60_000);
    controller.world.exit(uid, null);
    await controller.until(() => controller.world.running.length === 1, 90_000);
    await controller.untilReady(["a"], 60_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
  });

  it("nikolanovoselec/codeflare#476: a look without an answer is never taken for a stop", async () => {
    const controller = new Controller(SETTINGS);
    const [uid = ""] = await ready(controller, "a");
    const { faults } = controller.world.script(uid);
    faults.push({ call: "observe", fault: "Hangs", times: Number.POSITIVE_INFINITY });
    await controller.ticks(8);
    expect((await controller.get("a")).status.phase).toBe("Unknown");
    faults.length = 0;
    await controller.untilReady(["a"], 90_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(controller.world.callsOf(uid, "stop").length + controller.world.callsOf(uid, "destroy").length).toBe(0);
    expect((await controller.get("a")).failures).toBe(0);
  });
});

/** What is wished next of a Ready workspace, and which call leads there. */
const NEXT: readonly {
  readonly call: CallKind;
  readonly wish: (controller: Controller) => Promise<unknown>;
  readonly phase: string | null;
}[] = [
  { call: "start", wish: async () => {}, phase: "Ready" },
  { call: "observe", wish: async () => {}, phase: "Ready" },
  { call: "stop", wish: (controller) => controller.put("a", { operatingMode: "Suspended" }), phase: "Suspended" },
  { call: "destroy", wish: (controller) => controller.put("a", { env: { A: "2" } }), phase: "Ready" },
  { call: "destroy", wish: (controller) => controller.delete("a"), phase: null },
];

const FAULTS: readonly Exclude<Fault, object>[] = ["Hangs", "AnswerLost", "Breaks", "Fails", "ResetByDeploy"];

describe("cloudflare/moltworker#238: a call that is cut off, by a deploy or otherwise", () => {
  const rows = NEXT.flatMap(({ call, wish, phase }) => FAULTS.map((fault) => ({ call, fault, wish, phase })));

  it.each(rows)(
    "$call that $fault, up to three times: converges to $phase with one container at most, and no crash",
    async ({ call, fault, wish, phase }) => {
      const controller = new Controller({ ...SETTINGS, RESYNC_INTERVAL_SECONDS: "20" });
      const { uid } = await controller.put("a");
      const { faults } = controller.world.script(uid);
      if (call !== "start") await controller.untilReady(["a"], 60_000);
      faults.push({ call, fault, times: 3 });
      await wish(controller);
      await controller.until(() => faults.every(({ times }) => times < 3), 120_000);
      await controller.until(async () => ((await controller.find("a"))?.status.phase ?? null) === phase, 300_000);
      if (phase === "Ready") await controller.untilReady(["a"], 60_000);
      expect(controller.world.running).toHaveLength(phase === "Ready" ? 1 : 0);
      expect(controller.world.maxContainersOf(uid)).toBeLessThanOrEqual(1);
      expect(controller.world.maxStartsInFlight).toBe(1);
      if (phase !== null) expect((await controller.get("a")).failures).toBe(0);
      expect(await all("SELECT reason FROM events WHERE reason IN ('ContainerExited', 'CrashLoopBackOff')")).toEqual([]);
    },
  );

  it("three deploys in ten minutes, each in the middle of a start: the fourth try, or an earlier one, is Ready", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    controller.world.script(uid).startMs = 9000;
    const endTime: Instant = controller.clock.now() + 60_000;
    for (let n = 0; n < 3 && controller.clock.now() < endTime; n += 1) {
      controller.world.script(uid).faults.push({ call: "start", fault: "ResetByDeploy", times: 1 });
      await controller.ticks(1);
      for (const sandbox of controller.world.sandboxesOf(uid)) sandbox.loseMemory();
    }
    await controller.untilReady(["a"], 120_000);
    expect(await controller.get("a")).toMatchObject({ failures: 0, incarnation: 1 });
    expect(controller.world.maxContainersOf(uid)).toBe(1);
  });
});

describe("cloudflare/sandbox-sdk#794: a start that fails although its container runs", () => {
  it("is ended before it is tried again, on the same sandbox", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = (nth) => (nth <= 3 ? CONNECTION_REFUSED : READY);
    await controller.untilReady(["a"], 240_000);
    expect(new Set(controller.world.launchesOf(uid).map(({ sandboxId }) => sandboxId))).toEqual(new Set([`${uid}-1`]));
    expect(controller.world.maxContainersOf(uid)).toBe(1);
    expect((await controller.get("a")).failures).toBe(3);
  });

  it("and is deleted: it is destroyed until nothing runs, and forgotten only then", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    Object.assign(controller.world.script(uid), { outcome: () => CONNECTION_REFUSED, deafKills: 6 });
    await controller.ticks(1);
    expect(controller.world.running).toHaveLength(1);
    await controller.delete("a");
    await controller.until(async () => (await controller.find("a")) === null, 180_000);
    expect(controller.world.running).toEqual([]);
  });
});

describe("paradigmxyz/centaur#1509, gitpod-io/gitpod#635: a quota of three that run", () => {
  const QUOTA = {
    ...SETTINGS,
    NAMESPACE_QUOTAS: JSON.stringify({ default: { maxRunning: 3 } }),
    ORPHAN_GRACE_SECONDS: "60",
    SWEEP_INTERVAL_SECONDS: "20",
  };

  it("is counted from what runs: three and an orphan fill it, a failed one without an instance does not", async () => {
    const controller = new Controller(QUOTA);
    controller.inventory = controller.platform;
    controller.world.defaults.startMs = 500;
    const { uid } = await controller.put("failed");
    controller.world.script(uid).outcome = () => BAD_IMAGE;
    await controller.ticks(1);
    const wanted = names("w", 3);
    for (const name of wanted) await controller.put(name);
    await controller.untilReady(wanted, 120_000);
    expect(await all("SELECT name FROM instances WHERE running = 1 ORDER BY name")).toEqual(wanted.map((name) => ({ name })));
    // A place becomes free, yet an orphan is seen to hold it.
    await controller.delete("w-1");
    await controller.until(async () => (await controller.find("w-1")) === null, 60_000);
    const ghost = controller.world.fleet.identify(controller.uids[1] ?? "", 1);
    controller.world.startStranger({ sandboxId: ghost.sandboxId });
    await controller.ticks(2);
    await controller.put("next");
    await controller.ticks(1);
    expect(conditionOf(await controller.get("next"), "Ready")).toEqual({ status: "False", reason: "QuotaExceeded" });
    expect(controller.world.running).toHaveLength(3);
    await controller.untilReady(["next"], 240_000);
    expect(controller.world.running.map(({ doId }) => doId)).not.toContain(ghost.doId);
    expect(controller.world.running).toHaveLength(3);
  });

  it("an orphan that was seen holds the place until it is gone", async () => {
    const controller = new Controller({ ...QUOTA, GC_MODE: "Report" });
    controller.inventory = controller.platform;
    const [, , uid = ""] = await ready(controller, ...names("w", 3));
    await controller.put("w-3", { operatingMode: "Suspended" });
    await controller.ticks(2);
    await controller.delete("w-3");
    await controller.ticks(2);
    controller.world.startStranger({ sandboxId: `${uid}-1` });
    await controller.ticks(2);
    await controller.put("next");
    await controller.ticks(5);
    expect(conditionOf(await controller.get("next"), "Ready")).toEqual({ status: "False", reason: "QuotaExceeded" });
    controller.world.exit(uid, 0);
    await controller.untilReady(["next"], 120_000);
  });

  it("of one namespace holds up no other, and the first in line is next when a place is free", async () => {
    const controller = new Controller(QUOTA);
    const wanted = names("w", 5);
    for (const name of wanted) {
      await controller.put(name);
      await controller.clock.pass(1);
    }
    await controller.ticks(2);
    await controller.put("other", {}, {}, "elsewhere");
    await controller.until(async () => (await controller.find("other", "elsewhere"))?.status.phase === "Ready", 30_000);
    expect(controller.world.running).toHaveLength(4);
    expect([await controller.isReady("w-4"), await controller.isReady("w-5")]).toEqual([false, false]);
    await controller.put("w-2", { operatingMode: "Suspended" });
    await controller.untilReady(["w-4"], 60_000);
    expect(await controller.isReady("w-5")).toBe(false);
    await controller.delete("w-1");
    await controller.untilReady(["w-5"], 60_000);
    expect(controller.world.running).toHaveLength(4);
    for (const name of ["w-3", "w-4", "w-5"]) expect((await controller.get(name)).failures).toBe(0);
  });

  it("does not stop what crashed from coming back in its own place", async () => {
    const controller = new Controller(QUOTA);
    const [uid = ""] = await ready(controller, ...names("w", 3));
    await controller.clock.pass(60_000);
    controller.world.exit(uid, 143);
    await controller.until(() => controller.world.running.length === 3, 60_000);
    expect(runningLimitsOf(controller.config)).toEqual({ default: 3 });
  });
});
