/**
 * Begins, joins, resumes and ends start operations (invariants 1, 2, 13).
 *
 * 1. At most one run at a time; the one it replaces has ended, its container included, before it begins.
 * 2. The ledger says what a reset object must know before anything is done: the admission before the start, its revocation before the kill.
 * 3. Only the live run writes its outcome.
 */
import { describeFailure } from "./container-errors.ts";
import type { Ledger } from "./ledger.ts";
import {
  START_CANCELLED,
  START_DEADLINE,
  type OperationFailure,
  type StartOperation,
  type StartOrder,
  type StartStep,
} from "./protocol.ts";
import type { StartGate } from "./start-gate.ts";
import { StartAbortedError, StartRun, type AbortCause } from "./start-run.ts";
import type { Teardown } from "./teardown.ts";
import { rejectionWithin } from "./waiting.ts";

/** The SDK's loop ends at once when it is aborted, and its error says what it was waiting for. */
const LOOP_END_LIMIT_MS = 1_000;

export interface StartEffects {
  /** Starts, prepares and verifies a container; called within the gate's scope for `run`. Tells each step after the first. */
  launch(run: StartRun, order: StartOrder, enter: (step: StartStep) => void): Promise<void>;
  isRunning(): boolean;
  /** What the platform said where the last try of this start got no instance. */
  refusalOf(startId: string): string | null;
  /** Keeps the object alive for work that nobody awaits. */
  keepAlive(work: Promise<unknown>): void;
  /** Tells the controller that an operation ended. */
  announce(): void;
}

export class StartOperations {
  readonly #ledger: Ledger;
  readonly #gate: StartGate;
  readonly #teardown: Teardown;
  readonly #effects: StartEffects;
  /** Settles when the live run has ended. */
  #done: Promise<void> = Promise.resolve();

  constructor(ledger: Ledger, gate: StartGate, teardown: Teardown, effects: StartEffects) {
    this.#ledger = ledger;
    this.#gate = gate;
    this.#teardown = teardown;
    this.#effects = effects;
  }

