/** The platform's list of what runs in the fake world. What the test pins is said whatever runs. */
import type { ListedInstance, Listing } from "../../../src/controller/inventory.ts";
import type { FakeWorld, WorldClock } from "../../support/fake-fleet.ts";
import { FakeInventory } from "../../support/fake-inventory.ts";

export class WorldInventory extends FakeInventory {
  readonly #world: FakeWorld;
  readonly #pinned = new Map<string, Partial<ListedInstance>>();

  constructor(clock: Pick<WorldClock, "sleep">, world: FakeWorld) {
    super(clock);
    this.#world = world;
  }

  pin(doId: string, change: Partial<ListedInstance>): void {
    this.#pinned.set(doId, change);
  }

  unpin(doId: string): void {
    this.#pinned.delete(doId);
  }

  /** What stopped is listed no longer, as on the platform. */
  follow(): void {
    this.instances.clear();
    for (const { doId, sandboxId, startedTime } of this.#world.running) {
      this.set(doId, { name: sandboxId === doId ? null : sandboxId, startedTime });
    }
    for (const [doId, change] of this.#pinned) this.set(doId, change);
  }

  override async list(): Promise<Listing> {
    this.follow();
    return super.list();
  }
}
