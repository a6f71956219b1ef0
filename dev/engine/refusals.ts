import type { Container } from "./container.ts";
import type { Faults } from "./faults.ts";

/** The starts that the platform has no instance for. */
export class Refusals {
  #rule: Faults["refuseAdmission"];
  readonly #refused = new Map<string, number>();

  /** "The first n" begin anew. */
  reset({ refuseAdmission }: Faults): void {
    this.#rule = refuseAdmission;
    this.#refused.clear();
  }

  refuses(container: Container, containers: readonly Container[]): boolean {
    if (this.#rule === undefined) return false;
    const others = containers.filter((other) => other !== container && other.running).length;
    const { doId } = container.identity;
    const refused = this.#refused.get(doId) ?? 0;
    if (others < this.#rule.whileRunning || refused >= this.#rule.times) return false;
    this.#refused.set(doId, refused + 1);
    return true;
  }
}
