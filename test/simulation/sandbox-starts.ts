/** The starts of one sandbox: `src/sandbox/start-operations.ts`, and what its launcher does. */
import { START_CANCELLED, START_DEADLINE } from "../../src/sandbox/protocol.ts";
import type { OperationFailure, StartOrder } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import { pause } from "./pauses.ts";
import type { Runtime } from "./runtime.ts";
import type { Sandbox } from "./sandbox.ts";
import { CANCELLED, LATE, REFUSED_STEPS, failureOf, isWorkspacesFault } from "./start-failures.ts";
import type { Fate, Surroundings } from "./surroundings.ts";

interface Run {
  readonly startId: string;
  deadlineTime: Instant;
  /** Its container has answered: it can start no other. */
  isPreparing: boolean;
  aborted: boolean;
  /** Its container ended by itself. */
  ended: boolean;
  wake: () => void;
  done: Promise<void>;
}

export class Starts {
  run: Run | null = null;
  readonly #sandbox: Sandbox;
  readonly #runtime: Runtime;
  readonly #around: Surroundings;

  constructor(sandbox: Sandbox, runtime: Runtime, around: Surroundings) {
    this.#sandbox = sandbox;
    this.#runtime = runtime;
    this.#around = around;
  }

  loseMemory(): void {
    const { run } = this;
    this.run = null;
    run?.wake();
  }

  /** Settles when the start is over. */
  begin(order: StartOrder): Promise<void> {
    if (this.run?.startId === order.startId) return this.run.done;
    const known = this.#sandbox.operation?.startId === order.startId ? this.#sandbox.operation : null;
    if (known !== null && known.state !== "Interrupted") return Promise.resolve();
    const { startId, specHash, workspaceUid } = order;
    const now = this.#around.clock.now();
    const startedTime = known?.startedTime ?? now;
    const deadlineTime = known?.deadlineTime ?? now + order.timeoutMs;
    const previous = this.abort();
    this.#sandbox.admission = { state: "Admitted", startId, workspaceUid };
    this.#sandbox.operation = { startId, state: "InProgress", specHash, startedTime, deadlineTime, failure: null, step: "Container" };
    if (known === null) this.#runtime.exit = null;
    else if (known.specHash !== specHash && this.#runtime.container !== null) this.#runtime.container.startId = null;
    const run: Run = { startId, deadlineTime, isPreparing: false, aborted: false, ended: false, wake: () => {}, done: Promise.resolve() };
    this.run = run;
    this.#around.startBegan(this.#sandbox);
    run.done = this.#perform(run, order, previous);
    return run.done;
  }

  abort(): Promise<void> {
    if (this.run === null) return Promise.resolve();
    this.run.aborted = true;
    this.run.wake();
    return this.run.done;
  }

  async #perform(run: Run, order: StartOrder, previous: Promise<void>): Promise<void> {
    await previous;
    const failure = (await this.#tryLaunch(run, order)) ?? (await this.#prepare(run, order));
    if (this.run !== run) return;
    if (failure === null) this.#succeed();
    else await this.#giveUp(run, failure);
    if (this.run !== run) return;
    this.run = null;
    this.#around.poke(order.workspaceUid);
  }

  #succeed(): void {
    const { operation } = this.#sandbox;
    this.#sandbox.operation = operation && { ...operation, state: "Succeeded", endedTime: this.#around.clock.now() };
    this.#runtime.verify();
  }

