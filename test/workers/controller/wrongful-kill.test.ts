/** What must never happen: the garbage collector destroys something that somebody wishes, or may wish (invariants 3 and 4). */
import { beforeEach, describe, expect, it } from "vitest";
import { specHash } from "../../../src/controller/spec-hash.ts";
import { sweep } from "../../../src/controller/sweep.ts";
import { createWorkspace } from "../../../src/store/intent.ts";
import { acquireLease } from "../../../src/store/lease.ts";
import { admitStart } from "../../../src/store/progress.ts";
import type { InventoryView } from "../../../src/store/unclaimed.ts";
import type { GcMode } from "../../../src/unclaimed.ts";
import { orphan } from "../../support/builders.ts";
import { GC, GONE_AFTER, LONG, lastSweep, orphanDestroys, ready, running, strangers, unclaimed, withList } from "./gc-support.ts";
import { settle } from "./settled.ts";
import { stallingAt } from "./stalling.ts";
import { admissionOf, insertInstance, record, setSettings } from "./store-support.ts";
import { type Controller, Process, SPEC, all, d1, emptyTables, names, uidOf } from "./support.ts";

beforeEach(emptyTables);

const NOTHING_WISHED: InventoryView = { claims: [], claimed: new Set(), unclaimed: [], ledgerRunning: 0 };

function withView(controller: Controller, change: (view: InventoryView) => InventoryView): void {
  controller.wrapStore = (store) => ({
    ...store,
    readInventoryView: async (...query) => change(await store.readInventoryView(...query)),
  });
}

/** As a restored backup of the database that is older than any workspace; the lease's epoch is not older. */
async function loseEverything(): Promise<void> {
  await d1.batch(["workspaces", "instances", "unclaimed"].map((table) => d1.prepare(`DELETE FROM ${table}`)));
}

describe("kdlbs/kandev#1652: the wishes come back empty while instances run", () => {
  it("as D1's answer to the sweep: none is destroyed, and the brake says why", async () => {
    const controller = withList();
    await ready(controller, "a", "b", "c");
    const before = running(controller);
    withView(controller, () => NOTHING_WISHED);
    await controller.ticks(LONG);
    expect([running(controller), orphanDestroys(controller)]).toEqual([before, 0]);
    expect(await unclaimed()).toEqual([]);
  });

  it("even to sweep after sweep, with every brake released: the last look before each destroy refuses", async () => {
    const controller = withList();
    await ready(controller, "a", "b", "c");
    const before = running(controller);
    await setSettings({ allow_empty: 1, brake_released_until_time: Number.MAX_SAFE_INTEGER });
    // Older than the grace, so that no guard but the last is left.
    await controller.ticks(3);
    const ripe = before.map((doId) => orphan({ doId, firstSeenTime: 0, timesSeen: 9 }));
    let attempts = 0;
    controller.wrapStore = (store) => ({
      ...store,
      readInventoryView: async () => ({ ...NOTHING_WISHED, unclaimed: ripe }),
      claimDestroy: async (...claim) => {
        attempts += 1;
        return store.claimDestroy(...claim);
      },
    });
    await controller.ticks(2);
    expect(attempts).toBe(6);
    expect([running(controller), orphanDestroys(controller)]).toEqual([before, 0]);
  });

  it("as an old database that was restored: none is destroyed until an operator allows it", async () => {
    const controller = withList();
    await ready(controller, "a", "b", "c");
    const before = running(controller);
    await loseEverything();
    await controller.ticks(LONG);
    expect([running(controller), orphanDestroys(controller)]).toEqual([before, 0]);
    expect(await lastSweep()).toMatchObject({ brake: "EmptyDesired", eligible: 3, running: 3 });
    await setSettings({ allow_empty: 1 });
    await controller.ticks(2);
    expect([running(controller), orphanDestroys(controller)]).toEqual([[], 3]);
    expect(await lastSweep()).toMatchObject({ brake: null, eligible: 0, running: 0 });
  });

  it("as an old database that knows one workspace of eight: more are orphans than may be", async () => {
    const controller = withList();
    const [kept = ""] = await ready(controller, ...names("w", 8));
    const before = running(controller);
    await d1.batch(
      [`DELETE FROM workspaces WHERE uid <> '${kept}'`, `DELETE FROM instances WHERE workspace_uid <> '${kept}'`].map((sql) =>
        d1.prepare(sql),
      ),
    );
    await controller.ticks(LONG);
    expect([running(controller), orphanDestroys(controller)]).toEqual([before, 0]);
    expect(await lastSweep()).toMatchObject({ brake: "TooManyOrphans", eligible: 7, limit: 5 });
  });
});

