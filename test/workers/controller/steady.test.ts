/** What it costs when nothing is to do (invariant 9), and that the resync misses nobody (invariant 7). */
import { beforeEach, describe, expect, it } from "vitest";
import { driftOf } from "../../../src/controller/drift.ts";
import type { DriftItem } from "../../../src/controller/drift-item.ts";
import { readDriftView } from "../../../src/store/drift-reading.ts";
import { replaceWorkspace } from "../../../src/store/intent.ts";
import { settle } from "./settled.ts";
import { Controller, Process, SPEC, all, d1, emptyTables } from "./support.ts";

beforeEach(emptyTables);

const IDLE = { TICK_BUDGET_SECONDS: "10", RESYNC_INTERVAL_SECONDS: "86400" };

describe("at rest", () => {
  it("200 Ready workspaces cost no call to any sandbox and no write but the heartbeat and the sweep record", async () => {
    const controller = new Controller({ ...IDLE, LEASE_SECONDS: "12", SWEEP_INTERVAL_SECONDS: "4" });
    await settle(controller, 200);
    // Away from the full hour, at which old events expire.
    await controller.clock.pass(600_000);
    const [before] = await all("SELECT sum(resource_version) AS versions, (SELECT count(*) FROM sequence) AS sequences FROM workspaces");
    const process = new Process();
    const summary = await controller.tick(process);
    expect(summary).toMatchObject({ complete: true, counts: {} });
    expect(summary?.rounds).toBeGreaterThanOrEqual(10);
    expect(controller.world.calls).toEqual([]);
    const writes = process.statements.filter(({ isWrite }) => isWrite).map(({ sql }) => sql.slice(0, 24));
    const records = process.statements.filter(({ sql }) => sql.startsWith('update "controller" set "inventory"'));
    // Taken, renewed twice or so, given back; and one record for each of three sweeps.
    expect(new Set(writes)).toEqual(new Set(['insert into "controller"', 'update "controller" set ']));
    expect(records).toHaveLength(3);
    expect(writes.length).toBeLessThanOrEqual(5 + 3);
    expect(await all("SELECT sum(resource_version) AS versions, (SELECT count(*) FROM sequence) AS sequences FROM workspaces")).toEqual([
      before,
    ]);
  });

  it("an idle round has the same statements beside 2,000 workspaces as beside 10", async () => {
    const statements: number[] = [];
    for (const count of [10, 2000]) {
      await emptyTables();
      const controller = new Controller(IDLE);
      await settle(controller, count, (n) => (n * 7) % 400_000);
      const process = new Process();
      const summary = await controller.tick(process);
      statements.push(process.statements.length / (summary?.rounds ?? 0));
    }
    expect(statements[1]).toBe(statements[0]);
    expect(statements[0]).toBeLessThan(6);
  });
});

describe("Kilo-Org/cloud#4902, tldraw/tldraw#10607: 200 workspaces that sleep", () => {
  it("fifty ticks and fifty drift reports start none, ask no container for anything, and touch each sandbox no more often than the resync does", async () => {
    const controller = new Controller({
      TICK_BUDGET_SECONDS: "55",
      POLL_INTERVAL_MS: "50000",
      LEASE_SECONDS: "180",
      RESYNC_INTERVAL_SECONDS: "1500",
      SWEEP_INTERVAL_SECONDS: "300",
    });
    controller.inventory = controller.platform;
    const uids = await settle(controller, 200);
    await d1.exec("UPDATE workspaces SET spec = json_set(spec, '$.operatingMode', 'Suspended'), generation = 2, next_reconcile_time = 0");
    await controller.until(() => controller.world.running.length === 0, 600_000);
    await controller.ticks(2);
    controller.world.calls.length = 0;
    controller.world.launches.length = 0;
    await d1.exec("UPDATE workspaces SET resource_version = 1");
    for (let tick = 0; tick < 50; tick += 1) {
      await controller.ticks(1);
      expect(await controller.clock.busy(reportDrift(controller))).toEqual([]);
    }
    expect(controller.world.launches).toEqual([]);
    expect(new Set(controller.world.calls.map(({ kind }) => kind))).toEqual(new Set(["observe"]));
    // Two intervals of 25 minutes, and the part of a third that a tick may catch up with.
    for (const uid of uids) expect(controller.world.callsOf(uid).length).toBeLessThanOrEqual(3);
    expect(controller.world.calls.length).toBeLessThanOrEqual(2.1 * uids.length);
    expect(await all("SELECT DISTINCT resource_version AS v FROM workspaces")).toEqual([{ v: 1 }]);
    expect(await all("SELECT count(*) AS n FROM instances WHERE running = 1")).toEqual([{ n: 0 }]);
  });
});

