/** What it costs when nothing is to do (invariant 9), and that the resync misses nobody (invariant 7). */
import { beforeEach, describe, expect, it } from "vitest";
import { specHash } from "../../../src/controller/spec-hash.ts";
import { replaceWorkspace } from "../../../src/store/intent.ts";
import { readyStatus } from "../../support/builders.ts";
import { Controller, NOW, Process, SPEC, all, d1, emptyTables, uidOf } from "./support.ts";

beforeEach(emptyTables);

const IDLE = { TICK_BUDGET_SECONDS: "10", RESYNC_INTERVAL_SECONDS: "86400" };

/** So many workspaces that are Ready, in the database and in the world, without the trouble of starting each. */
async function settle(controller: Controller, count: number, phaseOf?: (n: number) => number): Promise<readonly string[]> {
  const rows = Array.from({ length: count }, (_, index) => {
    const uid = uidOf(index + 1);
    const phase = phaseOf === undefined ? Number.parseInt(uid.slice(0, 8), 16) % 1_000_000 : phaseOf(index);
    return { uid, name: `w-${index + 1}`, phase, ...controller.world.fleet.identify(uid, 1) };
  });
  await d1.batch([
    d1
      .prepare(
        `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version,
           status, incarnation, ready_time, resync_phase)
         SELECT value ->> 'uid', 'default', value ->> 'name', ?1, '{}', '{}', 1, 1, 0, 1, ?2, 1, ?3, value ->> 'phase' FROM json_each(?4)`,
      )
      .bind(JSON.stringify(SPEC), JSON.stringify(readyStatus), NOW - 60_000, JSON.stringify(rows)),
    d1
      .prepare(
        `INSERT INTO instances (do_id, sandbox_id, workspace_uid, namespace, name, incarnation, admitted_time)
         SELECT value ->> 'doId', value ->> 'sandboxId', value ->> 'uid', 'default', value ->> 'name', 1, 0 FROM json_each(?1)`,
      )
      .bind(JSON.stringify(rows)),
  ]);
  const { startMs } = controller.world.defaults;
  controller.world.defaults.startMs = 0;
  const order = { startId: "settled", timeoutMs: 1000, directory: SPEC.directory, env: SPEC.env, specHash: specHash(SPEC) };
  controller.world.onEvent = () => {};
  await controller.clock.run(
    Promise.all(rows.map((row) => controller.world.fleet.start(row, 0, { ...order, workspaceUid: row.uid }, 1000))),
  );
  controller.world.defaults.startMs = startMs;
  controller.world.calls.length = 0;
  return rows.map(({ uid }) => uid);
}

describe("at rest", () => {
  it("200 Ready workspaces cost no call to any sandbox and no write but the heartbeat", async () => {
    const controller = new Controller({ ...IDLE, LEASE_SECONDS: "12" });
    await settle(controller, 200);
    const [before] = await all("SELECT sum(resource_version) AS versions, (SELECT count(*) FROM sequence) AS sequences FROM workspaces");
    const process = new Process();
    const summary = await controller.tick(process);
    expect(summary).toMatchObject({ complete: true, counts: {} });
    expect(summary?.rounds).toBeGreaterThanOrEqual(10);
    expect(controller.world.calls).toEqual([]);
    const writes = process.statements.filter(({ isWrite }) => isWrite).map(({ sql }) => sql.slice(0, 24));
    // Taken, renewed twice or so, given back.
    expect(new Set(writes)).toEqual(new Set(['insert into "controller"', 'update "controller" set ']));
    expect(writes.length).toBeLessThanOrEqual(5);
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
    expect(statements[0]).toBeLessThan(4.5);
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
