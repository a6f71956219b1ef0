/** What reviews found in garbage collection, adoption and requests, each as it went wrong. */
import { beforeEach, describe, expect, it } from "vitest";
import { adoptInstance } from "../../../src/store/adoption.ts";
import { getInstance } from "../../../src/store/instance-reading.ts";
import { requestReplacement, setProtected } from "../../../src/store/operator-intent.ts";
import type { Unclaimed } from "../../../src/unclaimed.ts";
import { LONG, lastSweep, orphanDestroys, ready, running, strangers, withList } from "./gc-support.ts";
import { setSettings } from "./store-support.ts";
import { type Controller, SPEC, all, d1, emptyTables, uidOf } from "./support.ts";

beforeEach(emptyTables);

async function unclaimedOf(controller: Controller, doId: string): Promise<Unclaimed> {
  const known = await getInstance(controller.db, doId);
  if (known === null || known.claimed) throw new Error("Not unclaimed.");
  return known.instance;
}

async function adopt(controller: Controller, doId: string, sandboxId: string, env: Readonly<Record<string, string>> = {}) {
  const instance = await unclaimedOf(controller, doId);
  const wish = { uid: uidOf(900), namespace: "default", name: "adopted", labels: {}, annotations: {}, spec: { ...SPEC, env } };
  return adoptInstance(controller.db, { ...wish, now: controller.clock.now(), instance, sandboxId });
}

describe("a sandbox that knows a higher epoch than the database", () => {
  it.each(["the platform's list", "the ledger alone"])("ends no tick, with %s", async (source) => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    if (source === "the ledger alone") controller.platform.fault({ kind: "NotEnabled" }, 1000);
    const left = controller.world.fleet.identify(uid, 3);
    controller.world.startStranger({ sandboxId: left.sandboxId });
    await controller.clock.run(controller.world.fleet.observe(left, 1000));
    if (source === "the ledger alone") {
      await controller.ticks(1);
      await controller.delete("a");
    }
    for (let tick = 0; tick < LONG; tick += 1) expect(await controller.tick()).toMatchObject({ complete: true });
    expect(running(controller)).toContain(left.doId);
  });
});

it("forty destroys that hang do not keep the next tick from its work", async () => {
  const controller = withList();
  await ready(controller, "a");
  for (const doId of strangers(controller, 40)) {
    controller.world.script(doId).faults.push({ call: "destroyOrphan", fault: "Hangs", times: Number.POSITIVE_INFINITY });
  }
  await setSettings({ brake_released_until_time: controller.clock.now() + 3_600_000 });
  for (let tick = 0; tick < 2 * LONG; tick += 1) {
    const begun = controller.clock.now();
    await controller.tick();
    // Its budget, and the one deadline of the calls that were under way at its end.
    expect(controller.clock.now() - begun).toBeLessThanOrEqual(controller.deps().config.tickBudgetMs + 20_000);
  }
  expect(orphanDestroys(controller)).toBeGreaterThan(0);
});

it("an operator's pause while a slow list is read holds the destroys that follow from it", async () => {
  const controller = withList();
  await ready(controller, "a");
  const [stranger = ""] = strangers(controller, 1);
  await controller.until(async () => (await all<{ n: number }>("SELECT times_seen AS n FROM unclaimed"))[0]?.n === 2, 600_000);
  controller.platform.fault({ kind: "Late", ms: 3000 }, 1000);
  const pausing = controller.clock.sleep(2000).then(() => setSettings({ paused: 1 }));
  await controller.ticks(1);
  await controller.clock.run(pausing);
  await controller.ticks(LONG);
  expect(running(controller)).toContain(stranger);
});

it("an instance that is protected is so when it comes back", async () => {
  const controller = withList();
  await ready(controller, "a");
  const [doId = ""] = strangers(controller, 1);
  await controller.ticks(1);
  await setProtected(controller.db, await unclaimedOf(controller, doId), true, "op", controller.clock.now());
  controller.world.exit(doId, 0);
  await controller.ticks(1);
  controller.world.startStranger({ doId });
  await controller.ticks(LONG);
  expect([running(controller).includes(doId), orphanDestroys(controller)]).toEqual([true, 0]);
});

it("five orphans that do not heed their destroy hold back no sixth, and their history stays short", async () => {
  const controller = withList();
  await ready(controller, "a");
  for (const doId of strangers(controller, 5)) controller.world.script(doId).deafKills = Number.POSITIVE_INFINITY;
  await controller.ticks(LONG);
  const [sixth = ""] = strangers(controller, 1, "e");
  await controller.ticks(2 * LONG);
  expect([running(controller).includes(sixth), (await lastSweep()).brake]).toEqual([false, null]);
  const [told] = await all<{ n: number }>(
    "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM events WHERE reason = 'DestroyingOrphan' GROUP BY do_id)",
  );
  expect(told?.n).toBe(3);
});

it("replacing what sleeps for idleness does not wake it", async () => {
  const controller = withList();
  await controller.put("i", { ...SPEC, idle: { timeoutSeconds: 60 } });
  await controller.untilReady(["i"], 60_000);
  await controller.until(async () => (await controller.get("i")).status.phase === "Suspended", 600_000);
  const launches = controller.world.launches.length;
  const known = await getInstance(controller.db, controller.world.fleet.identify((await controller.get("i")).uid, 1).doId);
  if (known === null || !known.claimed) throw new Error("Not claimed.");
  await requestReplacement(controller.db, known.instance, "op", controller.clock.now());
  await controller.ticks(3);
  expect([(await controller.get("i")).status.phase, controller.world.launches.length]).toEqual(["Suspended", launches]);
});

describe("adoption", () => {
  it("of what a lost record ran under a later incarnation gives a workspace that can be deleted", async () => {
    const controller = withList();
    await ready(controller, "a");
    const sandboxId = `${uidOf(500)}-3`;
    const { doId } = controller.world.startStranger({ sandboxId });
    await controller.clock.run(controller.world.fleet.observe(controller.world.fleet.identify(uidOf(500), 3), 1));
    await controller.ticks(1);
    expect(await adopt(controller, doId, sandboxId)).toMatchObject({ incarnation: 3 });
    await controller.untilReady(["adopted"], 60_000);
    expect(running(controller)).toContain(doId);
    await controller.delete("adopted");
    await controller.ticks(3);
    expect([await controller.find("adopted"), running(controller).includes(doId)]).toEqual([null, false]);
  });

  it("of what another record's start vouched for keeps its container, whatever it was started with", async () => {
    const controller = withList();
    await ready(controller, "keeper");
    const [uid = ""] = await ready(controller, "lost");
    const instance = controller.world.fleet.identify(uid, 1);
    await d1.prepare("DELETE FROM workspaces WHERE uid = ?").bind(uid).run();
    await controller.ticks(2);
    expect(await adopt(controller, instance.doId, instance.sandboxId)).not.toBeNull();
    const launches = controller.world.launches.length;
    await controller.untilReady(["adopted"], 60_000);
    expect([running(controller).includes(instance.doId), controller.world.launches.length]).toEqual([true, launches]);
    expect(await all("SELECT adopted FROM instances WHERE do_id = '" + instance.doId + "'")).toEqual([{ adopted: 0 }]);
  });

  it("of what was told to go is refused: its sandbox never runs again", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [doId = ""] = strangers(controller, 1);
    controller.world.script(doId).deafKills = Number.POSITIVE_INFINITY;
    await controller.until(() => orphanDestroys(controller) > 0, 600_000);
    expect(await adopt(controller, doId, doId)).toBeNull();
  });
});
