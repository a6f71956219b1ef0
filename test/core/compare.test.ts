/** The one definition of "differs", what of a look is kept, and what may run. */
import { describe, expect, test } from "vitest";
import { type DifferenceType, compare, mayRun, toObservedState } from "../../src/controller/compare.ts";
import { specHash } from "../../src/controller/spec-hash.ts";
import type { Observation, WorkspaceSpec } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  changedSpec,
  idleRecord,
  idleSpec,
  incomparable,
  mortalSpec,
  outdated,
  readyRecord,
  runningSpec,
  runs,
  silent,
  spec,
  suspendedSpec,
} from "../support/builders.ts";
import { OBSERVATIONS } from "./fixtures.ts";

type Row = readonly [observed: string, wishedRunning: string, wishedChanged: string, wishedSuspended: string, runs: string];

// oxfmt-ignore
const table: readonly Row[] = [
  // observed           Running      another spec  Suspended     may run
  ["absent",           "Missing",   "Missing",    "-",          "no"],
  ["stopped",          "Missing",   "Missing",    "-",          "no"],
  ["exited 0",         "Missing",   "Missing",    "-",          "no"],
  ["exited 143",       "Missing",   "Missing",    "-",          "no"],
  ["exited 137",       "Missing",   "Missing",    "-",          "no"],
  ["exited, no code",  "Missing",   "Missing",    "-",          "no"],
  ["told to go",       "Missing",   "Missing",    "-",          "no"],
  ["starting",         "Missing",   "Missing",    "Unexpected", "yes"],
  ["restoring",        "Missing",   "Missing",    "Unexpected", "yes"],
  ["setting up",       "Missing",   "Missing",    "Unexpected", "yes"],
  ["failed transient", "Missing",   "Missing",    "-",          "no"],
  ["failed permanent", "Missing",   "Missing",    "-",          "no"],
  ["failed capacity",  "Missing",   "Missing",    "-",          "no"],
  ["failed before",    "Missing",   "Missing",    "-",          "no"],
  ["unverified",       "Missing",   "Missing",    "Unexpected", "yes"],
  ["running",          "-",         "OutOfSync",  "Unexpected", "yes"],
  ["unused",           "-",         "OutOfSync",  "Unexpected", "yes"],
  ["outdated",         "OutOfSync", "OutOfSync",  "Unexpected", "yes"],
  ["incomparable",     "-",         "-",          "Unexpected", "yes"],
  ["destroying",       "Missing",   "Missing",    "Unexpected", "yes"],
  ["destroyed",        "Missing",   "Missing",    "-",          "no"],
  ["silent",           "-",         "-",          "-",          "yes"],
];

test.for(table)("%s", ([name, ...expected]) => {
  const observed = OBSERVATIONS[name];
  if (observed === undefined) throw new Error(`no such observation: ${name}`);
  const differences = [runningSpec, changedSpec, suspendedSpec].map((wish) => typesOf(readyRecord(), wish, observed));
  expect([...differences, mayRun(observed.kind) ? "yes" : "no"]).toEqual(expected);
});

test("every observation has its row", () => {
  expect(table.map(([name]) => name)).toEqual(Object.keys(OBSERVATIONS));
});

const HOUR = 60 * MINUTE;
const bothSpec = spec({ ...idleSpec, maxLifetimeSeconds: 3600 });
const bothChanged = spec({ ...bothSpec, env: changedSpec.env });
const unusedFor = (ms: number) => runs({ startedTime: NOW - HOUR, activityTime: NOW - ms });
const aliveFor = (ms: number) => runs({ startedTime: NOW - ms, activityTime: NOW });
const ready = readyRecord();
const wokenAgo = (ms: number) => readyRecord({ wakeTime: NOW - ms });

type TimeRow = readonly [situation: string, record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, expected: string];

