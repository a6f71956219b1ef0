/**
 * One sandbox and its container: what `src/sandbox` keeps and does, as far as a controller can tell. Its facts become observations
 * through the product's own `interpret`.
 */
import { START_CANCELLED, START_DEADLINE } from "../../src/sandbox/protocol.ts";
import type { AdmissionState, Answer, OperationFailure, SandboxFacts, StartOperation, StartOrder } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import { CANCELLED, failureOf, isWorkspacesFault } from "./start-failures.ts";
import type { Container, Fate, Killer, Surroundings } from "./surroundings.ts";

interface Run {
  readonly startId: string;
  readonly deadlineTime: Instant;
  aborted: boolean;
  /** Its container ended by itself. */
  ended: boolean;
  wake: () => void;
  done: Promise<void>;
}

const KILL_LIMIT_MS = 3000;
const RUN_END_LIMIT_MS = 10_000;

export class Sandbox {
  readonly doId: string;
  readonly sandboxId: string | null;
  readonly uid: string | null;
  fence: { readonly epoch: number; readonly incarnation: number } | null = null;
  admission: { readonly state: AdmissionState; readonly startId: string | null; readonly workspaceUid: string | null } = NOT_ADMITTED;
  operation: StartOperation | null = null;
  container: Container | null = null;
  run: Run | null = null;
  /** Of calls under way, broken where the memory is lost. */
  readonly breakers = new Set<() => void>();
  #exit: SandboxFacts["exit"] = null;
  #kill: Promise<boolean> | null = null;
  readonly #around: Surroundings;

  constructor(around: Surroundings, doId: string, sandboxId: string | null, uid: string | null) {
    this.#around = around;
    this.doId = doId;
    this.sandboxId = sandboxId;
    this.uid = uid;
  }

  /** Until its deadline, a start may still bring a container up; one that was interrupted may be resumed. */
  isStarting(now: Instant): boolean {
    if (this.run !== null) return true;
    const { operation, container } = this;
    const isOpen = operation?.state === "InProgress" || operation?.state === "Interrupted";
    return isOpen && container !== null && container.startId === operation.startId && now < operation.deadlineTime;
  }

  passFence(epoch: number, incarnation: number): "StaleEpoch" | "OtherIncarnation" | null {
    if (this.fence !== null && incarnation !== this.fence.incarnation) return "OtherIncarnation";
    if (this.fence !== null && epoch < this.fence.epoch) return "StaleEpoch";
    if (this.fence?.epoch !== epoch) this.fence = { epoch, incarnation };
    return null;
  }

  facts(): SandboxFacts {
    const { container, admission, operation } = this;
    return {
      running: container !== null,
      admission: admission.state,
      operation,
      exit: this.#exit,
      startedTime: container?.startedTime ?? null,
      activityTime: container?.activityTime ?? null,
    };
  }

