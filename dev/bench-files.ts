/**
 * `npm run bench:files`: how long Mooring takes to back up a tree and to have it back, against plain tar of the same tree on this machine.
 *
 * A backup is timed from the request to its `Completed`; a restore from the wish to run to Ready, the start of a container included. Both
 * in local mode, in which the archive passes through the object; on Cloudflare containers and R2 talk to each other.
 *
 * The SDK holds a restored archive in one string, which may have half a billion characters: a gigabyte is four workspaces, one after the
 * other, whose times are added up.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { ticking } from "./comparison.ts";
import { seedTree } from "./file-tree.ts";
import { startStack } from "./stack.ts";
import { transportOf } from "./worker/transport.ts";

const { values } = parseArgs({
  options: {
    megabytes: { type: "string", default: "1000" },
    workspaces: { type: "string", default: "4" },
    samples: { type: "string", default: "3" },
    transport: { type: "string", default: "http" },
    json: { type: "boolean", default: false },
  },
});
const megabytes = Number(values.megabytes);
const workspaces = Number(values.workspaces);
/** Of one workspace. */
const treeBytes = (megabytes * 1_000_000) / workspaces;
const transport = transportOf(values.transport);
const HEADERS = { authorization: "Bearer dev-editor", "content-type": "application/json" };
const SMALL_FILES = 5000;
const POLL_MS = 20;
const NOT_FOUND = 404;
const SPEC = { backup: { onSuspend: "Skip" } };

const directory = mkdtempSync(join(tmpdir(), "mooring-bench-"));
const variables = { BACKUP_TIMEOUT_SECONDS: "3600", PREPARE_TIMEOUT_SECONDS: "3600", POLL_INTERVAL_MS: "100" };
const stack = await startStack({ directory, port: 0, variables });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  print(await ticking(stack, measure));
} finally {
  await stack.stop();
  rmSync(directory, { recursive: true, force: true });
}

interface Sample {
  readonly backup: number;
  readonly restore: number;
  readonly pack: number;
  readonly unpack: number;
}

interface Times {
  readonly operation: "backup" | "restore";
  readonly mooringMs: number;
  readonly tarMs: number;
}

async function measure(): Promise<readonly Times[]> {
  const parts: (readonly Sample[])[] = [];
  for (let index = 0; index < workspaces; index += 1)
    parts.push(await measureOne(`${stack.url}/v1/namespaces/default/workspaces/bench-${index}`));
  const median = (key: keyof Sample) => {
    const sums = Array.from({ length: Number(values.samples) }, (_, index) =>
      parts.reduce((sum, part) => sum + (part[index]?.[key] ?? 0), 0),
    );
    return Math.round(sums.toSorted((a, b) => a - b)[sums.length >> 1] ?? 0);
  };
  return [
    { operation: "backup", mooringMs: median("backup"), tarMs: median("pack") },
    { operation: "restore", mooringMs: median("restore"), tarMs: median("unpack") },
  ];
}

async function measureOne(path: string): Promise<readonly Sample[]> {
  await put(path, SPEC);
  await untilPhase(path, "Ready");
  await exec(path, seedTree({ directory: "/workspace", smallFiles: SMALL_FILES / workspaces, bigFileBytes: treeBytes / 2 }));
  await exec(path, `cd /workspace && for i in {1..50}; do head -c ${treeBytes / 100} /dev/urandom >many/$i.bin; done`);
  const samples: Sample[] = [];
  while (samples.length < Number(values.samples)) {
    const tar = measureTar();
    const backup = await timed(() => backUp(path));
    await put(path, { ...SPEC, operatingMode: "Suspended" });
    await untilPhase(path, "Suspended");
    const restore = await timed(async () => {
      await put(path, SPEC);
      await untilPhase(path, "Ready");
    });
    samples.push({ backup, restore, ...tar });
  }
  await call("DELETE", path);
  while ((await call("GET", path)).status !== NOT_FOUND) await sleep(POLL_MS);
  return samples;
}

/** Of the disk as it lies on this machine, into a file and out of it beside that disk. */
function measureTar(): { readonly pack: number; readonly unpack: number } {
  const root = stack.engine.instances()[0]?.root ?? "";
  const [archive, target] = [join(directory, "plain.tar"), join(directory, "plain")];
  mkdirSync(target);
  const pack = timedTar("--create", `--file=${archive}`, `--directory=${join(root, "workspace")}`, ".");
  const unpack = timedTar("--extract", `--file=${archive}`, `--directory=${target}`);
  rmSync(archive);
  rmSync(target, { recursive: true });
  return { pack, unpack };
}

function timedTar(...parameters: readonly string[]): number {
  const startTime = performance.now();
  const { status, stderr } = spawnSync("tar", parameters, { encoding: "utf8" });
  if (status !== 0) throw new Error(`tar failed: ${stderr}`);
  return performance.now() - startTime;
}

async function backUp(path: string): Promise<void> {
  const asked = await call("POST", `${path}/backups`);
  const { id } = await asked.json<{ readonly id: string }>();
  for (;;) {
    const { state, message } = await (
      await call("GET", `${path}/backups/${id}`)
    ).json<{ readonly state: string; readonly message: string }>();
    if (state === "Completed") return;
    if (state !== "Requested" && state !== "InProgress") throw new Error(`The backup is ${state}: ${message}`);
    await sleep(POLL_MS);
  }
}

async function exec(path: string, command: string): Promise<void> {
  const { status } = await (await call("GET", path)).json<{ readonly status: { readonly sandboxId: string } }>();
  const answer = await call("POST", `${stack.url}/dev/workspaces/${status.sandboxId}/exec?transport=${transport}`, { command });
  const outcome = await answer.json<{ readonly exitCode: number }>();
  if (outcome.exitCode !== 0) throw new Error(`A command failed: ${JSON.stringify(outcome)}`);
}

async function put(path: string, spec: object): Promise<void> {
  const answer = await call("PUT", path, { spec });
  if (!answer.ok) throw new Error(await answer.text());
}

async function untilPhase(path: string, phase: string): Promise<void> {
  for (;;) {
    const { status, metadata } = await (
      await call("GET", path)
    ).json<{
      readonly status: { readonly phase: string; readonly observedGeneration: number };
      readonly metadata: { readonly generation: number };
    }>();
    if (status.phase === phase && status.observedGeneration === metadata.generation) return;
    if (status.phase === "Stalled") throw new Error(`The workspace is stalled: ${JSON.stringify(status)}`);
    await sleep(POLL_MS);
  }
}

function call(method: string, url: string, body?: unknown): Promise<Response> {
  return fetch(url, { method, headers: HEADERS, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startTime = performance.now();
  await work();
  return performance.now() - startTime;
}

function print(times: readonly Times[]): void {
  const rows = times.map((time) => ({ ...time, ratio: Number((time.mooringMs / time.tarMs).toFixed(1)) }));
  if (values.json) {
    console.log(JSON.stringify({ megabytes, workspaces, samples: Number(values.samples), transport, mode: "local", rows }));
    return;
  }
  const head = [
    `${megabytes} MB in ${workspaces} workspaces over ${transport}, median of ${values.samples}`,
    "Mooring, ms",
    "tar, ms",
    "ratio",
  ];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const { operation, mooringMs, tarMs, ratio } of rows) table.push([operation, mooringMs, tarMs, ratio]);
  console.log(table.toString());
  console.log("Local mode: the archive passes through the Durable Object; a restore includes the start of its container.");
}