// oxfmt-ignore
const times: readonly TimeRow[] = [
  ["used a moment ago",                                  ready,                   idleSpec,      unusedFor(SECOND),                "-"],
  ["unused for almost as long as it may",                ready,                   idleSpec,      unusedFor(10 * MINUTE - 1),       "-"],
  ["unused for as long as it may",                       ready,                   idleSpec,      unusedFor(10 * MINUTE),           "IdleOverrun"],
  ["unused for long, without a limit",                   ready,                   runningSpec,   unusedFor(HOUR),                  "-"],
  ["unused for long, but woken lately",                  wokenAgo(MINUTE),        idleSpec,      unusedFor(HOUR),                  "-"],
  ["unused since it was woken long ago",                 wokenAgo(10 * MINUTE),   idleSpec,      unusedFor(HOUR),                  "IdleOverrun"],
  ["used since it was woken long ago",                   wokenAgo(HOUR),          idleSpec,      unusedFor(MINUTE),                "-"],
  ["already marked as idle",                             idleRecord(),            idleSpec,      unusedFor(HOUR),                  "Unexpected"],
  ["marked as idle, and woken since",                    idleRecord({ wakeTime: NOW - SECOND }), idleSpec, unusedFor(HOUR),       "-"],
  ["alive for almost as long as it may",                 ready,                   mortalSpec,    aliveFor(HOUR - 1),               "-"],
  ["alive for as long as it may",                        ready,                   mortalSpec,    aliveFor(HOUR),                   "LifetimeOverrun"],
  ["alive for long, without a limit",                    ready,                   runningSpec,   aliveFor(HOUR),                   "-"],
  ["unused and too old: idleness is acted on first",     ready,                   bothSpec,      unusedFor(HOUR),                  "IdleOverrun LifetimeOverrun"],
  ["all at once: the wrong spec is acted on first",      ready,                   bothChanged,   unusedFor(HOUR),                  "OutOfSync IdleOverrun LifetimeOverrun"],
  ["wished Suspended, nothing else matters",             ready,                   spec({ ...bothChanged, operatingMode: "Suspended" }), unusedFor(HOUR), "Unexpected"],
  ["the operator's hold is no difference by itself",     ready,                   spec({ paused: true }), aliveFor(HOUR),          "-"],
  ["another version's container is still too old",       ready,                   mortalSpec,    { ...incomparable, ...since(HOUR) }, "LifetimeOverrun"],
];

test.for(times)("%s", ([, situation, wish, observed, expected]) => {
  expect(typesOf(situation, wish, observed)).toBe(expected);
});

test("nothing differs where nothing was seen", () => {
  expect(compare(ready, runningSpec, null, NOW)).toEqual([]);
});

test("a look that says nothing of the container's times or spec is not held against it", () => {
  const observed = { kind: "Running", specHash: null, startedTime: null, activityTime: null, differences: [] } as const;
  expect(compare(ready, bothSpec, observed, NOW)).toEqual([]);
});

describe("a difference names", () => {
  type FieldRow = readonly [type: DifferenceType, spec: WorkspaceSpec, observed: Observation, field: string, desired: string, seen: string];

  // oxfmt-ignore
  const fields: readonly FieldRow[] = [
    ["Missing",         runningSpec,   { kind: "Absent" },                "/spec/operatingMode",       "Running",   "Absent"],
    ["Unexpected",      suspendedSpec, runs(),                            "/spec/operatingMode",       "Suspended", "Running"],
    ["OutOfSync",       runningSpec,   outdated,                          "/spec",                     specHash(runningSpec), specHash(spec({ env: { MODE: "older" } }))],
    ["IdleOverrun",     idleSpec,      unusedFor(11 * MINUTE + 1),        "/spec/idle/timeoutSeconds", "600 s",     "660 s"],
    ["LifetimeOverrun", mortalSpec,    aliveFor(61 * MINUTE + 1),         "/spec/maxLifetimeSeconds",  "3600 s",    "3660 s"],
  ];

  test.for(fields)("%s: its field, the wish and what was seen", ([type, wish, observed, field, desired, seen]) => {
    expect(compare(ready, wish, toObservedState(observed), NOW)).toEqual([{ type, field, desired, observed: seen }]);
  });
});

test("of a look everything is kept that a report compares, and of none nothing", () => {
  expect(Object.values(OBSERVATIONS).map((observed) => toObservedState(observed)?.kind ?? "-")).toEqual(
    Object.values(OBSERVATIONS).map(({ kind }) => (kind === "Unknown" ? "-" : kind)),
  );
  expect(toObservedState(silent)).toBeNull();
  expect(toObservedState(runs({ startedTime: 1, activityTime: 2 }))).toEqual({
    kind: "Running",
    specHash: specHash(runningSpec),
    startedTime: 1,
    activityTime: 2,
    differences: [],
  });
});

function since(ms: number) {
  return { startedTime: NOW - ms, activityTime: NOW };
}

function typesOf(record: WorkspaceRecord, wish: WorkspaceSpec, observed: Observation): string {
  const types = compare(record, wish, toObservedState(observed), NOW).map(({ type }) => type);
  return types.join(" ") || "-";
}
