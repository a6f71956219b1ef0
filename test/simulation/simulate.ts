/** Plays one day: the real controller over the simulated store, sandboxes, platform and clock, and what it kept of its promises. */
import { parseConfig, runningLimitsOf } from "../../src/config.ts";
import { sweep } from "../../src/controller/sweep.ts";
import { Actions, QUOTA_NAMESPACE } from "./actions.ts";
import { Bucket } from "./bucket.ts";
import { Chance } from "./chance.ts";
import { Clock } from "./clock.ts";
import { Faults } from "./faults.ts";
import { Invariants, type Violation } from "./invariants.ts";
import { PlatformList } from "./listing.ts";
import { MemoryApi } from "./memory-api.ts";
import { MemoryStore } from "./memory-store.ts";
import { type Day, type Mistake, portsOf } from "./ports.ts";
import { type Fortune, LUCKY, Process } from "./process.ts";
import { checkStillness, problemsOf, reportLasting, stillnessOf } from "./rest.ts";
import { type Happening, MINUTE_MS, type Script } from "./script.ts";
import { NO_FILES } from "./surroundings.ts";
import { World } from "./world.ts";

export const START_TIME = Date.UTC(2026, 10, 30);

/** Coarser than the defaults, so that a day is cheap: the order of things does not depend on it. */
export const ENVIRONMENT = {
  POLL_INTERVAL_MS: "15000",
  LEASE_SECONDS: "45",
  RESYNC_INTERVAL_SECONDS: "1800",
  SWEEP_INTERVAL_SECONDS: "60",
  ORPHAN_GRACE_SECONDS: "120",
  PREPARE_TIMEOUT_SECONDS: "120",
  BACKUP_MODE: "local",
  BACKUP_BUCKET: {},
  BACKUP_TIMEOUT_SECONDS: "120",
  BACKUP_SWEEP_INTERVAL_SECONDS: "600",
  BACKUP_ORPHAN_GRACE_SECONDS: "300",
  DELETED_BACKUP_RETENTION_SECONDS: "1200",
  EVENT_RETENTION_SECONDS: "3600",
  NAMESPACE_QUOTAS: JSON.stringify({ [QUOTA_NAMESPACE]: { maxRunning: 12 } }),
};

/** After the last fault: a resync interval, which finds what no poke told of, and time to act on it, one start after the other. */
const REST_TICKS = 75;
/** Shorter than any lifetime that the script gives. */
const DOUBLE_CHECK_TICKS = 5;
const STILL_TICKS = 10;

export interface DayResult {
  readonly seed: number;
  /** Ticks that were played. */
  readonly steps: number;
  readonly violations: readonly Violation[];
  readonly leakedInstanceMinutes: number;
  readonly wrongfulKills: number;
  /** What happened how often: a simulation in which nothing happens proves nothing. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface PlayOptions {
  readonly mistake?: Mistake;
  /** Told of all that happens. */
  readonly trace?: (line: string) => void;
}

export async function play(script: Script, { mistake = {}, trace }: PlayOptions = {}): Promise<DayResult> {
  const quiet = silence();
  try {
    return await new Simulation(script, mistake, trace).run();
  } finally {
    quiet();
  }
}

class Simulation {
  readonly #script: Script;
  readonly #day: Day;
  readonly #actions: Actions;
  readonly #counts: Record<string, number> = {};
  readonly #missed = new Set<number>();
  readonly #doubled = new Set<number>();
  readonly #fortunes = new Map<number, Fortune>();
  readonly #processes: Process[] = [];
  #steps = 0;

  constructor(script: Script, mistake: Mistake, trace?: (line: string) => void) {
    this.#script = script;
    const chance = new Chance(script.seed ^ 0x5eed);
    const clock = new Clock(START_TIME);
    const faults = new Faults(chance.fork(), script.faultRate, script.faultKinds);
    const store = mistake.store?.() ?? new MemoryStore();
    const config = parseConfig(ENVIRONMENT);
    const bucket = new Bucket(clock, chance.fork(), faults);
    const api = new MemoryApi(store);
    const world = new World(clock, chance.fork(), faults, bucket, {
      hasRow: (uid) => mistake.hasRow?.() ?? store.tables.workspaces.has(uid),
      poke: (uid) => {
        if (faults.draw(["pokeLost"]) === null) api.poke(uid, clock.now());
      },
      startBegan: (sandbox) => this.#day.invariants.startBegan(sandbox),
      containerStarted: () => this.#count("containers"),
      containerVerified: (container) => {
        if (container.files !== NO_FILES) this.#count("restored");
        this.#day.invariants.containerVerified(container);
      },
      backupTaken: (backup) => {
        this.#count("backups");
        this.#day.invariants.backups.taken(backup);
      },
      containerEnds: (container, killer) => {
        this.#count(`ended by ${killer}`);
        this.#day.invariants.containerEnds(container, killer);
      },
      startFailed: ({ uid }, isWorkspacesFault) => {
        this.#count("starts failed");
        if (isWorkspacesFault && uid !== null) this.#day.invariants.failed(uid);
      },
      disturbed: (doId) => this.#day.invariants.disturbed(doId),
    });
    world.ordersExpire = mistake.ordersExpire ?? true;
    world.backsUpAnything = mistake.backsUpAnything ?? false;
    world.resumesLate = mistake.resumesLate ?? false;
    const list = new PlatformList(world, clock, chance.fork(), faults);
    const settings = {
      graceMs: config.orphanGraceMs,
      tickBudgetMs: config.tickBudgetMs,
      laneWidth: config.startLaneWidth,
      limits: runningLimitsOf(config),
      backupMs: (config.backups?.timeoutMs ?? 0) + 30_000,
      keepAfterDeletionMs: config.backups?.keepAfterDeletionMs ?? 0,
    };
    const invariants = new Invariants(store, world, bucket, () => clock.now(), settings);
    if (trace !== undefined) {
      invariants.trace = (subject, text) =>
        trace(`${((clock.now() - START_TIME) / MINUTE_MS).toFixed(3)} ${this.#nameOf(subject)} ${text}`);
    }
    let ids = 0;
    const newId = () => `id-${(ids += 1)}`;
    const ports = { clock, store, world, list, bucket, faults, invariants, config, mistake };
    this.#day = { ...ports, chance: chance.fork(), storeDownUntilTime: 0, restTime: Number.POSITIVE_INFINITY, newId };
    this.#actions = new Actions(this.#day, api, chance.fork(), script.seed);
  }