  observe(): Answer {
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  async start(order: StartOrder, waitMs: number): Promise<Answer> {
    if (this.admission.state === "Destroyed") return { accepted: false, refusal: "Destroyed", facts: this.facts() };
    this.#settle();
    await this.#within(waitMs, this.#begin(order));
    return { accepted: true, facts: this.facts() };
  }

  async stop(graceMs: number): Promise<Answer> {
    this.#revoke();
    const { admission, container } = this;
    const stopMs = this.#around.stopMs();
    if (this.run !== null) await this.#within(RUN_END_LIMIT_MS, this.#abort());
    else if (container !== null) {
      await this.#around.clock.sleep(Math.min(stopMs ?? graceMs, graceMs));
      if (this.container === container && this.admission === admission && stopMs !== null && stopMs <= graceMs)
        this.#end(143, false, "stop");
    }
    if (this.admission === admission) {
      await this.#teardown("stop");
      this.#settle();
    }
    return { accepted: true, facts: this.facts() };
  }

  async destroy(killer: "destroy" | "destroyOrphan" = "destroy"): Promise<Answer> {
    this.admission = { ...this.admission, state: "Destroyed" };
    const ended = this.#abort();
    await this.#teardown(killer);
    await this.#within(RUN_END_LIMIT_MS, ended);
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  /** As an eviction or a deploy: the container goes on, and what was in memory is gone. */
  loseMemory(): void {
    const { run } = this;
    this.run = null;
    this.#kill = null;
    run?.wake();
    for (const breaks of this.breakers) breaks();
    this.breakers.clear();
  }

  exit(code: number | null, signalled: boolean): void {
    if (this.container === null) return;
    const { run, container } = this;
    this.#end(code, signalled, "itself");
    if (run?.startId === container.startId) {
      run.ended = true;
      run.wake();
    }
    if (this.admission.workspaceUid !== null) this.#around.poke(this.admission.workspaceUid);
  }

  /** Nobody ordered it. */
  startUnasked(): void {
    if (this.container === null) this.#launch(null, null);
  }

  /** Settles when the start is over. */
  #begin(order: StartOrder): Promise<void> {
    if (this.run?.startId === order.startId) return this.run.done;
    const known = this.operation?.startId === order.startId ? this.operation : null;
    if (known !== null && known.state !== "Interrupted") return Promise.resolve();
    const { startId, specHash, workspaceUid } = order;
    const startedTime = known?.startedTime ?? this.#around.clock.now();
    const deadlineTime = known?.deadlineTime ?? startedTime + order.timeoutMs;
    const previous = this.#abort();
    this.admission = { state: "Admitted", startId, workspaceUid };
    this.operation = { startId, state: "InProgress", specHash, startedTime, deadlineTime, failure: null };
    if (known === null) this.#exit = null;
    else if (known.specHash !== specHash && this.container !== null) this.container.startId = null;
    const run: Run = { startId, deadlineTime, aborted: false, ended: false, wake: () => {}, done: Promise.resolve() };
    this.run = run;
    this.#around.startBegan(this);
    run.done = this.#perform(run, order, previous);
    return run.done;
  }

  #succeed(): void {
    this.operation = this.operation && { ...this.operation, state: "Succeeded" };
    if (this.container !== null) this.container.isVerified = true;
  }

