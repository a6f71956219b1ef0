/**
 * Promise 3: what runs without a record is destroyed within the grace and two sweeps. Counted are only sweeps that could know and were
 * allowed to act: a complete list that showed the instance, in `Enforce`, not paused, not protected, few enough at once, and undisturbed.
 */
import type { Instant } from "../../src/workspace.ts";
import type { GivenListing } from "./listing.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Process } from "./process.ts";
import type { Container } from "./surroundings.ts";
import type { World } from "./world.ts";

const MIN_LIMIT = 5;
const LIMIT_SHARE = 0.1;
/** Of the calls that a sweep waits for before it begins the next ones. */
const DESTROY_TIMEOUT_MS = 20_000;

interface Suspicion {
  sightings: number;
  readonly firstTime: Instant;
  /** The sweep that should have ended it. */
  due: { readonly process: Process; readonly troubles: number; isDisturbed: boolean } | null;
  /** Since when it is a leak. */
  leakTime: Instant | null;
}

export class LeakWatch {
  leakedMs = 0;
  /** Sweeps that counted for at least one instance. */
  countedSweeps = 0;
  readonly #store: MemoryStore;
  readonly #world: World;
  readonly #graceMs: number;
  /** Of a tick. */
  readonly #budgetMs: number;
  readonly #report: (message: string) => void;
  readonly #suspicions = new Map<Container, Suspicion>();

  constructor(
    store: MemoryStore,
    world: World,
    { graceMs, tickBudgetMs }: { readonly graceMs: number; readonly tickBudgetMs: number },
    report: (message: string) => void,
  ) {
    this.#store = store;
    this.#world = world;
    this.#graceMs = graceMs;
    this.#budgetMs = tickBudgetMs;
    this.#report = report;
  }

  /** A sweep has written what it saw; null where it asked for no list. Near the end of its tick it leaves the destroys to the next. */
  swept(process: Process, asked: Process["lastListing"], now: Instant): void {
    const { listing, asOfTime } = asked?.given ?? NO_LIST;
    const askedTime = asked?.askedTime ?? 0;
    if (listing.kind === "Failed") return;
    const shown = new Set(listing.kind === "Complete" ? listing.instances.filter(isRunning).map(({ doId }) => doId) : []);
    const unclaimed = [...this.#world.running].filter(({ sandbox }) => !this.#store.tables.instances.has(sandbox.doId));
    const unclaimedShown = [...shown].filter((doId) => !this.#store.tables.instances.has(doId)).length;
    const isCounting = asOfTime !== null && this.#mayAct(process, shown.size, unclaimedShown);
    for (const container of unclaimed) {
      if (!isCounting || !shown.has(container.sandbox.doId) || this.#isExcused(container)) this.#suspicions.delete(container);
      else this.#suspect(container, process, askedTime, now <= process.startTime + this.#budgetMs - DESTROY_TIMEOUT_MS);
    }
    if (isCounting && unclaimed.length > 0) this.countedSweeps += 1;
  }

  /** A call about it went wrong, or a kill had no effect. */
  disturbed(doId: string): void {
    for (const [container, { due }] of this.#suspicions) if (due !== null && container.sandbox.doId === doId) due.isDisturbed = true;
  }

  ended(container: Container, now: Instant): void {
    const leakTime = this.#suspicions.get(container)?.leakTime ?? null;
    if (leakTime !== null) this.leakedMs += now - leakTime;
    this.#suspicions.delete(container);
  }

  /** What still leaks leaks up to now. */
  close(now: Instant): void {
    this.#suspicions.forEach((_, container) => this.ended(container, now));
  }

  #suspect(container: Container, process: Process, time: Instant, mayStillAct: boolean): void {
    const known = this.#suspicions.get(container) ?? { sightings: 0, firstTime: time, due: null, leakTime: null };
    this.#suspicions.set(container, known);
    const { due } = known;
    if (due !== null && known.leakTime === null && isUndisturbed(due, process)) {
      known.leakTime = time;
      this.#report(`${container.sandbox.doId.slice(0, 8)} runs without a record although a sweep should have ended it`);
    }
    known.sightings += 1;
    const ageMs = time - Math.max(known.firstTime, container.startedTime);
    const isRipe = known.sightings >= 2 && ageMs >= this.#graceMs;
    known.due = isRipe && mayStillAct ? { process, troubles: process.troubles, isDisturbed: false } : null;
  }

  #mayAct({ settings }: Process, running: number, unclaimed: number): boolean {
    const latest = this.#store.tables.settings;
    const isFree = [settings, latest].every(({ paused, gcMode }) => !paused && (gcMode ?? "Enforce") === "Enforce");
    const isEmpty = this.#store.tables.workspaces.size === 0 && !latest.allowEmpty;
    return isFree && !isEmpty && unclaimed <= Math.max(MIN_LIMIT, Math.floor(running * LIMIT_SHARE));
  }

  #isExcused({ sandbox }: Container): boolean {
    const { unclaimed, workspaces } = this.#store.tables;
    return unclaimed.get(sandbox.doId)?.protected === true || (sandbox.uid !== null && workspaces.has(sandbox.uid));
  }
}

const NO_LIST: GivenListing = { listing: { kind: "NotEnabled", message: "" }, asOfTime: null };

function isRunning({ state }: { readonly state: string }): boolean {
  return state === "Running";
}

/** The process that was to end it has gone through with it, as far as one can tell from outside. */
function isUndisturbed({ process, troubles, isDisturbed }: NonNullable<Suspicion["due"]>, current: Process): boolean {
  return !isDisturbed && process.troubles === troubles && (process === current || process.isThrough);
}
