/** What every controller store must do: what it writes. */
import { describe, expect, it } from "vitest";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { LEASE_MS, NOW, QUERY, type StoreWorld, admissionOf, instanceOf, specOf, stranger, sweepOf, unchanged } from "./store-world.ts";

/** A world, and short ways to what most cases need. */
export async function beginWith(makeWorld: () => Promise<StoreWorld>) {
  const world = await makeWorld();
  const { store } = world;
  const record = async (wanted: string, now = NOW): Promise<WorkspaceRecord> => {
    const resync = { from: { phase: -1, uid: "" }, to: 1e9, wraps: false };
    const { due, resync: turns } = await store.loadDue({ ...QUERY, now, resync, resyncIntervalMs: -1e13, limit: 5000 });
    const found = [...due, ...turns].find((candidate) => candidate.name === wanted);
    if (found === undefined) throw new Error(`${wanted} is gone`);
    return found;
  };
  const lease = async (now = NOW) => (await store.acquireLease("holder", now, LEASE_MS))?.epoch ?? -1;
  const row = async (wanted: string) => (await world.look()).workspaces[wanted];
  const admit = async (wanted: string, epoch: number, startId: string, laneWidth = 9) => {
    const found = await record(wanted);
    return store.admitStart(epoch, found, admissionOf(found, startId, { laneWidth }), NOW);
  };
  return { ...world, record, lease, row, admit };
}

export type Begin = () => ReturnType<typeof beginWith>;

