/**
 * The promises of design.md section 2, checked as things happen, from what the simulation itself knows: never from what the controller
 * concluded. Numbers are those of the design.
 */
import type { Admission } from "../../src/store/progress.ts";
import type { Unclaimed } from "../../src/unclaimed.ts";
import type { Instance, Instant } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import type { RunningLimits } from "../../src/store/quota.ts";
import { BackupWatch } from "./backup-watch.ts";
import type { Bucket } from "./bucket.ts";
import { DeletionWatch } from "./deletions.ts";
import { IdleWatch } from "./idle-watch.ts";
import { LaneWatch } from "./lane-watch.ts";
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

const REPORTS_LIMIT = 40;
/** Between the look that showed an instance gone and the deletion of its record, another may start behind everybody's back. */
const GHOST_WINDOW_MS = 60_000;

export class Invariants {
  trace: Trace | null = null;
  readonly violations: Violation[] = [];
  readonly wishes: Wishes;
  readonly leaks: LeakWatch;
  readonly backups: BackupWatch;
  wrongfulKills = 0;
  /** What was checked how often: a check that never ran proves nothing. */
  readonly checks: Record<string, number> = {};
  readonly #store: MemoryStore;
  readonly #world: World;
  readonly #now: () => Instant;
  readonly #graceMs: number;
  readonly #lane: LaneWatch;
  /** Failures that are the workspace's own and were not counted yet. */
  readonly #uncounted = new Map<string, number>();
  readonly #deletions: DeletionWatch;
  readonly #idlers: IdleWatch;

  constructor(
    store: MemoryStore,
    world: World,
    bucket: Bucket,
    now: () => Instant,
    settings: {
      graceMs: number;
      tickBudgetMs: number;
      laneWidth: number;
      limits: RunningLimits;
      backupMs: number;
      keepAfterDeletionMs: number;
    },
  ) {
    this.#store = store;
    this.#world = world;
    this.#now = now;
    this.#graceMs = settings.graceMs;
    this.wishes = new Wishes(store);
    this.#lane = new LaneWatch(store, world, this.wishes, settings, (...check) => this.#expect(...check));
    this.#deletions = new DeletionWatch(store, (holds, message) => this.#expect(5, holds, message));
    const expect = (holds: boolean, message: () => string) => this.#expect(6, holds, message);
    this.backups = new BackupWatch(store, bucket, this.wishes, settings.keepAfterDeletionMs, expect);
    this.#idlers = new IdleWatch(store, world, this.wishes, settings.backupMs, expect);
    this.leaks = new LeakWatch(store, world, settings, (message) => this.report(3, message));
  }

  report(invariant: number, message: string): void {
    if (this.violations.length < REPORTS_LIMIT) this.violations.push({ invariant, time: this.#now(), message });
  }

  widthChanged(width: number): void {
    this.#lane.widthChanged(width, this.#now());
  }

  /** (11) Whoever writes holds the lease. */
  wrote(what: string, epoch: number): void {
    this.#expect(11, epoch === this.#store.tables.controller?.epoch, () => `${what} was written by a controller that lost its lease`);
  }

  admitted(process: Process, epoch: number, record: WorkspaceRecord, admission: Admission): void {
    this.trace?.(record.uid, `admitted ${admission.startId} in ${admission.instance.sandboxId}`);
    this.wrote("an admission", epoch);
    this.wishes.note(record.uid, this.#now());
    this.#lane.admitted(process, record, admission, this.#now());
    this.backups.contents.admitted(record.uid, admission.startId);
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
    if (conclusion.backup !== null) this.backups.ended(record, conclusion.backup);
    if (conclusion.brake !== null) this.#lane.brakedUntil(time + Math.min(conclusion.brake.retryAfterMs ?? 5000, 300_000));
    else if (conclusion.readyTime === time) this.#lane.brakedUntil(0);
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
    this.#expect(4, !process.isPausedFor(since), () => `a ${kind} was ordered although an operator has paused all`);
    if (!container.isVerified || container.isCondemned) return;
    const mayEnd = this.wishes.mayEnd(container, since, this.#now()) || !this.#isCurrent(container);
    this.#expect(4, mayEnd, () => `a ${kind} was ordered for ${nameOf(container)}, which is to run`);
    container.isCondemned = mayEnd;
    if (mayEnd && this.#isCurrent(container)) this.#checkFarewell(container, since);
  }

  /** The last word before it is destroyed: what an operator says later comes too late. */
  claimedOrphan(process: Process, doId: string): void {
    process.claims.set(doId, this.#now());
    const isProtected = this.#store.tables.unclaimed.get(doId)?.protected === true;
    this.#expect(3, !isProtected, () => `${doId.slice(0, 8)} is destroyed although it is protected`);
  }

  orderedOrphan(process: Process, doId: string): void {
    const now = this.#now();
    this.trace?.(doId, "destroy of an orphan ordered");
    const isPaused = process.isPausedFor(process.claims.get(doId) ?? now);
    this.#expect(4, !isPaused, () => "an orphan was destroyed although an operator has paused all");
    const row = this.#store.tables.unclaimed.get(doId);
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
    this.backups.contents.startBegan(sandbox.uid ?? "", startId);
    this.trace?.(sandbox.doId, `${startId} begins`);
    const admission = this.#lane.began(sandbox, startId, now);
    const { container } = sandbox;
    if (container === null || !container.isVerified || container.isCondemned) return;
    const mayEnd = this.wishes.mayEnd(container, admission?.since ?? now, now);
    this.#expect(4, mayEnd, () => `${nameOf(container)} is to run and was started anew`);
    container.isCondemned = mayEnd;
  }

  containerVerified(container: Container): void {
    this.trace?.(container.sandbox.doId, `verified with ${container.files}`);
    this.backups.contents.verified(container);
  }

  containerEnds(container: Container, killer: Killer): void {
    this.trace?.(container.sandbox.doId, `container ended by ${killer}`);
    this.leaks.ended(container, this.#now());
    const { uid } = container.sandbox;
    // A sandbox that is reset just then takes the end of the container that it removed for that of the one to come.
    if (killer === "start" && uid !== null && container.sandbox.admission.state === "Admitted") this.failed(uid);
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
    this.#idlers.disturbed(doId, this.#now());
    this.leaks.disturbed(doId);
  }

  /** (5, 10) A tick that nothing disturbed is over. */
  tickEnded(process: Process): void {
    const isQuiet = process.isThrough && process.troubles === 0 && !process.settings.paused;
    if (!isQuiet) return;
    this.#deletions.quietTick(process.startTime);
    this.#idlers.quietTick(process.startTime);
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

  /** (6) What was verified when the pass looked is not ended without what its spec asks for. */
  #checkFarewell(container: Container, since: Instant): void {
    if (container.verifiedTime === null || container.verifiedTime >= since) return;
    const now = this.#now();
    const mayGo = this.backups.mayGo(container, this.wishes.reasonsFor(container, since, now), now);
    this.#expect(6, mayGo, () => `${nameOf(container)} was ended without the backup that its spec asks for`);
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

  #isCurrent({ sandbox }: Container): boolean {
    return sandbox.uid !== null && this.#store.instanceOf(sandbox.uid)?.doId === sandbox.doId;
  }

  #expect(invariant: number, holds: boolean, message: () => string): void {
    this.checks[invariant] = (this.checks[invariant] ?? 0) + 1;
    if (!holds) this.report(invariant, message());
  }
}

function nameOf({ sandbox }: Container): string {
  return sandbox.sandboxId ?? sandbox.doId.slice(0, 8);
}
