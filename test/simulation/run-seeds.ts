/** Many days, one after the other, and what came of all of them. */
import { type ScriptOptions, writeScript } from "./script.ts";
import { type DayResult, type PlayOptions, play } from "./simulate.ts";

/** The one object that `npm run simulate -- --json` prints. */
export interface Report {
  readonly seeds: number;
  /** Ticks that were played. */
  readonly steps: number;
  readonly violations: number;
  readonly leakedInstanceMinutes: number;
  readonly wrongfulKills: number;
  /** Good ones, by their sandbox's word. */
  readonly backups: number;
  /** Containers that were ready with files from the bucket. */
  readonly restores: number;
  /** Good backups of which no row tells: no answer came before the deadline. */
  readonly lostBackups: number;
  readonly removedBackups: number;
  readonly stepsPerSecond: number;
  readonly failingSeeds: readonly number[];
}

export function runSeed(seed: number, options: ScriptOptions, how: PlayOptions = {}): Promise<DayResult> {
  return play(writeScript(seed, options), how);
}

/** `msSpent`: of processor time, for whoever measures it. */
export function reportOf(results: readonly DayResult[], msSpent: number): Report {
  const sum = (of: (result: DayResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const count = (what: string) => sum(({ counts }) => counts[what] ?? 0);
  const steps = sum((result) => result.steps);
  return {
    seeds: results.length,
    steps,
    violations: sum(({ violations }) => violations.length),
    leakedInstanceMinutes: Math.round(sum((result) => result.leakedInstanceMinutes) * 100) / 100,
    wrongfulKills: sum((result) => result.wrongfulKills),
    backups: count("backups"),
    restores: count("restored"),
    lostBackups: count("lost"),
    removedBackups: count("RemoveBackup"),
    stepsPerSecond: msSpent === 0 ? 0 : Math.round((steps * 1000) / msSpent),
    failingSeeds: results.filter(({ violations }) => violations.length > 0).map(({ seed }) => seed),
  };
}