export function storeWritesContract(begin: Begin): void {
  describe("a conclusion", () => {
    it("is written once, by who holds the lease, over the row that was read", async () => {
      const { store, create, record, lease, row } = await begin();
      const epoch = await lease();
      await create("a", 1);
      const read = await record("a");
      const conclusion = unchanged(read, { failures: 2, readyTime: NOW - 1, nextReconcileTime: NOW + 7, idleTime: NOW, startId: "s" });
      expect(await store.saveConclusion(epoch - 1, read, conclusion, NOW)).toBe(false);
      expect(await store.saveConclusion(epoch, read, conclusion, NOW)).toBe(true);
      expect(await row("a")).toMatchObject({ failures: 2, readyTime: NOW - 1, nextReconcileTime: NOW + 7, idleTime: NOW, startId: "s" });
      expect(await store.saveConclusion(epoch, read, { ...conclusion, failures: 3 }, NOW)).toBe(false);
      expect(await row("a")).toMatchObject({ failures: 2 });
      expect((await row("a"))?.resourceVersion).toBeGreaterThan(read.resourceVersion);
    });

    it("that changes nothing is not written, whoever holds the lease", async () => {
      const { store, create, record, lease, look } = await begin();
      const epoch = await lease();
      await create("a", 1);
      const before = await look();
      const read = await record("a");
      expect(await store.saveConclusion(epoch, read, unchanged(read), NOW)).toBe(true);
      expect(await store.saveConclusion(epoch - 1, read, unchanged(read), NOW)).toBe(true);
      expect(await look()).toEqual(before);
    });

    it("leaves a time that a poke has set meanwhile", async () => {
      const { store, create, record, lease, row, poke } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1, { nextReconcileTime: NOW - 5 });
      const read = await record("a");
      await poke(uid, NOW);
      expect(await row("a")).toMatchObject({ nextReconcileTime: NOW - 4, resourceVersion: read.resourceVersion });
      expect(await store.saveConclusion(epoch, read, unchanged(read, { failures: 1, nextReconcileTime: null }), NOW)).toBe(true);
      expect(await row("a")).toMatchObject({ failures: 1, nextReconcileTime: NOW - 4 });
    });

    it("is refused where a user wrote the row meanwhile, and meets the requests that it knew", async () => {
      const { store, create, record, lease, row, replace, patch } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      const read = await record("a");
      await replace(uid, specOf("2"), NOW + 1);
      expect(await store.saveConclusion(epoch, read, unchanged(read, { failures: 1 }), NOW)).toBe(false);
      expect(await row("a")).toMatchObject({ failures: 0, generation: 2, nextReconcileTime: NOW + 1 });
      await patch(uid, { reconcileRequestTime: NOW });
      const again = await record("a", NOW + 1);
      expect(await store.saveConclusion(epoch, again, unchanged(again), NOW)).toBe(true);
      expect(await row("a")).toMatchObject({ reconcileRequestTime: null });
    });

    it("gives the lane back, says what runs, tells the history, and brakes ever longer until one is Ready", async () => {
      const { store, create, record, lease, look, admit } = await begin();
      const epoch = await lease();
      await create("a", 1);
      await admit("a", epoch, "s1");
      let read = await record("a");
      const { events } = await look();
      const brake = { retryAfterMs: null, reason: "CapacityUnavailable", message: "" } as const;
      const event = { type: "Normal", reason: "Queued", message: "" } as const;
      await store.saveConclusion(epoch, read, unchanged(read, { laneReleased: true, running: false, brake, event }), NOW);
      expect(await look()).toMatchObject({ lane: [], instances: [{ running: false }], events: events + 1 });
      expect((await look()).controller).toMatchObject({ brakeUntilTime: NOW + 5000, brakeFailures: 1 });
      read = await record("a");
      await store.saveConclusion(epoch, read, unchanged(read, { brake }), NOW);
      expect((await look()).controller).toMatchObject({ brakeUntilTime: NOW + 10_000, brakeFailures: 2 });
      read = await record("a");
      await store.saveConclusion(epoch, read, unchanged(read, { brake: { ...brake, retryAfterMs: 999_999_999 } }), NOW);
      expect((await look()).controller).toMatchObject({ brakeUntilTime: NOW + 300_000, brakeFailures: 3 });
      read = await record("a");
      await store.saveConclusion(epoch, read, unchanged(read, { readyTime: NOW }), NOW);
      expect((await look()).controller).toMatchObject({ brakeUntilTime: null, brakeFailures: 0 });
    });
  });

  describe("an admission", () => {
    it("is place, ledger and status at once, and takes the workspace out of the queue", async () => {
      const { store, create, record, lease, look } = await begin();
      const epoch = await lease();
      await create("a", 1, { queuedTime: NOW - 50, unreachableTime: NOW - 3, reconcileRequestTime: NOW, nextReconcileTime: NOW - 1 });
      const read = await record("a");
      const version = await store.admitStart(epoch, read, admissionOf(read, "s1"), NOW);
      const { workspaces, lane, instances } = await look();
      expect(workspaces["a"]).toMatchObject({
        resourceVersion: version,
        incarnation: 1,
        startId: "s1",
        queuedTime: null,
        unreachableTime: null,
      });
      expect(workspaces["a"]).toMatchObject({ reconcileRequestTime: null, nextReconcileTime: NOW });
      expect(lane).toEqual([{ slot: 0, startId: "s1", deadlineTime: NOW + 135_000 }]);
      expect(instances).toEqual([{ doId: instanceOf(read.uid).doId, running: true, destroyRequestTime: null }]);
      expect((await record("a")).lane).toEqual({ startId: "s1", queuedTime: NOW - 50, deadlineTime: NOW + 135_000 });
      expect((await record("a", NOW + 135_000)).lane).toBeNull();
    });

    it.each<[string, { stale?: true; moved?: true; full?: true; braked?: true; quota?: true }]>([
      ["a lost lease", { stale: true }],
      ["a row that moved on", { moved: true }],
      ["a lane without room", { full: true }],
      ["the brake", { braked: true }],
      ["a full namespace", { quota: true }],
    ])("is nothing at all with %s", async (_name, { stale, moved, full, braked, quota }) => {
      const { store, create, record, lease, look, replace, admit } = await begin();
      const epoch = await lease();
      await create("other", 2);
      await admit("other", epoch, "s0");
      const other = await record("other");
      const brake = { retryAfterMs: null, reason: "RateLimited", message: "" } as const;
      await store.saveConclusion(epoch, other, unchanged(other, { laneReleased: full === undefined, brake: braked ? brake : null }), NOW);
      const uid = await create("a", 1);
      const read = await record("a");
      if (moved) await replace(uid, specOf("2"), NOW);
      const before = await look();
      const admission = admissionOf(read, "s1", { runningLimits: quota ? { "*": 1 } : {} });
      expect(await store.admitStart(stale ? epoch - 1 : epoch, read, admission, NOW)).toBeNull();
      expect(await look()).toEqual(before);
    });

    it("takes the place of one that expired, and never one above the width", async () => {
      const { store, create, record, lease, look, admit } = await begin();
      const epoch = await lease();
      for (const [index, wanted] of ["a", "b", "c"].entries()) await create(wanted, index);
      expect(await admit("a", epoch, "s1", 2)).not.toBeNull();
      expect(await admit("b", epoch, "s2", 2)).not.toBeNull();
      expect(await admit("c", epoch, "s3", 1)).toBeNull();
      expect(await admit("c", epoch, "s3", 2)).toBeNull();
      const read = await record("c");
      expect(await store.admitStart(epoch, read, admissionOf(read, "s3", { deadlineTime: NOW + 999_999 }), NOW + 135_000)).not.toBeNull();
      expect((await look()).lane.map(({ startId, slot }) => [startId, slot])).toEqual([["s3", 0]]);
    });

    it("of another incarnation leaves the older one to the sweep", async () => {
      const { store, create, record, lease, look, admit } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await admit("a", epoch, "s1");
      const held = await record("a");
      await store.saveConclusion(epoch, held, unchanged(held, { laneReleased: true }), NOW);
      const read = await record("a");
      await store.admitStart(epoch, read, admissionOf(read, "s2", { instance: instanceOf(uid, 2) }), NOW + 1);
      const { instances, unclaimed, workspaces } = await look();
      expect(instances.map(({ doId }) => doId)).toEqual([instanceOf(uid, 2).doId]);
      expect(unclaimed).toMatchObject([{ doId: instanceOf(uid, 1).doId, state: "Expected", firstSeenTime: NOW + 1, timesSeen: 0 }]);
      expect(workspaces["a"]).toMatchObject({ incarnation: 2 });
    });

    it("of an instance whose replacement was asked for meets the request", async () => {
      const { store, create, record, lease, look, admit, requestDestroy } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await admit("a", epoch, "s1");
      await requestDestroy(instanceOf(uid).doId, NOW);
      const held = await record("a");
      expect(held.instance).toMatchObject({ destroyRequested: true });
      await store.saveConclusion(epoch, held, unchanged(held, { laneReleased: true, running: false }), NOW);
      await admit("a", epoch, "s2");
      expect((await look()).instances).toMatchObject([{ running: true, destroyRequestTime: null }]);
    });
  });

  describe("an end", () => {
    it("by expiry asks for the deletion once", async () => {
      const { store, create, record, lease, row } = await begin();
      const epoch = await lease();
      await create("a", 1);
      const read = await record("a");
      expect(await store.expire(epoch - 1, read, NOW + 5)).toBe(false);
      expect(await store.expire(epoch, read, NOW + 5)).toBe(true);
      expect(await row("a")).toMatchObject({ deletionTime: NOW + 5, nextReconcileTime: NOW + 5 });
      expect(await store.expire(epoch, await record("a", NOW + 5), NOW + 6)).toBe(false);
    });

    it("forgets row, lane and ledger, and leaves what ran to the sweep", async () => {
      const { store, create, record, lease, look, admit } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await admit("a", epoch, "s1");
      const read = await record("a");
      expect(await store.forget(epoch - 1, read, NOW)).toBe(false);
      expect(await store.forget(epoch, read, NOW + 3)).toBe(true);
      const { workspaces, lane, instances, unclaimed } = await look();
      expect([workspaces, lane, instances]).toEqual([{}, [], []]);
      const owner = { uid, namespace: "default", name: "a", incarnation: 1 };
      expect(unclaimed).toMatchObject([{ doId: instanceOf(uid).doId, owner, state: "Expected", firstSeenTime: NOW + 3 }]);
      expect(await store.forget(epoch, read, NOW)).toBe(false);
    });
  });

  describe("a sweep", () => {
    it("sees claims, ledger and unclaimed of one moment", async () => {
      const { store, create, record, lease, admit } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      const gone = await create("b", 2);
      await admit("a", epoch, "s1");
      await admit("b", epoch, "s2");
      await store.forget(epoch, await record("b"), NOW);
      const view = await store.readInventoryView(epoch, NOW);
      expect(view.claims).toEqual([{ uid, namespace: "default", name: "a", incarnation: 1 }]);
      expect([...view.claimed]).toEqual([instanceOf(uid).doId]);
      expect(view.unclaimed).toMatchObject([{ doId: instanceOf(gone).doId, ownerLives: false }]);
      expect(view.ledgerRunning).toBe(1);
    });

    it("remembers what it saw, leaves an operator's columns alone, and drops what is gone", async () => {
      const { store, lease, look, protect } = await begin();
      const epoch = await lease();
      expect(await store.recordSweep(epoch, sweepOf({ unclaimed: [stranger("x"), stranger("y")] }), NOW)).toBe(true);
      await protect("x");
      const seen = stranger("x", { timesSeen: 2, lastSeenTime: NOW + 9, startedTime: NOW - 1, sandboxId: "name", state: "Settling" });
      await store.recordSweep(epoch, sweepOf({ unclaimed: [seen], gone: [stranger("y")] }), NOW);
      const { unclaimed } = await look();
      expect(unclaimed).toMatchObject([
        { doId: "x", timesSeen: 2, lastSeenTime: NOW + 9, state: "Settling", sandboxId: "name", protected: true },
      ]);
    });

    it("that failed keeps the time of the last complete one, and that of a lost lease writes nothing", async () => {
      const { store, lease, look } = await begin();
      const epoch = await lease();
      await store.recordSweep(epoch, sweepOf(), NOW);
      const { record } = sweepOf({}, NOW + 60_000);
      const failed = sweepOf({ record: { ...record, outcome: "Failed", message: "no" } });
      expect(await store.recordSweep(epoch, failed, NOW)).toBe(true);
      expect((await look()).controller?.inventory).toMatchObject({
        time: NOW + 60_000,
        completeTime: NOW,
        outcome: "Failed",
        message: "no",
      });
      const before = await look();
      expect(await store.recordSweep(epoch - 1, sweepOf({ unclaimed: [stranger("x")] }), NOW)).toBe(false);
      expect(await look()).toEqual(before);
    });

    it("does not take for unclaimed what was admitted meanwhile", async () => {
      const { store, create, lease, look, admit } = await begin();
      const epoch = await lease();
      const uid = await create("a", 1);
      await admit("a", epoch, "s1");
      await store.recordSweep(epoch, sweepOf({ unclaimed: [stranger(instanceOf(uid).doId)] }), NOW);
      expect((await look()).unclaimed).toEqual([]);
    });

    it("claims a destroy where nothing has changed: lease, protection, ledger and owner", async () => {
      const { store, create, lease, look, admit, protect, set } = await begin();
      const epoch = await lease();
      const owner = { uid: "gone", namespace: "default", name: "g", incarnation: 1 };
      const lives = await create("lives", 1);
      const ofLiving = stranger("of-living", { owner: { ...owner, uid: lives } });
      const uid = await create("a", 2);
      const later = stranger(instanceOf(uid).doId);
      const all = [stranger("free", { owner }), stranger("protected"), ofLiving, later];
      await store.recordSweep(epoch, sweepOf({ unclaimed: all }), NOW);
      await protect("protected");
      await admit("a", epoch, "s1");
      expect(await store.claimDestroy(epoch - 1, stranger("free"), NOW + 1)).toBe(false);
      expect(await store.claimDestroy(epoch, stranger("protected"), NOW + 1)).toBe(false);
      expect(await store.claimDestroy(epoch, ofLiving, NOW + 1)).toBe(false);
      expect(await store.claimDestroy(epoch, later, NOW + 1)).toBe(false);
      expect(await store.claimDestroy(epoch, stranger("nobody-knows"), NOW + 1)).toBe(false);
      for (const change of [{ paused: true }, { paused: false, gcMode: "Report" }, { gcMode: "Off" }] as const) {
        await set(change);
        expect(await store.claimDestroy(epoch, stranger("free"), NOW + 1)).toBe(false);
      }
      expect((await look()).unclaimed.every(({ destroyAttempts }) => destroyAttempts === 0)).toBe(true);
      await set({ gcMode: "Enforce" });
      expect(await store.claimDestroy(epoch, stranger("free"), NOW + 1)).toBe(true);
      const free = (await look()).unclaimed.find(({ doId }) => doId === "free");
      expect(free).toMatchObject({ destroyAttempts: 1, lastDestroyTime: NOW + 1 });
    });
  });
}
