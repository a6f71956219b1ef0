/** Limits on what is wished: idleness, the life of a container, the life of a workspace. */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import type { Instant } from "../../../src/workspace.ts";
import { BAD_IMAGE } from "../../support/fake-fleet.ts";
import { Controller, Process, all, conditionOf, d1, emptyTables } from "./support.ts";

beforeEach(emptyTables);

const MINUTE = 60_000;
/** Few rounds in each tick, for hours to pass soon. */
const SETTINGS = {
  TICK_BUDGET_SECONDS: "55",
  POLL_INTERVAL_MS: "50000",
  LEASE_SECONDS: "180",
  RESYNC_INTERVAL_SECONDS: "60",
  SWEEP_INTERVAL_SECONDS: "300",
};
const IDLE = { idle: { timeoutSeconds: 600 } };

async function idleWorkspace(controller: Controller): Promise<string> {
  const { uid } = await controller.put("a", IDLE);
  await controller.untilReady(["a"], 2 * MINUTE);
  controller.world.use(uid);
  return uid;
}

/** When the container was seen to have stopped. */
async function stoppedTime(controller: Controller, limitMs: number): Promise<Instant> {
  await controller.until(() => controller.world.running.length === 0, limitMs);
  const [row] = await all<{ t: Instant }>("SELECT idle_time AS t FROM workspaces");
  return row?.t ?? Number.NaN;
}

async function reasons(): Promise<readonly string[]> {
  return (await all<{ reason: string }>("SELECT reason FROM events ORDER BY id")).map(({ reason }) => reason);
}

describe("cloudflare/containers#242, cloudflare/sandbox-sdk#345: a container that is not used", () => {
  it("coder/coder#12012: stops after its timeout although it is looked at every minute, and stays down for an hour", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await idleWorkspace(controller);
    const usedTime = controller.clock.now();
    const time = await stoppedTime(controller, 15 * MINUTE);
    expect(controller.world.callsOf(uid, "observe").length).toBeGreaterThanOrEqual(9);
    expect(time - usedTime).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(time - usedTime).toBeLessThan(11 * MINUTE);
    await controller.ticks(60);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    const workspace = await controller.get("a");
    expect(workspace.failures).toBe(0);
    expect(conditionOf(workspace, "Suspended")).toEqual({ status: "True", reason: "IdleTimeout" });
    expect(await reasons()).toEqual(["Created", "Queued", "Starting", "ContainerHealthy", "IdleTimeout", "IdleTimeout"]);
  });

  it("runs as long as it is used, and stops after the last time", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await idleWorkspace(controller);
    for (let n = 0; n < 4; n += 1) {
      await controller.ticks(7);
      expect(controller.world.use(uid)).toBe(true);
    }
    const usedTime = controller.clock.now();
    expect((await stoppedTime(controller, 15 * MINUTE)) - usedTime).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
  });

  it("that was never used is suspended after its timeout too", async () => {
    const controller = new Controller(SETTINGS);
    await controller.put("a", IDLE);
    await controller.untilReady(["a"], 2 * MINUTE);
    await controller.until(() => controller.world.running.length === 0, 12 * MINUTE);
  });

  it("without a limit runs on", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a");
    await controller.ticks(20);
    expect(controller.world.running).toHaveLength(1);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
  });

  it("costs no write to D1 while it is used", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await idleWorkspace(controller);
    await controller.ticks(2);
    const [before] = await all("SELECT resource_version FROM workspaces");
    for (let n = 0; n < 7; n += 1) {
      controller.world.use(uid);
      await controller.ticks(1);
    }
    expect(await all("SELECT resource_version FROM workspaces")).toEqual([before]);
  });

  it("that ignores the signal is killed, and stays down", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await idleWorkspace(controller);
    controller.world.script(uid).stopMs = null;
    await stoppedTime(controller, 15 * MINUTE);
    await controller.ticks(5);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(await controller.get("a")).toMatchObject({ failures: 0, status: { phase: "Suspended" } });
  });
});

