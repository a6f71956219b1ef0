/**
 * `npm run demo`: cloudflare/sandbox-sdk #794 replayed twice on the same engine with the same faults, imperatively and with Mooring.
 *
 * The faults are models: an overlapping start is killed, or becomes a ghost that comes up later and that no object knows of.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { createLogUpdate } from "log-update";
import { createDeclaratively, createImperatively, deleteAll, type Outcome, type Progress } from "./comparison.ts";
import type { Faults } from "./engine/faults.ts";
import { startStack } from "./stack.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    "overlap-kill": { type: "string", default: "0.4" },
    json: { type: "boolean", default: false },
  },
});
const count = number("count", 1, 200);
const seed = number("seed", 0, 2 ** 31);
const overlapKill = number("overlap-kill", 0, 1, false);

/** As in the measured baseline: starts of 300 to 900 ms, a window of 800 ms, ghosts that come up after 3 s. */
const FAULTS: Faults = {
  startDelay: { minMs: 300, maxMs: 900 },
  overlapKill: { probability: overlapKill, windowMs: 800 },
  ghostStart: { probability: overlapKill / 2, windowMs: 800, upAfterMs: 3000 },
};
/** Short ticks: after the last workspace is Ready nothing is to be waited for. */
const VARIABLES = { TICK_BUDGET_SECONDS: "2" };
/** Longer than any ghost takes to come up. */
const QUIET_MS = 5000;

const screen = createLogUpdate(process.stderr);
const isLive = process.stderr.isTTY && !values.json;
/** Without colours: the table is also read in files. */
const STYLE = { style: { head: [], border: [] } };
const directory = mkdtempSync(join(tmpdir(), "mooring-demo-"));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
process.exitCode = await run();

async function run(): Promise<number> {
  say("Starting the engine and the Worker …");
  const stack = await startStack({ directory, port: 0, seed, faults: FAULTS, variables: VARIABLES });
  try {
    const imperative = await createImperatively(stack, {
      count,
      transport: "rpc",
      quietMs: QUIET_MS,
      onProgress: (progress) => show("imperative, as in sandbox-sdk #794", progress),
    });
    await stack.replaceEngine({ seed, faults: FAULTS });
    const mooring = await createDeclaratively(stack, {
      count,
      timeoutMs: 60_000 + count * 5000,
      quietMs: QUIET_MS,
      onProgress: (progress) => show("Mooring", progress),
    });
    await deleteAll(stack);
    if (isLive) screen.clear();
    console.log(values.json ? json(imperative, mooring) : table(imperative, mooring));
    return mooring.succeeded === count && mooring.leaked === 0 ? 0 : 1;
  } finally {
    await stack.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function say(text: string): void {
  if (isLive) screen(text);
}

function show(title: string, { succeeded, failed, running }: Progress): void {
  const live = new Table({ head: [title, "now"], ...STYLE });
  live.push(["requested", count], ["succeeded", succeeded], ["failed", failed], ["containers running", running]);
  say(live.toString());
}

function json(imperative: Outcome, mooring: Outcome): string {
  const { succeeded: created, requested, ...rest } = imperative;
  const { succeeded: ready, requested: wished, ...others } = mooring;
  return JSON.stringify({ imperative: { requested, created, ...rest }, mooring: { requested: wished, ready, ...others } });
}

function table(imperative: Outcome, mooring: Outcome): string {
  const result = new Table({ head: [`${count} at once, seed ${seed}`, "imperative", "Mooring"], ...STYLE });
  const row = (title: string, read: (outcome: Outcome) => number) => [title, read(imperative), read(mooring)];
  result.push(
    row("created / Ready", (outcome) => outcome.succeeded),
    row("failed", (outcome) => outcome.failed),
    row("leaked containers", (outcome) => outcome.leaked),
    row("most starts in flight", (outcome) => outcome.maxConcurrentStarts),
    row("time, ms", (outcome) => outcome.elapsedMs),
  );
  return result.toString();
}

function number(name: "count" | "seed" | "overlap-kill", minimum: number, maximum: number, whole = true): number {
  const value = Number(values[name]);
  if (!(value >= minimum && value <= maximum) || (whole && !Number.isInteger(value))) {
    console.error(`--${name} takes a ${whole ? "whole " : ""}number from ${minimum} to ${maximum}.`);
    process.exit(2);
  }
  return value;
}
