import { beforeEach, describe, expect, it } from "vitest";
import { requestDeletion } from "../../../src/store/intent.ts";
import { admitStart, expire, forget, saveConclusion } from "../../../src/store/progress.ts";
import { recordSweep } from "../../../src/store/unclaimed.ts";
import { poke } from "../../../src/sandbox/poke.ts";
import { observedState, orphan } from "../../support/builders.ts";
import {
  READY_CONCLUSION,
  admissionOf,
  admitted,
  brakeOf,
  conclusionOf,
  create,
  db,
  dump,
  editLabels,
  epoch,
  instanceOf,
  loseLease,
  record,
  sweepOf,
  workspace,
} from "./store-support.ts";
import { all, d1, emptyTables, NOW } from "./support.ts";

beforeEach(emptyTables);

async function brake() {
  const [row] = await all<{ brake_until_time: number | null; brake_failures: number }>(
    "SELECT brake_until_time, brake_failures FROM controller",
  );
  return row;
}

describe("admitStart", () => {
  it("takes the lane, writes the ledger and the row, and answers the row's new version", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = { ...(await record("a")), queuedTime: NOW - 9 };
    const version = await admitStart(db, held, before, admissionOf(before, "s1"), NOW);
    const after = await record("a");
    expect(version).toBe(after.resourceVersion);
    expect(after).toMatchObject({
      incarnation: 1,
      instance: instanceOf(before.uid),
      lane: { startId: "s1", queuedTime: NOW - 9, deadlineTime: NOW + 135_000 },
      queuedTime: null,
      nextReconcileTime: NOW,
    });
    expect(await all("SELECT namespace, name, incarnation, admitted_time FROM instances")).toEqual([
      { namespace: "default", name: "a", incarnation: 1, admitted_time: NOW },
    ]);
  });

  describe("writes nothing at all", () => {
    it("where the lane is full", async () => {
      const held = await epoch();
      await create("a", 1);
      await create("b", 2);
      await admitted("a", held, "s1");
      const before = await record("b");
      const rows = await dump();
      expect(await admitStart(db, held, before, admissionOf(before, "s2"), NOW)).toBeNull();
      expect(await dump()).toEqual(rows);
    });

    it("where the brake is on, and admits again at its end", async () => {
      const held = await epoch();
      await create("a", 1);
      await d1
        .prepare("UPDATE controller SET brake_until_time = ?")
        .bind(NOW + 1)
        .run();
      const before = await record("a");
      const rows = await dump();
      expect(await admitStart(db, held, before, admissionOf(before, "s1"), NOW)).toBeNull();
      expect(await dump()).toEqual(rows);
      expect(await admitStart(db, held, before, admissionOf(before, "s1"), NOW + 1)).not.toBeNull();
    });

    it.each([
      ["an edit of labels", () => editLabels("a")],
      ["a deletion", async () => void (await requestDeletion(db, await workspace("a"), NOW))],
    ])("where the row moved on by %s", async (_sentence, move) => {
      const held = await epoch();
      await create("a", 1);
      const before = await record("a");
      await move();
      const rows = await dump();
      expect(await admitStart(db, held, before, admissionOf(before, "s1"), NOW)).toBeNull();
      expect(await dump()).toEqual(rows);
    });

    it("where the row is gone", async () => {
      const held = await epoch();
      await create("a", 1);
      const before = await record("a");
      await d1.exec("DELETE FROM workspaces");
      expect(await admitStart(db, held, before, admissionOf(before, "s1"), NOW)).toBeNull();
      expect(await dump()).toMatchObject({ workspaces: [], instances: [], lane: [] });
    });

    it("where the lease is lost, not even an expired place is cleared", async () => {
      const held = await epoch();
      await create("a", 1);
      await create("b", 2);
      await admitted("a", held, "s1");
      const before = await record("b");
      await loseLease();
      const rows = await dump();
      expect(await admitStart(db, held, before, admissionOf(before, "s2"), NOW + 135_000)).toBeNull();
      expect(await dump()).toEqual(rows);
    });

    it("where the width shrank below what is held, even if a lower slot is free", async () => {
      const held = await epoch();
      for (const [index, name] of ["a", "b", "c", "d"].entries()) await create(name, index + 1);
      for (const name of ["a", "b", "c"]) await admitted(name, held, `start-${name}`, { laneWidth: 3 });
      await d1.exec("DELETE FROM start_lane WHERE slot = 0");
      const before = await record("d");
      const rows = await dump();
      expect(await admitStart(db, held, before, admissionOf(before, "s4", { laneWidth: 2 }), NOW)).toBeNull();
      expect(await dump()).toEqual(rows);
    });
  });

  it("takes a slot whose deadline passed", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    await admitted("a", held, "s1");
    const before = await record("b");
    expect(await admitStart(db, held, before, admissionOf(before, "s2", { deadlineTime: NOW + 300_000 }), NOW + 134_999)).toBeNull();
    expect(await admitStart(db, held, before, admissionOf(before, "s2", { deadlineTime: NOW + 300_000 }), NOW + 135_000)).not.toBeNull();
    expect(await all("SELECT slot, start_id FROM start_lane")).toEqual([{ slot: 0, start_id: "s2" }]);
  });

  it("admits the same workspace again after its own place expired", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    expect(await admitStart(db, held, before, admissionOf(before, "s2", { deadlineTime: NOW + 300_000 }), NOW + 135_000)).not.toBeNull();
    expect(await all("SELECT start_id FROM start_lane")).toEqual([{ start_id: "s2" }]);
  });

  it("fills every slot below the width and no other, even when all ask at once", async () => {
    const held = await epoch();
    const names = ["a", "b", "c", "d", "e", "f"];
    for (const [index, name] of names.entries()) await create(name, index + 1);
    const records = await Promise.all(names.map((name) => record(name)));
    const answers = await Promise.all(
      records.map((one) => admitStart(db, held, one, admissionOf(one, `s-${one.name}`, { laneWidth: 3 }), NOW)),
    );
    expect(answers.filter((answer) => answer !== null)).toHaveLength(3);
    expect(await all("SELECT slot FROM start_lane ORDER BY slot")).toEqual([{ slot: 0 }, { slot: 1 }, { slot: 2 }]);
    expect(await all("SELECT count(*) AS n FROM instances")).toEqual([{ n: 3 }]);
  });

  it("replaces the ledger row of an older incarnation and keeps that of a repeated one", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    const first = await admitted("a", held, "s1");
    await saveConclusion(db, held, first, conclusionOf(first, { laneReleased: true }), NOW);
    const again = await record("a");
    await admitStart(db, held, again, admissionOf(again, "s2"), NOW + 50);
    expect(await all("SELECT sandbox_id, admitted_time FROM instances")).toEqual([{ sandbox_id: `${uid}-1`, admitted_time: NOW }]);
    const second = await record("a");
    await saveConclusion(db, held, second, conclusionOf(second, { laneReleased: true }), NOW);
    const third = await record("a");
    await admitStart(db, held, third, admissionOf(third, "s3", { instance: instanceOf(uid, 2) }), NOW);
    expect(await all("SELECT sandbox_id FROM instances")).toEqual([{ sandbox_id: `${uid}-2` }]);
    expect(await all("SELECT sandbox_id, state, incarnation, first_seen_time AS t FROM unclaimed")).toEqual([
      { sandbox_id: `${uid}-1`, state: "Expected", incarnation: 1, t: NOW },
    ]);
    expect((await record("a")).incarnation).toBe(2);
  });

  it("claims what was unclaimed: the same instance is in one table only", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    const { doId, sandboxId } = instanceOf(uid);
    await recordSweep(db, held, sweepOf([orphan({ doId, sandboxId })]), NOW);
    await admitted("a", held, "s1");
    expect(await all("SELECT do_id FROM instances")).toEqual([{ do_id: doId }]);
    expect(await all("SELECT do_id FROM unclaimed")).toEqual([]);
  });

  it("remembers the start, and meets what was asked for", async () => {
    const held = await epoch();
    await create("a", 1);
    await d1.exec("UPDATE workspaces SET reconcile_request_time = 5, idle_time = 7");
    const after = await admitted("a", held, "s1", { conclusion: conclusionOf(await record("a"), { idleTime: null }) });
    expect(after).toMatchObject({ startId: "s1", reconcileRequestTime: null, idleTime: null });
  });

  it("counts an instance that did not run as running again, and forgets that it was to be replaced", async () => {
    const held = await epoch();
    await create("a", 1);
    const first = await admitted("a", held, "s1");
    await saveConclusion(db, held, first, conclusionOf(first, { laneReleased: true, running: false }), NOW);
    await d1.exec("UPDATE instances SET destroy_request_time = 5");
    const again = await record("a");
    expect(again.instance).toMatchObject({ running: false, destroyRequested: true });
    await admitStart(db, held, again, admissionOf(again, "s2"), NOW);
    expect((await record("a")).instance).toMatchObject({ running: true, destroyRequested: false });
  });

  it("leaves the ledger of an older incarnation alone where it is refused", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    await create("b", 2);
    const first = await admitted("a", held, "s1");
    await saveConclusion(db, held, first, conclusionOf(first, { laneReleased: true }), NOW);
    await admitted("b", held, "s2");
    const before = await record("a");
    expect(await admitStart(db, held, before, admissionOf(before, "s3", { instance: instanceOf(uid, 2) }), NOW)).toBeNull();
    expect(await all("SELECT sandbox_id FROM instances WHERE workspace_uid = ?", uid)).toEqual([{ sandbox_id: `${uid}-1` }]);
  });
});

