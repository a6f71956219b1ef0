/** What befalls a process in a call of its own: it may fail, be slow, be lost, or be the last. What arrived stays done. */
import type { Chance } from "./chance.ts";
import { type Clock, never } from "./clock.ts";
import { type Faults, STORE_FAULTS } from "./faults.ts";
import type { Process } from "./process.ts";

interface CallWorld {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly storeDownUntilTime: number;
}

const SLOW_MS = 15_000;

/** One call of the database. */
export function callStore<Result>(
  process: Process,
  { clock, faults, chance, storeDownUntilTime }: CallWorld,
  effect: () => Result,
): Promise<Result> {
  if (process.isDead) return never();
  const fortune = process.next();
  if (fortune === "dies") return lastCall(process, clock, chance, effect);
  const fault = clock.now() < storeDownUntilTime ? "storeFails" : faults.draw(STORE_FAULTS);
  if (fault !== null || fortune === "stalls") process.troubles += 1;
  if (fault === "storeFails") return Promise.reject(new Error("D1_ERROR: Network connection lost."));
  if (fault === null && fortune === "lives") return Promise.resolve(effect());
  const arrivesInMs = fault === "storeSlow" ? chance.lasting(10, SLOW_MS) : 0;
  const returnsInMs = fortune === "stalls" ? (process.fortune.stall?.ms ?? 0) : arrivesInMs;
  return new Promise((resolve, reject) => {
    clock.after(arrivesInMs, () => {
      const result = effect();
      clock.after(returnsInMs, () => {
        // Whoever counts on what was just done must know that its answer was no ordinary one.
        process.troubles += 1;
        if (process.isDead) return;
        if (fault === "storeAnswerLost") reject(new Error("D1_ERROR: Network connection lost."));
        else resolve(result);
      });
    });
  });
}

/** Its process dies with it: it arrives at once, or later, or never. */
export function lastCall<Result>(process: Process, clock: Clock, chance: Chance, effect: () => Result): Promise<Result> {
  process.isDead = true;
  process.troubles += 1;
  if (chance.happens(0.5)) clock.after(chance.happens(0.5) ? 0 : chance.lasting(1, 10_000), () => void effect());
  return never();
}

/** One call of a sandbox or of the bucket; what befalls it on its way is theirs to say. */
export async function callOther<Result>(process: Process, day: CallWorld, effect: () => Promise<Result>): Promise<Result> {
  const { clock, chance } = day;
  if (process.isDead) return never();
  const fortune = process.next();
  if (fortune === "dies") return lastCall(process, clock, chance, () => void effect().catch(() => {})) as never;
  const result = await effect();
  if (fortune === "stalls") {
    process.troubles += 1;
    await clock.sleep(process.fortune.stall?.ms ?? 0);
  }
  return process.isDead ? never() : result;
}
