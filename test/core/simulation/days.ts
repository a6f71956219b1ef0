/** Simulated days as tests: some seeds at a time, so that two files share the processors. */
import { describe, expect, test } from "vitest";
import { FAULT_KINDS } from "../../simulation/faults.ts";
import { runSeed } from "../../simulation/run-seeds.ts";
import { type DayResult, START_TIME } from "../../simulation/simulate.ts";

export interface Days {
  readonly from: number;
  readonly count: number;
  readonly workspaces: number;
}

const TICKS = 1440;
const TIMEOUT_MS = 300_000;
const SEEDS_AT_ONCE = 10;

const ACTIONS = ["Start", "Stop", "Destroy", "Suspend", "Expire", "Forget", "DestroyOrphan", "Enqueue", "conflict", "expired", "forgotten"];
const ENDS = ["ended by itself", "ended by stop", "ended by destroy", "ended by destroyOrphan", "ended by start", "starts failed"];
const OTHERS = ["ticks without the lease", "ticks failed", "countedSweeps", "1", "2", "3", "4", "5", "6", "8", "11", "12"];
const FILES = ["Backup", "RemoveBackup", "backups", "restored", "lost"];
/** What must have happened in so many days for them to mean something. */
const EVENTFUL: readonly string[] = [...FAULT_KINDS, ...ACTIONS, ...ENDS, ...OTHERS, ...FILES];

export function daysHold(all: readonly Days[]): void {
  describe("a simulated day keeps every promise", () => {
    const results: DayResult[] = [];

    for (const { from, count, workspaces } of all.flatMap(inParts)) {
      test(`seeds ${from} to ${from + count - 1}, ${workspaces} workspaces each`, { timeout: TIMEOUT_MS }, async () => {
        for (let seed = from; seed < from + count; seed += 1) {
          const result = await runSeed(seed, { workspaces, ticks: TICKS, faultRate: null });
          results.push(result);
          expect(result.violations.map(show), `npm run simulate -- --seed ${seed} --workspaces ${workspaces}`).toEqual([]);
          expect([result.leakedInstanceMinutes, result.wrongfulKills]).toEqual([0, 0]);
        }
      });
    }

    test("much happened, every kind of fault included, and every promise was looked at", () => {
      const happened = (what: string) => results.some(({ counts }) => (counts[what] ?? 0) > 0);
      expect(EVENTFUL.filter((what) => !happened(what))).toEqual([]);
    });
  });
}

function inParts({ from, count, workspaces }: Days): readonly Days[] {
  const parts = Math.ceil(count / SEEDS_AT_ONCE);
  return Array.from({ length: parts }, (_, part) => ({
    from: from + part * SEEDS_AT_ONCE,
    count: Math.min(SEEDS_AT_ONCE, count - part * SEEDS_AT_ONCE),
    workspaces,
  }));
}

function show({ invariant, time, message }: DayResult["violations"][number]): string {
  return `(${invariant}) minute ${((time - START_TIME) / 60_000).toFixed(3)}: ${message}`;
}