  /** Admits `order` and begins it, unless it is under way or over already; settles when it has ended. Call `settle` first. */
  begin(order: StartOrder, now: number): Promise<void> {
    if (this.#gate.run?.startId === order.startId) return this.#done;
    const known = this.#ledger.record.operation;
    if (known?.startId === order.startId && known.state !== "Interrupted") return Promise.resolve();

    const interrupted = known?.startId === order.startId ? known : null;
    // What runs was started for another spec: it is not the container that this order may vouch for.
    const isOfOtherSpec = interrupted !== null && interrupted.specHash !== order.specHash;
    const startedTime = interrupted?.startedTime ?? now;
    const deadlineTime = interrupted?.deadlineTime ?? now + order.timeoutMs;
    const run = new StartRun(order.startId, deadlineTime);
    const previous = this.abort("Superseded");
    this.#ledger.update({
      admission: { state: "Admitted", startId: order.startId, deadlineTime, workspaceUid: order.workspaceUid },
      operation: {
        startId: order.startId,
        state: "InProgress",
        specHash: order.specHash,
        directory: order.directory,
        startedTime,
        deadlineTime,
        failure: null,
        step: "Container",
      },
      ...(isOfOtherSpec && { container: null }),
      // How an older container ended says nothing about this start.
      ...(interrupted === null && { exit: null }),
    });
    this.#gate.open(run);
    this.#done = this.#perform(run, order, previous);
    this.#effects.keepAlive(this.#done);
    return this.#done;
  }

  /** Aborts the live run; settles when it has ended. */
  abort(cause: AbortCause): Promise<void> {
    this.#gate.run?.abort(cause);
    return this.#done;
  }

  /** Settles an operation that no run of this memory works on, and one whose deadline passed. */
  settle(now: number): void {
    const { admission, operation } = this.#ledger.record;
    if (operation === null || (operation.state !== "InProgress" && operation.state !== "Interrupted")) return;
    const expired = now >= operation.deadlineTime;
    if (this.#gate.run !== null) {
      if (expired) this.#gate.run.abort("Deadline");
      return;
    }
    const isAdmitted = admission.state === "Admitted" && admission.startId === operation.startId && operation.failure === null;
    // Its container had answered: the place in the lane has been given back, and a fresh container needs another.
    const resumable = isAdmitted && (operation.step ?? "Container") === "Container";
    if (resumable && !expired) {
      if (operation.state === "InProgress") this.#ledger.update({ operation: { ...operation, state: "Interrupted" } });
      return;
    }
    const state = expired && isAdmitted ? "TimedOut" : "Failed";
    // What a restore does to the object may be why it was reset: it counts, or it would be tried for ever.
    const code = state === "TimedOut" ? START_DEADLINE : isAdmitted ? null : START_CANCELLED;
    const failure = operation.failure ?? interruptionFailure(code);
    this.#ledger.revoke({ operation: { ...operation, state, failure } });
    if (this.#effects.isRunning()) this.#effects.keepAlive(this.#teardown.kill());
  }

  async #perform(run: StartRun, order: StartOrder, previous: Promise<void>): Promise<void> {
    run.watchDeadline();
    let launch = Promise.resolve();
    try {
      await run.orAborted(previous);
      launch = this.#gate.within(run, () => this.#effects.launch(run, order, (step) => this.#enter(run, order, step)));
      await run.orAborted(launch);
      this.#succeed(run);
    } catch (error) {
      await this.#giveUp(run, order, await this.#reasonOf(error, run, launch));
    } finally {
      run.unwatchDeadline();
      this.#gate.close(run);
    }
  }

  /** The container has answered: the run may start no other, and the time for what is left begins to count. */
  #enter(run: StartRun, order: StartOrder, step: StartStep): void {
    run.signal.throwIfAborted();
    run.closeStartWindow();
    if (this.#ledger.record.operation?.step === "Container") run.watchDeadline(Date.now() + order.prepareTimeoutMs);
    this.#write(run, { step, deadlineTime: run.deadlineTime });
  }

  #succeed(run: StartRun): void {
    run.signal.throwIfAborted();
    if (!this.#effects.isRunning()) throw new Error("the container ended as soon as it was verified");
    this.#write(run, { state: "Succeeded", endedTime: Date.now() });
    this.#effects.announce();
  }

  /** Beneath an abort the error of the SDK's loop, where that gives one soon. Not in the later steps, whose words may be a user's. */
  async #reasonOf(error: unknown, run: StartRun, launch: Promise<void>): Promise<unknown> {
    if (run.abortCause === null) return error;
    const isStarting = this.#ledger.record.operation?.step === "Container";
    return new StartAbortedError(run.abortCause, isStarting ? await rejectionWithin(launch, LOOP_END_LIMIT_MS) : undefined);
  }

  async #giveUp(run: StartRun, order: StartOrder, error: unknown): Promise<void> {
    run.closeStartWindow();
    const { exit, operation } = this.#ledger.record;
    // A run that was aborted had its container killed: that end explains nothing.
    const isOwn = run.abortCause === null && operation !== null && exit !== null && exit.time >= operation.startedTime;
    const ownExit = isOwn ? exit : null;
    const described = describeFailure(error, ownExit, order.env);
    const refusal = this.#effects.refusalOf(run.startId);
    const failure = refusal === null ? described : { ...described, messages: [...new Set([refusal, ...described.messages])] };
    if (this.#isLive(run)) this.#ledger.revoke();
    this.#write(run, { failure });
    await this.#teardown.kill();
    this.#write(run, { state: run.abortCause === "Deadline" ? "TimedOut" : "Failed" });
    if (this.#isLive(run)) this.#effects.announce();
  }

  #write(run: StartRun, change: Partial<StartOperation>): void {
    const { operation } = this.#ledger.record;
    if (operation !== null && this.#isLive(run)) this.#ledger.update({ operation: { ...operation, ...change } });
  }

  #isLive(run: StartRun): boolean {
    return this.#gate.run === run;
  }
}

function interruptionFailure(code: string | null): OperationFailure {
  return { messages: ["the sandbox was reset while the start was under way"], code, exitCode: null, retryAfterMs: null };
}
