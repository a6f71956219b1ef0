/**
 * `npm run simulate`: plays simulated days against the real controller. A failing seed replays alone with `--seed`, and is shrunk to the
 * smallest script that still breaks the same promise.
 */
import { parseArgs } from "node:util";
import { reportOf, runSeed } from "../test/simulation/run-seeds.ts";
import { MINUTE_MS, writeScript } from "../test/simulation/script.ts";
import { shrink, show } from "../test/simulation/shrink.ts";
import { type DayResult, START_TIME, play } from "../test/simulation/simulate.ts";

const USAGE = `Usage: npm run simulate -- [--seeds N] [--from S] [--seed X [--trace w7]] [--workspaces N] [--ticks N] [--fault-rate F] [--json]`;
const SHRINK_TRIES = 400;

const { values } = parseArguments();
const seeds =
  values.seed === undefined ? range(natural("from", values.from), natural("seeds", values.seeds)) : [natural("seed", values.seed)];
const options = {
  workspaces: natural("workspaces", values.workspaces),
  ticks: natural("ticks", values.ticks),
  faultRate: values["fault-rate"] === undefined ? null : share("fault-rate", values["fault-rate"]),
};
const results: DayResult[] = [];
const start = process.cpuUsage();
for (const seed of seeds) {
  const result = await runSeed(seed, options, values.trace === undefined ? {} : { trace: tracer(values.trace) });
  results.push(result);
  if (!values.json && result.violations.length > 0) await explain(result);
  else if (!values.json && seeds.length > 1 && process.stderr.isTTY) process.stderr.write(`\r${results.length} of ${seeds.length} `);
}
const { user, system } = process.cpuUsage(start);
const report = reportOf(results, (user + system) / 1000);
if (values.json) console.log(JSON.stringify(report));
else summarise();
if (report.violations > 0) process.exitCode = 1;

function summarise(): void {
  console.log(`${report.seeds} seeds of ${options.workspaces} workspaces, ${report.steps} ticks, ${report.stepsPerSecond} a second.`);
  console.log(
    `Violations: ${report.violations}. Leaked: ${report.leakedInstanceMinutes} instance minutes. Wrongful kills: ${report.wrongfulKills}.`,
  );
  console.log(
    `Backups: ${report.backups}, of which ${report.lostBackups} no row tells. Removed: ${report.removedBackups}. Restores: ${report.restores}.`,
  );
  if (report.failingSeeds.length > 0) console.log(`Failing seeds: ${report.failingSeeds.join(", ")}`);
}

async function explain({ seed, violations }: DayResult): Promise<void> {
  console.log(`Seed ${seed} fails:`);
  for (const { invariant, time, message } of violations.slice(0, 10)) console.log(`  (${invariant}) ${minuteOf(time)}  ${message}`);
  const [first] = violations;
  if (first === undefined || values["no-shrink"]) return;
  console.log("Shrinking …");
  const violationOf: Parameters<typeof shrink>[2]["violationOf"] = async (script) => {
    const again = await play(script);
    return again.violations.find(({ invariant }) => invariant === first.invariant) ?? null;
  };
  const { script, violation } = await shrink(writeScript(seed, options), first, { violationOf, tries: SHRINK_TRIES });
  console.log(`The smallest script found that breaks promise ${violation.invariant}: ${violation.message} (${minuteOf(violation.time)})`);
  console.log(show(script));
}

function minuteOf(time: number): string {
  return `minute ${((time - START_TIME) / MINUTE_MS).toFixed(3)}`;
}

function tracer(subject: string): (line: string) => void {
  return (line) => {
    if (subject === "" || line.split(" ").includes(subject)) console.log(line);
  };
}

function range(from: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => from + index);
}

function parseArguments() {
  try {
    return parseArgs({
      options: {
        seeds: { type: "string", default: "20" },
        from: { type: "string", default: "1" },
        seed: { type: "string" },
        workspaces: { type: "string", default: "500" },
        ticks: { type: "string", default: "1440" },
        "fault-rate": { type: "string" },
        trace: { type: "string" },
        "no-shrink": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

function natural(name: string, text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= 0 ? value : fail(`--${name} must be a whole number, not ${text}`);
}

function share(name: string, text: string): number {
  const value = Number(text);
  return text !== "" && value >= 0 && value <= 1 ? value : fail(`--${name} must be a number from 0 to 1, not ${text}`);
}

function fail(message: string): never {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}
