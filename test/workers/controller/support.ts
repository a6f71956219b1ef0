/** A controller over the test's D1, a fake fleet and a fake clock: what a user asks, ticks as cron would begin them, and a look at the result. */
/// <reference types="@cloudflare/vitest-pool-workers/types" />
import type { D1Migration } from "cloudflare:test";
import { createHash } from "node:crypto";
import { env } from "cloudflare:workers";
import { type Config, parseConfig } from "../../../src/config.ts";
import type { Fleet } from "../../../src/controller/fleet.ts";
import type { Inventory } from "../../../src/controller/inventory.ts";
import type { SweepDeps } from "../../../src/controller/sweep-deps.ts";
import { type SweepSummary, sweep } from "../../../src/controller/sweep.ts";
import { poke } from "../../../src/sandbox/poke.ts";
import { type ControllerStore, createControllerStore } from "../../../src/store/controller-store.ts";
import { type Database, openDatabase } from "../../../src/store/db.ts";
import { createWorkspace, replaceWorkspace, requestDeletion, requestReconcile, requestWake } from "../../../src/store/intent.ts";
import { getWorkspace } from "../../../src/store/reading.ts";
import type { Instant, Workspace, WorkspaceSpec } from "../../../src/workspace.ts";
import { FakeWorld } from "../../support/fake-fleet.ts";
import { FakeClock } from "./clock.ts";
import { WorldInventory } from "./platform-list.ts";
import { type Statement, watchD1 } from "./watched-d1.ts";

export const bindings = env as unknown as { readonly DB: D1Database; readonly TEST_MIGRATIONS: D1Migration[] };
export const d1 = bindings.DB;

export const NOW = Date.UTC(2026, 10, 30, 12);

export const SPEC: WorkspaceSpec = {
  operatingMode: "Running",
  directory: "/workspace",
  env: {},
  idle: null,
  maxLifetimeSeconds: null,
  expireTime: null,
  source: null,
  setup: [],
  backup: null,
  deletion: { finalBackup: "Skip", deadlineSeconds: 600 },
  paused: false,
};

const TABLES = [
  "workspaces",
  "instances",
  "unclaimed",
  "events",
  "settings",
  "start_lane",
  "controller",
  "sequence",
  "backups",
  "unclaimed_backups",
];

export async function emptyTables(): Promise<void> {
  await d1.batch(TABLES.map((table) => d1.prepare(`DELETE FROM ${table}`)));
}

