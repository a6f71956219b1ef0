/**
 * An Inventory whose instances the test sets, and whose faults it queues: each `list()` meets the first one that waits.
 *
 * What a listing shows is what there was when it was asked for, however long the answer takes.
 */
import type { Inventory, ListedInstance, Listing } from "../../src/controller/inventory.ts";
import type { WorldClock } from "./fake-fleet.ts";

export type FailureReason = Extract<Listing, { kind: "Failed" }>["reason"];

/**
 * - `Fails`: also what a list read in part is, since the port knows no partial listing.
 * - `Hangs`: answers nothing until the clock has moved on by `ms`, and is then given up.
 * - `Late`: answers after `ms` what there was before.
 * - `Stale`: answers, as complete, what the test says: an older `snapshot()`.
 * - `Misses`: answers, as complete, without these objects: the platform had not heard of them yet.
 */
export type InventoryFault =
  | { readonly kind: "Fails"; readonly reason: FailureReason; readonly retryAfterMs?: number }
  | { readonly kind: "NotEnabled" }
  | { readonly kind: "Hangs"; readonly ms: number }
  | { readonly kind: "Late"; readonly ms: number }
  | { readonly kind: "Stale"; readonly instances: readonly ListedInstance[] }
  | { readonly kind: "Misses"; readonly doIds: readonly string[] };

export class FakeInventory implements Inventory {
  /** By Durable Object id. */
  readonly instances = new Map<string, ListedInstance>();
  /** What was answered, oldest first. */
  readonly listings: Listing[] = [];
  /** How often a list was asked for; more than was answered while one hangs. */
  calls = 0;
  readonly #clock: Pick<WorldClock, "sleep">;
  readonly #faults: InventoryFault[] = [];

  constructor(clock: Pick<WorldClock, "sleep">) {
    this.#clock = clock;
  }

  /** Adds the instance or changes what is said of it. */
  set(doId: string, change: Partial<Omit<ListedInstance, "doId">> = {}): void {
    const known = this.instances.get(doId) ?? { doId, name: null, state: "Running", startedTime: null };
    this.instances.set(doId, { ...known, ...change });
  }

  /** For the next `times` lists, after the faults that wait already. */
  fault(fault: InventoryFault, times = 1): void {
    for (let time = 0; time < times; time += 1) this.#faults.push(fault);
  }

  /** What a complete listing would show now. */
  snapshot(): readonly ListedInstance[] {
    return [...this.instances.values()];
  }

  async list(): Promise<Listing> {
    this.calls += 1;
    const listing = await this.#answer(this.#faults.shift() ?? { kind: "Late", ms: 0 }, this.snapshot());
    this.listings.push(listing);
    return listing;
  }

  async #answer(fault: InventoryFault, instances: readonly ListedInstance[]): Promise<Listing> {
    switch (fault.kind) {
      case "Fails":
        return failed(fault.reason, fault.retryAfterMs);
      case "NotEnabled":
        return { kind: "NotEnabled", message: "The list is not enabled." };
      case "Hangs":
        await this.#clock.sleep(fault.ms);
        return failed("Timeout");
      case "Late":
        if (fault.ms > 0) await this.#clock.sleep(fault.ms);
        return { kind: "Complete", instances };
      case "Stale":
        return { kind: "Complete", instances: fault.instances };
      case "Misses":
        return { kind: "Complete", instances: instances.filter(({ doId }) => !fault.doIds.includes(doId)) };
    }
  }
}

function failed(reason: FailureReason, retryAfterMs: number | null = null): Listing {
  return { kind: "Failed", reason, message: `The list failed: ${reason}.`, retryAfterMs };
}
