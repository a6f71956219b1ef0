/** Ticks that overlap, stall and outlive their lease (invariants 1 and 11). */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { acquireLease } from "../../../src/store/lease.ts";
import { NEVER_READY } from "../../support/fake-fleet.ts";
import { stallingAt } from "./stalling.ts";
import { Controller, Process, all, emptyTables, names } from "./support.ts";

beforeEach(emptyTables);

describe("lyc8503/UptimeFlare#199: two ticks at the same time", () => {
  it("only one works, and the other ends at once", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "10" });
    await controller.put("a");
    const other = new Process();
    const [first, second] = await controller.clock.run(Promise.all([sweep(controller.deps()), sweep(controller.deps(other))]));
    expect([first, second].filter((summary) => summary === null)).toHaveLength(1);
    expect(await controller.isReady("a")).toBe(true);
    expect(controller.world.launches).toHaveLength(1);
  });

  it("a tick keeps its lease through a whole minute of work", async () => {
    const controller = new Controller({ LEASE_SECONDS: "2", POLL_INTERVAL_MS: "500", TICK_BUDGET_SECONDS: "15" });
    controller.world.defaults.startMs = 2000;
    for (const name of names("w", 5)) await controller.put(name);
    const late = async () => {
      for (let n = 0; n < 100; n += 1) {
        await controller.clock.sleep(130);
        expect(await acquireLease(controller.db, "late", controller.clock.now(), 2000)).toBeNull();
      }
    };
    const [summary] = await controller.clock.run(Promise.all([sweep(controller.deps()), late()]));
    expect(summary?.complete).toBe(true);
    expect(await all("SELECT epoch FROM controller")).toEqual([{ epoch: 1 }]);
  });

  it("a tick waits a while for the one before it, which may still have calls to wait for", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "30" });
    await controller.put("a");
    await acquireLease(controller.db, "before", controller.clock.now(), 15_000);
    expect((await controller.tick())?.rounds).toBeGreaterThan(0);
    await controller.untilReady(["a"], 1000);
  });

  it("a tick that gets the lease when its time is over has swept nothing", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    await acquireLease(controller.db, "before", controller.clock.now(), 5000);
    expect((await controller.tick())?.complete ?? false).toBe(false);
    expect(await all("SELECT last_sweep_time AS t FROM controller")).toEqual([{ t: null }]);
  });

  it("a tick outlives a round that the database did not answer", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "10" });
    await controller.put("a");
    const process = new Process();
    let failures = 0;
    process.onPoint = (point) => {
      if (point === "load before" && (failures += 1) <= 2) throw new Error("D1_ERROR: Network connection lost.");
    };
    expect(await controller.tick(process)).toMatchObject({ complete: true });
    await controller.untilReady(["a"], 1000);
  });
});