describe("a workspace that was suspended for idleness", () => {
  async function suspended(controller: Controller): Promise<string> {
    const uid = await idleWorkspace(controller);
    await stoppedTime(controller, 15 * MINUTE);
    await controller.ticks(2);
    expect((await controller.get("a")).status.phase).toBe("Suspended");
    return uid;
  }

  it("is started by a wake, and gets its whole timeout from then on", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await suspended(controller);
    const wakeTime = controller.clock.now();
    await controller.wake("a");
    await controller.untilReady(["a"], 2 * MINUTE);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    await controller.ticks(8);
    expect(controller.world.running).toHaveLength(1);
    const time = await stoppedTime(controller, 5 * MINUTE);
    expect(time - wakeTime).toBeGreaterThanOrEqual(10 * MINUTE);
  });

  it.each([
    ["a spec that changes is another wish", { idle: { timeoutSeconds: 900 } }],
    ["a spec without the limit is another wish", {}],
    ["another env is another wish", { ...IDLE, env: { A: "2" } }],
  ])("%s: it is started", async (_sentence, change) => {
    const controller = new Controller(SETTINGS);
    await suspended(controller);
    await controller.put("a", change);
    await controller.untilReady(["a"], 2 * MINUTE);
    expect(controller.world.running).toHaveLength(1);
  });

  it("is not started by other labels, nor by a request to look again", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await suspended(controller);
    await controller.put("a", IDLE, { team: "b" });
    await controller.requestReconcile("a");
    await controller.ticks(3);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect((await controller.get("a")).status.phase).toBe("Suspended");
  });

  it("is stopped again where a container runs all the same", async () => {
    const controller = new Controller(SETTINGS);
    const uid = await suspended(controller);
    controller.world.startStranger({ sandboxId: `${uid}-1` });
    await controller.until(() => controller.world.running.length === 0, 3 * MINUTE);
    expect((await controller.get("a")).status.phase).toBe("Suspended");
  });
});

describe("a wake", () => {
  it("of a workspace that runs counts as use", async () => {
    const controller = new Controller(SETTINGS);
    await idleWorkspace(controller);
    await controller.ticks(9);
    const wakeTime = controller.clock.now();
    await controller.wake("a");
    expect((await stoppedTime(controller, 12 * MINUTE)) - wakeTime).toBeGreaterThanOrEqual(10 * MINUTE);
  });

  it("starts nothing that its user wishes suspended", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a", { ...IDLE, operatingMode: "Suspended" });
    await controller.wake("a");
    await controller.ticks(3);
    expect(controller.world.launchesOf(uid)).toEqual([]);
  });

  it("that comes between the mark and the stop lets it run on, or start again", async () => {
    const controller = new Controller(SETTINGS);
    await idleWorkspace(controller);
    const process = new Process();
    let isWoken = false;
    process.onPoint = async (point) => {
      if (isWoken || point !== "save after") return;
      const [row] = await controller.clock.busy(all<{ t: Instant | null }>("SELECT idle_time AS t FROM workspaces"));
      if ((row?.t ?? null) === null) return;
      isWoken = true;
      await controller.clock.sleep(1);
      await controller.wake("a");
    };
    for (let n = 0; n < 13; n += 1) {
      await controller.tick(process);
      await controller.clock.pass(5000);
    }
    expect(isWoken).toBe(true);
    await controller.ticks(2);
    expect(controller.world.running).toHaveLength(1);
    expect(await controller.isReady("a")).toBe(true);
  });
});

describe("a controller that dies between the mark of idleness and the stop", () => {
  it.each(["save after", "stop before"])("killed at: %s. It is stopped by the next tick and not started again", async (where) => {
    const controller = new Controller({ ...SETTINGS, LEASE_SECONDS: "45" });
    const uid = await idleWorkspace(controller);
    const process = new Process();
    let kill = (): void => {};
    const killed = new Promise<"killed">((resolve) => {
      kill = () => resolve("killed");
    });
    let isMarked = false;
    let isDead = false;
    process.onPoint = async (point) => {
      if (isDead) await new Promise(() => {});
      isMarked ||= (await controller.clock.busy(all("SELECT uid FROM workspaces WHERE idle_time IS NOT NULL"))).length > 0;
      if (!isMarked || point !== where) return;
      isDead = true;
      kill();
      await new Promise(() => {});
    };
    let end: unknown = null;
    for (let n = 0; n < 15 && end !== "killed"; n += 1) {
      end = await controller.clock.run(Promise.race([sweep(controller.deps(process)), killed]));
      await controller.clock.pass(5000);
    }
    expect(end).toBe("killed");
    expect(controller.world.running).toHaveLength(1);
    await controller.ticks(3);
    expect(controller.world.running).toEqual([]);
    await controller.ticks(3);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect((await controller.get("a")).status.phase).toBe("Suspended");
  });
});

