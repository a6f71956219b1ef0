/** One poisoned workspace, or twenty: the healthy ones beside it become Ready in bounded time, and each can be deleted (invariants 5, 10). */
import { beforeEach, describe, expect, it } from "vitest";
import {
  BAD_IMAGE,
  CONNECTION_REFUSED,
  type CallKind,
  NEVER_READY,
  NO_CAPACITY,
  RATE_LIMITED,
  type Script,
} from "../../support/fake-fleet.ts";
import { Controller, d1, emptyTables, names } from "./support.ts";

beforeEach(emptyTables);

const FOREVER = Number.POSITIVE_INFINITY;
const SETTINGS = { START_TIMEOUT_SECONDS: "20", POLL_INTERVAL_MS: "1000", RESYNC_INTERVAL_SECONDS: "60" };

/** Poison for workspaces that are Ready, or that have never been looked at. */
interface Poison {
  readonly name: string;
  readonly before: "Fresh" | "Ready";
  readonly spoil: (controller: Controller, uid: string, name: string) => Promise<unknown> | void;
}

function scripted(name: string, before: Poison["before"], change: Partial<Script>, spec = false): Poison {
  return {
    name,
    before,
    spoil: async (controller, uid) => {
      Object.assign(controller.world.script(uid), change);
      if (spec) await controller.put(name, { env: { A: "2" } });
    },
  };
}

function hanging(name: string, before: Poison["before"], call: CallKind | "any", spec = false): Poison {
  return {
    name,
    before,
    spoil: async (controller, uid) => {
      controller.world.script(uid).faults.push({ call, fault: "Hangs", times: FOREVER });
      if (spec) await controller.put(name, { env: { A: "2" } });
    },
  };
}

function column(name: string, before: Poison["before"], column: string, value: string): Poison {
  return {
    name,
    before,
    spoil: async (_controller, uid) =>
      await d1.prepare(`UPDATE workspaces SET ${column} = ?, next_reconcile_time = 0 WHERE uid = ?`).bind(value, uid).run(),
  };
}

const poisons: readonly Poison[] = [
  hanging("hangs-start", "Fresh", "start"),
  hanging("hangs-all", "Fresh", "any"),
  hanging("hangs-observe", "Ready", "observe", true),
  hanging("hangs-destroy", "Ready", "destroy", true),
  hanging("hangs-everywhere", "Ready", "any", true),
  {
    name: "hangs-stop",
    before: "Ready",
    spoil: async (controller, uid) => {
      controller.world.script(uid).faults.push({ call: "stop", fault: "Hangs", times: FOREVER });
      await controller.put("hangs-stop", { operatingMode: "Suspended" });
    },
  },
  {
    name: "breaks",
    before: "Ready",
    spoil: async (controller, uid) => {
      controller.world.script(uid).faults.push({ call: "any", fault: "Breaks", times: FOREVER });
      await controller.put("breaks", { env: { A: "2" } });
    },
  },
  {
    name: "loses-answers",
    before: "Ready",
    spoil: async (controller, uid) => {
      controller.world.script(uid).faults.push({ call: "any", fault: "AnswerLost", times: FOREVER });
      await controller.put("loses-answers", { env: { A: "2" } });
    },
  },
  scripted("never-ready", "Fresh", { outcome: () => NEVER_READY }),
  scripted("fails-transient", "Fresh", { outcome: () => CONNECTION_REFUSED, startMs: 500 }),
  scripted("fails-permanent", "Fresh", { outcome: () => BAD_IMAGE, startMs: 100 }),
  scripted("no-capacity", "Fresh", { outcome: (nth) => (nth <= 3 ? NO_CAPACITY : NEVER_READY), startMs: 100 }),
  scripted("rate-limited", "Fresh", { outcome: (nth) => (nth <= 2 ? RATE_LIMITED : CONNECTION_REFUSED), startMs: 100 }),
  scripted("crash-loop", "Fresh", { exits: { afterMs: 1000, code: 1 }, startMs: 300 }),
  scripted("deaf", "Ready", { deafKills: 1_000_000, stopMs: null }, true),
  scripted("other-incarnation", "Ready", { refusesIncarnation: true }, true),
  column("bad-spec", "Fresh", "spec", '{"operatingMode":"Sideways"}'),
  column("bad-spec-ready", "Ready", "spec", "not json"),
  column("bad-status", "Ready", "status", '{"conditions":[null]}'),
  column("garbage-status", "Ready", "status", "]["),
];