describe("saveConclusion", () => {
  it("writes the status and the memory, and moves the version on", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    const conclusion = conclusionOf(before, { ...READY_CONCLUSION, failures: 2, nextRetryTime: NOW + 5, unreachableTime: NOW + 6 });
    expect(await saveConclusion(db, held, before, conclusion, NOW)).toBe(true);
    const after = await record("a");
    expect(after).toMatchObject({ failures: 2, nextRetryTime: NOW + 5, unreachableTime: NOW + 6, readyTime: NOW, nextReconcileTime: null });
    expect(after.status.phase).toBe("Ready");
    expect(after.resourceVersion).toBeGreaterThan(before.resourceVersion);
  });

  it("writes nothing where nothing changed, not even a version", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    const rows = await dump();
    const [sequence] = await all("SELECT value FROM sequence");
    expect(await saveConclusion(db, held, before, conclusionOf(before), NOW)).toBe(true);
    expect(await dump()).toEqual(rows);
    expect(await all("SELECT value FROM sequence")).toEqual([sequence]);
  });

  it.each([
    ["labels edited meanwhile", () => editLabels("a")],
    ["a deletion meanwhile", async () => void (await requestDeletion(db, await workspace("a"), NOW))],
    ["a lost lease", () => loseLease()],
    ["a row that is gone", async () => void (await d1.exec("DELETE FROM workspaces"))],
  ])("writes nothing after %s: neither row nor lane nor brake", async (_sentence, happen) => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    await happen();
    const rows = await dump();
    const conclusion = conclusionOf(before, { ...READY_CONCLUSION, laneReleased: true, brake: brakeOf(9000) });
    expect(await saveConclusion(db, held, before, conclusion, NOW)).toBe(false);
    expect(await dump()).toEqual(rows);
  });

  it("writes once where the same pass is saved twice", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    const conclusion = conclusionOf(before, { failures: before.failures + 1 });
    const saves = await Promise.all([1, 2, 3].map(() => saveConclusion(db, held, before, conclusion, NOW)));
    expect(saves.filter(Boolean)).toHaveLength(1);
    expect((await record("a")).failures).toBe(1);
  });

  it("gives the lane back only when told, and only that of the workspace", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    await admitted("a", held, "s1", { laneWidth: 2 });
    await admitted("b", held, "s2", { laneWidth: 2 });
    const kept = await record("a");
    await saveConclusion(db, held, kept, conclusionOf(kept, { failures: 1 }), NOW);
    expect(await all("SELECT start_id FROM start_lane ORDER BY slot")).toEqual([{ start_id: "s1" }, { start_id: "s2" }]);
    const released = await record("a");
    await saveConclusion(db, held, released, conclusionOf(released, { laneReleased: true }), NOW);
    expect(await all("SELECT start_id FROM start_lane")).toEqual([{ start_id: "s2" }]);
  });

  it("keeps the start that no pass has settled, and drops the one that it settled", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    await saveConclusion(db, held, before, conclusionOf(before, { failures: 1 }), NOW);
    const later = await record("a");
    expect(later.startId).toBe("s1");
    await saveConclusion(db, held, later, conclusionOf(later, { startId: null }), NOW);
    expect((await record("a")).startId).toBeNull();
  });

  it("counts whether the instance runs, as it was seen, and only that of the workspace", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    await admitted("a", held, "s1", { laneWidth: 2 });
    await admitted("b", held, "s2", { laneWidth: 2 });
    const before = await record("a");
    await saveConclusion(db, held, before, conclusionOf(before, { running: false }), NOW);
    expect((await record("a")).instance?.running).toBe(false);
    expect((await record("b")).instance?.running).toBe(true);
    const later = await record("a");
    await saveConclusion(db, held, later, conclusionOf(later, { running: true }), NOW);
    expect((await record("a")).instance?.running).toBe(true);
  });

  it("does not count it where the row moved on", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    await editLabels("a");
    await saveConclusion(db, held, before, conclusionOf(before, { running: false }), NOW);
    expect((await record("a")).instance?.running).toBe(true);
  });

  it("keeps what it observed, and writes nothing because it was used or seen once more", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    const differences = [{ type: "OutOfSync", firstSeenTime: NOW, timesSeen: 1 }];
    const observed = observedState("Running", { differences });
    await saveConclusion(db, held, before, conclusionOf(before, { observed }), NOW);
    const after = await record("a");
    expect(after.observed).toEqual(observed);
    const rows = await dump();
    const again = { ...observed, activityTime: NOW + 5, differences: [{ type: "OutOfSync", firstSeenTime: NOW, timesSeen: 2 }] };
    expect(await saveConclusion(db, held, after, conclusionOf(after, { observed: again }), NOW)).toBe(true);
    expect(await dump()).toEqual(rows);
    expect(await saveConclusion(db, held, after, conclusionOf(after, { observed: { ...again, differences: [] } }), NOW)).toBe(true);
    expect((await record("a")).observed).toMatchObject({ differences: [], activityTime: NOW + 5 });
  });

  it.each(["Absent", "Stopped", "Starting", "Preparing", "Failed", "Unverified", "Running", "Destroying", "Destroyed"] as const)(
    "remembers a look that was answered: %s",
    async (kind) => {
      const held = await epoch();
      await create("a", 1);
      const before = await record("a");
      await saveConclusion(db, held, before, conclusionOf(before, { observed: observedState(kind) }), NOW);
      expect((await record("a")).observed?.kind).toBe(kind);
    },
  );

  describe("and a request to forget backoff and stall", () => {
    it("is met by the pass that read it, even one that concludes what was concluded before", async () => {
      const held = await epoch();
      await create("a", 1);
      await d1.exec("UPDATE workspaces SET reconcile_request_time = 5");
      const before = await record("a");
      expect(before.reconcileRequestTime).toBe(5);
      expect(await saveConclusion(db, held, before, conclusionOf(before), NOW)).toBe(true);
      expect((await record("a")).reconcileRequestTime).toBeNull();
    });

    it("is not lost where it comes during the pass", async () => {
      const held = await epoch();
      await create("a", 1);
      await d1.exec("UPDATE workspaces SET reconcile_request_time = 5");
      const before = await record("a");
      await d1.exec("UPDATE workspaces SET reconcile_request_time = 6, resource_version = resource_version + 1");
      expect(await saveConclusion(db, held, before, conclusionOf(before), NOW)).toBe(false);
      expect((await record("a")).reconcileRequestTime).toBe(6);
    });
  });

  describe("and a poke during the pass", () => {
    it.each([
      ["of a row that was not due", null, NOW + 700],
      ["of a row that was due later", NOW + 90_000, NOW + 700],
      ["of a row that was due already, as every row is whose start is awaited", NOW - 3000, NOW + 700],
    ])("%s: asks for another look whatever was concluded", async (_sentence, dueTime, pokeTime) => {
      const held = await epoch();
      await create("a", 1);
      await d1.prepare("UPDATE workspaces SET next_reconcile_time = ?").bind(dueTime).run();
      const before = await record("a");
      await poke(d1, before.uid, pokeTime);
      expect(await saveConclusion(db, held, before, conclusionOf(before, READY_CONCLUSION), NOW + 800)).toBe(true);
      const after = await record("a");
      expect(after.status.phase).toBe("Ready");
      expect(after.nextReconcileTime).not.toBeNull();
      expect(after.nextReconcileTime).toBeLessThanOrEqual(pokeTime);
    });
  });

  describe("and the brake", () => {
    it("doubles with each refusal in a row, up to five minutes", async () => {
      const held = await epoch();
      await create("a", 1);
      const waits: number[] = [];
      for (let n = 0; n < 9; n += 1) {
        const before = await record("a");
        await saveConclusion(db, held, before, conclusionOf(before, { brake: brakeOf() }), NOW);
        waits.push(((await brake())?.brake_until_time ?? 0) - NOW);
      }
      expect(waits).toEqual([5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
    });

    it("waits as long as the platform asked", async () => {
      const held = await epoch();
      await create("a", 1);
      const before = await record("a");
      await saveConclusion(db, held, before, conclusionOf(before, { brake: brakeOf(17_000) }), NOW);
      expect(await brake()).toEqual({ brake_until_time: NOW + 17_000, brake_failures: 1 });
    });

    it("is let go by a workspace that became Ready in this pass, not by one that was Ready before", async () => {
      const held = await epoch();
      await create("a", 1);
      const refused = await record("a");
      await saveConclusion(db, held, refused, conclusionOf(refused, { brake: brakeOf() }), NOW);
      const before = await record("a");
      await saveConclusion(db, held, before, conclusionOf(before, { readyTime: NOW - 1, failures: 1 }), NOW);
      expect(await brake()).toMatchObject({ brake_failures: 1 });
      const later = await record("a");
      await saveConclusion(db, held, later, conclusionOf(later, { readyTime: NOW + 7 }), NOW + 7);
      expect(await brake()).toEqual({ brake_until_time: null, brake_failures: 0 });
    });

    it("is not touched by a pass that failed for another reason", async () => {
      const held = await epoch();
      await create("a", 1);
      const refused = await record("a");
      await saveConclusion(db, held, refused, conclusionOf(refused, { brake: brakeOf() }), NOW);
      const before = await record("a");
      await saveConclusion(db, held, before, conclusionOf(before, { failures: 3 }), NOW);
      expect(await brake()).toEqual({ brake_until_time: NOW + 5000, brake_failures: 1 });
    });
  });
});