  async run(): Promise<DayResult> {
    const { ticks, happenings } = this.#script;
    const { clock, invariants } = this.#day;
    for (const happening of happenings) this.#plan(happening);
    for (let tick = 0; tick < ticks + REST_TICKS + DOUBLE_CHECK_TICKS + STILL_TICKS; tick += 1) this.#cron(tick);
    try {
      await this.#pass(ticks * MINUTE_MS - 1);
    } catch (error) {
      // A process goes round in circles: the day ends here.
      invariants.report(10, error instanceof Error ? error.message : String(error));
    }
    invariants.leaks.close(clock.now());
    return {
      seed: this.#script.seed,
      steps: this.#steps,
      violations: invariants.violations,
      leakedInstanceMinutes: invariants.leaks.leakedMs / MINUTE_MS,
      wrongfulKills: invariants.wrongfulKills,
      counts: {
        ...this.#counts,
        ...this.#day.faults.counts,
        deaths: this.#processes.filter(({ isDead }) => isDead).length,
        countedSweeps: invariants.leaks.countedSweeps,
        lost: invariants.backups.lost,
        ...invariants.checks,
      },
    };
  }

  async #pass(dayMs: number): Promise<void> {
    const { clock } = this.#day;
    await clock.run(START_TIME + dayMs);
    this.#actions.end();
    await clock.run(clock.now() + REST_TICKS * MINUTE_MS);
    const problems = problemsOf(this.#day);
    await clock.run(clock.now() + DOUBLE_CHECK_TICKS * MINUTE_MS);
    reportLasting(problems, problemsOf(this.#day), this.#day);
    const still = stillnessOf(this.#day);
    await clock.run(clock.now() + STILL_TICKS * MINUTE_MS);
    checkStillness(this.#day, still, STILL_TICKS * MINUTE_MS);
  }

  #plan({ ms, slot, event }: Happening): void {
    if (slot !== null) this.#at(ms, () => this.#actions.happensTo(slot, event));
    else if (event.kind === "missed") this.#missed.add(event.tick);
    else if (event.kind === "doubled") this.#doubled.add(event.tick);
    else if (event.kind === "fortune") this.#fortunes.set(event.tick, event.fortune);
    else this.#at(ms, () => this.#actions.happens(event));
  }

  #at(ms: number, happen: () => void): void {
    this.#day.clock.at(START_TIME + ms, happen);
  }

  #cron(tick: number): void {
    if (this.#missed.has(tick)) return;
    const times = this.#doubled.has(tick) ? 2 : 1;
    for (let nth = 0; nth < times; nth += 1) {
      this.#at(tick * MINUTE_MS, () => void this.#tick(this.#fortunes.get(tick) ?? LUCKY));
    }
  }

  async #tick(fortune: Fortune): Promise<void> {
    this.#steps += 1;
    const process = new Process(this.#day.clock.now(), fortune);
    this.#processes.push(process);
    try {
      const summary = await sweep(portsOf(process, this.#day));
      process.isThrough = summary?.complete ?? false;
      this.#count(summary === null ? "ticks without the lease" : "ticks");
      this.#count("rounds", summary?.rounds);
      for (const [key, count] of Object.entries(summary?.counts ?? {})) this.#count(key, count);
      if (process.isThrough) this.#day.invariants.tickEnded(process);
    } catch (error) {
      // A tick may fail for want of a database; for nothing else.
      const message = error instanceof Error ? error.message : String(error);
      if (message.startsWith("D1_ERROR")) this.#count("ticks failed");
      else this.#day.invariants.report(0, error instanceof Error ? (error.stack ?? message) : message);
    }
  }

  /** Of a workspace's uid or of a DO. */
  #nameOf(subject: string): string {
    const { store, world } = this.#day;
    const uid = world.sandboxes.get(subject)?.uid ?? subject;
    return `${store.tables.workspaces.get(uid)?.name ?? "-"} ${subject.slice(0, 8)}`;
  }

  #count(what: string, times = 1): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + times;
  }
}

/** What a sweep logs is not what the simulation is about, and each abort collects a stack that nobody reads. Answers what undoes it. */
function silence(): () => void {
  const { info, warn, error } = console;
  const { stackTraceLimit } = Error;
  const nothing = () => {};
  Object.assign(console, { info: nothing, warn: nothing, error: nothing });
  Error.stackTraceLimit = 0;
  return () => {
    Object.assign(console, { info, warn, error });
    Error.stackTraceLimit = stackTraceLimit;
  };
}
