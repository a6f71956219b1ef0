/** What an operator may ask for while the controller runs: a pause, another width, the replacement or the adoption of an instance. */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { adoptInstance } from "../../../src/store/adoption.ts";
import { requestReplacement } from "../../../src/store/operator-intent.ts";
import { getInstance } from "../../../src/store/instance-reading.ts";
import type { WorkspaceSpec } from "../../../src/workspace.ts";
import { LONG, orphanDestroys, ready, running, strangers, unclaimed, withList } from "./gc-support.ts";
import { setSettings } from "./store-support.ts";
import { Controller, SPEC, all, emptyTables, names, uidOf } from "./support.ts";

beforeEach(emptyTables);

describe("the width of the start lane", () => {
  it("is what an operator set, from the next rounds on, wider and narrower", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "20", POLL_INTERVAL_MS: "3000" });
    controller.world.defaults.startMs = 5000;
    await setSettings({ lane_width: 3 });
    for (const name of names("w", 9)) await controller.put(name);
    await controller.ticks(1);
    expect(controller.world.maxStartsInFlight).toBe(3);
    await setSettings({ lane_width: 1 });
    // What is in flight is let come to its end.
    await controller.until(() => controller.world.startsInFlight <= 1, 20_000);
    await controller.ticks(1);
    controller.world.maxStartsInFlight = 0;
    for (const name of names("x", 4)) await controller.put(name);
    await controller.untilReady(names("x", 4), 120_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
    await setSettings({ lane_width: null });
    await controller.put("y");
    await controller.untilReady(["y"], 60_000);
  });

  it("changes in the middle of a tick", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "30" });
    controller.world.defaults.startMs = 6000;
    for (const name of names("w", 8)) await controller.put(name);
    const widen = async () => {
      await controller.clock.sleep(8000);
      await controller.clock.busy(setSettings({ lane_width: 4 }));
    };
    await controller.clock.run(Promise.all([sweep(controller.deps()), widen()]));
    expect(controller.world.maxStartsInFlight).toBe(4);
  });
});

describe("a controller that is paused", () => {
  it("looks at nothing, does nothing, and goes on where it was", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a", "old");
    await setSettings({ paused: 1 });
    controller.world.exit(uid, 137);
    await controller.put("new");
    await controller.delete("old");
    await controller.put("a", { env: { A: "2" } });
    controller.world.calls.length = 0;
    await controller.ticks(LONG);
    expect(controller.world.calls).toEqual([]);
    expect((await controller.get("new")).status.phase).toBe("Pending");
    expect(controller.world.running).toHaveLength(1);
    await setSettings({ paused: 0 });
    await controller.untilReady(["a", "new"], 120_000);
    await controller.until(async () => (await controller.find("old")) === null, 60_000);
    expect(controller.world.maxStartsInFlight).toBe(1);
  });

  it("still watches what nobody claims, and destroys none of it", async () => {
    const controller = withList();
    await ready(controller, "a");
    await setSettings({ paused: 1 });
    strangers(controller, 1);
    await controller.ticks(LONG);
    expect(await unclaimed()).toMatchObject([{ state: "Running", timesSeen: LONG, destroyAttempts: 0 }]);
    expect(orphanDestroys(controller)).toBe(0);
  });

  it("misses no turn of the resync: what changed meanwhile is found when it goes on", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    await setSettings({ paused: 1 });
    controller.world.onEvent = () => {};
    controller.world.exit(uid, 143);
    await controller.ticks(LONG);
    await setSettings({ paused: 0 });
    await controller.until(() => controller.world.running.length === 1, 80_000);
  });
});

describe("an instance that is to be replaced", () => {
  it.each<[string, Partial<WorkspaceSpec>]>([
    ["of a workspace that is wished Running", {}],
    ["of one with an idle limit", { idle: { timeoutSeconds: 3600 } }],
  ])("%s: is destroyed, and the next incarnation takes its place", async (_sentence, spec) => {
    const controller = withList();
    const { uid } = await controller.put("a", spec);
    await controller.untilReady(["a"], 60_000);
    const [first, second] = [1, 2].map((incarnation) => controller.world.fleet.identify(uid, incarnation));
    const known = await getInstance(controller.db, first?.doId ?? "");
    if (known?.claimed !== true) throw new Error("not claimed");
    expect(await requestReplacement(controller.db, known.instance, "operator", controller.clock.now())).toBe(true);
    await controller.until(() => running(controller).includes(second?.doId ?? ""), 60_000);
    await controller.untilReady(["a"], 60_000);
    expect(running(controller)).toEqual([second?.doId]);
    expect(controller.world.maxContainersOf(uid)).toBe(1);
    expect(await controller.get("a")).toMatchObject({ failures: 0, incarnation: 2, generation: 1 });
    await controller.ticks(LONG);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    expect(await all("SELECT destroy_request_time AS t FROM instances")).toEqual([{ t: null }]);
  });
});

describe("an instance that is adopted", () => {
  async function adopt(controller: Controller, sandboxId: string, spec: Partial<WorkspaceSpec> = {}): Promise<string> {
    const { doId } = controller.world.startStranger({ sandboxId });
    await controller.ticks(1);
    const known = await getInstance(controller.db, doId);
    if (known === null || known.claimed) throw new Error("not unclaimed");
    const wish = { uid: uidOf(900), namespace: "default", name: "adopted", labels: {}, annotations: {}, spec: { ...SPEC, ...spec } };
    const adoption = { ...wish, now: controller.clock.now(), instance: known.instance, sandboxId };
    expect(await adoptInstance(controller.db, adoption)).not.toBeNull();
    return doId;
  }

  it("keeps its container, and is taken for an orphan no longer", async () => {
    const controller = withList();
    await ready(controller, "a");
    const doId = await adopt(controller, "my-old-sandbox");
    await controller.untilReady(["adopted"], 60_000);
    await controller.ticks(LONG);
    expect(running(controller)).toContain(doId);
    // No container was started for it: the one that ran is vouched for.
    expect(controller.world.launches.filter(({ sandboxId }) => sandboxId === "my-old-sandbox")).toEqual([]);
    expect(orphanDestroys(controller)).toBe(0);
    expect(await unclaimed()).toEqual([]);
  });

  it("is replaced like any other when the wish changes, and what runs again of it is ended", async () => {
    const controller = withList();
    await ready(controller, "a");
    const doId = await adopt(controller, "my-old-sandbox");
    await controller.untilReady(["adopted"], 60_000);
    await controller.put("adopted", { env: { A: "2" } });
    await controller.untilReady(["adopted"], 60_000);
    expect((await controller.get("adopted")).sandboxId).toBe(`${uidOf(900)}-2`);
    expect(running(controller)).not.toContain(doId);
    controller.world.startStranger({ sandboxId: "my-old-sandbox" });
    await controller.until(() => !running(controller).includes(doId), 100_000);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
    expect(await controller.isReady("adopted")).toBe(true);
  });

  it("is gone when its workspace is deleted, also without the platform's list", async () => {
    const controller = withList();
    await ready(controller, "a");
    const doId = await adopt(controller, "my-old-sandbox");
    await controller.untilReady(["adopted"], 60_000);
    controller.inventory = null;
    await controller.delete("adopted");
    await controller.until(async () => (await controller.find("adopted")) === null, 60_000);
    expect(running(controller)).not.toContain(doId);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
  });
});
