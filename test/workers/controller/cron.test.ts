/** lyc8503/UptimeFlare#199: ticks that are missed, doubled, late or killed, for the sweep of the inventory as for everything else. */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { GC, GONE_AFTER, lastSweep, orphanDestroys, ready, running, strangers, unclaimed, withList } from "./gc-support.ts";
import { type Controller, Process, all, emptyTables, names } from "./support.ts";

beforeEach(emptyTables);

/** A tick whose process ends before its nth call; false where it came to its end before. */
async function killedTick(controller: Controller, nth: number): Promise<boolean> {
  const process = new Process();
  let kill = (): void => {};
  const killed = new Promise<boolean>((resolve) => {
    kill = () => resolve(true);
  });
  let calls = 0;
  process.onPoint = (point) => {
    if (point.endsWith("before")) calls += 1;
    if (calls < nth) return;
    kill();
    return new Promise(() => {});
  };
  return await controller.clock.run(Promise.race([sweep(controller.deps(process)).then(() => false), killed]));
}

describe("lyc8503/UptimeFlare#199: cron", () => {
  it("stops for hours: one sweep follows, not one for each that was missed, and nothing is destroyed for having been seen once", async () => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 1);
    await controller.ticks(1);
    const before = controller.platform.calls;
    await controller.clock.pass(6 * 3_600_000);
    await controller.ticks(1);
    expect(controller.platform.calls - before).toBe(1);
    expect(await unclaimed()).toMatchObject([{ timesSeen: 2, destroyAttempts: 1 }]);
  });

  it("stops for hours before it was seen twice in complete sweeps: seen once is not enough, however old", async () => {
    const controller = withList();
    await ready(controller, "a");
    await controller.clock.pass(6 * 3_600_000);
    strangers(controller, 1);
    await controller.clock.pass(6 * 3_600_000);
    await controller.ticks(1);
    expect(orphanDestroys(controller)).toBe(0);
    await controller.ticks(GONE_AFTER);
    expect(orphanDestroys(controller)).toBe(1);
  });

  it("fires twice: the platform is asked once, and each orphan told once", async () => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 2);
    for (let n = 0; n < 5; n += 1) {
      const before = controller.platform.calls;
      const startTime = controller.clock.now();
      await controller.clock.run(Promise.all([sweep(controller.deps()), sweep(controller.deps())]));
      const sweeps = (controller.clock.now() - startTime) / (1000 * Number(GC.SWEEP_INTERVAL_SECONDS));
      expect(controller.platform.calls - before).toBeLessThanOrEqual(Math.ceil(sweeps));
    }
    expect(orphanDestroys(controller)).toBe(2);
    expect(running(controller)).toHaveLength(1);
  });

  it("fires more often than the inventory is to be swept: the interval is kept over the ticks", async () => {
    const controller = withList({ TICK_BUDGET_SECONDS: "5", SWEEP_INTERVAL_SECONDS: "60" });
    await controller.ticks(24);
    expect(controller.platform.calls).toBeGreaterThanOrEqual(2);
    expect(controller.platform.calls).toBeLessThanOrEqual(3);
  });

  it("sweeps several times in one long tick, and not before the interval is over", async () => {
    const controller = withList({ TICK_BUDGET_SECONDS: "55", SWEEP_INTERVAL_SECONDS: "15", POLL_INTERVAL_MS: "1000" });
    await controller.tick();
    expect(controller.platform.calls).toBe(4);
  });

  it.each([
    [90_000, 90_000],
    [3_600_000, 600_000],
  ])("a platform that asks for %i ms of patience is asked again after %i, from tick to tick", async (retryAfterMs, expectedMs) => {
    const controller = withList();
    controller.platform.fault({ kind: "Fails", reason: "RateLimited", retryAfterMs });
    const startTime = controller.clock.now();
    await controller.until(() => controller.platform.calls === 2, 1_000_000);
    const waitedMs = controller.clock.now() - startTime;
    expect(waitedMs).toBeGreaterThanOrEqual(expectedMs);
    expect(waitedMs).toBeLessThanOrEqual(expectedMs + 25_000);
  });

  it("a list that does not answer is not asked for again while it is awaited, and holds up no workspace", async () => {
    const controller = withList({ TICK_BUDGET_SECONDS: "55", SWEEP_INTERVAL_SECONDS: "5", POLL_INTERVAL_MS: "1000" });
    controller.platform.fault({ kind: "Hangs", ms: 40_000 });
    await controller.put("a");
    const startTime = controller.clock.now();
    await controller.tick();
    const [row] = await all<{ t: number }>("SELECT ready_time AS t FROM workspaces");
    expect((row?.t ?? 0) - startTime).toBeLessThan(3000);
    expect(controller.platform.calls).toBeLessThanOrEqual(4);
    expect(await lastSweep()).toMatchObject({ outcome: "Complete" });
  });

  it("a tick is killed at any call of its sweep: the orphan goes all the same, and nothing else does", async () => {
    const wrong: string[] = [];
    let points = 0;
    for (let nth = 1; ; nth += 1) {
      await emptyTables();
      const controller = withList();
      const [uid = ""] = await ready(controller, "a");
      const [stranger = ""] = strangers(controller, 1);
      // The tick that is killed is the one that would destroy it.
      await controller.until(async () => ((await unclaimed())[0]?.timesSeen ?? 0) >= 2, 100_000);
      await controller.clock.pass(20_000);
      const isKilled = await killedTick(controller, nth);
      if (!isKilled) break;
      points = nth;
      await controller.clock.pass(30_000);
      await controller.ticks(3);
      const end = JSON.stringify([running(controller), (await unclaimed()).length, controller.world.launchesOf(uid).length]);
      const expected = JSON.stringify([[controller.world.fleet.identify(uid, 1).doId], 0, 1]);
      if (end !== expected || running(controller).includes(stranger)) wrong.push(`killed at ${nth}: ${end}`);
    }
    expect(wrong).toEqual([]);
    expect(points).toBeGreaterThan(9);
  });

  it("ticks are killed one after the other: what is wished is done in the end, and never twice", async () => {
    const controller = withList({ LEASE_SECONDS: "5", POLL_INTERVAL_MS: "2000" });
    const wanted = names("w", 3);
    for (const name of wanted) await controller.put(name);
    for (const nth of [3, 5, 8, 4, 9, 6, 12, 7]) {
      await killedTick(controller, nth);
      await controller.clock.pass(6000);
    }
    await controller.untilReady(wanted, 240_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
    for (const uid of controller.uids) expect(controller.world.launchesOf(uid)).toHaveLength(1);
  });
});