  async #tryLaunch(run: Run, order: StartOrder): Promise<OperationFailure | null> {
    const { clock, bucket } = this.#around;
    if (this.run !== run || run.aborted) return CANCELLED;
    const refusal = order.restore === null ? null : bucket.refusalOf(order.restore.objectId);
    if (refusal !== null) return refusal;
    const { container } = this.#runtime;
    const isFresh = order.restore !== null || order.setup.length > 0;
    const isOlder = container !== null && (isFresh || container.startId !== order.startId);
    if (isOlder && !(await this.#runtime.teardown("start"))) return failureOf("the container of an earlier start could not be removed");
    if (this.run !== run || run.aborted) return CANCELLED;
    const leftMs = run.deadlineTime - clock.now();
    if (leftMs <= 0) return failureOf("the start was not verified before its deadline");
    // A container that an interrupted try brought up needs no instance.
    const drawn = this.#around.fateOf(this.#sandbox);
    const fate: Fate = this.#runtime.container !== null && drawn.kind === "Refused" ? { kind: "Ready", ms: drawn.ms } : drawn;
    if (this.#runtime.container === null && fate.kind !== "Refused") this.#runtime.launch(order.startId, order.specHash);
    await this.#pause(run, Math.min(leftMs, fate.kind === "NeverReady" ? Number.POSITIVE_INFINITY : fate.ms));
    const ended = this.#endOf(run, fate);
    if (ended !== null) return ended;
    return fate.kind === "Fails" ? failureOf(fate.message) : null;
  }

  /** What a container does once it answers. Its files are what was restored, and nothing where nothing was. */
  async #prepare(run: Run, order: StartOrder): Promise<OperationFailure | null> {
    const { bucket } = this.#around;
    if (order.restore !== null) {
      const failure = await this.#step(run, order, "Restore");
      if (failure !== null) return failure;
      const { objectId } = order.restore;
      const refusal = bucket.refusalOf(objectId);
      if (refusal !== null) return refusal;
      if (this.#runtime.container !== null) this.#runtime.container.files = bucket.stored.get(objectId)?.files ?? 0;
    }
    return order.setup.length === 0 ? null : this.#step(run, order, "Setup");
  }

  async #step(run: Run, { prepareTimeoutMs }: StartOrder, step: "Restore" | "Setup"): Promise<OperationFailure | null> {
    const { clock } = this.#around;
    if (!run.isPreparing) run.deadlineTime = clock.now() + prepareTimeoutMs;
    run.isPreparing = true;
    this.#sandbox.operation = this.#sandbox.operation && { ...this.#sandbox.operation, step, deadlineTime: run.deadlineTime };
    const { kind, ms } = step === "Restore" ? this.#around.restoreCourse() : this.#around.setupCourse();
    await this.#pause(run, Math.min(run.deadlineTime - clock.now(), kind === "Hangs" ? Number.POSITIVE_INFINITY : ms));
    const ended = this.#endOf(run, null);
    return ended ?? (kind === "Fails" ? REFUSED_STEPS[step] : null);
  }

  /** Why the run is over; null where it goes on. */
  #endOf(run: Run, fate: Fate | null): OperationFailure | null {
    if (this.run !== run || run.aborted) return CANCELLED;
    if (run.ended || this.#runtime.container === null || fate?.kind === "Exits") {
      if (fate?.kind === "Refused") return failureOf(fate.message, fate.retryAfterMs);
      if (!run.ended) this.#sandbox.exit(1, false);
      return failureOf("Container exited with unexpected exit code: 1");
    }
    return this.#around.clock.now() >= run.deadlineTime ? LATE : null;
  }

  async #giveUp(run: Run, failure: OperationFailure): Promise<void> {
    this.#sandbox.revoke();
    const isLate = !run.aborted && this.#around.clock.now() >= run.deadlineTime;
    this.#sandbox.operation = this.#sandbox.operation && {
      ...this.#sandbox.operation,
      failure: isLate ? { ...failure, code: START_DEADLINE } : failure,
    };
    await this.#runtime.teardown("start");
    if (this.run !== run) return;
    this.#sandbox.operation = this.#sandbox.operation && { ...this.#sandbox.operation, state: isLate ? "TimedOut" : "Failed" };
    this.#around.startFailed(this.#sandbox, isWorkspacesFault(failure));
  }

  settle(): void {
    const { operation, admission } = this.#sandbox;
    if (operation === null || (operation.state !== "InProgress" && operation.state !== "Interrupted")) return;
    const isExpired = this.#around.clock.now() >= operation.deadlineTime;
    if (this.run !== null) {
      if (isExpired) this.run.wake();
      return;
    }
    const isAdmitted = admission.state === "Admitted" && admission.startId === operation.startId && operation.failure === null;
    const isResumable = isAdmitted && (operation.step === "Container" || this.#around.resumesLate());
    if (isResumable && !isExpired) {
      if (operation.state === "InProgress") this.#sandbox.operation = { ...operation, state: "Interrupted" };
      return;
    }
    const isLate = isExpired && isAdmitted;
    const code = isLate ? START_DEADLINE : isAdmitted ? null : START_CANCELLED;
    const failure = operation.failure ?? { ...failureOf("the sandbox was reset while the start was under way"), code };
    this.#sandbox.revoke();
    this.#sandbox.operation = { ...operation, state: isLate ? "TimedOut" : "Failed", failure };
    this.#around.startFailed(this.#sandbox, isLate || isWorkspacesFault(failure));
    if (this.#runtime.container !== null) void this.#runtime.teardown("start");
  }

  /** Ends early where the run is woken. */
  #pause(run: Run, ms: number): Promise<void> {
    return pause(this.#around.clock, ms, (wake) => {
      run.wake = wake;
    });
  }
}