describe("kdlbs/kandev#1652: a list that is not whole", () => {
  it("an error on page 2 teaches nothing, and the 51st, a true orphan, goes on the next good sweeps", async () => {
    const controller = withList();
    await settle(controller, 50);
    const wished = running(controller);
    strangers(controller, 1);
    controller.platform.fault({ kind: "Fails", reason: "Unavailable" }, LONG);
    await controller.ticks(LONG);
    expect([running(controller).length, orphanDestroys(controller)]).toEqual([51, 0]);
    expect(await lastSweep()).toMatchObject({ outcome: "Failed", completeTime: null, message: expect.stringContaining("Unavailable") });
    expect(await unclaimed()).toEqual([]);
    await controller.ticks(GONE_AFTER);
    expect([running(controller), orphanDestroys(controller)]).toEqual([wished, 1]);
    expect(await lastSweep()).toMatchObject({ outcome: "Complete", limit: 5, eligible: 0 });
  });

  it("what was seen once and then hidden by failures is not destroyed by them", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger] = strangers(controller, 1);
    await controller.ticks(1);
    expect(await unclaimed()).toMatchObject([{ doId: stranger, timesSeen: 1 }]);
    controller.platform.fault({ kind: "Fails", reason: "Timeout" }, LONG);
    await controller.ticks(LONG);
    expect(await unclaimed()).toMatchObject([{ doId: stranger, timesSeen: 1 }]);
    expect(orphanDestroys(controller)).toBe(0);
  });

  it("one whose absence nobody can confirm is not forgotten", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    await controller.ticks(2);
    controller.platform.fault({ kind: "Fails", reason: "Malformed" }, LONG);
    await controller.ticks(LONG);
    expect(await unclaimed()).toMatchObject([{ doId: stranger, state: "Running" }]);
  });
});

describe("a list that is behind", () => {
  it("openkruise/agents#756: shows a deleted workspace whose name is used again: the new life is left alone", async () => {
    const controller = withList();
    const [first = ""] = await ready(controller, "a");
    controller.platform.follow();
    const stale = controller.platform.snapshot();
    await controller.delete("a");
    await controller.ticks(1);
    const [second = ""] = await ready(controller, "a");
    expect(second).not.toBe(first);
    controller.platform.fault({ kind: "Stale", instances: stale }, LONG);
    await controller.ticks(LONG);
    expect(controller.world.running).toMatchObject([{ uid: second }]);
    expect(controller.world.launchesOf(second)).toHaveLength(1);
    expect(controller.world.callsOf(second, "destroyOrphan")).toEqual([]);
  });

  it("does not show what runs: what is wished is not taken for stopped, nor started again", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    controller.platform.fault({ kind: "Stale", instances: [] }, LONG);
    await controller.ticks(LONG);
    expect(controller.world.launchesOf(uid)).toHaveLength(1);
    expect(await controller.isReady("a")).toBe(true);
  });
});

