/** What every controller store must do. The simulation's is in memory, the product's is D1: both are held to this. */
import { describe, expect, it } from "vitest";
import { storeBackupWritesContract } from "./store-backup-writes.ts";
import { storeBackupsContract } from "./store-backups.ts";
import { storeRemovalsContract } from "./store-removals.ts";
import { beginWith, storeWritesContract } from "./store-writes.ts";
import { type Columns, LEASE_MS, NOW, QUERY, type StoreWorld, sweepOf, unchanged } from "./store-world.ts";

export function storeContract(name: string, makeWorld: () => Promise<StoreWorld>): void {
  const begin = () => beginWith(makeWorld);

  describe(`a controller store: ${name}`, () => {
    describe("the lease", () => {
      it("is one at a time, and each taking raises the epoch", async () => {
        const { store } = await begin();
        expect(await store.acquireLease("a", NOW, LEASE_MS)).toMatchObject({ epoch: 1, expiresTime: NOW + LEASE_MS, resyncTime: NOW });
        expect(await store.acquireLease("b", NOW + LEASE_MS - 1, LEASE_MS)).toBeNull();
        expect(await store.acquireLease("b", NOW + LEASE_MS, LEASE_MS)).toMatchObject({ epoch: 2, resyncTime: NOW });
        expect([await store.holdsLease(1), await store.holdsLease(2)]).toEqual([false, true]);
      });

      it("is renewed and released by its holder only; a release lets the next one in at once", async () => {
        const { store, look } = await begin();
        await store.acquireLease("a", NOW, LEASE_MS);
        expect(await store.renewLease(1, NOW + 60_000, NOW + 5)).toBe(true);
        expect(await store.renewLease(0, NOW + 90_000, NOW + 9)).toBe(false);
        expect(await store.acquireLease("b", NOW + 59_999, LEASE_MS)).toBeNull();
        expect(await store.releaseLease(0, NOW, NOW)).toBe(false);
        expect(await store.releaseLease(1, NOW + 6, NOW + 7)).toBe(true);
        expect((await look()).controller).toMatchObject({ expiresTime: 0, resyncTime: NOW + 6, lastSweepTime: NOW + 7 });
        expect(await store.acquireLease("b", NOW + 1, LEASE_MS)).toMatchObject({ epoch: 2, resyncTime: NOW + 6 });
        expect(await store.releaseLease(2, NOW + 8, null)).toBe(true);
        expect((await look()).controller).toMatchObject({ lastSweepTime: NOW + 7 });
      });

      it("comes with the settings and the record of the last sweep", async () => {
        const { store, set } = await begin();
        const first = await store.acquireLease("a", NOW, 1);
        expect(first).toMatchObject({ inventory: null, settings: { paused: false, gcMode: null, laneWidth: null } });
        await set({ paused: true, gcMode: "Report", laneWidth: 3 });
        await store.recordSweep(1, sweepOf(), NOW);
        const second = await store.acquireLease("b", NOW + 1, 1);
        expect(second).toMatchObject({
          settings: { paused: true, gcMode: "Report", laneWidth: 3 },
          inventory: { time: NOW, completeTime: NOW },
        });
      });
    });

    describe("what is due", () => {
      it("comes in its order: answering sandboxes first, of those deletions, then what has waited longest", async () => {
        const { store, create } = await begin();
        const rows: Record<string, Partial<Columns>> = {
          later: { nextReconcileTime: NOW + 1 },
          never: { nextReconcileTime: null },
          recent: { nextReconcileTime: NOW },
          old: { nextReconcileTime: NOW - 5000 },
          silent: { nextReconcileTime: NOW - 9000, unreachableTime: NOW - 9000 },
          "silent-deleted": { nextReconcileTime: NOW - 1, unreachableTime: NOW - 9000, deletionTime: NOW - 9000 },
          deleted: { nextReconcileTime: NOW, deletionTime: NOW - 1 },
          "as-old": { nextReconcileTime: NOW - 5000 },
        };
        for (const [index, [wanted, columns]] of Object.entries(rows).entries()) await create(wanted, index, columns);
        const { due, resync, startable } = await store.loadDue(QUERY);
        expect(namesOf(due)).toBe("deleted old as-old recent silent-deleted silent");
        expect([resync, startable]).toEqual([[], []]);
        expect(namesOf((await store.loadDue({ ...QUERY, limit: 2 })).due)).toBe("deleted old");
      });

      it.each([
        [{ from: { phase: 10, uid: "" }, to: 20, wraps: false }, "b c"],
        [{ from: { phase: 10, uid: "~" }, to: 20, wraps: false }, "c"],
        [{ from: { phase: 20, uid: "" }, to: 5, wraps: true }, "c d a"],
        [{ from: { phase: 30, uid: "~" }, to: 4, wraps: true }, ""],
      ])("is also what has its turn in the resync %o: %s", async (resync, expected) => {
        const { store, create } = await begin();
        for (const [index, [wanted, phase]] of Object.entries({ a: 5, b: 10, c: 20, d: 30 }).entries()) {
          await create(wanted, index, { resyncPhase: phase, nextReconcileTime: null });
        }
        await create("due", 8, { resyncPhase: 15, nextReconcileTime: NOW });
        await create("soon", 9, { resyncPhase: 15, nextReconcileTime: NOW + QUERY.resyncIntervalMs });
        expect(namesOf((await store.loadDue({ ...QUERY, resync })).resync)).toBe(expected);
      });

      it("is planned for later than an interval: it has its turn too", async () => {
        const { store, create } = await begin();
        await create("far", 1, { resyncPhase: 15, nextReconcileTime: NOW + QUERY.resyncIntervalMs + 1 });
        const resync = { from: { phase: 0, uid: "" }, to: 20, wraps: false };
        expect(namesOf((await store.loadDue({ ...QUERY, resync })).resync)).toBe("far");
      });
    });

    describe("who may start", () => {
      it("is who waits longest, as many as there is room for", async () => {
        const { store, create, lease, admit } = await begin();
        const epoch = await lease();
        for (const [index, wanted] of ["third", "first", "second"].entries()) await create(wanted, index);
        const places = { first: NOW - 9, second: NOW - 5, third: NOW - 1 };
        for (const [index, wanted] of ["third", "first", "second"].entries()) {
          const uid = await create(`${wanted}-queued`, 10 + index, { queuedTime: places[wanted as keyof typeof places] });
          expect(uid).not.toBe("");
        }
        expect(namesOf((await store.loadDue(QUERY)).startable)).toBe("first-queued");
        expect(namesOf((await store.loadDue({ ...QUERY, laneWidth: 2 })).startable)).toBe("first-queued second-queued");
        await admit("third", epoch, "s1");
        expect(namesOf((await store.loadDue({ ...QUERY, laneWidth: 2 })).startable)).toBe("first-queued");
        expect(namesOf((await store.loadDue(QUERY)).startable)).toBe("");
        expect(namesOf((await store.loadDue({ ...QUERY, now: NOW + 135_000 })).startable)).toBe("first-queued");
      });

      it("is nobody while the brake is on, and nobody whose sandbox is silent or whose namespace is full", async () => {
        const { store, create, lease, record, admit } = await begin();
        const epoch = await lease();
        await create("runs", 1);
        await admit("runs", epoch, "s1");
        await create("waits", 2, { queuedTime: NOW - 9 });
        await create("silent", 3, { queuedTime: NOW - 99, unreachableTime: NOW - 50 });
        const query = { ...QUERY, laneWidth: 5 };
        expect(namesOf((await store.loadDue(query)).startable)).toBe("waits");
        expect(namesOf((await store.loadDue({ ...query, runningLimits: { default: 1 } })).startable)).toBe("");
        expect(namesOf((await store.loadDue({ ...query, runningLimits: { "*": 1, default: null } })).startable)).toBe("waits");
        const runs = await record("runs");
        const brake = { retryAfterMs: null, reason: "CapacityUnavailable", message: "" } as const;
        await store.saveConclusion(epoch, runs, unchanged(runs, { brake }), NOW);
        expect(namesOf((await store.loadDue(query)).startable)).toBe("");
        expect(namesOf((await store.loadDue({ ...query, now: NOW + 5000 })).startable)).toBe("waits");
      });
    });

    storeWritesContract(begin);
    storeBackupsContract(begin);
    storeBackupWritesContract(begin);
    storeRemovalsContract(begin);
  });
}

function namesOf(records: readonly { readonly name: string }[]): string {
  return records.map(({ name }) => name).join(" ");
}