describe("forget", () => {
  it("removes the row, its ledger and its place in the lane, and nothing of another", async () => {
    const held = await epoch();
    await create("a", 1);
    await create("b", 2);
    const before = await admitted("a", held, "s1", { laneWidth: 2 });
    await admitted("b", held, "s2", { laneWidth: 2 });
    expect(await forget(db, held, before, NOW)).toBe(true);
    const { workspaces, instances, lane } = await dump();
    expect([workspaces, instances, lane].map((rows) => rows?.length)).toEqual([1, 1, 1]);
    expect(await all("SELECT workspace_uid AS uid, state, times_seen AS n FROM unclaimed")).toEqual([
      { uid: before.uid, state: "Expected", n: 0 },
    ]);
    expect((await workspace("b")).sandboxId).toMatch(/-1$/);
  });

  it.each([
    ["the row moved on", () => editLabels("a")],
    ["the lease is lost", () => loseLease()],
  ])("removes nothing where %s", async (_sentence, happen) => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    await happen();
    const rows = await dump();
    expect(await forget(db, held, before, NOW)).toBe(false);
    expect(await dump()).toEqual(rows);
  });

  it("does not touch another life of the same name", async () => {
    const held = await epoch();
    await create("a", 1);
    const before = await admitted("a", held, "s1");
    expect(await forget(db, held, before, NOW)).toBe(true);
    await create("a", 2);
    const rows = await dump();
    expect(await forget(db, held, before, NOW)).toBe(false);
    expect(await dump()).toEqual(rows);
  });
});

