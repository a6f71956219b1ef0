/**
 * `npm run bench:latency`: from a PUT's answer to the engine's being asked for the container, with the default settings and nothing but
 * the cron to drive the loop. PUTs come at random moments, one workspace at a time.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startCron } from "./cron.ts";
import { startStack } from "./stack.ts";

const { values } = parseArgs({ options: { samples: { type: "string", default: "40" } } });
const HEADERS = { authorization: "Bearer dev-editor", "content-type": "application/json" };

const directory = mkdtempSync(join(tmpdir(), "mooring-bench-"));
const startTimes = new Map<string, number>();
let resolveStart = (_time: number) => {};
const stack = await startStack({
  directory,
  port: 0,
  onEvent: ({ type, doId, time }) => {
    if (type !== "StartAccepted" || startTimes.has(doId)) return;
    startTimes.set(doId, time);
    resolveStart(time);
  },
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
const stopCron = startCron(stack.url, () => console.error("A tick failed."));
try {
  const latencies: number[] = [];
  for (let sample = 0; sample < Number(values.samples); sample += 1) latencies.push(await measure(`bench-${sample}`));
  print(latencies.toSorted((a, b) => a - b));
} finally {
  stopCron();
  await stack.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function measure(name: string): Promise<number> {
  await sleep(1000 + Math.random() * 2000);
  const path = `${stack.url}/v1/namespaces/default/workspaces/${name}`;
  const started = new Promise<number>((resolve) => (resolveStart = resolve));
  await fetch(path, { method: "PUT", headers: HEADERS, body: JSON.stringify({ spec: {} }) });
  const acceptedTime = Date.now();
  const startTime = await started;
  await fetch(`${path}?waitFor=Ready&timeoutSeconds=25`, { headers: HEADERS });
  await fetch(path, { method: "DELETE", headers: HEADERS });
  return startTime - acceptedTime;
}

function print(sorted: readonly number[]): void {
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  console.log(`PUT accepted to container start requested, ms, ${sorted.length} samples:`);
  console.log(`min ${at(0)}, p25 ${at(0.25)}, median ${at(0.5)}, p75 ${at(0.75)}, p95 ${at(0.95)}, max ${sorted.at(-1)}`);
  const width = 250;
  const most = Math.ceil((sorted.at(-1) ?? 0) / width);
  for (let bucket = 0; bucket < most; bucket += 1) {
    const count = sorted.filter((latency) => Math.floor(latency / width) === bucket).length;
    console.log(`${String(bucket * width).padStart(6)} … ${String((bucket + 1) * width).padStart(6)}  ${"█".repeat(count)}`);
  }
}