  #abort(): Promise<void> {
    if (this.run === null) return Promise.resolve();
    this.run.aborted = true;
    this.run.wake();
    return this.run.done;
  }

  async #perform(run: Run, order: StartOrder, previous: Promise<void>): Promise<void> {
    await previous;
    const failure = await this.#tryLaunch(run, order);
    if (this.run !== run) return;
    if (failure === null) this.#succeed();
    else await this.#giveUp(run, failure);
    if (this.run !== run) return;
    this.run = null;
    this.#around.poke(order.workspaceUid);
  }

  async #tryLaunch(run: Run, order: StartOrder): Promise<OperationFailure | null> {
    const { clock } = this.#around;
    if (this.run !== run || run.aborted) return CANCELLED;
    const { container } = this;
    const isOlder = container !== null && container.startId !== order.startId;
    if (isOlder && !(await this.#teardown("start"))) return failureOf("the container of an earlier start could not be removed");
    if (this.run !== run || run.aborted) return CANCELLED;
    const leftMs = run.deadlineTime - clock.now();
    if (leftMs <= 0) return failureOf("the start was not verified before its deadline");
    // A container that an interrupted try brought up needs no instance.
    const drawn = this.#around.fateOf(this);
    const fate: Fate = this.container !== null && drawn.kind === "Refused" ? { kind: "Ready", ms: drawn.ms } : drawn;
    if (this.container === null && fate.kind !== "Refused") this.#launch(order.startId, order.specHash);
    await this.#pause(run, Math.min(leftMs, fate.kind === "NeverReady" ? Number.POSITIVE_INFINITY : fate.ms));
    if (this.run !== run || run.aborted) return CANCELLED;
    if (run.ended || this.container === null || fate.kind === "Exits") {
      if (fate.kind === "Refused") return failureOf(fate.message, fate.retryAfterMs);
      if (!run.ended) this.exit(1, false);
      return failureOf("Container exited with unexpected exit code: 1");
    }
    if (clock.now() >= run.deadlineTime) return failureOf("the start was not verified before its deadline");
    return fate.kind === "Fails" ? failureOf(fate.message) : null;
  }

  async #giveUp(run: Run, failure: OperationFailure): Promise<void> {
    this.#revoke();
    const isLate = !run.aborted && this.#around.clock.now() >= run.deadlineTime;
    this.operation = this.operation && { ...this.operation, failure: isLate ? { ...failure, code: START_DEADLINE } : failure };
    await this.#teardown("start");
    if (this.run !== run) return;
    this.operation = this.operation && { ...this.operation, state: isLate ? "TimedOut" : "Failed" };
    this.#around.startFailed(this, isWorkspacesFault(failure));
  }

  #settle(): void {
    const { operation, admission } = this;
    if (operation === null || (operation.state !== "InProgress" && operation.state !== "Interrupted")) return;
    const isExpired = this.#around.clock.now() >= operation.deadlineTime;
    if (this.run !== null) {
      if (isExpired) this.run.wake();
      return;
    }
    const isResumable = admission.state === "Admitted" && admission.startId === operation.startId && operation.failure === null;
    if (isResumable && !isExpired) {
      if (operation.state === "InProgress") this.operation = { ...operation, state: "Interrupted" };
      return;
    }
    const isLate = isExpired && isResumable;
    const code = isLate ? START_DEADLINE : START_CANCELLED;
    const failure = operation.failure ?? { ...failureOf("the sandbox was reset while the start was under way"), code };
    this.#revoke();
    this.operation = { ...operation, state: isLate ? "TimedOut" : "Failed", failure };
    this.#around.startFailed(this, isLate || isWorkspacesFault(failure));
    if (this.container !== null) void this.#teardown("start");
  }

  #revoke(): void {
    if (this.admission.state === "Admitted") this.admission = { ...this.admission, state: "Revoked" };
  }

  #launch(startId: string | null, specHash: string | null): void {
    const startedTime = this.#around.clock.now();
    this.container = { sandbox: this, startId, specHash, startedTime, ...UNUSED };
    this.#exit = null;
    this.#around.containerStarted(this.container);
  }

  /** Whether nothing runs any more. Calls share one attempt. */
  #teardown(killer: Killer): Promise<boolean> {
    if (this.#kill !== null) return this.#kill;
    const { container } = this;
    if (container === null) return Promise.resolve(true);
    const attempt = this.#killOnce(container, killer).finally(() => {
      if (this.#kill === attempt) this.#kill = null;
    });
    this.#kill = attempt;
    return attempt;
  }

  async #killOnce(container: Container, killer: Killer): Promise<boolean> {
    const isDeaf = this.#around.isDeaf(this);
    await this.#around.clock.sleep(isDeaf ? KILL_LIMIT_MS : this.#around.killMs());
    if (!isDeaf && this.container === container) this.#end(137, false, killer);
    return this.container === null;
  }

  #end(code: number | null, signalled: boolean, killer: Killer): void {
    const { container } = this;
    if (container === null) return;
    const time = this.#around.clock.now();
    this.#around.containerEnds(container, killer);
    this.container = null;
    container.endedTime = time;
    this.#exit = { code, time, signalled };
  }

  /** Ends early where the run is woken. */
  #pause(run: Run, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#around.clock.after(ms, resolve);
      run.wake = () => {
        timer.fire = null;
        resolve();
      };
    });
  }

  /** Settles with the work, or after `ms`. */
  #within(ms: number, work: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#around.clock.after(ms, resolve);
      void work.then(() => {
        timer.fire = null;
        resolve();
      });
    });
  }
}

const UNUSED = { activityTime: null, earlierActivityTime: null, endedTime: null, isVerified: false, isCondemned: false };
const NOT_ADMITTED = { state: "None", startId: null, workspaceUid: null } as const;
