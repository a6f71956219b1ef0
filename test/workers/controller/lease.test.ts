import { beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/store/controller-settings.ts";
import { acquireLease, releaseLease, renewLease } from "../../../src/store/lease.ts";
import { readLastSweepTime } from "../../../src/store/reading.ts";
import { db } from "./store-support.ts";
import { all, emptyTables, NOW } from "./support.ts";

beforeEach(emptyTables);

const LEASE_MS = 30_000;

async function row() {
  const rows = await all<{ holder: string; epoch: number; expires_time: number; resync_time: number }>("SELECT * FROM controller");
  expect(rows).toHaveLength(1);
  return rows[0];
}

describe("the lease", () => {
  it("is given to the first who asks, with epoch 1 and a resync that begins now", async () => {
    expect(await acquireLease(db, "a", NOW, LEASE_MS)).toEqual({
      epoch: 1,
      expiresTime: NOW + LEASE_MS,
      resyncTime: NOW,
      inventory: null,
      backupSweep: null,
      settings: DEFAULT_SETTINGS,
    });
    expect(await row()).toMatchObject({ holder: "a", epoch: 1 });
  });

  it("is refused while somebody holds it, and nothing changes", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    const before = await row();
    expect(await acquireLease(db, "b", NOW + LEASE_MS - 1, LEASE_MS)).toBeNull();
    expect(await acquireLease(db, "a", NOW + 1, LEASE_MS)).toBeNull();
    expect(await row()).toEqual(before);
  });

  it("is taken over at its expiry, not before, with a higher epoch", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    expect(await acquireLease(db, "b", NOW + LEASE_MS, LEASE_MS)).toMatchObject({ epoch: 2, expiresTime: NOW + 2 * LEASE_MS });
    expect(await row()).toMatchObject({ holder: "b", epoch: 2 });
  });

  it("is given to exactly one of many who ask at the same time, each time with the next epoch", async () => {
    for (const round of [1, 2, 3]) {
      const now = NOW + round * LEASE_MS;
      const asked = await Promise.all(["a", "b", "c", "d", "e"].map((holder) => acquireLease(db, holder, now, LEASE_MS)));
      expect(asked.filter((lease) => lease !== null).map((lease) => lease?.epoch)).toEqual([round]);
    }
  });

  it("keeps the resync's progress from holder to holder", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    await renewLease(db, 1, NOW + 2 * LEASE_MS, NOW + 7);
    expect(await acquireLease(db, "b", NOW + 3 * LEASE_MS, LEASE_MS)).toMatchObject({ resyncTime: NOW + 7 });
  });

  it("is renewed by its holder, and then cannot be taken at the old expiry", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    expect(await renewLease(db, 1, NOW + 50_000, NOW)).toBe(true);
    expect(await acquireLease(db, "b", NOW + LEASE_MS, LEASE_MS)).toBeNull();
  });

  it("is not renewed by who lost it, whose renewal changes nothing", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    await acquireLease(db, "b", NOW + LEASE_MS, LEASE_MS);
    const before = await row();
    expect(await renewLease(db, 1, NOW + 900_000, NOW + 900_000)).toBe(false);
    expect(await row()).toEqual(before);
  });

  it("is free again once released, and the epoch still rises", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    await releaseLease(db, 1, NOW + 5, NOW + 6);
    expect(await acquireLease(db, "b", NOW + 10, LEASE_MS)).toMatchObject({ epoch: 2, resyncTime: NOW + 5 });
    expect(await readLastSweepTime(db)).toBe(NOW + 6);
  });

  it("is not released by who lost it: neither its expiry nor the sweep record changes", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    await acquireLease(db, "b", NOW + LEASE_MS, LEASE_MS);
    const before = await row();
    await releaseLease(db, 1, NOW + 1, NOW + LEASE_MS);
    expect(await row()).toEqual(before);
    expect(await readLastSweepTime(db)).toBeNull();
  });

  it("keeps the record of the last complete sweep when an incomplete one is released", async () => {
    await acquireLease(db, "a", NOW, LEASE_MS);
    await releaseLease(db, 1, NOW, NOW + 6);
    await acquireLease(db, "b", NOW + 10, LEASE_MS);
    await releaseLease(db, 2, NOW, null);
    expect(await readLastSweepTime(db)).toBe(NOW + 6);
  });
});