/** Each number gives another UUID, evenly spread. */
export function uidOf(n: number): string {
  const hex = createHash("sha256").update(String(n)).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/** One isolate that runs ticks. Every await of its own is a point at which a test may hold, break or end it. */
export class Process {
  /** Before and after each database call and each fleet call, and after each sleep, in order. */
  readonly points: string[] = [];
  /** May wait, never resolve, or throw. */
  onPoint: (point: string, nth: number) => Promise<void> | void = () => {};
  readonly statements: Statement[] = [];
  /** Added to what the clock says. */
  skewMs = 0;

  async point(name: string): Promise<void> {
    this.points.push(name);
    await this.onPoint(name, this.points.length);
  }
}

export class Controller {
  readonly clock = new FakeClock(NOW);
  readonly world = new FakeWorld(this.clock);
  /** The API's own connection, and the sandboxes'. */
  readonly db: Database = openDatabase(watchD1(d1, this.clock, new Process()));
  readonly config: Config;
  readonly platform = new WorldInventory(this.clock, this.world);
  /** What the controller is given of the platform's list; null: the ledger is all it has. */
  inventory: Inventory | null = null;
  /** Between the controller and its ports. */
  wrapStore: (store: ControllerStore) => ControllerStore = (store) => store;
  wrapFleet: (fleet: Fleet) => Fleet = (fleet) => fleet;
  chance = 0.5;
  /** Of every workspace that was created, in order. */
  readonly uids: string[] = [];
  #ids = 0;

  constructor(environment: Readonly<Record<string, unknown>> = {}) {
    this.config = parseConfig(environment);
    this.world.onEvent = (uid) => {
      void this.clock.busy(poke(d1, uid, this.clock.now()));
    };
    this.world.hasRow = async (uid) => {
      const rows = await this.clock.busy(all("SELECT uid FROM workspaces WHERE uid = ?", uid));
      return rows.length > 0;
    };
  }

  async put(
    name: string,
    spec: Partial<WorkspaceSpec> = {},
    labels: Readonly<Record<string, string>> = {},
    namespace = "default",
  ): Promise<Workspace> {
    const wish = { spec: { ...SPEC, ...spec }, labels, annotations: {}, now: this.clock.now() };
    const current = await this.find(name, namespace);
    const specChanged = current !== null && JSON.stringify(current.spec) !== JSON.stringify(wish.spec);
    const uid = uidOf(this.uids.length + 1);
    if (current === null) this.uids.push(uid);
    const written =
      current === null
        ? await createWorkspace(this.db, { ...wish, namespace, name, uid })
        : await replaceWorkspace(this.db, current, { ...wish, specChanged });
    if (written === null) throw new Error(`PUT of ${name} met a conflict`);
    return written;
  }

  async delete(name: string): Promise<Workspace> {
    const written = await requestDeletion(this.db, await this.get(name), this.clock.now());
    if (written === null) throw new Error(`DELETE of ${name} met a conflict`);
    return written;
  }

  /** As a user asks for it. */
  async wake(name: string): Promise<void> {
    if ((await requestWake(this.db, await this.get(name), this.clock.now())) === null) throw new Error(`:wake of ${name} met a conflict`);
  }

  async requestReconcile(name: string): Promise<void> {
    const written = await requestReconcile(this.db, await this.get(name), this.clock.now());
    if (written === null) throw new Error(`:reconcile of ${name} met a conflict`);
  }

  async find(name: string, namespace = "default"): Promise<Workspace | null> {
    return await getWorkspace(this.db, { namespace, name });
  }

  async get(name: string): Promise<Workspace> {
    const workspace = await this.find(name);
    if (workspace === null) throw new Error(`${name} is gone`);
    return workspace;
  }

  deps(process: Process = new Process()): SweepDeps {
    return {
      store: this.wrapStore(createControllerStore(openDatabase(watchD1(d1, this.clock, process)))),
      fleet: watchFleet(this.wrapFleet(this.world.fleet), process),
      inventory: this.inventory,
      bucket: this.config.backups && this.world.bucket,
      config: this.config,
      now: () => this.clock.now() + process.skewMs,
      sleep: async (ms, signal) => {
        await this.clock.sleep(ms, signal);
        await process.point("sleep after");
      },
      chance: () => this.chance,
      newId: () => `11111111-0000-4000-8000-${String((this.#ids += 1)).padStart(12, "0")}`,
    };
  }

  /** One tick, from beginning to end. */
  async tick(process?: Process): Promise<SweepSummary | null> {
    const summary = await this.clock.run(sweep(this.deps(process)));
    await this.expectNothingForgotten();
    return summary;
  }

  /** What was admitted and runs is in the ledger or among the unclaimed, until it is seen gone (invariant 3). */
  async expectNothingForgotten(): Promise<void> {
    const known = await all<{ do_id: string }>("SELECT do_id FROM instances UNION SELECT do_id FROM unclaimed");
    const ledger = new Set(known.map((row) => row.do_id));
    const forgotten = this.world.running.filter(({ doId, startId }) => startId !== null && !ledger.has(doId));
    if (forgotten.length > 0) throw new Error(`forgotten, yet running: ${JSON.stringify(forgotten)}`);
  }

  /** Ticks as cron begins them, one a minute, or one after the other where they are shorter. */
  async ticks(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) await this.cron();
  }

  async cron(): Promise<void> {
    const startTime = this.clock.now();
    await this.tick();
    const { tickBudgetMs } = this.config;
    const periodMs = tickBudgetMs > 30_000 ? 60_000 : Math.ceil(tickBudgetMs / 5000) * 5000;
    const leftMs = startTime + periodMs - this.clock.now();
    if (leftMs > 0) await this.clock.pass(leftMs);
  }

  /** Ticks until it holds; fails where it does not within `limitMs`. */
  async until(holds: () => Promise<boolean> | boolean, limitMs: number): Promise<void> {
    const endTime = this.clock.now() + limitMs;
    while (!(await holds())) {
      if (this.clock.now() >= endTime) throw new Error(`not within ${limitMs} ms: ${JSON.stringify(await this.look())}`);
      await this.cron();
    }
  }

  async untilReady(names: readonly string[], limitMs: number): Promise<void> {
    await this.until(async () => {
      const rows = await all<{ name: string }>(
        `SELECT name FROM workspaces
         WHERE CASE WHEN json_valid(status) THEN status ->> 'phase' = 'Ready' AND status ->> 'observedGeneration' = generation END`,
      );
      const ready = new Set(rows.map(({ name }) => name));
      return names.every((name) => ready.has(name));
    }, limitMs);
  }

  async isReady(name: string): Promise<boolean> {
    return isReady(await this.find(name));
  }

  /** Everything that lasts, short enough to compare. */
  async look(): Promise<Look> {
    const rows = await all<{ name: string; status: string; incarnation: number; failures: number }>(
      "SELECT name, status, incarnation, failures FROM workspaces ORDER BY name",
    );
    const ledger = await all<{ sandbox_id: string }>("SELECT sandbox_id FROM instances ORDER BY sandbox_id");
    const lane = await all<{ workspace_uid: string }>(
      "SELECT workspace_uid FROM start_lane WHERE deadline_time > ? ORDER BY slot",
      this.clock.now(),
    );
    return {
      workspaces: Object.fromEntries(rows.map((row) => [row.name, `${phaseOf(row.status)} #${row.incarnation} !${row.failures}`])),
      ledger: ledger.map((row) => row.sandbox_id),
      lane: lane.map((row) => row.workspace_uid),
      running: this.world.running.map(({ sandboxId }) => sandboxId).toSorted(),
    };
  }
}

