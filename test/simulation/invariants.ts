/**
 * The promises of design.md section 2, checked as things happen, from what the simulation itself knows: never from what the controller
 * concluded. Numbers are those of the design.
 */
import type { Admission } from "../../src/store/progress.ts";
import type { Unclaimed } from "../../src/unclaimed.ts";
import type { Instance, Instant } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import type { RunningLimits } from "../../src/store/quota.ts";
import { DeletionWatch } from "./deletions.ts";
import { LeakWatch } from "./leaks.ts";
import type { GivenListing } from "./listing.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Process } from "./process.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Container, Killer } from "./surroundings.ts";
import { type Trace, describe } from "./trace.ts";
import { Wishes, hashOf } from "./wishes.ts";
import type { World } from "./world.ts";

export interface Violation {
  /** Of design.md section 2; 0: the controller broke down. */
  readonly invariant: number;
  readonly time: Instant;
  readonly message: string;
}

/** Longer than a start may take, lane margin included: a width that an operator has lowered may show for so long. */
const WIDTH_MEMORY_MS = 240_000;
const REPORTS_LIMIT = 40;
/** Between the look that showed an instance gone and the deletion of its record, another may start behind everybody's back. */
const GHOST_WINDOW_MS = 60_000;

export class Invariants {
  trace: Trace | null = null;
  readonly violations: Violation[] = [];
  readonly wishes: Wishes;
  readonly leaks: LeakWatch;
  wrongfulKills = 0;
  /** What was checked how often: a check that never ran proves nothing. */
  readonly checks: Record<string, number> = {};
  readonly #store: MemoryStore;
  readonly #world: World;
  readonly #now: () => Instant;
  readonly #graceMs: number;
  readonly #limits: RunningLimits;
  readonly #admitted = new Map<string, { readonly doId: string; readonly deadlineTime: Instant; readonly since: Instant }>();
  readonly #widths: { readonly width: number; fromTime: Instant }[];
  /** Failures that are the workspace's own and were not counted yet. */
  readonly #uncounted = new Map<string, number>();
  #brakeUntilTime = 0;
  readonly #deletions: DeletionWatch;

  constructor(
    store: MemoryStore,
    world: World,
    now: () => Instant,
    settings: { graceMs: number; tickBudgetMs: number; laneWidth: number; limits: RunningLimits },
  ) {
    this.#store = store;
    this.#world = world;
    this.#now = now;
    this.#graceMs = settings.graceMs;
    this.#limits = settings.limits;
    this.#widths = [{ width: settings.laneWidth, fromTime: 0 }];
    this.wishes = new Wishes(store);
    this.#deletions = new DeletionWatch(store, (holds, message) => this.#expect(5, holds, message));
    this.leaks = new LeakWatch(store, world, settings, (message) => this.report(3, message));
  }