describe("bytedance/deer-flow#4221: a workspace that is created while the sweep reads", () => {
  /** A PUT and its start, done by another controller than the one that sweeps. */
  async function createElsewhere(controller: Controller): Promise<void> {
    const uid = uidOf(77);
    const wish = { uid, namespace: "default", name: "late", labels: {}, annotations: {}, spec: SPEC, now: controller.clock.now() };
    await createWorkspace(controller.db, wish);
    const [held] = await controller.clock.busy(all<{ epoch: number }>("SELECT epoch FROM controller"));
    const instance = controller.world.fleet.identify(uid, 1);
    const before = await controller.clock.busy(record("late", controller.clock.now()));
    const admission = admissionOf(before, "elsewhere", { instance, laneWidth: 9 });
    expect(await admitStart(controller.db, held?.epoch ?? 0, before, admission, controller.clock.now())).not.toBeNull();
    const order = {
      startId: "elsewhere",
      workspaceUid: uid,
      timeoutMs: 9000,
      directory: "/workspace",
      env: {},
      specHash: specHash(SPEC),
      adopt: false,
      prepareTimeoutMs: 60_000,
      restore: null,
      setup: [],
    };
    await controller.world.fleet.start(instance, 0, order, 3000);
  }

  it("the list is read first, and what is wished after it", async () => {
    const controller = withList();
    const process = new Process();
    controller.inventory = {
      list: async () => {
        await process.point("list");
        return controller.platform.list();
      },
    };
    await controller.tick(process);
    expect(process.points.filter((point) => /^(list|view before|record before)$/.test(point)).slice(0, 3)).toEqual([
      "list",
      "view before",
      "record before",
    ]);
  });

  it("before the list is read: the wish is read later, so that it is known", async () => {
    const controller = withList();
    await ready(controller, "a");
    let isDone = false;
    controller.inventory = {
      list: async () => {
        if (!isDone) await createElsewhere(controller);
        isDone = true;
        return controller.platform.list();
      },
    };
    await controller.ticks(1);
    expect(isDone).toBe(true);
    expect(controller.platform.listings.at(-1)).toMatchObject({ instances: { length: 2 } });
    expect(await unclaimed()).toEqual([]);
    await controller.ticks(LONG);
    expect(orphanDestroys(controller)).toBe(0);
    expect(controller.world.running).toHaveLength(2);
  });

  it("between the list and the wishes: it is not listed, and not missed", async () => {
    const controller = withList();
    await ready(controller, "a");
    let isDone = false;
    controller.wrapStore = (store) => ({
      ...store,
      readInventoryView: async (...query) => {
        if (!isDone) await createElsewhere(controller);
        isDone = true;
        return store.readInventoryView(...query);
      },
    });
    await controller.ticks(1);
    expect(isDone).toBe(true);
    await controller.ticks(LONG);
    expect(await unclaimed()).toEqual([]);
    expect(orphanDestroys(controller)).toBe(0);
    expect(controller.world.running).toHaveLength(2);
  });

  it("between the wishes and the record of what was seen: what is claimed by then is not recorded as unclaimed", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    let isDone = false;
    controller.wrapStore = (store) => ({
      ...store,
      recordSweep: async (...results) => {
        if (!isDone) await controller.clock.busy(insertInstance(stranger));
        isDone = true;
        return store.recordSweep(...results);
      },
    });
    await controller.ticks(1);
    expect(isDone).toBe(true);
    expect(await unclaimed()).toEqual([]);
  });
});

describe("bytedance/deer-flow#4221: two sweeps at the same time", () => {
  it("one that stalls past its lease before its destroys does none of them", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    await controller.ticks(2);
    const { process, reached, thaw } = stallingAt("claim before");
    const stale = sweep(controller.deps(process));
    await controller.clock.run(Promise.race([reached, stale]));
    await controller.clock.pass(31_000);
    // Somebody else holds the lease by now, and the stranger has got a record that nobody told the stalled one of.
    expect(await acquireLease(controller.db, "other", controller.clock.now(), 5000)).not.toBeNull();
    thaw();
    await controller.clock.run(stale);
    expect(running(controller)).toContain(stranger);
    expect(orphanDestroys(controller)).toBe(0);
    expect(await all("SELECT destroy_attempts AS n FROM unclaimed")).toEqual([{ n: 0 }]);
    await controller.clock.pass(5000);
    await controller.ticks(2);
    expect(running(controller)).not.toContain(stranger);
  });

  it("each orphan is told once in each sweep, not once by each of two ticks", async () => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 3);
    await controller.ticks(2);
    await controller.clock.run(Promise.all([sweep(controller.deps()), sweep(controller.deps())]));
    await controller.ticks(GONE_AFTER);
    expect(orphanDestroys(controller)).toBe(3);
  });
});