export interface Look {
  /** Phase, incarnation and failures by name. */
  readonly workspaces: Readonly<Record<string, string>>;
  readonly ledger: readonly string[];
  /** Whose place has not expired. */
  readonly lane: readonly string[];
  readonly running: readonly string[];
}

/** As rows of any table, past the store. */
export async function all<Row>(query: string, ...values: unknown[]): Promise<Row[]> {
  const { results } = await d1
    .prepare(query)
    .bind(...values)
    .all<Row>();
  return results;
}

export async function readyTimes(): Promise<Map<string, Instant | null>> {
  const rows = await all<{ name: string; ready_time: Instant | null }>("SELECT name, ready_time FROM workspaces ORDER BY ready_time");
  return new Map(rows.map((row) => [row.name, row.ready_time]));
}

export function isReady(workspace: Workspace | null): boolean {
  return workspace?.status.conditions.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

export function conditionOf(workspace: Workspace, type: string): { status: string; reason: string } | null {
  const condition = workspace.status.conditions.find((candidate) => candidate.type === type);
  return condition === undefined ? null : { status: condition.status, reason: condition.reason };
}

/** `first-1` to `first-n`. */
export function names(first: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${first}-${index + 1}`);
}

function phaseOf(status: string): string {
  try {
    return String((JSON.parse(status) as { phase?: unknown }).phase);
  } catch {
    return "unreadable";
  }
}

function watchFleet(fleet: Fleet, process: Process): Fleet {
  const around = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    await process.point(`${name} before`);
    const answer = await call();
    await process.point(`${name} after`);
    return answer;
  };
  return {
    identify: (uid, incarnation) => fleet.identify(uid, incarnation),
    observe: (...call) => around("observe", () => fleet.observe(...call)),
    start: (...call) => around("start", () => fleet.start(...call)),
    backup: (...call) => around("backup", () => fleet.backup(...call)),
    stop: (...call) => around("stop", () => fleet.stop(...call)),
    destroy: (...call) => around("destroy", () => fleet.destroy(...call)),
    destroyOrphan: (...call) => around("destroyOrphan", () => fleet.destroyOrphan(...call)),
  };
}
