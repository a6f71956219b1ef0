/** What must not stay: an instance that runs without a wish is destroyed in bounded time, and not forgotten before it is gone (invariant 3). */
import { beforeEach, describe, expect, it } from "vitest";
import { DESTROY_TRIES } from "../../../src/controller/orphans.ts";
import type { CallKind, Fault } from "../../support/fake-fleet.ts";
import { GC, GONE_AFTER, LONG, lastSweep, orphanDestroys, ready, running, strangers, unclaimed, withList } from "./gc-support.ts";
import { settle } from "./settled.ts";
import { setSettings } from "./store-support.ts";
import { type Controller, Process, all, d1, emptyTables, names, uidOf } from "./support.ts";

beforeEach(emptyTables);

/** The grace, two complete sweeps, and the call itself. */
const BOUND_MS = 1000 * (Number(GC.ORPHAN_GRACE_SECONDS) + 2 * Number(GC.SWEEP_INTERVAL_SECONDS)) + 10_000;

/** Ticks until the instance runs no longer; answers how long that took. */
async function untilGone(controller: Controller, doId: string, limitMs: number): Promise<number> {
  const startTime = controller.clock.now();
  await controller.until(() => !running(controller).includes(doId), limitMs);
  return controller.clock.now() - startTime;
}

/** As the SDK's retry loop does it: after the workspace was deleted and forgotten, its container comes back. */
async function ghostAfterForget(controller: Controller): Promise<{ doId: string; uid: string }> {
  const [uid = ""] = await ready(controller, "ghost");
  await controller.delete("ghost");
  await controller.until(async () => (await controller.find("ghost")) === null, 60_000);
  const { doId, sandboxId } = controller.world.fleet.identify(uid, 1);
  controller.world.startStranger({ sandboxId });
  return { doId, uid };
}

describe("cloudflare/sandbox-sdk#794: a container that belongs to no record", () => {
  it.each<[string, (controller: Controller) => Promise<string>]>([
    ["and that nobody can name", async (controller) => strangers(controller, 1)[0] ?? ""],
    ["and whose name says nothing", async (controller) => controller.world.startStranger({ sandboxId: "my-old-sandbox" }).doId],
    [
      "and is named as if it were a workspace's",
      async (controller) => controller.world.startStranger({ sandboxId: `${uidOf(500)}-1` }).doId,
    ],
    ["and started when its workspace was forgotten already", async (controller) => (await ghostAfterForget(controller)).doId],
  ])("%s is gone within the grace and two complete sweeps", async (_sentence, start) => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    const doId = await start(controller);
    expect(running(controller)).toContain(doId);
    expect(await untilGone(controller, doId, BOUND_MS)).toBeLessThanOrEqual(BOUND_MS);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
    expect(running(controller)).toEqual([controller.world.fleet.identify(uid, 1).doId]);
    expect(await all("SELECT reason FROM events WHERE do_id = ?", doId)).toEqual([
      { reason: "DestroyingOrphan" },
      { reason: "OrphanDestroyed" },
    ]);
  });

  it("is told of with its owner's name, where it had one", async () => {
    const controller = withList();
    await ready(controller, "a");
    const { uid } = await ghostAfterForget(controller);
    await controller.ticks(GONE_AFTER);
    expect(await all("SELECT DISTINCT workspace_uid AS uid, namespace, name FROM events WHERE do_id IS NOT NULL")).toEqual([
      { uid, namespace: "default", name: "ghost" },
    ]);
  });

  it("one that starts only when nobody watches for it any more is found by the list", async () => {
    const controller = withList();
    await ready(controller, "a", "ghost");
    const { uid } = await controller.get("ghost");
    await controller.delete("ghost");
    await controller.ticks(LONG);
    expect(await unclaimed()).toEqual([]);
    const { doId, sandboxId } = controller.world.fleet.identify(uid, 1);
    controller.world.startStranger({ sandboxId });
    await untilGone(controller, doId, BOUND_MS);
  });

  it("what a deletion leaves is watched for the grace although the list does not show it yet", async () => {
    const controller = withList();
    await ready(controller, "a", "ghost");
    const { uid } = await controller.get("ghost");
    const { doId } = controller.world.fleet.identify(uid, 1);
    await controller.delete("ghost");
    await controller.ticks(2);
    // A complete sweep has not found it.
    expect(controller.platform.listings.at(-1)).toMatchObject({ kind: "Complete", instances: { length: 1 } });
    expect(await unclaimed()).toMatchObject([{ doId, state: "Expected" }]);
    await controller.ticks(GONE_AFTER);
    expect(await unclaimed()).toEqual([]);
    expect(orphanDestroys(controller)).toBe(0);
  });

  it("a burst of fifty is stopped by the brake, and gone soon after it is released", async () => {
    const controller = withList();
    await ready(controller, "a");
    strangers(controller, 50);
    await controller.ticks(LONG);
    expect(running(controller)).toHaveLength(51);
    await setSettings({ brake_released_until_time: Number.MAX_SAFE_INTEGER });
    await controller.ticks(2);
    expect(running(controller)).toHaveLength(1);
  });
});

