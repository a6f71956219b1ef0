/** The one definition of "differs", and what may run. */
import { expect, test } from "vitest";
import { compare, mayRun } from "../../src/controller/compare.ts";
import { changedSpec, runningSpec, spec, suspendedSpec } from "../support/builders.ts";
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
  ["starting",         "Missing",   "Missing",    "Unexpected", "yes"],
  ["failed transient", "Missing",   "Missing",    "-",          "no"],
  ["failed permanent", "Missing",   "Missing",    "-",          "no"],
  ["failed capacity",  "Missing",   "Missing",    "-",          "no"],
  ["failed before",    "Missing",   "Missing",    "-",          "no"],
  ["unverified",       "Missing",   "Missing",    "Unexpected", "yes"],
  ["running",          "-",         "OutOfSync",  "Unexpected", "yes"],
  ["outdated",         "OutOfSync", "OutOfSync",  "Unexpected", "yes"],
  ["incomparable",     "-",         "-",          "Unexpected", "yes"],
  ["destroying",       "Missing",   "Missing",    "Unexpected", "yes"],
  ["destroyed",        "Missing",   "Missing",    "-",          "no"],
  ["silent",           "-",         "-",          "-",          "yes"],
];

test.for(table)("%s", ([name, ...expected]) => {
  const observed = OBSERVATIONS[name];
  if (observed === undefined) throw new Error(`no such observation: ${name}`);
  const differences = [runningSpec, changedSpec, suspendedSpec].map((wish) => compare(wish, observed) ?? "-");
  expect([...differences, mayRun(observed) ? "yes" : "no"]).toEqual(expected);
});

test("every observation has its row", () => {
  expect(table.map(([name]) => name)).toEqual(Object.keys(OBSERVATIONS));
});

test("the operator's hold is no difference by itself", () => {
  const [running] = [OBSERVATIONS["running"]];
  expect(running && compare(spec({ paused: true }), running)).toBeNull();
});
