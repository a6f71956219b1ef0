/** The history: one event for each change, a hundred for each workspace, kept after it is gone and expired when it is old. */
import { beforeEach, describe, expect, it } from "vitest";
import { EVENTS_PER_WORKSPACE, expireEvents } from "../../../src/store/events.ts";
import { forget, saveConclusion } from "../../../src/store/progress.ts";
import type { WorkspaceEvent } from "../../../src/workspace-record.ts";
import { admitted, conclusionOf, create, db, editLabels, epoch, loseLease, record } from "./store-support.ts";
import { Controller, all, d1, emptyTables, NOW } from "./support.ts";

beforeEach(emptyTables);

/** What the controller told; what users did is told by the API. */
async function told(columns: string): Promise<readonly Record<string, unknown>[]> {
  return await all(`SELECT ${columns} FROM events WHERE reason NOT IN ('Created', 'Updated') ORDER BY id`);
}

const EVENT: WorkspaceEvent = { type: "Warning", reason: "ContainerExited", message: "It exited." };

describe("an event", () => {
  it("is written with the change that it tells of", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    const before = await record("a");
    await saveConclusion(db, held, before, conclusionOf(before, { failures: 1, event: EVENT }), NOW + 3);
    expect(await told("workspace_uid, namespace, name, do_id, time, type, reason, message, actor")).toEqual([
      {
        workspace_uid: uid,
        namespace: "default",
        name: "a",
        do_id: null,
        time: NOW + 3,
        type: "Warning",
        reason: "ContainerExited",
        message: "It exited.",
        actor: null,
      },
    ]);
  });

  it("is written with an admission", async () => {
    const held = await epoch();
    await create("a", 1);
    await admitted("a", held, "s1", { conclusion: conclusionOf(await record("a"), { event: EVENT }) });
    expect(await told("reason")).toHaveLength(1);
  });

  it.each([
    ["the row moved on", () => editLabels("a")],
    ["the lease is lost", () => loseLease()],
  ])("is not written where %s", async (_sentence, happen) => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    await happen();
    await saveConclusion(db, held, before, conclusionOf(before, { failures: 1, event: EVENT }), NOW);
    expect(await told("*")).toEqual([]);
  });

  it("is written once for one change, however often the workspace is looked at after it", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "10" });
    await controller.put("a");
    await controller.ticks(6);
    expect((await told("reason")).map(({ reason }) => reason)).toEqual(["Queued", "Starting", "ContainerHealthy"]);
  });
});

describe("the history of one workspace", () => {
  it("keeps the newest hundred, and is not shortened by another's", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    for (let n = 1; n <= EVENTS_PER_WORKSPACE + 7; n += 1) {
      const before = await record("a");
      const event = { ...EVENT, message: `${n}` };
      await saveConclusion(db, held, before, conclusionOf(before, { failures: n, event }), NOW);
      if (n === 1) {
        const other = await record("b");
        await saveConclusion(db, held, other, conclusionOf(other, { failures: 1, event }), NOW);
      }
    }
    expect(await all("SELECT name, count(*) AS n, max(message + 0) AS last FROM events GROUP BY name")).toEqual([
      { name: "a", n: 100, last: EVENTS_PER_WORKSPACE + 7 },
      { name: "b", n: 2, last: 1 },
    ]);
  });

  it("is kept when the workspace is forgotten, and says so", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    await saveConclusion(db, held, before, conclusionOf(before, { failures: 1, event: EVENT }), NOW);
    await forget(db, held, await record("a"), NOW + 9);
    expect(await told("reason, name")).toEqual([
      { reason: "ContainerExited", name: "a" },
      { reason: "Deleted", name: "a" },
    ]);
  });
});

describe("old events", () => {
  async function insertAt(...times: readonly number[]): Promise<void> {
    const insert = d1.prepare("INSERT INTO events (time, type, reason, message) VALUES (?, 'Normal', 'Old', '')");
    await d1.batch(times.map((time) => insert.bind(time)));
  }

  it("are expired, and no others", async () => {
    await insertAt(NOW - 1, NOW, NOW + 1);
    await expireEvents(db, NOW);
    expect(await all("SELECT time FROM events ORDER BY time")).toEqual([{ time: NOW }, { time: NOW + 1 }]);
  });

  it("are expired by the first sweep of an hour, when they are older than the retention", async () => {
    const controller = new Controller({ TICK_BUDGET_SECONDS: "5", EVENT_RETENTION_SECONDS: "7200" });
    await controller.clock.pass(30 * 60_000);
    await insertAt(NOW - 7_200_000, NOW - 1, NOW);
    await controller.tick();
    expect(await all("SELECT time FROM events")).toHaveLength(3);
    await controller.clock.pass(90 * 60_000 - 5000);
    await controller.tick();
    expect(await all("SELECT time FROM events ORDER BY time")).toEqual([{ time: NOW }]);
  });
});
