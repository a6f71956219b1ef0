/** design.md section 7: `random(1 s, min(300 s, 5 s · 2ⁿ))`, and how long a look that gave no answer is put off. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FORGIVE_AFTER_MS, backoffMs, patienceMs } from "../../src/controller/backoff.ts";

fc.configureGlobal({ seed: 794_825 });

/** From 0 up to, not including, 1. */
const ALMOST_ONE = 1 - Number.EPSILON;
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const failures = fc.integer({ min: 0, max: 100_000 });

type Row = readonly [situation: string, failures: number, least: number, middle: number, most: number];

// oxfmt-ignore
const table: readonly Row[] = [
  ["the first failure",             1,      1000, 3000,    5000],
  ["the second",                    2,      1000, 5500,    10_000],
  ["the third",                     3,      1000, 10_500,  20_000],
  ["the last below the cap",        6,      1000, 80_500,  160_000],
  ["the first at the cap",          7,      1000, 150_500, 300_000],
  ["a great many failures",         99_999, 1000, 150_500, 300_000],
  ["no failure at all waits as for the first", 0, 1000, 3000, 5000],
];

test.for(table)("%s", ([, count, ...expected]) => {
  expect([0, 0.5, ALMOST_ONE].map((luck) => backoffMs(count, luck))).toEqual(expected);
});

test("a backoff is a whole number of milliseconds between a second and five minutes", () => {
  fc.assert(
    fc.property(failures, chance, (count, luck) => {
      const wait = backoffMs(count, luck);
      expect(Number.isInteger(wait)).toBe(true);
      expect(wait).toBeGreaterThanOrEqual(1000);
      expect(wait).toBeLessThanOrEqual(Math.min(300_000, 5000 * 2 ** Math.max(0, count - 1)));
    }),
  );
});

test("with the same luck, more failures never wait less", () => {
  fc.assert(fc.property(failures, chance, (count, luck) => backoffMs(count + 1, luck) >= backoffMs(count, luck)));
});

test("failures are forgiven after ten minutes", () => {
  expect(FORGIVE_AFTER_MS).toBe(10 * 60 * 1000);
});

type PatienceRow = readonly [situation: string, elapsedMs: number, expected: number];

// oxfmt-ignore
const patience: readonly PatienceRow[] = [
  ["nothing waited yet",                       0,              1000],
  ["half as long again as it has waited",      5000,           2500],
  ["whole milliseconds",                       4001,           2001],
  ["no longer than the cap",                   10_000_000,     30_000],
  ["a clock that went back waits the floor",   -5000,          1000],
];

test.for(patience)("%s", ([, elapsedMs, expected]) => {
  expect(patienceMs(elapsedMs, 1000, 30_000)).toBe(expected);
});