describe("expire", () => {
  it("asks for the deletion as a user would, once", async () => {
    const held = await epoch();
    const { revision } = await create("a", 1);
    const before = await record("a");
    expect(await expire(db, held, before, NOW + 9)).toBe(true);
    const after = await record("a");
    expect(after).toMatchObject({ deletionTime: NOW + 9, nextReconcileTime: NOW + 9, generation: before.generation });
    expect(await workspace("a")).toMatchObject({ revision: revision + 1 });
    expect(after.resourceVersion).toBeGreaterThan(before.resourceVersion);
    expect(await all("SELECT reason FROM events WHERE reason = 'Expired'")).toHaveLength(1);
    expect(await expire(db, held, after, NOW + 10)).toBe(false);
    expect((await record("a")).deletionTime).toBe(NOW + 9);
    expect(await all("SELECT reason FROM events WHERE reason = 'Expired'")).toHaveLength(1);
  });

  it.each([
    ["the row moved on", () => editLabels("a")],
    ["the lease is lost", () => loseLease()],
  ])("does nothing where %s", async (_sentence, happen) => {
    const held = await epoch();
    await create("a", 1);
    const before = await record("a");
    await happen();
    const rows = await dump();
    expect(await expire(db, held, before, NOW)).toBe(false);
    expect(await dump()).toEqual(rows);
  });
});
