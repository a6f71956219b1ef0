/**
 * One sandbox of the fake world: admission, operation, container and fence as `src/sandbox/protocol.ts` says, over the world's clock.
 */
import type { StartRequest } from "../../src/controller/fleet.ts";
import {
  type AdmissionState,
  type Answer,
  type BackupAnswer,
  type BackupOrder,
  type OperationFailure,
  type OrphanAnswer,
  START_CANCELLED,
  START_DEADLINE,
  type SandboxFacts,
  type StartOperation,
  type StartOrder,
} from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import { FakeBackups } from "./fake-backups.ts";
import type { FakeWorld, RunningContainer, Script, WorldClock } from "./fake-fleet.ts";
import { failureOf, within } from "./fake-sandbox-parts.ts";

const RUN_END_LIMIT_MS = 10_000;

export interface SandboxName {
  readonly doId: string;
  readonly uid: string;
  readonly sandboxId: string;
}

type AbortCause = "Stopped" | "Destroyed" | "Superseded" | "Deadline";

interface Admission {
  readonly state: AdmissionState;
  readonly startId: string | null;
  readonly workspaceUid: string | null;
}

/** One start operation in the memory of a sandbox. */
interface Run {
  readonly startId: string;
  readonly deadlineTime: Instant;
  readonly aborted: AbortController;
  /** Aborted when the container ends by itself. */
  readonly ended: AbortController;
  done: Promise<void>;
}

export class FakeSandbox {
  readonly doId: string;
  readonly uid: string;
  readonly sandboxId: string;
  readonly #world: FakeWorld;
  readonly #clock: WorldClock;
  readonly #backups: FakeBackups;
  #fence: { readonly epoch: number; readonly incarnation: number } | null = null;
  #admission: Admission = { state: "None", startId: null, workspaceUid: null };
  #operation: StartOperation | null = null;
  #container: RunningContainer | null = null;
  #exit: SandboxFacts["exit"] = null;
  /** Of the user's last traffic, and the container that it reached. */
  #activity: { readonly container: RunningContainer; readonly time: Instant } | null = null;
  #run: Run | null = null;
  #memory = new AbortController();