describe("daytonaio/daytona#5093: a tick that stalls past its lease while another takes over", () => {
  const sweeps = ["view after", "record before"];
  const stalls = ["lease after", "load before", "load after", "save before", "save after", "admit before", "admit after"];
  const calls = ["observe before", "observe after", "start before", "start after", "destroy before", "destroy after", "forget before"];

  it.each([...stalls, ...sweeps, ...calls])("stalls at: %s", async (point) => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    const { world } = controller;
    await controller.put("old");
    await controller.put("gone");
    await controller.untilReady(["old", "gone"], 60_000);
    await controller.put("a");
    await controller.put("b");
    await controller.put("old", { env: { A: "2" } });
    await controller.delete("gone");
    const stalled = stallingAt(point);
    const stale = sweep(controller.deps(stalled.process));
    await controller.clock.run(Promise.race([stalled.reached, stale]));
    await controller.clock.pass(30_000);
    const fresh = sweep(controller.deps());
    await controller.clock.pass(3000);
    stalled.thaw();
    await controller.clock.run(Promise.all([stale, fresh]));
    await controller.untilReady(["a", "b", "old"], 120_000);
    const uids = controller.uids;
    expect(await controller.look()).toEqual({
      workspaces: { a: "Ready #1 !0", b: "Ready #1 !0", old: "Ready #2 !0" },
      ledger: [`${uids[0]}-2`, `${uids[2]}-1`, `${uids[3]}-1`].toSorted(),
      lane: [],
      running: [`${uids[0]}-2`, `${uids[2]}-1`, `${uids[3]}-1`].toSorted(),
    });
    expect(world.maxStartsInFlight).toBe(1);
    for (const uid of uids) expect(world.maxContainersOf(uid)).toBe(1);
    expect(world.launches).toHaveLength(5);
  });

  it("goes on without a sandbox that knows a higher epoch than the database, while the lease is its own", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20" });
    await controller.put("restored");
    await controller.untilReady(["restored"], 60_000);
    const uid = controller.uids[0] ?? "";
    await controller.clock.run(controller.world.fleet.observe(controller.world.fleet.identify(uid, 1), 1000));
    await controller.put("restored", { env: { A: "2" } });
    await controller.put("other");
    expect(await controller.tick()).toMatchObject({ complete: true });
    expect((await controller.look()).workspaces).toMatchObject({ other: "Ready #1 !0", restored: expect.stringMatching(/^Unknown/) });
  });

  it("does not call itself complete", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    const stalled = stallingAt("load before");
    const stale = sweep(controller.deps(stalled.process));
    await controller.clock.run(stalled.reached);
    await controller.clock.pass(30_000);
    await controller.tick();
    stalled.thaw();
    expect(await controller.clock.run(stale)).toMatchObject({ complete: false });
  });

  it("and whose clock jumps forward gives up nothing that another holds", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20" });
    for (const name of names("w", 4)) await controller.put(name);
    const process = new Process();
    process.onPoint = (_point, nth) => {
      if (nth === 12) process.skewMs = 3_600_000;
    };
    await controller.tick(process);
    await controller.clock.pass(40_000);
    await controller.untilReady(names("w", 4), 240_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });

  it("its save, its admission and its call to a sandbox that knows the new epoch are all refused", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    await controller.put("a");
    const stalled = stallingAt("start before");
    const stale = sweep(controller.deps(stalled.process));
    await controller.clock.run(stalled.reached);
    await controller.clock.pass(30_000);
    await controller.tick();
    expect(await controller.isReady("a")).toBe(true);
    const before = await controller.get("a");
    stalled.thaw();
    await controller.clock.run(stale);
    expect(await controller.get("a")).toEqual(before);
    expect(controller.world.launches).toHaveLength(1);
    expect(controller.world.callsOf(before.uid, "start").map(({ epoch }) => epoch)).toEqual([2, 1]);
  });
});

describe("a start that holds the lane", () => {
  it("keeps it from tick to tick until it is settled", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    controller.world.defaults.startMs = 12_000;
    await controller.put("a");
    await controller.put("b");
    await controller.untilReady(["a", "b"], 120_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
    expect(controller.world.launches).toHaveLength(2);
  });

  it("loses it at its deadline only, when the sandbox has given up already", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "30", START_TIMEOUT_SECONDS: "20", POLL_INTERVAL_MS: "2000" });
    const { uid } = await controller.put("a");
    controller.world.script(uid).outcome = () => NEVER_READY;
    await controller.clock.pass(10);
    const tick = controller.tick();
    await tick;
    await controller.put("b");
    // Nobody can see how the start of "a" ends.
    controller.world.script(uid).faults.push({ call: "any", fault: "Hangs", times: Number.POSITIVE_INFINITY });
    await controller.untilReady(["b"], 180_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });

  it.each([20_000, 60_000, 130_000])("is not joined by another when its call arrives %i ms late", async (ms) => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "10", START_TIMEOUT_SECONDS: "60", POLL_INTERVAL_MS: "2000" });
    const { uid } = await controller.put("a");
    const script = controller.world.script(uid);
    script.outcome = () => NEVER_READY;
    script.faults.push({ call: "start", fault: { kind: "Late", ms }, times: 1 });
    script.faults.push({ call: "any", fault: "Hangs", times: Math.ceil(ms / 6000) });
    await controller.tick();
    await controller.put("b");
    controller.world.script(controller.uids[1] ?? "").startMs = 50_000;
    await controller.untilReady(["b"], 400_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });

  it("is joined, not repeated, after the sandbox lost its memory", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5" });
    controller.world.defaults.startMs = 8000;
    const { uid } = await controller.put("a");
    await controller.put("b");
    await controller.tick();
    controller.world.sandboxesOf(uid)[0]?.loseMemory();
    await controller.untilReady(["a", "b"], 120_000);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });
});
