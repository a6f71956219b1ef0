/** Which good backups are no longer kept. Invariant 6. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RetentionCandidate } from "../../src/backup.ts";
import { isDisposable } from "../../src/controller/retention.ts";
import { HOUR } from "../support/backup-builders.ts";
import { NOW } from "../support/builders.ts";

fc.configureGlobal({ seed: 794_825 });

const KEEP_MS = 24 * HOUR;

/** The third of a workspace that keeps two, or an hour's. */
function candidate(overrides: Partial<RetentionCandidate> = {}): RetentionCandidate {
  const retention = { keepLast: 2, keepForSeconds: 3600 };
  return { id: "backup-1", endedTime: NOW - 2 * HOUR, rank: 3, retention, workspaceGoneTime: null, referred: false, ...overrides };
}

const onlyLast = { keepLast: 2, keepForSeconds: null };
const onlyOne = { keepLast: 1, keepForSeconds: 0 };

type Row = readonly [situation: string, candidate: RetentionCandidate, expected: "kept" | "removed"];

// oxfmt-ignore
const table: readonly Row[] = [
  ["beyond both",                                      candidate(),                                              "removed"],
  ["one of the last",                                  candidate({ rank: 2 }),                                   "kept"],
  ["young enough",                                     candidate({ endedTime: NOW - HOUR }),                     "kept"],
  ["too old by a millisecond",                         candidate({ endedTime: NOW - HOUR - 1 }),                 "removed"],
  ["young, and only the last are kept",                candidate({ endedTime: NOW, retention: onlyLast }),       "removed"],
  ["one of the last, and only those are kept",         candidate({ rank: 2, retention: onlyLast }),              "kept"],
  ["the newest, however old",                          candidate({ rank: 1, endedTime: 0, retention: { ...onlyOne, keepLast: 0 } }), "kept"],
  ["the one before it, where nothing else is kept",    candidate({ rank: 2, retention: onlyOne }),               "removed"],
  ["a spec that can not be read keeps everything",     candidate({ retention: null, endedTime: 0 }),             "kept"],
  ["a record restores from it",                        candidate({ referred: true }),                            "kept"],
  ["its workspace is gone, but not for long",          candidate({ workspaceGoneTime: NOW - KEEP_MS + 1 }),      "kept"],
  ["its workspace is gone for long enough",            candidate({ workspaceGoneTime: NOW - KEEP_MS }),          "removed"],
  ["though it is the newest",                          candidate({ workspaceGoneTime: NOW - KEEP_MS, rank: 1 }), "removed"],
  ["though nothing else is known",                     candidate({ workspaceGoneTime: NOW - KEEP_MS, retention: null }), "removed"],
  ["a record still restores from it",                  candidate({ workspaceGoneTime: 0, referred: true }),      "kept"],
  ["what was its retention keeps nothing any more",    candidate({ workspaceGoneTime: NOW - 1, rank: 9 }),       "kept"],
];

test.for(table)("%s", ([, situation, expected]) => {
  expect(isDisposable(situation, NOW, KEEP_MS) ? "removed" : "kept").toBe(expected);
});

const times = fc.integer({ min: NOW - 48 * HOUR, max: NOW });
const candidates = fc.record({
  id: fc.constant("backup-1"),
  endedTime: times,
  rank: fc.integer({ min: 1, max: 6 }),
  retention: fc.option(
    fc.record({ keepLast: fc.integer({ min: 1, max: 5 }), keepForSeconds: fc.option(fc.integer({ min: 0, max: 100_000 })) }),
  ),
  workspaceGoneTime: fc.option(times),
  referred: fc.boolean(),
});

test("what is kept stays kept as long as only time passes backwards, and the floor holds in every case", () => {
  fc.assert(
    fc.property(candidates, fc.nat({ max: 48 * HOUR }), (each, earlier) => {
      if (!isDisposable(each, NOW, KEEP_MS)) expect(isDisposable(each, NOW - earlier, KEEP_MS)).toBe(false);
      const isFloor = each.referred || (each.workspaceGoneTime === null && each.rank === 1);
      if (isFloor) expect(isDisposable(each, NOW + 1e12, KEEP_MS)).toBe(false);
    }),
  );
});