describe("over one resync interval", () => {
  const RESYNC = { TICK_BUDGET_SECONDS: "55", RESYNC_INTERVAL_SECONDS: "120", POLL_INTERVAL_MS: "2500" };

  it("each workspace is looked at exactly once, and none is written", async () => {
    const controller = new Controller(RESYNC);
    const uids = await settle(controller, 200);
    await controller.ticks(1);
    controller.world.calls.length = 0;
    await controller.ticks(2);
    expect(controller.world.calls.map(({ kind }) => kind)).toEqual(uids.map(() => "observe"));
    expect(controller.world.calls.map(({ uid }) => uid).toSorted()).toEqual(uids.toSorted());
    expect(await all("SELECT DISTINCT resource_version AS v FROM workspaces")).toEqual([{ v: 1 }]);
  });

  it.each([
    ["20 that have the same turn", 20, () => 500_000],
    ["20 that have turns in the same millisecond", 20, (n: number) => 500_000 + (n % 8)],
  ])("none is left out of %s, more than there is room for", async (_sentence, count, phaseOf) => {
    const controller = new Controller(RESYNC);
    const uids = await settle(controller, count, phaseOf);
    await controller.ticks(3);
    expect([...new Set(controller.world.calls.map(({ uid }) => uid))].toSorted()).toEqual(uids.toSorted());
  });

  it("none of 1,000 is left out after an hour without a tick", async () => {
    const controller = new Controller(RESYNC);
    const uids = await settle(controller, 1000);
    await controller.clock.run(controller.clock.sleep(1));
    await d1.exec("INSERT INTO controller (id, holder, epoch, expires_time, resync_time) VALUES (1, '', 1, 0, 0)");
    await controller.tick();
    const seen = new Set(controller.world.calls.map(({ uid }) => uid));
    expect(uids.filter((uid) => !seen.has(uid))).toEqual([]);
  });

  it("each is looked at once after hours without a tick, and not again for each hour", async () => {
    const controller = new Controller(RESYNC);
    const uids = await settle(controller, 60);
    await controller.ticks(1);
    await controller.clock.pass(3 * 3_600_000);
    controller.world.calls.length = 0;
    await controller.tick();
    const seen = Map.groupBy(controller.world.calls, ({ uid }) => uid);
    expect([...seen.keys()].toSorted()).toEqual(uids.toSorted());
    expect(controller.world.calls.length).toBeLessThan(60 * 1.7);
  });

  it("what a look found is not lost because labels were edited meanwhile", async () => {
    const controller = new Controller({ ...RESYNC, RESYNC_INTERVAL_SECONDS: "300" });
    const [uid = ""] = await settle(controller, 1, () => 0);
    controller.world.onEvent = () => {};
    controller.world.exit(uid, 143);
    const process = new Process();
    process.onPoint = async (point) => {
      if (point !== "observe after" || process.points.includes("edited")) return;
      process.points.push("edited");
      const edit = { labels: { a: "b" }, annotations: {}, spec: SPEC, specChanged: false, now: controller.clock.now() };
      await replaceWorkspace(controller.db, await controller.get("w-1"), edit);
    };
    for (let n = 0; n < 6 && !process.points.includes("edited"); n += 1) await controller.tick(process);
    expect(process.points).toContain("edited");
    await controller.until(() => controller.world.running.length === 1, 30_000);
  });
});

/** What the drift report is made from, and what it makes of it. */
async function reportDrift(process: Controller): Promise<readonly DriftItem[]> {
  const now = process.clock.now();
  const { records, controller } = await readDriftView(process.db, { namespaces: null, now, backups: false, partSize: 1000 });
  const { gcMode: mode, orphanGraceMs: graceMs } = process.deps().config;
  const brakes = { brakeUntilTime: null, gcBrake: null, backupBrake: null };
  const context = { now, mode, graceMs, settings: controller.settings, ...brakes, backupGraceMs: 0, isComplete: true };
  return records.flatMap((record) => driftOf(record, context));
}
