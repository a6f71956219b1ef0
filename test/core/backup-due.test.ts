/** When the schedule wants a backup, when a failed one is tried again, and from when on one is missed. Invariant 6. */
import { expect, test } from "vitest";
import type { BackupAttempt, BackupMemory } from "../../src/backup.ts";
import { isUnderWay, nextBackupTime, overdueSince, retryTime } from "../../src/controller/backup-due.ts";
import type { Instant, WorkspaceSpec } from "../../src/workspace.ts";
import { HOUR, attempt, backedUp, endsWith, keptRecord, memory, requested, storedBackup, underWay } from "../support/backup-builders.ts";
import { MINUTE, NOW, SECOND, readyRecord, spec } from "../support/builders.ts";
import { offset } from "../support/show.ts";

const hourly = backedUp();
const everyMinute = backedUp({ everySeconds: 60 });
const onRequest = endsWith("Require");
const none = spec();
/** Two hours ago, as the builder has it. */
const READY = NOW - 2 * HOUR;

const took = (ago: number, state: BackupAttempt["state"] = "Completed") =>
  attempt(state, { startedTime: NOW - ago, endedTime: NOW - ago + SECOND });
const failing = (failures: number, ago = 0) => attempt("Failed", { startedTime: NOW - ago - SECOND, endedTime: NOW - ago, failures });

type DueRow = readonly [situation: string, spec: WorkspaceSpec, last: BackupAttempt | null, readyTime: Instant | null, due: string];

// oxfmt-ignore
const due: readonly DueRow[] = [
  ["no backups are wished",                              none,        null,                           READY, "never"],
  ["none are wished without a request",                  onRequest,   null,                           READY, "never"],
  ["nor after one",                                      onRequest,   took(HOUR),                     READY, "never"],
  ["the first, a window after Ready",                    hourly,      null,                           NOW,   "+3600s"],
  ["the first, long overdue: one, not two",              hourly,      null,                           READY, "-3600s"],
  ["the first of what is not Ready yet",                 hourly,      null,                           null,  "never"],
  ["the next, a window after the last began",            hourly,      took(10 * MINUTE),              READY, "+3000s"],
  ["windows that were missed are not made up for",       everyMinute, took(2 * HOUR),                 READY, "-7140s"],
  ["a container that is younger than the last",          hourly,      took(10 * MINUTE),              NOW,   "+3000s"],
  ["one that was skipped counts as taken",               hourly,      took(10 * MINUTE, "Skipped"),   READY, "+3000s"],
  ["one that failed is tried again sooner",              hourly,      failing(1),                     READY, "+30s"],
  ["so is one that was abandoned",                       hourly,      attempt("Abandoned", { endedTime: NOW }), READY, "+30s"],
  ["less soon the second time",                          hourly,      failing(2),                     READY, "+60s"],
  ["and the fifth",                                      hourly,      failing(5),                     READY, "+480s"],
  ["never more seldom than every quarter of an hour",    hourly,      failing(6),                     READY, "+900s"],
  ["however often it has failed",                        hourly,      failing(2000),                  READY, "+900s"],
  ["nor more seldom than the schedule has it",           everyMinute, failing(3),                     READY, "+60s"],
  ["a failure without a count is a first one",           hourly,      failing(0),                     READY, "+30s"],
];

test.for(due)("%s", ([, wish, last, readyTime, expected]) => {
  const time = nextBackupTime(keptRecord({ last }, { readyTime }), wish);
  expect(time === null ? "never" : offset(time)).toBe(expected);
});

test("where backups are not taken none is due, and none is missed", () => {
  expect(nextBackupTime(readyRecord(), hourly)).toBeNull();
  expect(overdueSince(readyRecord({ readyTime: 0 }), hourly, NOW)).toBeNull();
});

test("a failed one is repeated from its end on", () => {
  expect(offset(retryTime(failing(1, MINUTE)))).toBe("-30s");
});

type FailedRow = readonly [situation: string, failedAgo: number, goodAgo: number, due: string];

// oxfmt-ignore
const afterFailure: readonly FailedRow[] = [
  ["a request that fails opens no window again that has its good one", MINUTE,     10 * MINUTE, "+3000s"],
  ["a window without a good one is tried again soon",                  0,          HOUR,        "+30s"],
  ["at the end of its window a retry waits no longer",                 5 * MINUTE, HOUR - SECOND, "+1s"],
];

test.for(afterFailure)("%s", ([, failedAgo, goodAgo, expected]) => {
  const record = keptRecord({ last: failing(1, failedAgo), newest: storedBackup({ endedTime: NOW - goodAgo }) });
  expect(offset(nextBackupTime(record, hourly) ?? 0)).toBe(expected);
});

const SLACK = 10 * MINUTE;
const LATE = 2 * HOUR + SLACK;

type OverdueRow = readonly [situation: string, spec: WorkspaceSpec, newest: Instant | null, readyTime: Instant | null, since: string];

// oxfmt-ignore
const overdue: readonly OverdueRow[] = [
  ["two windows and a little after the newest",          hourly,    NOW - LATE,          NOW - 24 * HOUR, "+0s"],
  ["a millisecond before that",                          hourly,    NOW - LATE + 1,      NOW - 24 * HOUR, "-"],
  ["since then",                                         hourly,    NOW - LATE - MINUTE, NOW - 24 * HOUR, "-60s"],
  ["what slept is not missed until it has run for so long", hourly, NOW - 24 * HOUR,     NOW - LATE + 1,  "-"],
  ["nor what never was",                                 hourly,    null,                NOW - LATE + 1,  "-"],
  ["what never was is missed in the end",                hourly,    null,                NOW - LATE,      "+0s"],
  ["nothing is taken of what does not run",              hourly,    NOW - 24 * HOUR,     null,            "-"],
  ["nothing is missed without a schedule",               onRequest, NOW - 24 * HOUR,     NOW - 24 * HOUR, "-"],
  ["nor without backups",                                none,      NOW - 24 * HOUR,     NOW - 24 * HOUR, "-"],
];

test.for(overdue)("overdue: %s", ([, wish, endedTime, readyTime, expected]) => {
  const newest = endedTime === null ? null : storedBackup({ endedTime });
  const since = overdueSince(keptRecord({ newest }, { readyTime }), wish, NOW);
  expect(since === null ? "-" : offset(since)).toBe(expected);
});

type UnderWayRow = readonly [memory: string, backups: BackupMemory | null, isUnderWay: boolean];

// oxfmt-ignore
const active: readonly UnderWayRow[] = [
  ["none are taken",   null,                            false],
  ["nothing",          memory(),                        false],
  ["a request",        memory({ active: requested() }), false],
  ["a claim",          memory({ active: underWay() }),  true],
];

test.for(active)("under way: %s", ([, backups, expected]) => {
  expect(isUnderWay(backups)).toBe(expected);
});