it("drizzle-orm#2479: a sweep of 1,000 workspaces and 1,000 instances that nobody claims is one like any other", async () => {
  const controller = withList({ TICK_BUDGET_SECONDS: "5" });
  await settle(controller, 1000);
  strangers(controller, 1000);
  const process = new Process();
  expect(await controller.tick(process)).toMatchObject({ complete: true });
  expect(await lastSweep()).toMatchObject({ outcome: "Complete", running: 2000, limit: 200 });
  expect(await all("SELECT count(*) AS n FROM unclaimed")).toEqual([{ n: 1000 }]);
  await controller.clock.pass(120_000);
  await controller.tick(process);
  expect(await lastSweep()).toMatchObject({ eligible: 1000, brake: "TooManyOrphans" });
  expect(Math.max(...process.statements.map(({ values }) => values.length))).toBeLessThanOrEqual(100);
});

describe("cloudflare/sandbox-sdk#415: an older incarnation runs again", () => {
  it("its own sandbox says that it is over for good: it is destroyed, and the live one is left alone", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    await controller.put("a", { env: { A: "2" } });
    await controller.untilReady(["a"], 60_000);
    const [first, second] = [1, 2].map((incarnation) => controller.world.fleet.identify(uid, incarnation));
    controller.world.startStranger({ sandboxId: first?.sandboxId ?? "" });
    await untilGone(controller, first?.doId ?? "", BOUND_MS);
    expect(running(controller)).toEqual([second?.doId]);
    expect(controller.world.launchesOf(uid)).toHaveLength(2);
    expect(orphanDestroys(controller)).toBe(0);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
  });

  it("also where nobody watches for it any more", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    await controller.put("a", { env: { A: "2" } });
    await controller.ticks(LONG);
    expect(await unclaimed()).toEqual([]);
    const first = controller.world.fleet.identify(uid, 1);
    controller.world.startStranger({ sandboxId: first.sandboxId });
    await untilGone(controller, first.doId, BOUND_MS);
  });

  it("is not touched where its sandbox does not say so", async () => {
    const controller = withList();
    const [uid = ""] = await ready(controller, "a");
    await controller.put("a", { env: { A: "2" } });
    await controller.ticks(LONG);
    const first = controller.world.fleet.identify(uid, 1);
    controller.world.startStranger({ sandboxId: first.sandboxId });
    controller.world.script(uid).faults.push({ call: "any", fault: "Breaks", times: Number.POSITIVE_INFINITY });
    await controller.ticks(LONG);
    expect(running(controller)).toContain(first.doId);
    controller.world.script(uid).faults.length = 0;
    await untilGone(controller, first.doId, BOUND_MS);
  });

  it("is left alone in Report", async () => {
    const controller = withList({ GC_MODE: "Report" });
    const [uid = ""] = await ready(controller, "a");
    await controller.put("a", { env: { A: "2" } });
    await controller.ticks(LONG);
    const first = controller.world.fleet.identify(uid, 1);
    controller.world.startStranger({ sandboxId: first.sandboxId });
    await controller.ticks(LONG);
    expect(running(controller)).toContain(first.doId);
  });
});