describe("elizaOS/eliza#17256: an id that the record does not know as its own", () => {
  it("of an older incarnation, which was never destroyed: it is that workspace's affair", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 60_000);
    // The third incarnation by now, as far as the database knows; the second runs on.
    await d1.exec("UPDATE workspaces SET incarnation = 3");
    const third = controller.world.fleet.identify(uid, 3);
    await d1.prepare("UPDATE instances SET do_id = ?, sandbox_id = ?, incarnation = 3").bind(third.doId, third.sandboxId).run();
    await controller.ticks(LONG);
    expect(running(controller)).toContain(controller.world.fleet.identify(uid, 2).doId);
    expect(orphanDestroys(controller)).toBe(0);
  });

  it.each([2, 5])("of incarnation %i, which a restored database has not heard of: its start goes on there", async (incarnation) => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    for (let n = 2; n <= incarnation; n += 1) {
      await controller.put("a", { env: { A: `${n}` } });
      await controller.untilReady(["a"], 60_000);
    }
    await controller.ticks(GONE_AFTER);
    const first = controller.world.fleet.identify(uid, 1);
    await d1.exec("UPDATE workspaces SET incarnation = 1");
    await d1.prepare("UPDATE instances SET do_id = ?, sandbox_id = ?, incarnation = 1").bind(first.doId, first.sandboxId).run();
    await d1.exec("UPDATE workspaces SET spec = json_set(spec, '$.paused', json('true'))");
    await controller.ticks(LONG);
    expect(orphanDestroys(controller)).toBe(0);
    expect(running(controller)).toEqual([controller.world.fleet.identify(uid, incarnation).doId]);
    expect(await unclaimed()).toMatchObject([{ state: "Running" }]);
    // Once it may act again, the incarnation is claimed when its turn comes, and is unclaimed no longer.
    await d1.exec("UPDATE workspaces SET spec = json_set(spec, '$.paused', json('false')), next_reconcile_time = 0");
    await controller.untilReady(["a"], 60_000);
    await controller.ticks(1);
    const claimed = new Set((await all<{ id: string }>("SELECT do_id AS id FROM instances")).map(({ id }) => id));
    expect((await unclaimed()).filter(({ doId }) => claimed.has(doId))).toEqual([]);
  });

  it("of an incarnation that nobody would guess: the sandbox itself knows that it is wanted", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    for (let n = 2; n <= 7; n += 1) {
      await controller.put("a", { env: { A: `${n}` } });
      await controller.untilReady(["a"], 60_000);
    }
    const seventh = controller.world.fleet.identify(uid, 7);
    const first = controller.world.fleet.identify(uid, 1);
    await d1.exec("UPDATE workspaces SET incarnation = 1, spec = json_set(spec, '$.paused', json('true'))");
    await d1.prepare("UPDATE instances SET do_id = ?, sandbox_id = ?, incarnation = 1").bind(first.doId, first.sandboxId).run();
    await controller.ticks(LONG);
    expect(running(controller)).toEqual([seventh.doId]);
    expect(orphanDestroys(controller)).toBeGreaterThan(0);
  });

  it("under whatever name the platform lists it", async () => {
    const controller = withList();
    const uids = await ready(controller, "a", "b", "c");
    const listed = ["", "someone-else-1", `${uids[2]}-1`];
    const before = running(controller);
    for (const [index, doId] of before.entries()) controller.platform.pin(doId, { name: listed[index] ?? null });
    await controller.ticks(LONG);
    expect([running(controller), orphanDestroys(controller)]).toEqual([before, 0]);
    expect(await unclaimed()).toEqual([]);
  });
});

describe("longhorn/longhorn#10888: what does not run for sure", () => {
  it.each(["Settling", "Unknown", "Stopped"] as const)("an instance said to be %s is left alone, and goes once it runs", async (state) => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    controller.platform.pin(stranger, { state });
    await controller.ticks(LONG);
    expect([running(controller).includes(stranger), orphanDestroys(controller)]).toEqual([true, 0]);
    expect((await unclaimed()).map((seen) => seen.state)).toEqual(state === "Stopped" ? [] : [state]);
    controller.platform.unpin(stranger);
    await controller.ticks(GONE_AFTER);
    expect(running(controller)).not.toContain(stranger);
  });

  it("an instance that was seen to settle begins its grace anew", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    await controller.ticks(1);
    controller.platform.pin(stranger, { state: "Settling" });
    await controller.ticks(3);
    controller.platform.unpin(stranger);
    await controller.ticks(2);
    expect([running(controller).includes(stranger), orphanDestroys(controller)]).toEqual([true, 0]);
  });
});

describe("kdlbs/kandev#1652: the brake", () => {
  it("at the limit all go, above it none, and all of them once an operator releases it", async () => {
    const controller = withList();
    await ready(controller, "a");
    const first = strangers(controller, 5, "a");
    await controller.ticks(GONE_AFTER);
    expect(running(controller).filter((doId) => first.includes(doId))).toEqual([]);
    const more = strangers(controller, 6, "b");
    await controller.ticks(LONG);
    expect(running(controller).filter((doId) => more.includes(doId))).toEqual(more);
    expect(await lastSweep()).toMatchObject({ brake: "TooManyOrphans", eligible: 6, limit: 5 });
    expect(orphanDestroys(controller)).toBe(5);
    await setSettings({ brake_released_until_time: controller.clock.now() + 60_000 });
    await controller.ticks(2);
    expect(running(controller)).toHaveLength(1);
    expect(await lastSweep()).toMatchObject({ brake: null, eligible: 0 });
  });

  it("a release that is over releases nothing", async () => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 6);
    await setSettings({ brake_released_until_time: controller.clock.now() });
    await controller.ticks(LONG);
    expect(orphanDestroys(controller)).toBe(0);
  });

  it("does not hold back what an operator asked for by name", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [one = ""] = strangers(controller, 7);
    await controller.ticks(LONG);
    await d1.prepare("UPDATE unclaimed SET destroy_request_time = 1 WHERE do_id = ?").bind(one).run();
    await controller.ticks(2);
    expect(running(controller)).not.toContain(one);
    expect(orphanDestroys(controller)).toBe(1);
  });
});