  report(invariant: number, message: string): void {
    if (this.violations.length < REPORTS_LIMIT) this.violations.push({ invariant, time: this.#now(), message });
  }

  widthChanged(width: number): void {
    this.#widths.push({ width, fromTime: this.#now() });
  }

  /** (11) Whoever writes holds the lease. */
  wrote(what: string, epoch: number): void {
    this.#expect(11, epoch === this.#store.tables.controller?.epoch, () => `${what} was written by a controller that lost its lease`);
  }

  admitted(process: Process, epoch: number, record: WorkspaceRecord, admission: Admission): void {
    const now = this.#now();
    this.trace?.(record.uid, `admitted ${admission.startId} in ${admission.instance.sandboxId}`);
    this.wrote("an admission", epoch);
    this.wishes.note(record.uid, now);
    this.#expect(2, this.wishes.isToRun(record.uid), () => `a start was admitted for ${record.name}, which is not to run`);
    this.#expect(2, !process.settings.paused, () => `a start was admitted for ${record.name} although an operator has paused all`);
    this.#expect(12, now >= this.#brakeUntilTime, () => `a start was admitted for ${record.name} while the brake was on`);
    const held = this.#store.tables.lane.filter(({ deadlineTime }) => deadlineTime > now).length;
    this.#expect(1, held <= this.#width(), () => `${held} places in the lane are held`);
    this.#checkQuota(record.namespace);
    const { startId, deadlineTime, instance } = admission;
    this.#admitted.set(startId, { doId: instance.doId, deadlineTime, since: process.loadedTime });
  }

  /** `time`: when it was concluded; the write may have taken a while. */
  saved(process: Process, epoch: number, record: WorkspaceRecord, conclusion: Conclusion, time: Instant): void {
    this.trace?.(record.uid, describe(conclusion));
    this.wrote("a conclusion", epoch);
    const { observedGeneration, conditions } = conclusion.status;
    const generation = this.#store.tables.workspaces.get(record.uid)?.generation ?? 0;
    this.#expect(8, observedGeneration <= generation, () => `the status of ${record.name} is about generation ${observedGeneration}`);
    const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
    if (isReady) this.#checkReady(process, record);
    if (conclusion.idleTime !== null && record.idleTime === null) this.#checkIdle(process, record);
    if (conclusion.failures > record.failures) this.#countFailure(record);
    if (conclusion.brake !== null) this.#brakeUntilTime = time + Math.min(conclusion.brake.retryAfterMs ?? 5000, 300_000);
    else if (conclusion.readyTime === time) this.#brakeUntilTime = 0;
    this.wishes.note(record.uid, this.#now());
  }

  expired(epoch: number, record: WorkspaceRecord): void {
    this.wrote("an expiry", epoch);
    const expireTime = record.spec?.expireTime ?? null;
    const isDue = expireTime !== null && this.#now() >= Date.parse(expireTime);
    this.#expect(5, isDue, () => `${record.name} was deleted before its time`);
    this.wishes.note(record.uid, this.#now());
  }

  forgotten(epoch: number, record: WorkspaceRecord, instance: Instance | null): void {
    this.wrote("a deletion", epoch);
    this.trace?.(record.uid, "forgotten");
    this.wishes.note(record.uid, this.#now());
    this.#expect(5, record.deletionTime !== null, () => `${record.name} was forgotten although nobody deleted it`);
    if (instance === null) return;
    const container = this.#world.sandboxes.get(instance.doId)?.container ?? null;
    const isSeenGone = container === null || container.startedTime > this.#now() - GHOST_WINDOW_MS;
    this.#expect(5, isSeenGone, () => `${record.name} was forgotten while its container ran`);
    this.#expect(3, this.#store.tables.unclaimed.has(instance.doId), () => `nobody watches what ${record.name} left`);
  }

  /** (3) A row that a sweep drops is of something that is gone. */
  dropped(gone: readonly Unclaimed[], given: GivenListing | null): void {
    if (given === null || given.asOfTime === null) return;
    const { asOfTime } = given;
    for (const { doId } of gone) {
      const container = this.#world.sandboxes.get(doId)?.container ?? null;
      this.#expect(
        3,
        container === null || container.startedTime > asOfTime,
        () => `${doId.slice(0, 8)} is watched no more although it runs`,
      );
    }
  }

  /** An order of a controller that was superseded is checked where it arrives: it is to be refused there. */
  ordered(process: Process, kind: "stop" | "destroy", { doId }: Instance, epoch: number): void {
    const sandbox = this.#world.sandboxes.get(doId);
    const container = sandbox?.container ?? null;
    this.trace?.(doId, `${kind} ordered`);
    if (container === null || epoch < (sandbox?.fence?.epoch ?? 0)) return;
    const since = process.basis.get(doId) ?? process.loadedTime;
    const isPaused = process.settings.paused;
    this.#expect(4, !isPaused, () => `a ${kind} was ordered although an operator has paused all`);
    if (!container.isVerified || container.isCondemned) return;
    const mayEnd = this.wishes.mayEnd(container, since, this.#now()) || !this.#isCurrent(container);
    this.#expect(4, mayEnd, () => `a ${kind} was ordered for ${nameOf(container)}, which is to run`);
    container.isCondemned = mayEnd;
  }

  orderedOrphan(process: Process, doId: string): void {
    const now = this.#now();
    this.trace?.(doId, "destroy of an orphan ordered");
    this.#expect(4, !process.settings.paused, () => "an orphan was destroyed although an operator has paused all");
    const row = this.#store.tables.unclaimed.get(doId);
    this.#expect(3, row?.protected !== true, () => `${doId.slice(0, 8)} was destroyed although it is protected`);
    const container = this.#world.sandboxes.get(doId)?.container ?? null;
    if (container === null) return;
    const isWanted = this.#isCurrent(container) && this.wishes.isToRun(container.sandbox.uid ?? "");
    this.#expect(4, !isWanted, () => `${nameOf(container)} is wanted and was destroyed as an orphan`);
    container.isCondemned = !isWanted;
    const isYoung = now - container.startedTime < this.#graceMs;
    const isRequested = row === undefined || row.destroyRequestTime !== null;
    this.#expect(3, isRequested || !isYoung, () => `${doId.slice(0, 8)} was destroyed before its grace was over`);
  }

  startBegan(sandbox: Sandbox): void {
    const now = this.#now();
    const startId = sandbox.operation?.startId ?? "";
    this.trace?.(sandbox.doId, `${startId} begins`);
    const admission = this.#admitted.get(startId);
    const isAdmitted = admission?.doId === sandbox.doId && now < admission.deadlineTime;
    this.#expect(2, isAdmitted, () => `${sandbox.sandboxId} starts without an admission`);
    const inFlight = this.#world.startsInFlight();
    this.#expect(1, inFlight <= this.#width(), () => `${inFlight} starts are in flight`);
    const { container } = sandbox;
    if (container === null || !container.isVerified || container.isCondemned) return;
    const mayEnd = this.wishes.mayEnd(container, admission?.since ?? now, now);
    this.#expect(4, mayEnd, () => `${nameOf(container)} is to run and was started anew`);
    container.isCondemned = mayEnd;
  }

  containerEnds(container: Container, killer: Killer): void {
    this.trace?.(container.sandbox.doId, `container ended by ${killer}`);
    this.leaks.ended(container, this.#now());
    const { uid } = container.sandbox;
    // A sandbox that is reset just then takes the end of the older container for that of the new one.
    if (killer === "start" && uid !== null && container.startId !== container.sandbox.operation?.startId) this.failed(uid);
    if (killer === "itself" || !container.isVerified || container.isCondemned || uid === null) return;
    const mayEnd = !this.#isCurrent(container) || this.wishes.mayEnd(container, this.#now(), this.#now());
    if (!mayEnd) this.wrongfulKills += 1;
    this.#expect(4, mayEnd, () => `${nameOf(container)} is to run and was ended by a ${killer}`);
  }

  failed(uid: string): void {
    this.trace?.(uid, "failed by its own fault");
    this.#uncounted.set(uid, (this.#uncounted.get(uid) ?? 0) + 1);
  }

  disturbed(doId: string): void {
    this.trace?.(doId, "disturbed");
    this.#deletions.disturbed(doId, this.#now());
    this.leaks.disturbed(doId);
  }

  /** (5, 10) A tick that nothing disturbed is over. */
  tickEnded(process: Process): void {
    const isQuiet = process.isThrough && process.troubles === 0 && !process.settings.paused;
    if (isQuiet) this.#deletions.quietTick(process.startTime);
  }

  #checkReady({ basis }: Process, { instance, name, spec, uid }: WorkspaceRecord): void {
    const container = instance === null ? null : (this.#world.sandboxes.get(instance.doId)?.container ?? null);
    const since = basis.get(instance?.doId ?? "") ?? 0;
    const ran = container ?? this.#world.ended.findLast(({ sandbox }) => sandbox.doId === instance?.doId) ?? null;
    const wasRunning = ran !== null && ran.isVerified && (ran.endedTime === null || ran.endedTime >= since);
    this.#expect(8, wasRunning, () => `${name} is said to be Ready, and nothing verified runs`);
    const isOfWish = ran === null || spec === null || spec.paused || ran.specHash === hashOf(spec) || ran.startedTime >= since;
    this.#expect(8, isOfWish, () => `${name} (${uid}) is said to be Ready with another spec than runs`);
  }

  /** (4) Suspended for idleness is what was idle when it was looked at. */
  #checkIdle({ basis }: Process, { instance, name, spec, wakeTime }: WorkspaceRecord): void {
    const container = instance === null ? null : (this.#world.sandboxes.get(instance.doId)?.container ?? null);
    if (container === null || spec === null || spec.idle === null) return;
    const since = basis.get(container.sandbox.doId) ?? 0;
    const { activityTime, earlierActivityTime, startedTime } = container;
    const seenTime = activityTime !== null && activityTime >= since ? earlierActivityTime : activityTime;
    const idleFrom = Math.max(startedTime, seenTime ?? 0, wakeTime ?? 0);
    const isIdle = this.#now() >= idleFrom + spec.idle.timeoutSeconds * 1000;
    this.#expect(4, isIdle, () => `${name} was suspended for idleness while it was in use`);
  }

  #countFailure({ uid, name }: WorkspaceRecord): void {
    const left = (this.#uncounted.get(uid) ?? 0) - 1;
    this.#uncounted.set(uid, Math.max(0, left));
    this.#expect(12, left >= 0, () => `a failure was counted against ${name} that was not its own`);
  }

  #checkQuota(namespace: string): void {
    const limit = this.#limits[namespace] ?? null;
    if (limit === null) return;
    const running = [...this.#store.tables.instances.values()].filter((row) => row.running && row.namespace === namespace).length;
    this.#expect(12, running <= limit, () => `${running} run in ${namespace}, whose quota is ${limit}`);
  }

  #isCurrent({ sandbox }: Container): boolean {
    return sandbox.uid !== null && this.#store.instanceOf(sandbox.uid)?.doId === sandbox.doId;
  }

  /** The most that was allowed within the last minutes. */
  #width(): number {
    const now = this.#now();
    while ((this.#widths[1]?.fromTime ?? Number.POSITIVE_INFINITY) < now - WIDTH_MEMORY_MS) this.#widths.shift();
    return Math.max(...this.#widths.map(({ width }) => width));
  }

  #expect(invariant: number, holds: boolean, message: () => string): void {
    this.checks[invariant] = (this.checks[invariant] ?? 0) + 1;
    if (!holds) this.report(invariant, message());
  }
}

function nameOf({ sandbox }: Container): string {
  return sandbox.sandboxId ?? sandbox.doId.slice(0, 8);
}