  constructor(world: FakeWorld, clock: WorldClock, { doId, uid, sandboxId }: SandboxName) {
    this.#world = world;
    this.#clock = clock;
    this.doId = doId;
    this.uid = uid;
    this.sandboxId = sandboxId;
    this.#backups = new FakeBackups(world, clock, {
      uid,
      running: () => this.#container,
      verified: () => (this.#isVerified ? this.#container : null),
    });
  }

  get containerOrNone(): readonly RunningContainer[] {
    return this.#container === null ? [] : [this.#container];
  }

  /** A start is under way from its acceptance until its outcome, and while a container runs that no outcome vouches for. */
  get isStarting(): boolean {
    const isUnsettled = this.#operation?.state === "InProgress" || this.#operation?.state === "Interrupted";
    return this.#run !== null || (isUnsettled && this.#container !== null);
  }

  /** No start that was admitted vouches for what runs, or may still come to. */
  get isUnclaimed(): boolean {
    return this.#admission.state !== "Admitted";
  }

  get highestEpoch(): number {
    return this.#fence?.epoch ?? 0;
  }

  /** Aborted when what is in memory now is gone. */
  get memory(): AbortSignal {
    return this.#memory.signal;
  }

  passFence(epoch: number, incarnation: number, expiresTime: Instant): "StaleEpoch" | "OtherIncarnation" | "Expired" | null {
    const known = this.#fence?.incarnation ?? 0;
    if (known !== 0 && incarnation !== known) return "OtherIncarnation";
    if (this.#fence !== null && epoch < this.#fence.epoch) return "StaleEpoch";
    if (this.#clock.now() > expiresTime) return "Expired";
    this.#fence = { epoch, incarnation };
    return null;
  }

  facts(): SandboxFacts {
    const container = this.#container;
    return {
      running: container !== null && !this.#isFlapping(container),
      admission: this.#admission.state,
      operation: this.#operation,
      exit: this.#exit,
      startedTime: container?.startedTime ?? null,
      activityTime: container !== null && this.#activity?.container === container ? this.#activity.time : null,
    };
  }

  async observe(): Promise<Answer> {
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  async start(order: StartOrder, waitMs: number): Promise<Answer> {
    if (this.#admission.state === "Destroyed") return { accepted: false, refusal: "Destroyed", facts: this.facts() };
    this.#settle();
    await within(this.#clock, waitMs, this.#begin(order));
    return { accepted: true, facts: this.facts() };
  }

  async backup(order: BackupOrder, waitMs: number): Promise<BackupAnswer> {
    return { accepted: true, report: await this.#remembered(this.#backups.take(order, waitMs)) };
  }

  async stop(graceMs: number): Promise<Answer> {
    this.#revoke();
    const admission = this.#admission;
    const isSuperseded = () => this.#admission !== admission;
    if (this.#run === null) await this.#endGracefully(graceMs);
    else await this.#remembered(within(this.#clock, RUN_END_LIMIT_MS, this.#abort("Stopped")));
    if (!isSuperseded()) {
      this.#kill();
      this.#settle();
    }
    return { accepted: true, facts: this.facts() };
  }

  async destroy(): Promise<Answer> {
    this.#admission = { ...this.#admission, state: "Destroyed" };
    const ended = this.#abort("Destroyed");
    await this.#remembered(this.#clock.sleep(this.#script.destroyMs));
    this.#kill();
    await this.#remembered(within(this.#clock, RUN_END_LIMIT_MS, ended));
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  async destroyOrphan(epoch: number, expiresTime: Instant): Promise<OrphanAnswer> {
    if (epoch < this.highestEpoch) return "StaleEpoch";
    if (this.#clock.now() > expiresTime) return "Expired";
    if (await this.#isWanted()) return "Wanted";
    if (epoch < this.highestEpoch) return "StaleEpoch";
    if (this.#clock.now() > expiresTime) return "Expired";
    this.#fence = { epoch, incarnation: this.#fence?.incarnation ?? 0 };
    await this.destroy();
    return this.#container === null ? "Gone" : "StillRuns";
  }

  /** A user's traffic; false where it is refused. */
  use(): boolean {
    if (this.#container === null || this.#admission.state !== "Admitted" || !this.#isVerified) return false;
    this.#activity = { container: this.#container, time: this.#clock.now() };
    return true;
  }

  /** A container that nobody admitted, and nobody here saw begin. */
  startUnseen(): void {
    const { uid, sandboxId, doId } = this;
    this.#container ??= { uid, sandboxId, doId, startId: null, env: {}, startedTime: null, disk: { files: "" } };
    this.#exit = null;
    this.#world.measure();
  }

  /** As an eviction or a deploy: the container goes on; what was in memory is gone, and breaks the calls under way. */
  loseMemory(): void {
    this.#memory.abort();
    this.#memory = new AbortController();
    this.#backups.loseMemory();
    this.#run = null;
    this.#world.measure();
  }

  exit(code: number | null): void {
    if (this.#container === null) return;
    if (this.#run?.startId === this.#container.startId) this.#run.ended.abort();
    this.#end(code);
    this.#world.onEvent(this.uid);
  }

  get #isVerified(): boolean {
    return this.#operation?.state === "Succeeded" && this.#operation.startId === this.#admission.startId;
  }

  get #script(): Script {
    return this.#world.script(this.uid);
  }

  /** Whoever waits when the memory is lost waits for ever. */
  async #remembered<T>(work: Promise<T>): Promise<T> {
    const { memory } = this;
    const result = await work;
    if (memory.aborted) await new Promise(() => {});
    return result;
  }

  async #isWanted(): Promise<boolean> {
    const { workspaceUid, state } = this.#admission;
    return workspaceUid !== null && state !== "Destroyed" && (await this.#world.hasRow(workspaceUid));
  }

  #isFlapping({ startedTime }: RunningContainer): boolean {
    const { flaps } = this.#script;
    if (flaps === null || startedTime === null) return false;
    const ageMs = this.#clock.now() - startedTime;
    return ageMs >= flaps.afterMs && ageMs < flaps.afterMs + flaps.forMs;
  }

  #begin(order: StartRequest): Promise<void> {
    if (this.#run?.startId === order.startId) return this.#run.done;
    const known = this.#operation?.startId === order.startId ? this.#operation : null;
    if (known !== null && known.state !== "Interrupted") return Promise.resolve();
    const { startId, specHash, directory, workspaceUid } = order;
    const startedTime = known?.startedTime ?? this.#clock.now();
    const deadlineTime = known?.deadlineTime ?? startedTime + order.timeoutMs;
    const previous = this.#abort("Superseded");
    this.#admission = { state: "Admitted", startId, workspaceUid };
    this.#operation = { startId, state: "InProgress", specHash, directory, startedTime, deadlineTime, failure: null };
    const run: Run = {
      startId,
      deadlineTime,
      aborted: new AbortController(),
      ended: new AbortController(),
      done: Promise.resolve(),
    };
    this.#run = run;
    run.done = this.#perform(run, order, previous);
    this.#world.measure();
    return run.done;
  }

  #abort(cause: AbortCause): Promise<void> {
    this.#run?.aborted.abort(cause);
    return this.#run?.done ?? Promise.resolve();
  }

  async #perform(run: Run, order: StartRequest, previous: Promise<void>): Promise<void> {
    await previous;
    const failure = await this.#launch(run, order);
    if (this.#run !== run) return;
    if (failure === null) this.#operation = this.#operation && { ...this.#operation, state: "Succeeded", endedTime: this.#clock.now() };
    else this.#giveUp(run, failure);
    this.#run = null;
    this.#world.measure();
    this.#world.onEvent(this.uid);
    if (failure === null) void this.#exitLater();
  }

  async #launch(run: Run, order: StartRequest): Promise<OperationFailure | null> {
    if (run.aborted.signal.aborted || this.#clock.now() >= run.deadlineTime) return CANCELLED;
    if (this.#container !== null && this.#container.startId !== order.startId) {
      if (order.adopt) this.#container = { ...this.#container, startId: order.startId, startedTime: this.#clock.now() };
      else if (!this.#kill()) return failureOf("the container of an earlier start could not be removed");
    }
    const restored = order.restore === null ? { files: "" } : this.#world.bucket.stored.get(order.restore.objectId);
    if (restored === undefined) return { ...failureOf("Backup not found: it is gone"), code: "BACKUP_NOT_FOUND" };
    const outcome = this.#script.outcome(this.#world.launchesOf(this.uid).length + 1);
    if (this.#container === null) {
      const { uid, sandboxId, doId } = this;
      const { startId, env } = order;
      const time = this.#clock.now();
      this.#world.launches.push({ uid, sandboxId, startId, time });
      if (outcome.kind !== "Refused") {
        this.#container = { uid, sandboxId, doId, startId, env, startedTime: time, disk: { files: "" } };
        this.#exit = null;
      }
      this.#world.measure();
    }
    const leftMs = run.deadlineTime - this.#clock.now();
    const neededMs = outcome.kind === "NeverReady" ? Number.POSITIVE_INFINITY : this.#script.startMs;
    await this.#clock.sleep(Math.min(leftMs, neededMs), AbortSignal.any([run.aborted.signal, run.ended.signal]));
    if (run.aborted.signal.aborted) return CANCELLED;
    if (run.ended.signal.aborted) return failureOf("the container ended before it was ready");
    if (neededMs > leftMs) return failureOf("The start did not become ready in time.");
    if (outcome.kind === "Refused") return failureOf(outcome.message, outcome.retryAfterMs);
    if (outcome.kind === "Fails") return failureOf(outcome.message);
    return order.restore === null && order.setup.length === 0 ? null : this.#prepare(run, order, restored.files);
  }

  async #prepare(run: Run, order: StartRequest, files: string): Promise<OperationFailure | null> {
    const step = order.restore === null ? "Setup" : "Restore";
    this.#operation = this.#operation && { ...this.#operation, step, deadlineTime: this.#clock.now() + order.prepareTimeoutMs };
    const { prepareMs, prepareError } = this.#script;
    const isLate = prepareMs > order.prepareTimeoutMs;
    const container = this.#container;
    await this.#clock.sleep(Math.min(prepareMs, order.prepareTimeoutMs), AbortSignal.any([run.aborted.signal, run.ended.signal]));
    if (run.aborted.signal.aborted) return CANCELLED;
    if (run.ended.signal.aborted) return failureOf("the container ended before it was ready");
    const error = prepareError(this.#world.launchesOf(this.uid).length);
    if (isLate || error !== null) return failureOf(error ?? "The preparation was not done in time.");
    if (container !== null) container.disk.files = files;
    return null;
  }

  #giveUp(run: Run, failure: OperationFailure): void {
    this.#revoke();
    this.#kill();
    const isLate = this.#clock.now() >= run.deadlineTime && !run.aborted.signal.aborted;
    this.#operation = this.#operation && { ...this.#operation, state: isLate ? "TimedOut" : "Failed", failure };
  }

  async #exitLater(): Promise<void> {
    const { exits } = this.#script;
    const container = this.#container;
    if (exits === null) return;
    if (exits.afterMs > 0) await this.#clock.sleep(exits.afterMs);
    if (this.#container === container) this.exit(exits.code);
  }

  #settle(): void {
    const operation = this.#operation;
    if (operation === null || (operation.state !== "InProgress" && operation.state !== "Interrupted")) return;
    if (this.#run !== null) return;
    const isExpired = this.#clock.now() >= operation.deadlineTime;
    const isAdmitted = this.#admission.state === "Admitted" && this.#admission.startId === operation.startId;
    const isResumable = isAdmitted && (operation.step ?? "Container") === "Container";
    if (isResumable && !isExpired) {
      this.#operation = { ...operation, state: "Interrupted" };
      return;
    }
    const isLate = isExpired && isAdmitted;
    const code = isLate ? START_DEADLINE : START_CANCELLED;
    const failure = { ...failureOf("the sandbox was reset while the start was under way"), code };
    this.#operation = { ...operation, state: isLate ? "TimedOut" : "Failed", failure };
    this.#revoke();
    this.#kill();
    this.#world.measure();
  }

  #revoke(): void {
    if (this.#admission.state === "Admitted") this.#admission = { ...this.#admission, state: "Revoked" };
  }

  async #endGracefully(graceMs: number): Promise<void> {
    const container = this.#container;
    if (container === null) return;
    const { stopMs } = this.#script;
    await this.#remembered(this.#clock.sleep(Math.min(stopMs ?? graceMs, graceMs)));
    if (this.#container === container && stopMs !== null && stopMs <= graceMs) this.exit(143);
  }

  /** Whether nothing runs any more. */
  #kill(): boolean {
    if (this.#container === null) return true;
    if (this.#script.deafKills > 0) {
      this.#script.deafKills -= 1;
      return false;
    }
    this.#end(137);
    return true;
  }

  #end(code: number | null): void {
    this.#container = null;
    this.#exit = { code, time: this.#clock.now(), signalled: false };
    this.#world.measure();
  }
}

const CANCELLED: OperationFailure = { ...failureOf("The start was cancelled."), code: START_CANCELLED };
