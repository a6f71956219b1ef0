/** (6) No backup counts as use: what is idle for too long is suspended, however often it is backed up. Counted are quiet ticks only. */
import type { Instant } from "../../src/workspace.ts";
import type { Expect } from "./contents.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Container } from "./surroundings.ts";
import { type Wishes, hashOf } from "./wishes.ts";
import type { World } from "./world.ts";

const TICKS = 3;
/** What a call that went wrong puts off. */
const AFTERMATH_MS = 60_000;

export class IdleWatch {
  readonly #store: MemoryStore;
  readonly #world: World;
  readonly #wishes: Wishes;
  /** How long one may take. */
  readonly #backupMs: number;
  readonly #expect: Expect;
  readonly #ticks = new Map<Container, number>();
  readonly #disturbedTimes = new Map<string, Instant>();

  constructor(store: MemoryStore, world: World, wishes: Wishes, backupMs: number, expect: Expect) {
    this.#store = store;
    this.#world = world;
    this.#wishes = wishes;
    this.#backupMs = backupMs;
    this.#expect = expect;
  }

  disturbed(doId: string, now: Instant): void {
    this.#disturbedTimes.set(doId, now);
  }

  quietTick(startTime: Instant): void {
    for (const container of this.#world.running) {
      const overdueTime = this.#overdueTime(container);
      if (overdueTime === null || overdueTime > startTime) {
        this.#ticks.delete(container);
        continue;
      }
      const ticks = (this.#ticks.get(container) ?? 0) + 1;
      this.#ticks.set(container, ticks);
      this.#expect(ticks <= TICKS, () => `${container.sandbox.sandboxId} runs although it is idle for too long`);
    }
    for (const container of this.#ticks.keys()) if (container.endedTime !== null) this.#ticks.delete(container);
  }

  /** When a container that may be suspended should have been; null where there is none such, or something else goes on. */
  #overdueTime({ sandbox, verifiedTime, startedTime, activityTime, specHash }: Container): Instant | null {
    const row = this.#store.tables.workspaces.get(sandbox.uid ?? "");
    if (row === undefined || verifiedTime === null || this.#store.instanceOf(row.uid)?.doId !== sandbox.doId) return null;
    const { spec, wakeTime, status, generation } = row;
    if (status.observedGeneration !== generation) return null;
    if (spec === null || spec.idle === null || !this.#wishes.isToRun(row.uid) || specHash !== hashOf(spec)) return null;
    const usedTime = Math.max(startedTime, activityTime ?? 0, wakeTime ?? 0);
    const disturbedTime = (this.#disturbedTimes.get(sandbox.doId) ?? 0) + AFTERMATH_MS;
    const dueTime = Math.max(usedTime + spec.idle.timeoutSeconds * 1000, verifiedTime, disturbedTime);
    // What was begun before may go on.
    const backupTime = this.#store.tables.backups.activeOf(row.uid)?.startedTime ?? null;
    return backupTime !== null && backupTime < dueTime ? Math.max(dueTime, backupTime + this.#backupMs) : dueTime;
  }
}
