/** Every workspace's turn comes once per interval, whatever the times of the rounds (invariants 7 and 13). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { completeResync, resyncTime, resyncWindow } from "../../src/controller/resync.ts";
import type { ResyncWindow } from "../../src/store/due.ts";
import { NOW } from "../support/builders.ts";

fc.configureGlobal({ seed: 794_825 });

const INTERVAL = 300_000;
/** A moment at which an interval begins. */
const LAP = NOW - (NOW % INTERVAL);

type WindowRow = readonly [situation: string, since: number, now: number, expected: string];

// oxfmt-ignore
const windows: readonly WindowRow[] = [
  ["a second",                                       0,           1000,                "(0, 3333]"],
  ["a round just after another",                     1000,        1001,                "(3333, 3336]"],
  ["two rounds in the same millisecond",             1000,        1000,                "none"],
  ["a clock that went back",                         1000,        999,                 "none"],
  ["the end of an interval",                         INTERVAL - 1, INTERVAL,           "(999996, 0]"],
  ["across the end of an interval",                  INTERVAL - 1000, INTERVAL + 1000, "(996666, 3333]"],
  ["all but a millisecond of an interval",           1000,        INTERVAL + 999,      "(3333, 3330]"],
  ["an interval",                                    1000,        INTERVAL + 1000,     "(3333, 3333]"],
  ["much more than an interval is one of each",      1000,        9 * INTERVAL + 5000, "(16666, 16666]"],
];

test.for(windows)("%s", ([, since, now, expected]) => {
  const window = windowSince(LAP + since, LAP + now, INTERVAL);
  expect(window === null ? "none" : `(${window.from.phase}, ${window.to}]`).toBe(expected);
});

const intervals = fc.oneof(fc.constant(INTERVAL), fc.integer({ min: 1000, max: 86_400_000 }));
const phases = fc.integer({ min: 0, max: 999_999 });

test("a workspace is looked at exactly once per interval, however the rounds divide it", () => {
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 });
  fc.assert(
    fc.property(intervals, fc.nat(), fc.integer({ min: 1, max: 3 }), cuts, fc.array(phases), (interval, begin, laps, parts, sample) => {
      const marks = parts.flatMap((part) => Array.from({ length: laps }, (_, lap) => begin + Math.round((lap + part) * interval)));
      const ends = Array.from({ length: laps }, (_, lap) => begin + (lap + 1) * interval);
      const rounds = [...marks, ...ends].toSorted((a, b) => a - b);
      for (const phase of [...sample, 0, 999_999, phaseOf(begin, interval)]) {
        expect({ phase, looks: countLooks(begin, rounds, interval, phase) }).toEqual({ phase, looks: laps });
      }
    }),
  );
});

test("a gap longer than the interval gives each workspace one look", () => {
  fc.assert(
    fc.property(intervals, fc.nat(), fc.double({ min: 1, max: 50, noNaN: true }), phases, (interval, begin, gap, phase) => {
      const now = begin + Math.ceil(interval * gap);
      expect(includes(windowSince(begin, now, interval), phase)).toBe(true);
    }),
  );
});

test("an idle second costs no more looks than its share of the interval", () => {
  const second = windowSince(LAP + 5000, LAP + 6000, INTERVAL);
  expect(second && second.to - second.from.phase).toBeLessThanOrEqual(3334);
});

test("the time that is kept is not after now, and not before the window", () => {
  fc.assert(
    fc.property(intervals, fc.nat(), fc.integer({ min: 1, max: 90_000_000 }), phases, (interval, since, gap, phase) => {
      const now = since + gap;
      const time = resyncTime({ time: since, place: { phase, uid: "u" } }, now, interval);
      expect(time).toBeGreaterThanOrEqual(since);
      expect(time).toBeLessThanOrEqual(now);
    }),
  );
});

test("a turn that found no room comes in the next round, also where workspaces share it, and in the next tick", () => {
  fc.assert(
    fc.property(intervals, fc.nat(), fc.double({ min: 0, max: 1.5, noNaN: true }), phases, fc.integer({ min: 0, max: 5 }), (...input) => {
      const [interval, since, gap, taken, distance] = input;
      const now = since + 1 + Math.round(gap * interval);
      const refused = (taken + distance) % 1_000_000;
      const window = windowSince(since, now, interval);
      fc.pre(window !== null && orderIn(window, taken) <= orderIn(window, refused) && includes(window, taken) && includes(window, refused));
      const progress = { time: since, place: { phase: taken, uid: "a" } };
      const rest = resyncWindow(progress, now, interval);
      expect(includes(rest, refused, "b")).toBe(true);
      expect(includes(rest, taken, "a")).toBe(false);
      expect(includes(windowSince(resyncTime(progress, now, interval), now, interval), refused)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("a clock that was set back gives no turn a second time", () => {
  expect(completeResync({ time: 1000, place: null }, 900)).toEqual({ time: 1000, place: null });
});

function windowSince(time: number, now: number, interval: number): ResyncWindow | null {
  return resyncWindow({ time, place: null }, now, interval);
}

/** As `due.ts` selects: above `from`, up to `to`, round the end where `to` is not above `from`. */
function includes(window: ResyncWindow | null, phase: number, uid = "u"): boolean {
  if (window === null) return false;
  const { from, to, wraps } = window;
  const above = phase > from.phase || (phase === from.phase && uid > from.uid);
  return wraps ? above || phase <= to : above && phase <= to;
}

function orderIn({ from }: ResyncWindow, phase: number): number {
  return phase > from.phase ? phase : phase + 1_000_000;
}

function countLooks(begin: number, rounds: readonly number[], interval: number, phase: number): number {
  const looks = rounds.filter((now, index) => includes(windowSince(rounds[index - 1] ?? begin, now, interval), phase));
  return looks.length;
}

function phaseOf(time: number, interval: number): number {
  return Math.floor(((time % interval) / interval) * 1_000_000);
}
