/** Promises 5 and 10: a deletion whose sandbox answers converges, whatever else goes on. Counted are only ticks that nothing disturbed. */
import type { Instant } from "../../src/workspace.ts";
import type { MemoryStore } from "./memory-store.ts";

/** So many of them in a row are enough. */
const TICKS = 6;
/** What a call that went wrong puts off. */
const AFTERMATH_MS = 60_000;

export class DeletionWatch {
  readonly #store: MemoryStore;
  readonly #expect: (holds: boolean, message: () => string) => void;
  /** By uid. */
  readonly #ticks = new Map<string, number>();
  /** By DO: when a call to it last went wrong. */
  readonly #disturbed = new Map<string, Instant>();

  constructor(store: MemoryStore, expect: (holds: boolean, message: () => string) => void) {
    this.#store = store;
    this.#expect = expect;
  }

  disturbed(doId: string, now: Instant): void {
    this.#disturbed.set(doId, now);
  }

  quietTick(startTime: Instant): void {
    for (const { uid, deletionTime, name, finalBackup, finalBackupDeadlineTime } of this.#store.tables.workspaces.values()) {
      // Until then it may wait for its final backup.
      const untilTime = finalBackup === "Skip" ? deletionTime : (finalBackupDeadlineTime ?? deletionTime);
      if (deletionTime === null || untilTime === null || untilTime > startTime) continue;
      const doId = this.#store.instanceOf(uid)?.doId;
      const isDisturbed = doId !== undefined && (this.#disturbed.get(doId) ?? 0) >= startTime - AFTERMATH_MS;
      const ticks = isDisturbed ? 0 : (this.#ticks.get(uid) ?? 0) + 1;
      this.#ticks.set(uid, ticks);
      this.#expect(ticks <= TICKS, () => `${name} is still being deleted after ${ticks} quiet ticks`);
    }
  }
}