describe("agentconnect-md/agentconnect#1074: what holds the collector back", () => {
  it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string | number>>]>([
    ["Report, as configured", { GC_MODE: "Report" }, {}],
    ["Off, as configured", { GC_MODE: "Off" }, {}],
    ["Report, as an operator set it", {}, { gc_mode: "Report" }],
    ["Off, as an operator set it", {}, { gc_mode: "Off" }],
    ["a mode of another version", {}, { gc_mode: "Scorch" }],
    ["a pause", {}, { paused: 1 }],
  ])("%s: nothing is destroyed", async (_sentence, environment, settings) => {
    const controller = withList(environment);
    await ready(controller, "a");
    strangers(controller, 1);
    await setSettings(settings);
    await controller.ticks(LONG);
    expect([running(controller).length, orphanDestroys(controller)]).toEqual([2, 0]);
  });

  it.each<GcMode>(["Report", "Off"])("%s stands back only as long as it is set", async (mode) => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 1);
    await setSettings({ gc_mode: mode });
    await controller.ticks(3);
    if (mode === "Report") expect(await unclaimed()).toMatchObject([{ state: "Running", timesSeen: 3 }]);
    await setSettings({ gc_mode: null });
    await controller.ticks(GONE_AFTER);
    expect(running(controller)).toHaveLength(1);
  });

  it("Off sees them all, and destroys nothing", async () => {
    const controller = withList({ GC_MODE: "Off" });
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    await controller.ticks(LONG);
    expect(running(controller)).toContain(stranger);
    expect(await all("SELECT do_id, state FROM unclaimed")).toEqual([{ do_id: stranger, state: "Running" }]);
  });

  it("one that is protected stays, whatever is asked, and the others go", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [kept = "", other = ""] = strangers(controller, 2);
    await controller.ticks(1);
    await d1.prepare("UPDATE unclaimed SET protected = 1, destroy_request_time = 1 WHERE do_id = ?").bind(kept).run();
    await controller.ticks(LONG);
    expect(running(controller)).toContain(kept);
    expect(running(controller)).not.toContain(other);
  });

  it("one seen once stays until it is seen again, also without a grace", async () => {
    const controller = withList({ ORPHAN_GRACE_SECONDS: "0" });
    await ready(controller, "a");
    strangers(controller, 1);
    await controller.ticks(1);
    expect([await unclaimed(), orphanDestroys(controller)]).toMatchObject([[{ timesSeen: 1 }], 0]);
    await controller.ticks(1);
    expect(orphanDestroys(controller)).toBe(1);
  });

  it("one that was expected for long is seen once no more often than another", async () => {
    const controller = withList();
    const [, uid = ""] = await ready(controller, "a", "ghost");
    controller.platform.fault({ kind: "Fails", reason: "Unavailable" }, LONG);
    await controller.delete("ghost");
    await controller.until(async () => (await controller.find("ghost")) === null, 40_000);
    controller.world.startStranger({ sandboxId: `${uid}-1` });
    await controller.until(async () => (await lastSweep()).outcome === "Complete", 200_000);
    expect([await unclaimed(), orphanDestroys(controller)]).toMatchObject([[{ timesSeen: 1, state: "Running" }], 0]);
    await controller.ticks(1);
    expect(orphanDestroys(controller)).toBe(1);
  });

  it("one younger than the grace is left alone, also where it was started anew", async () => {
    const controller = withList({ ORPHAN_GRACE_SECONDS: "600" });
    await ready(controller, "a");
    strangers(controller, 1);
    await controller.ticks(LONG);
    expect(orphanDestroys(controller)).toBe(0);
  });
});

it("GC says what one sweep and the grace are", () => {
  expect(Number(GC.ORPHAN_GRACE_SECONDS)).toBe(2 * Number(GC.SWEEP_INTERVAL_SECONDS));
});