describe("cloudflare/workerd#4440: a destroy that has no effect", () => {
  it("is tried again in each sweep, and the instance is not forgotten before it is gone", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [stranger = ""] = strangers(controller, 1);
    controller.world.script(stranger).deafKills = DESTROY_TRIES + 1;
    await controller.ticks(GONE_AFTER);
    const [before] = await unclaimed();
    expect(before).toMatchObject({ doId: stranger, state: "Running" });
    await controller.ticks(1);
    expect((await unclaimed())[0]?.destroyAttempts).toBe((before?.destroyAttempts ?? 0) + 1);
    await controller.until(async () => ((await unclaimed())[0]?.destroyAttempts ?? 0) >= DESTROY_TRIES, 120_000);
    expect(running(controller)).toContain(stranger);
    await untilGone(controller, stranger, 120_000);
    expect(await unclaimed()).toMatchObject([{ destroyAttempts: DESTROY_TRIES + 2 }]);
    await controller.ticks(1);
    expect(await unclaimed()).toEqual([]);
    expect(orphanDestroys(controller)).toBe(DESTROY_TRIES + 2);
  });

  it("counts as long as it takes, and keeps no other from going", async () => {
    const controller = withList();
    await ready(controller, "a");
    const [deaf = "", other = ""] = strangers(controller, 2);
    controller.world.script(deaf).deafKills = 1_000;
    await controller.ticks(12);
    expect(running(controller)).not.toContain(other);
    const [left] = await unclaimed();
    expect(left).toMatchObject({ doId: deaf, state: "Running" });
    expect(left?.destroyAttempts).toBeGreaterThan(DESTROY_TRIES);
  });

  it.each(["Hangs", "AnswerLost", "Breaks", "Fails", "ResetByDeploy"] as const)(
    "mastra-ai/mastra#24427: a call that %s is taken neither for done nor for the end",
    async (fault) => {
      const controller = withList();
      await ready(controller, "a");
      const [stranger = ""] = strangers(controller, 1);
      controller.world.script(stranger).faults.push({ call: "destroyOrphan", fault, times: 2 });
      await controller.until(() => orphanDestroys(controller) > 0, BOUND_MS);
      expect(await unclaimed()).toMatchObject([{ doId: stranger }]);
      await untilGone(controller, stranger, 120_000);
      await controller.ticks(2);
      expect(await unclaimed()).toEqual([]);
    },
  );

  it("one that a sandbox refuses, since it knows a higher epoch than a restored database, keeps no other from going", async () => {
    const controller = withList();
    await ready(controller, "a");
    const deaf = controller.world.startStranger({ sandboxId: `${uidOf(500)}-1` }).doId;
    await controller.clock.run(controller.world.fleet.observe(controller.world.fleet.identify(uidOf(500), 1), 1000));
    const [other = ""] = strangers(controller, 1);
    await controller.ticks(LONG);
    expect(running(controller)).toContain(deaf);
    expect(running(controller)).not.toContain(other);
    expect(await controller.tick()).toMatchObject({ complete: true });
    expect((await unclaimed())[0]?.destroyAttempts).toBeGreaterThanOrEqual(DESTROY_TRIES);
  });

  it("one that hangs keeps neither starts nor deletions waiting", async () => {
    const controller = withList({ POLL_INTERVAL_MS: "1000" });
    await ready(controller, "old");
    for (const doId of strangers(controller, 5)) {
      controller.world.script(doId).faults.push({ call: "destroyOrphan", fault: "Hangs", times: Number.POSITIVE_INFINITY });
    }
    await controller.until(() => orphanDestroys(controller) > 0, BOUND_MS);
    const startTime = controller.clock.now();
    await controller.put("new");
    await controller.delete("old");
    await controller.untilReady(["new"], 60_000);
    const [row] = await all<{ t: number }>("SELECT ready_time AS t FROM workspaces WHERE name = 'new'");
    expect((row?.t ?? 0) - startTime).toBeLessThan(5000);
    expect(await controller.find("old")).toBeNull();
  });
});

