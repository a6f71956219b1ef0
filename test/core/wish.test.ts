/** What is wished for now: the spec, a wake, idleness, and times that come. */
import { expect, test } from "vitest";
import {
  deservesNewTry,
  expiryOf,
  heedReturn,
  idleDeadline,
  idleSince,
  isSuspendedForIdleness,
  lifetimeDeadline,
  wishedMode,
} from "../../src/controller/wish.ts";
import type { Instant, WorkspaceSpec } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  expiringSpec,
  idleRecord,
  idleSpec,
  mortalSpec,
  observedState,
  readyRecord,
  record,
  running,
  runningSpec,
  runs,
  silent,
  spec,
  stopped,
  suspendedSpec,
} from "../support/builders.ts";

const MARKED = NOW - 5 * SECOND;

type ModeRow = readonly [situation: string, record: WorkspaceRecord, spec: WorkspaceSpec, mode: string, idleSince: Instant | null];

// oxfmt-ignore
const modes: readonly ModeRow[] = [
  ["what the spec says",                                   readyRecord(),                                  runningSpec,   "Running",   null],
  ["what the spec says, suspended",                        readyRecord(),                                  suspendedSpec, "Suspended", null],
  ["a limit alone suspends nothing",                       readyRecord(),                                  idleSpec,      "Running",   null],
  ["marked as idle",                                       idleRecord(),                                   idleSpec,      "Suspended", MARKED],
  ["woken since",                                          idleRecord({ wakeTime: NOW - SECOND }),         idleSpec,      "Running",   null],
  ["woken in the very millisecond of the mark",            idleRecord({ wakeTime: MARKED }),               idleSpec,      "Running",   null],
  ["woken a millisecond before the mark",                  idleRecord({ wakeTime: MARKED - 1 }),           idleSpec,      "Suspended", MARKED],
  ["another wish since",                                   idleRecord({ generation: 2 }),                  idleSpec,      "Running",   null],
  ["another wish, which is to be suspended",               idleRecord({ generation: 2 }),                  suspendedSpec, "Suspended", null],
  ["idle, and wished Suspended anyway",                    idleRecord(),                                   spec({ ...idleSpec, operatingMode: "Suspended" }), "Suspended", MARKED],
  ["a mark without a limit means nothing",                 idleRecord(),                                   runningSpec,   "Running",   MARKED],
];

test.for(modes)("%s", ([, situation, wish, mode, since]) => {
  expect({ mode: wishedMode(situation, wish), since: idleSince(situation) }).toEqual({ mode, since });
  expect(isSuspendedForIdleness(situation, wish)).toBe(since !== null && wish.idle !== null);
});

type ReturnRow = readonly [
  situation: string,
  record: WorkspaceRecord,
  observed: Parameters<typeof heedReturn>[1],
  idleTime: Instant | null,
];

// oxfmt-ignore
const returns: readonly ReturnRow[] = [
  ["it was not used since",                    idleRecord(),       running,                                  MARKED],
  ["it was used in the millisecond of the mark", idleRecord(),     runs({ activityTime: MARKED }),           MARKED],
  ["it was used a millisecond later",          idleRecord(),       runs({ activityTime: MARKED + 1 }),       null],
  ["as a report remembers it",                 idleRecord(),       observedState("Running", { activityTime: NOW }), null],
  ["a report that knows no use",               idleRecord(),       observedState("Running", { activityTime: null }), MARKED],
  ["it stopped: its use came too late",        idleRecord(),       { kind: "Stopped", activityTime: NOW },   MARKED],
  ["it stopped",                               idleRecord(),       stopped,                                  MARKED],
  ["it does not answer",                       idleRecord(),       silent,                                   MARKED],
  ["it never was idle",                        readyRecord(),      runs({ activityTime: NOW }),              null],
];

test.for(returns)("who comes back: %s", ([, situation, observed, idleTime]) => {
  expect(heedReturn(situation, observed)).toEqual({ ...situation, idleTime });
});

type DeadlineRow = readonly [situation: string, deadline: Instant | null, expected: Instant | null];

// oxfmt-ignore
const deadlines: readonly DeadlineRow[] = [
  ["idle: no limit",                          idleDeadline(runningSpec, NOW, NOW),           null],
  ["idle: since it was used",                 idleDeadline(idleSpec, NOW, null),             NOW + 10 * MINUTE],
  ["idle: since it was woken, if later",      idleDeadline(idleSpec, NOW, NOW + MINUTE),     NOW + 11 * MINUTE],
  ["idle: since it was used, if later",       idleDeadline(idleSpec, NOW, NOW - MINUTE),     NOW + 10 * MINUTE],
  ["lifetime: no limit",                      lifetimeDeadline(runningSpec, NOW),            null],
  ["lifetime: since it was started",          lifetimeDeadline(mortalSpec, NOW),             NOW + 60 * MINUTE],
  ["expiry: none",                            expiryOf(runningSpec),                         null],
  ["expiry: the very time",                   expiryOf(expiringSpec(NOW + SECOND)),          NOW + SECOND],
  ["expiry: none where the spec is unreadable", expiryOf(null),                              null],
];

test.for(deadlines)("%s", ([, deadline, expected]) => {
  expect(deadline).toBe(expected);
});

type TryRow = readonly [situation: string, record: WorkspaceRecord, expected: boolean];

// oxfmt-ignore
const tries: readonly TryRow[] = [
  ["no pass has seen it yet",                 record(),                                      true],
  ["the wish is the one that failed",         readyRecord(),                                 false],
  ["the wish is a newer one",                 readyRecord({ generation: 2 }),                true],
  ["somebody asked",                          readyRecord({ reconcileRequestTime: NOW }),    true],
];

test.for(tries)("another try: %s", ([, situation, expected]) => {
  expect(deservesNewTry(situation)).toBe(expected);
});
