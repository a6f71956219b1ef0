/** What the platform's list says of the world: late at times, in parts, in other words, or nothing. */
import type { ListedInstance, Listing } from "../../src/controller/inventory.ts";
import type { Instant } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { type Faults, LIST_FAULTS } from "./faults.ts";
import type { Container } from "./surroundings.ts";
import type { World } from "./world.ts";

/** What the list suffers from for a while. */
export type ListTrouble =
  | { readonly kind: "Stale"; readonly lagMs: number }
  | { readonly kind: "Failing"; readonly reason: FailureReason }
  | { readonly kind: "NotEnabled" | "Wordless" | "Nameless" };

type FailureReason = Extract<Listing, { kind: "Failed" }>["reason"];

const REASONS: readonly FailureReason[] = ["Unauthorised", "NotFound", "RateLimited", "Unavailable", "Timeout", "Malformed", "Changed"];
/** The product gives up a list after so long. */
const TIMEOUT_MS = 20_000;
/** A name is known to the platform only so long after the start. */
const NAME_LAG_MS = 90_000;

export interface GivenListing {
  readonly listing: Listing;
  /** As of when it is true; null where it says nothing, or not in the words that were asked for. */
  readonly asOfTime: Instant | null;
}

export class PlatformList {
  trouble: ListTrouble | null = null;
  readonly #world: World;
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #faults: Faults;

  constructor(world: World, clock: Clock, chance: Chance, faults: Faults) {
    this.#world = world;
    this.#clock = clock;
    this.#chance = chance;
    this.#faults = faults;
  }

  async list(): Promise<GivenListing> {
    const fault = this.#faults.draw(LIST_FAULTS);
    if (fault === "listFails") return this.#failed(this.#chance.pick(REASONS));
    const { trouble } = this;
    if (trouble?.kind === "Failing") return this.#failed(trouble.reason);
    if (trouble?.kind === "NotEnabled") return { listing: { kind: "NotEnabled", message: "The list is not enabled." }, asOfTime: null };
    const asOfTime = this.#clock.now() - (trouble?.kind === "Stale" ? trouble.lagMs : 0);
    const instances = this.#instancesAt(asOfTime);
    if (fault === "listSlow") await this.#clock.sleep(this.#chance.lasting(500, 2 * TIMEOUT_MS));
    if (trouble?.kind !== "Wordless") return { listing: { kind: "Complete", instances }, asOfTime };
    const illegible = instances.map((instance) => (this.#chance.happens(0.5) ? { ...instance, state: "Unknown" as const } : instance));
    return { listing: { kind: "Complete", instances: illegible }, asOfTime: null };
  }

  async #failed(reason: FailureReason): Promise<GivenListing> {
    if (reason === "Timeout") await this.#clock.sleep(TIMEOUT_MS);
    const retryAfterMs = reason === "RateLimited" ? 10_000 : null;
    return { listing: { kind: "Failed", reason, message: `The list failed: ${reason}.`, retryAfterMs }, asOfTime: null };
  }

  #instancesAt(time: Instant): readonly ListedInstance[] {
    const listed = new Map<string, ListedInstance>();
    for (const container of this.#world.ended) {
      if (container.startedTime > time) continue;
      const isRunning = (container.endedTime ?? 0) > time;
      if (isRunning) listed.set(container.sandbox.doId, this.#listed(container, "Running", time));
      else if (!listed.has(container.sandbox.doId)) listed.set(container.sandbox.doId, this.#listed(container, "Stopped", time));
    }
    for (const container of this.#world.running) {
      if (container.startedTime <= time) listed.set(container.sandbox.doId, this.#listed(container, "Running", time));
    }
    return [...listed.values()];
  }

  #listed({ sandbox, startedTime }: Container, state: "Running" | "Stopped", time: Instant): ListedInstance {
    const isNamed = this.trouble?.kind !== "Nameless" && time - startedTime > NAME_LAG_MS;
    return { doId: sandbox.doId, name: isNamed ? sandbox.sandboxId : null, state, startedTime };
  }
}