describe("without the platform's list", () => {
  it.each<[string, (controller: Controller) => void]>([
    ["none is configured", (controller) => void (controller.inventory = null)],
    ["it is not enabled", (controller) => controller.platform.fault({ kind: "NotEnabled" }, 1000)],
  ])("where %s: what the ledger knows is found, by asking each sandbox itself", async (_sentence, spoil) => {
    const controller = withList();
    spoil(controller);
    await ready(controller, "a", "ghost");
    const { uid } = await controller.get("ghost");
    const { doId, sandboxId } = controller.world.fleet.identify(uid, 1);
    await controller.delete("ghost");
    await controller.until(async () => (await controller.find("ghost")) === null, 60_000);
    controller.world.startStranger({ sandboxId });
    await untilGone(controller, doId, BOUND_MS + 20_000);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
    expect(await lastSweep()).toMatchObject({ outcome: "LedgerOnly", running: 1, brake: null });
  });

  it("says why, where the platform does not offer it", async () => {
    const controller = withList();
    controller.platform.fault({ kind: "NotEnabled" }, 10);
    await controller.ticks(1);
    expect(await lastSweep()).toMatchObject({ outcome: "LedgerOnly", message: "The list is not enabled." });
  });

  it("one that does not answer is not taken for gone", async () => {
    const controller = withList();
    controller.inventory = null;
    await ready(controller, "a", "ghost");
    const { uid } = await controller.get("ghost");
    await controller.delete("ghost");
    controller.wrapFleet = (fleet) => ({
      ...fleet,
      observe: async (instance, epoch) =>
        instance.sandboxId.startsWith(uid) && (await controller.find("ghost")) === null
          ? { kind: "Unknown", failure: { class: "Uncertain", reason: "Unreachable", message: "no answer" } }
          : fleet.observe(instance, epoch),
    });
    await controller.ticks(LONG);
    expect(await unclaimed()).toMatchObject([{ state: "Unknown" }]);
    controller.wrapFleet = (fleet) => fleet;
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
  });

  it("ledger rows whose workspace is gone are found too", async () => {
    const controller = withList();
    controller.inventory = null;
    const [, uid = ""] = await ready(controller, "a", "lost");
    await d1.prepare("DELETE FROM workspaces WHERE uid = ?").bind(uid).run();
    await untilGone(controller, controller.world.fleet.identify(uid, 1).doId, BOUND_MS + 20_000);
    await controller.ticks(2);
    expect(await unclaimed()).toEqual([]);
    expect(await all("SELECT count(*) AS n FROM instances")).toEqual([{ n: 1 }]);
  });
});

describe("with one call in five that goes wrong", () => {
  const FAULTS: readonly Fault[] = ["Hangs", "AnswerLost", "Breaks", "Fails", "ResetByDeploy"];

  it.each([1, 2, 3, 4])("every orphan goes and nothing that is wished is touched, seed %i", async (seed) => {
    const controller = withList();
    const uids = await ready(controller, ...names("w", 3));
    const wished = running(controller);
    const { doId: ghost } = await ghostAfterForget(controller);
    const orphans = [...strangers(controller, 2), controller.world.startStranger({ sandboxId: "nobody" }).doId, ghost];
    const chance = random(seed);
    const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)] as T;
    const spoil = (uid: string, call: CallKind) => {
      if (chance() < 0.2) controller.world.script(uid).faults.push({ call, fault: pick(FAULTS), times: 1 });
    };
    controller.wrapFleet = (fleet) => ({
      ...fleet,
      observe: (instance, epoch) => {
        spoil(instance.sandboxId.slice(0, instance.sandboxId.lastIndexOf("-")), "observe");
        return fleet.observe(instance, epoch);
      },
      destroyOrphan: (doId, epoch) => {
        for (const uid of [doId, "nobody", ...controller.uids]) spoil(uid, "destroyOrphan");
        return fleet.destroyOrphan(doId, epoch);
      },
    });
    controller.inventory = {
      list: () => {
        if (chance() < 0.2)
          controller.platform.fault(
            pick([
              { kind: "Fails", reason: "Unavailable" },
              { kind: "Hangs", ms: 9000 },
            ]),
          );
        return controller.platform.list();
      },
    };
    const unreliable = <T>(call: () => Promise<T>): Promise<T> => (chance() < 0.2 ? Promise.reject(new Error("D1_ERROR")) : call());
    controller.wrapStore = (store) => ({
      ...store,
      recordSweep: (...results) => unreliable(() => store.recordSweep(...results)),
      claimDestroy: (...claim) => unreliable(() => store.claimDestroy(...claim)),
      readInventoryView: (...query) => unreliable(() => store.readInventoryView(...query)),
    });
    await controller.until(() => orphans.every((doId) => !running(controller).includes(doId)), 900_000);
    expect(running(controller)).toEqual(wished);
    for (const uid of uids) expect(controller.world.launchesOf(uid)).toHaveLength(1);
    await controller.until(async () => (await unclaimed()).length === 0, 600_000);
  });
});

/** The same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), state | 1) + 0x6d_2b_79_f5) | 0;
    return ((state ^ (state >>> 14)) >>> 0) / 4_294_967_296;
  };
}