describe("maxLifetimeSeconds", () => {
  it("cloudflare/containers#241: replaces the container again and again, one at a time, and counts no crash", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a", { maxLifetimeSeconds: 600 });
    await controller.untilReady(["a"], 2 * MINUTE);
    for (let n = 0; n < 32; n += 1) {
      controller.world.use(uid);
      await controller.ticks(1);
    }
    const times = controller.world.launchesOf(uid).map(({ time }) => time);
    expect(times).toHaveLength(4);
    for (const [index, time] of times.slice(1).entries()) {
      expect(time - (times[index] ?? 0)).toBeGreaterThanOrEqual(10 * MINUTE);
      expect(time - (times[index] ?? 0)).toBeLessThan(11 * MINUTE);
    }
    expect(await controller.get("a")).toMatchObject({ failures: 0, incarnation: 1, status: { phase: "Ready" } });
    expect(controller.world.maxContainersOf(uid)).toBe(1);
    expect((await reasons()).filter((reason) => reason === "LifetimeExceeded")).toHaveLength(3);
  });

  it("does not wake what is suspended", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a", { maxLifetimeSeconds: 600, idle: { timeoutSeconds: 300 } });
    await controller.ticks(30);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(controller.world.running).toEqual([]);
  });
});

describe("coder/coder#13499: expireTime", () => {
  const at = (controller: Controller, ms: number) => ({ expireTime: new Date(controller.clock.now() + ms).toISOString() });

  it("deletes the workspace then, not before, and what it ran is gone", async () => {
    const controller = new Controller(SETTINGS);
    await controller.put("a", at(controller, 10 * MINUTE));
    await controller.ticks(9);
    expect(await controller.isReady("a")).toBe(true);
    await controller.ticks(2);
    expect(await controller.find("a")).toBeNull();
    expect(controller.world.running).toEqual([]);
    expect((await reasons()).slice(-3)).toEqual(["Expired", "Terminating", "Deleted"]);
  });

  it.each<[string, (controller: Controller, uid: string) => void | Promise<void>, object]>([
    ["suspended", () => {}, { operatingMode: "Suspended" }],
    ["paused", () => {}, { paused: true }],
    ["stalled", (controller, uid) => void (controller.world.script(uid).outcome = () => BAD_IMAGE), {}],
    ["idle", () => {}, { idle: { timeoutSeconds: 60 } }],
  ])("also one that is %s", async (_sentence, spoil, change) => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a", { ...at(controller, 5 * MINUTE), ...change });
    await spoil(controller, uid);
    await controller.ticks(4);
    expect(await controller.find("a")).not.toBeNull();
    await controller.ticks(3);
    expect(await controller.find("a")).toBeNull();
  });

  it("also one whose sandbox is silent: it is being deleted, and gone once the sandbox answers", async () => {
    const controller = new Controller(SETTINGS);
    const { uid } = await controller.put("a", at(controller, 5 * MINUTE));
    await controller.ticks(2);
    controller.world.script(uid).faults.push({ call: "any", fault: "Hangs", times: Number.POSITIVE_INFINITY });
    await controller.ticks(6);
    expect((await controller.get("a")).status.phase).toBe("Terminating");
    expect(controller.world.running).toHaveLength(1);
    controller.world.script(uid).faults.length = 0;
    await controller.ticks(2);
    expect(await controller.find("a")).toBeNull();
    expect(controller.world.running).toEqual([]);
  });

  it("one whose stored spec no longer parses has none: it is kept", async () => {
    const controller = new Controller(SETTINGS);
    await controller.put("a", at(controller, 5 * MINUTE));
    await controller.ticks(2);
    await d1.exec("UPDATE workspaces SET spec = json_set(spec, '$.operatingMode', 'Sideways')");
    await controller.ticks(6);
    expect((await controller.get("a")).deletionTime).toBeNull();
    expect(controller.world.running).toHaveLength(1);
  });

  it("that was moved on meanwhile is the new one", async () => {
    const controller = new Controller(SETTINGS);
    await controller.put("a", at(controller, 3 * MINUTE));
    await controller.ticks(2);
    await controller.put("a", at(controller, 30 * MINUTE));
    await controller.ticks(5);
    expect(await controller.isReady("a")).toBe(true);
  });
});
