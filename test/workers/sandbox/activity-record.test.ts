/** What is remembered of a user's traffic, over a storage and a clock of the test's own. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Activity, PENDING_LIMIT_MS, PERSIST_INTERVAL_MS } from "../../../src/sandbox/activity.ts";
import { Ledger } from "../../../src/sandbox/ledger.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});

afterEach(() => {
  vi.useRealTimers();
});

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

function setUp() {
  const records = new Map<string, unknown>();
  const writes: string[] = [];
  const storage = {
    get: (key: string) => records.get(key),
    put: (key: string, value: unknown) => {
      writes.push(key);
      records.set(key, value);
    },
  } as unknown as SyncKvStorage;
  const ledger = new Ledger(storage);
  const remember = () => new Activity(storage, ledger, () => Date.now());
  const replaceContainer = (startId: string) => ledger.update({ container: { startId, startedTime: Date.now() } });
  replaceContainer("start-1");
  /** At each moment of a while in which `happen` does so again and again. */
  const expectRemembered = (activity: Activity, happen = () => {}) => {
    for (let ms = 0; ms < 10 * PERSIST_INTERVAL_MS; ms += 100) {
      happen();
      expect(Date.now() - (remember().time ?? -Infinity)).toBeLessThanOrEqual(PERSIST_INTERVAL_MS);
      expect(activity.time).toBe(Date.now());
      vi.advanceTimersByTime(100);
    }
  };
  return {
    activity: remember(),
    /** What an object that lost its memory knows. */
    remember,
    replaceContainer,
    expectRemembered,
    pass: (ms: number) => vi.advanceTimersByTime(ms),
    writes: () => writes.filter((key) => key === "mooring:activity").length,
  };
}

test("a container that no traffic has reached has no activity", () => {
  expect(setUp().activity.time).toBeNull();
});

test("a visit counts from its begin to its end", () => {
  const { activity, pass } = setUp();
  pass(SECOND_MS);
  const visit = activity.begin();
  expect(activity.time).toBe(SECOND_MS);
  pass(60 * SECOND_MS);
  expect(activity.time).toBe(61 * SECOND_MS);
  visit.end();
  pass(60 * SECOND_MS);
  expect(activity.time).toBe(61 * SECOND_MS);
});

test("a second end changes nothing", () => {
  const { activity, pass } = setUp();
  const visit = activity.begin();
  visit.end();
  pass(SECOND_MS);
  visit.end();
  expect(activity.time).toBe(0);
});

test("a touch after the end counts, but only at its moment", () => {
  const { activity, pass } = setUp();
  const visit = activity.begin();
  visit.end();
  pass(SECOND_MS);
  visit.touch();
  pass(SECOND_MS);
  expect(activity.time).toBe(SECOND_MS);
});

test("the visits of several users count together", () => {
  const { activity, pass } = setUp();
  const long = activity.begin();
  pass(SECOND_MS);
  activity.begin().end();
  pass(SECOND_MS);
  expect(activity.time).toBe(2 * SECOND_MS);
  long.end();
  pass(SECOND_MS);
  expect(activity.time).toBe(2 * SECOND_MS);
});

test("a visit that never ends counts for an hour after its last sign of life, and then lets the object rest", () => {
  const { activity, pass } = setUp();
  const visit = activity.begin();
  pass(PENDING_LIMIT_MS - SECOND_MS);
  visit.touch();
  const end = 2 * PENDING_LIMIT_MS - SECOND_MS;
  pass(PENDING_LIMIT_MS);
  expect(activity.time).toBe(end);
  pass(DAY_MS);
  expect(activity.time).toBe(end);
  expect(vi.getTimerCount()).toBe(0);
});

test("a visit that was given up counts again from its next sign of life, and its end", () => {
  const { activity, pass } = setUp();
  const visit = activity.begin();
  pass(DAY_MS);
  visit.touch();
  pass(SECOND_MS);
  expect(activity.time).toBe(DAY_MS + SECOND_MS);
  pass(DAY_MS);
  visit.end();
  expect(activity.time).toBe(2 * DAY_MS + SECOND_MS);
});

test("a timer runs while something is pending, and no longer", () => {
  const { activity } = setUp();
  const visits = [activity.begin(), activity.begin()];
  visits[0]?.end();
  expect(vi.getTimerCount()).toBe(1);
  visits[1]?.end();
  expect(vi.getTimerCount()).toBe(0);
});

test("what reached a container says nothing about the next, whether it was over, pending or stored", () => {
  const { activity, remember, replaceContainer, pass } = setUp();
  activity.begin().end();
  const pending = activity.begin();
  pass(SECOND_MS);
  replaceContainer("start-2");
  expect([activity.time, remember().time]).toEqual([null, null]);
  pending.touch();
  pending.end();
  expect([activity.time, remember().time]).toEqual([null, null]);
  activity.begin().end();
  pass(SECOND_MS);
  pending.touch();
  expect([activity.time, remember().time]).toEqual([SECOND_MS, SECOND_MS]);
});

test("neither does what reached an earlier container of the same start", () => {
  const { activity, replaceContainer, pass } = setUp();
  activity.begin().end();
  pass(SECOND_MS);
  replaceContainer("start-1");
  expect(activity.time).toBeNull();
});

test("asking stores nothing", () => {
  const { activity, pass, writes } = setUp();
  expect(activity.time).toBeNull();
  expect(writes()).toBe(0);
  const visit = activity.begin();
  visit.end();
  pass(DAY_MS);
  expect(activity.time).toBe(0);
  expect(writes()).toBe(1);
});

test("any number of calls stores one record in each interval", () => {
  const { activity, pass, writes } = setUp();
  for (let ms = 0; ms < 3 * PERSIST_INTERVAL_MS; ms += 100) {
    activity.begin().end();
    pass(100);
  }
  expect(writes()).toBe(3);
});

test("a reset forgets no more than an interval of calls that come all the time", () => {
  const { activity, expectRemembered } = setUp();
  expectRemembered(activity, () => activity.begin().end());
});

test.for<[string, number]>([
  ["that begins when nothing was stored for long", 60_000],
  ["that begins soon after a call that was stored", 6_000],
])("a reset forgets no more than an interval of a long call %s", ([, ms]) => {
  const { activity, pass, expectRemembered } = setUp();
  activity.begin().end();
  pass(ms);
  activity.begin();
  expectRemembered(activity);
});

test("nor does it after another reset, nor of a call that shows signs of life", () => {
  const { activity, remember, pass, expectRemembered } = setUp();
  activity.begin().end();
  pass(6_000);
  const later = remember();
  const visit = later.begin();
  expectRemembered(later, () => visit.touch());
});
