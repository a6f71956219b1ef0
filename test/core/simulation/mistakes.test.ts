/** The simulation can fail: each mistake that is put in is found, by the promise that it breaks. */
import { expect, test } from "vitest";
import { BACKUP_MISTAKES } from "../../simulation/backup-mistakes.ts";
import { MISTAKES as OTHERS } from "../../simulation/mistakes.ts";
import { runSeed } from "../../simulation/run-seeds.ts";
import { shrink } from "../../simulation/shrink.ts";
import { writeScript } from "../../simulation/script.ts";
import { play } from "../../simulation/simulate.ts";

const MISTAKES = [...OTHERS, ...BACKUP_MISTAKES];
const OPTIONS = { workspaces: 60, ticks: 600, faultRate: null };
/** Found in one of so many days. */
const SEEDS = 12;

test.for(MISTAKES)("$name is found", { timeout: 120_000 }, async (mistake, { expect }) => {
  const found = new Set<number>();
  for (let seed = 1; seed <= SEEDS && !mistake.breaks.some((invariant) => found.has(invariant)); seed += 1) {
    const script = mistake.script?.(seed) ?? writeScript(seed, OPTIONS);
    const { violations } = await play(script, { mistake });
    for (const { invariant } of violations) found.add(invariant);
  }
  expect(
    mistake.breaks.filter((invariant) => found.has(invariant)),
    `found: ${[...found].join()}`,
  ).not.toEqual([]);
});

test.for(MISTAKES.filter(({ script }) => script !== undefined))("without $name its day is a good one", async (mistake, { expect }) => {
  const { violations } = await play(mistake.script?.(1) ?? writeScript(1, OPTIONS));
  expect(violations.filter(({ invariant }) => mistake.breaks.includes(invariant))).toEqual([]);
});

test("the same seed gives the same day", { timeout: 60_000 }, async () => {
  const [first, second] = [await runSeed(7, OPTIONS), await runSeed(7, OPTIONS)];
  expect(second).toEqual(first);
});

test("a failing day shrinks to the few things that matter", { timeout: 120_000 }, async () => {
  const mistake = MISTAKES.find(({ name }) => name === "orphans that nobody collects");
  if (mistake === undefined) throw new Error("no such mistake");
  const script = writeScript(1, { workspaces: 10, ticks: 240, faultRate: 0.1 });
  const violationOf: Parameters<typeof shrink>[2]["violationOf"] = async (candidate) =>
    (await play(candidate, { mistake })).violations.find(({ invariant }) => invariant === 3) ?? null;
  const violation = await violationOf(script);
  if (violation === null) throw new Error("the day does not fail");
  const shrunk = await shrink(script, violation, { violationOf, tries: 300 });
  expect(shrunk.script.faultRate).toBe(0);
  expect(shrunk.script.happenings.length).toBeLessThanOrEqual(2);
});