/** From now on the sandboxes behave. */
function heal(controller: Controller, uid: string): void {
  const script = controller.world.script(uid);
  Object.assign(script, { ...controller.world.defaults, deafKills: 0, faults: script.faults });
  script.faults.length = 0;
}

async function poison(controller: Controller, all: readonly Poison[]): Promise<void> {
  const ready = all.filter(({ before }) => before === "Ready");
  for (const { name } of ready) await controller.put(name);
  if (ready.length > 0)
    await controller.untilReady(
      ready.map(({ name }) => name),
      300_000,
    );
  for (const { name, before, spoil } of all) {
    const { uid } = before === "Ready" ? await controller.get(name) : await controller.put(name);
    await spoil(controller, uid, name);
  }
}

describe.each(poisons)("daytonaio/daytona#2236, openkruise/agents#264: beside one that is poisoned: $name", (one) => {
  it("the healthy become Ready, and it can be deleted once its sandbox answers", async () => {
    const controller = new Controller({ ...SETTINGS, POLL_INTERVAL_MS: "2500" });
    await poison(controller, [one]);
    const { uid } = await controller.get(one.name);
    await controller.clock.pass(100);
    const healthy = names("ok", 3);
    for (const name of healthy) await controller.put(name);
    await controller.untilReady(healthy, 180_000);
    await controller.delete(one.name);
    await controller.cron();
    heal(controller, uid);
    await controller.until(async () => (await controller.find(one.name)) === null, 130_000);
    expect(controller.world.running.map((container) => container.uid)).not.toContain(uid);
    expect(await controller.look()).toMatchObject({ ledger: { length: 3 }, lane: [] });
    expect(controller.world.maxContainersOf(uid)).toBeLessThanOrEqual(1);
    expect(controller.world.maxStartsInFlight).toBeLessThanOrEqual(1);
  });
});

it("ten healthy workspaces become Ready beside twenty poisoned ones, which can all be deleted", async () => {
  const controller = new Controller(SETTINGS);
  await poison(controller, poisons);
  await controller.clock.pass(100);
  const healthy = names("ok", 10);
  for (const name of healthy) await controller.put(name);
  await controller.untilReady(healthy, 600_000);
  expect(controller.world.maxStartsInFlight).toBe(1);
  const uids = await Promise.all(poisons.map(async ({ name }) => (await controller.get(name)).uid));
  for (const { name } of poisons) await controller.delete(name);
  await controller.cron();
  for (const uid of uids) heal(controller, uid);
  await controller.until(async () => Object.keys((await controller.look()).workspaces).length === 10, 180_000);
  expect(await controller.look()).toMatchObject({ ledger: { length: 10 }, lane: [], running: { length: 10 } });
});

describe("the head of the queue", () => {
  it("does not keep the others from their turn when its sandbox falls silent while it waits, and gets its own when it answers", async () => {
    const controller = new Controller({ ...SETTINGS, TICK_BUDGET_SECONDS: "5" });
    const { uid } = await controller.put("a");
    await controller.untilReady(["a"], 60_000);
    controller.world.defaults.startMs = 15_000;
    await controller.put("slow");
    await controller.tick();
    controller.world.exit(uid, 143);
    await controller.tick();
    expect((await controller.get("a")).status.phase).toBe("Queued");
    controller.world.script(uid).faults.push({ call: "any", fault: "Hangs", times: FOREVER });
    await controller.put("b");
    await controller.untilReady(["slow", "b"], 180_000);
    controller.world.script(uid).faults.length = 0;
    await controller.untilReady(["a"], 180_000);
  });

  it("does not keep the others from their turn when it is being deleted and its sandbox is silent", async () => {
    const controller = new Controller({ ...SETTINGS, TICK_BUDGET_SECONDS: "5" });
    const { uid } = await controller.put("a");
    await controller.untilReady(["a"], 60_000);
    controller.world.defaults.startMs = 15_000;
    await controller.put("slow");
    await controller.tick();
    controller.world.exit(uid, 143);
    await controller.tick();
    expect((await controller.get("a")).status.phase).toBe("Queued");
    controller.world.script(uid).faults.push({ call: "any", fault: "Hangs", times: FOREVER });
    await controller.delete("a");
    await controller.put("b");
    await controller.untilReady(["slow", "b"], 180_000);
  });
});
