/**
 * What every Inventory must do, whatever is behind it. A world gives the suite an inventory, and a hand on what the platform says.
 */
import { describe, expect, it } from "vitest";
import type { InstanceState, Inventory, ListedInstance, Listing } from "../../src/controller/inventory.ts";

export type PlatformFault = "Unauthorised" | "RateLimited" | "Unavailable" | "Silent" | "NotEnabled" | "HalfRead";

export interface InventoryWorld {
  readonly inventory: Inventory;
  /** From now on the platform lists these. */
  readonly set: (instances: readonly ListedInstance[]) => void;
  /** The next list meets it; `RateLimited` asks for `RETRY_AFTER_MS`. */
  readonly fault: (fault: PlatformFault) => void;
  /** Awaits while the world's time passes. */
  readonly run: <T>(work: Promise<T>) => Promise<T>;
}

export interface WorldNeeds {
  /** Of a list's answer: short where the test waits for its end. */
  readonly deadline: "Short" | "Long";
}

export const RETRY_AFTER_MS = 7000;

const STATES: readonly InstanceState[] = ["Running", "Settling", "Stopped", "Unknown"];

export function instance(object: number, change: Partial<ListedInstance> = {}): ListedInstance {
  const doId = object.toString(16).padStart(64, "0");
  return { doId, name: `ws-${object}`, state: "Running", startedTime: Date.UTC(2026, 10, 30, 12, 0, object), ...change };
}

export function inventoryContract(name: string, makeWorld: (needs: WorldNeeds) => Promise<InventoryWorld> | InventoryWorld): void {
  describe(`an inventory: ${name}`, () => {
    async function begin(needs: WorldNeeds = { deadline: "Long" }) {
      const world = await makeWorld(needs);
      return { ...world, list: () => world.run(world.inventory.list()) };
    }

    it("of nothing is complete, and empty", async () => {
      const { list } = await begin();
      expect(await list()).toEqual({ kind: "Complete", instances: [] });
    });

    it("lists every instance once, with all that is known of it", async () => {
      const { list, set } = await begin();
      const instances = Array.from({ length: 25 }, (_, object) => instance(object, { state: STATES[object % 4] ?? "Unknown" }));
      set(instances);
      expect(sorted(await list())).toEqual({ kind: "Complete", instances });
    });

    it("lists an instance of which neither name nor start is known", async () => {
      const { list, set } = await begin();
      const nameless = instance(1, { name: null, startedTime: null });
      set([nameless]);
      expect(await list()).toEqual({ kind: "Complete", instances: [nameless] });
    });

    it("tells each time what there is then, and leaves earlier listings as they were", async () => {
      const { list, set } = await begin();
      set([instance(1), instance(2)]);
      const before = await list();
      set([instance(2, { state: "Stopped" }), instance(3)]);
      expect(sorted(await list())).toEqual({ kind: "Complete", instances: [instance(2, { state: "Stopped" }), instance(3)] });
      expect(sorted(before)).toEqual({ kind: "Complete", instances: [instance(1), instance(2)] });
    });

    it("answers lists that run side by side alike", async () => {
      const { inventory, run, set } = await begin();
      set([instance(1)]);
      const [first, second] = await run(Promise.all([inventory.list(), inventory.list()]));
      expect(first).toEqual({ kind: "Complete", instances: [instance(1)] });
      expect(second).toEqual(first);
    });

    it.for([
      ["Unauthorised", "Unauthorised", null],
      ["RateLimited", "RateLimited", RETRY_AFTER_MS],
      ["Unavailable", "Unavailable", null],
      ["HalfRead", "Unavailable", null],
    ] as const)("fails without any instance where the platform is %s, once", async ([fault, reason, retryAfterMs]) => {
      const { list, set, fault: meet } = await begin();
      set(Array.from({ length: 25 }, (_, object) => instance(object)));
      meet(fault);
      expect(await list()).toEqual({ kind: "Failed", reason, message: expect.stringMatching(/./), retryAfterMs });
      expect(await list()).toMatchObject({ kind: "Complete", instances: { length: 25 } });
    });

    it("says that the platform offers no list, and lists again once it does", async () => {
      const { list, set, fault } = await begin();
      set([instance(1)]);
      fault("NotEnabled");
      expect(await list()).toEqual({ kind: "NotEnabled", message: expect.stringMatching(/./) });
      expect(await list()).toEqual({ kind: "Complete", instances: [instance(1)] });
    });

    it("gives up a platform that does not answer", async () => {
      const { list, fault } = await begin({ deadline: "Short" });
      fault("Silent");
      expect(await list()).toEqual({ kind: "Failed", reason: "Timeout", message: expect.stringMatching(/./), retryAfterMs: null });
    });
  });
}

function sorted(listing: Listing): Listing {
  if (listing.kind !== "Complete") return listing;
  return { ...listing, instances: listing.instances.toSorted((a, b) => (a.doId < b.doId ? -1 : 1)) };
}
