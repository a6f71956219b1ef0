/**
 * A small world of sandboxes behind the Fleet port: admission, operation, container and fence as `src/sandbox/protocol.ts` says, over a
 * clock that the test moves. Faults are scripted per workspace; everything that happened is counted.
 *
 * Nothing here decides anything for the controller: what a sandbox knows becomes an observation through the product's own `interpret`.
 */
import { createHash } from "node:crypto";
import { type Fleet, LeaseLostError, type StartRequest } from "../../src/controller/fleet.ts";
import { interpret } from "../../src/controller/observation.ts";
import {
  type AdmissionState,
  type Answer,
  type OperationFailure,
  START_CANCELLED,
  START_DEADLINE,
  type SandboxFacts,
  type StartOperation,
  type StartOrder,
} from "../../src/sandbox/protocol.ts";
import type { Instance, Instant, Observation } from "../../src/workspace.ts";

export interface WorldClock {
  now(): Instant;
  /** Resolves early where the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export type CallKind = "observe" | "start" | "stop" | "destroy";

/**
 * - `Hangs`: never arrives, never answered. - `AnswerLost`: arrives and is done, and the answer never comes.
 * - `Breaks`: fails at once without having arrived. - `Late`: arrives only after `ms`.
 */
export type Fault = "Hangs" | "AnswerLost" | "Breaks" | { readonly kind: "Late"; readonly ms: number };

export type StartOutcome =
  | { readonly kind: "Ready" }
  /** No instance is given: nothing runs. */
  | { readonly kind: "Refused"; readonly message: string; readonly retryAfterMs?: number }
  /** A container runs until the failure shows. */
  | { readonly kind: "Fails"; readonly message: string }
  | { readonly kind: "NeverReady" };

export const READY: StartOutcome = { kind: "Ready" };
export const NEVER_READY: StartOutcome = { kind: "NeverReady" };
export const NO_CAPACITY: StartOutcome = { kind: "Refused", message: "There is no container instance available at this time." };
export const RATE_LIMITED: StartOutcome = { kind: "Refused", message: "You are requesting too many containers per second." };
export const BAD_IMAGE: StartOutcome = { kind: "Refused", message: "No such image available" };
export const CONNECTION_REFUSED: StartOutcome = { kind: "Fails", message: "connect ECONNREFUSED" };

/** How the sandboxes of one workspace behave; may be changed at any time. */
export interface Script {
  /** From the container's start until it is ready, or its failure shows. */
  startMs: number;
  /** Of the nth start of the workspace, from 1. */
  outcome: (nth: number) => StartOutcome;
  /** The container exits by itself so long after it was ready. */
  exits: { readonly afterMs: number; readonly code: number } | null;
  /** From SIGTERM until the exit; null where the container ignores the signal. */
  stopMs: number | null;
  destroyMs: number;
  /** So many kills have no effect. */
  deafKills: number;
  /** How long a call is on its way. */
  latencyMs: number;
  /** The first that fits a call is applied to it. */
  readonly faults: { readonly call: CallKind | "any"; readonly fault: Fault; times: number }[];
  refusesIncarnation: boolean;
}

export interface Launch {
  readonly uid: string;
  readonly sandboxId: string;
  readonly startId: string;
  readonly time: Instant;
}

export interface Call {
  readonly kind: CallKind;
  readonly uid: string;
  readonly epoch: number;
  readonly time: Instant;
}

export interface RunningContainer {
  readonly uid: string;
  readonly sandboxId: string;
  readonly startId: string;
  readonly env: Readonly<Record<string, string>>;
}

const OBSERVE_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
const DESTROY_TIMEOUT_MS = 20_000;
const RUN_END_LIMIT_MS = 10_000;

export class FakeWorld {
  readonly fleet: Fleet;
  /** For workspaces without a script of their own. */
  readonly defaults: Script = newScript();
  /** Every container start that was tried, instance or not. */
  readonly launches: Launch[] = [];
  readonly calls: Call[] = [];
  maxStartsInFlight = 0;
  /** Called when a container starts, stops or fails. */
  onEvent: (uid: string) => void = () => {};
  readonly #clock: WorldClock;
  readonly #sandboxes = new Map<string, FakeSandbox>();
  readonly #scripts = new Map<string, Script>();
  readonly #maxContainers = new Map<string, number>();

  constructor(clock: WorldClock) {
    this.#clock = clock;
    this.fleet = {
      identify,
      observe: (instance, epoch) => this.#ask("observe", instance, epoch, OBSERVE_TIMEOUT_MS, (sandbox) => sandbox.observe()),
      start: (instance, epoch, request: StartRequest, waitMs) => {
        const timeoutMs = waitMs + ANSWER_TIMEOUT_MS;
        const order = { ...request, expiresTime: clock.now() + timeoutMs };
        return this.#ask("start", instance, epoch, timeoutMs, (sandbox) => sandbox.start(order, waitMs));
      },
      stop: (instance, epoch) => this.#ask("stop", instance, epoch, STOP_GRACE_MS + 10_000, (sandbox) => sandbox.stop(STOP_GRACE_MS)),
      destroy: (instance, epoch) => this.#ask("destroy", instance, epoch, DESTROY_TIMEOUT_MS, (sandbox) => sandbox.destroy()),
    };
  }

  script(uid: string): Script {
    const known = this.#scripts.get(uid) ?? { ...this.defaults, faults: [] };
    this.#scripts.set(uid, known);
    return known;
  }

  /** Container starts under way at this moment. */
  get startsInFlight(): number {
    return [...this.#sandboxes.values()].filter((sandbox) => sandbox.isStarting).length;
  }

  get running(): readonly RunningContainer[] {
    return [...this.#sandboxes.values()].flatMap((sandbox) => sandbox.containerOrNone);
  }

  /** How many containers of the workspace ever ran at once. */
  maxContainersOf(uid: string): number {
    return this.#maxContainers.get(uid) ?? 0;
  }

  launchesOf(uid: string): readonly Launch[] {
    return this.launches.filter((launch) => launch.uid === uid);
  }

  callsOf(uid: string, kind?: CallKind): readonly Call[] {
    return this.calls.filter((call) => call.uid === uid && (kind === undefined || call.kind === kind));
  }

  sandbox(instance: Pick<Instance, "sandboxId">): FakeSandbox {
    const { sandboxId } = instance;
    const uid = sandboxId.slice(0, sandboxId.lastIndexOf("-"));
    const known = this.#sandboxes.get(sandboxId) ?? new FakeSandbox(this, this.#clock, uid, sandboxId);
    this.#sandboxes.set(sandboxId, known);
    return known;
  }

  sandboxesOf(uid: string): readonly FakeSandbox[] {
    return [...this.#sandboxes.values()].filter((sandbox) => sandbox.uid === uid);
  }

  /** Whatever runs for the workspace ends by itself. */
  exit(uid: string, code: number | null): void {
    for (const sandbox of this.sandboxesOf(uid)) sandbox.exit(code);
  }

  /** To be called after every change of a sandbox. */
  measure(): void {
    this.maxStartsInFlight = Math.max(this.maxStartsInFlight, this.startsInFlight);
    const counts = Map.groupBy(this.running, ({ uid }) => uid);
    for (const [uid, containers] of counts) this.#maxContainers.set(uid, Math.max(this.maxContainersOf(uid), containers.length));
  }

  async #ask(
    kind: CallKind,
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: FakeSandbox) => Promise<Answer>,
  ): Promise<Observation> {
    const sandbox = this.sandbox(instance);
    this.calls.push({ kind, uid: sandbox.uid, epoch, time: this.#clock.now() });
    const script = this.script(sandbox.uid);
    const fault = takeFault(script, kind);
    if (fault === "Breaks") return unknown("Network connection lost.");
    const arrive = async (): Promise<Answer | typeof BROKEN> => {
      await this.#clock.sleep(typeof fault === "object" && fault !== null ? fault.ms : script.latencyMs);
      const refusal = script.refusesIncarnation ? "OtherIncarnation" : sandbox.passFence(epoch, instance.incarnation);
      return refusal === null ? await whileRemembered(sandbox.memory, work(sandbox)) : { accepted: false, refusal, facts: sandbox.facts() };
    };
    const call = fault === "Hangs" ? never<Answer>() : arrive();
    const answer = await this.#within(timeoutMs, fault === "AnswerLost" ? call.then(() => never<Answer>()) : call);
    if (answer === BROKEN) return unknown("Network connection lost.");
    if (answer === null) return unknown(`The sandbox did not answer within ${timeoutMs} ms.`);
    if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError("A controller with a higher epoch is at work.");
    if (!answer.accepted && answer.refusal === "OtherIncarnation") return OTHER_INCARNATION;
    return interpret(answer.facts);
  }

  async #within<T>(ms: number, work: Promise<T>): Promise<T | null> {
    return await within(this.#clock, ms, work);
  }
}

type AbortCause = "Stopped" | "Destroyed" | "Superseded" | "Deadline";

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
  readonly uid: string;
  readonly sandboxId: string;
  readonly #world: FakeWorld;
  readonly #clock: WorldClock;
  #fence: { readonly epoch: number; readonly incarnation: number } | null = null;
  #admission: { readonly state: AdmissionState; readonly startId: string | null } = { state: "None", startId: null };
  #operation: StartOperation | null = null;
  #container: RunningContainer | null = null;
  #exit: SandboxFacts["exit"] = null;
  #run: Run | null = null;
  #memory = new AbortController();

  constructor(world: FakeWorld, clock: WorldClock, uid: string, sandboxId: string) {
    this.#world = world;
    this.#clock = clock;
    this.uid = uid;
    this.sandboxId = sandboxId;
  }

  get containerOrNone(): readonly RunningContainer[] {
    return this.#container === null ? [] : [this.#container];
  }

  /** A start is under way from its acceptance until its outcome, and while a container runs that no outcome vouches for. */
  get isStarting(): boolean {
    const isUnsettled = this.#operation?.state === "InProgress" || this.#operation?.state === "Interrupted";
    return this.#run !== null || (isUnsettled && this.#container !== null);
  }

  get highestEpoch(): number {
    return this.#fence?.epoch ?? 0;
  }

  /** Aborted when what is in memory now is gone. */
  get memory(): AbortSignal {
    return this.#memory.signal;
  }

  passFence(epoch: number, incarnation: number): "StaleEpoch" | "OtherIncarnation" | null {
    if (this.#fence !== null && incarnation !== this.#fence.incarnation) return "OtherIncarnation";
    if (this.#fence !== null && epoch < this.#fence.epoch) return "StaleEpoch";
    this.#fence = { epoch, incarnation };
    return null;
  }

  facts(): SandboxFacts {
    return { running: this.#container !== null, admission: this.#admission.state, operation: this.#operation, exit: this.#exit };
  }

  async observe(): Promise<Answer> {
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  async start(order: StartOrder, waitMs: number): Promise<Answer> {
    if (this.#admission.state === "Destroyed") return { accepted: false, refusal: "Destroyed", facts: this.facts() };
    if (this.#clock.now() > order.expiresTime) return { accepted: false, refusal: "Expired", facts: this.facts() };
    this.#settle();
    await within(this.#clock, waitMs, this.#begin(order));
    return { accepted: true, facts: this.facts() };
  }

  async stop(graceMs: number): Promise<Answer> {
    this.#revoke();
    const admission = this.#admission;
    const isSuperseded = () => this.#admission !== admission;
    if (this.#run === null) await this.#endGracefully(graceMs);
    else await within(this.#clock, RUN_END_LIMIT_MS, this.#abort("Stopped"));
    if (!isSuperseded()) {
      this.#kill();
      this.#settle();
    }
    return { accepted: true, facts: this.facts() };
  }

  async destroy(): Promise<Answer> {
    this.#admission = { ...this.#admission, state: "Destroyed" };
    const ended = this.#abort("Destroyed");
    await this.#clock.sleep(this.#script.destroyMs);
    this.#kill();
    await within(this.#clock, RUN_END_LIMIT_MS, ended);
    this.#settle();
    return { accepted: true, facts: this.facts() };
  }

  /** As an eviction or a deploy: the container goes on; what was in memory is gone, and breaks the calls under way. */
  loseMemory(): void {
    this.#memory.abort();
    this.#memory = new AbortController();
    this.#run = null;
    this.#world.measure();
  }

  exit(code: number | null): void {
    if (this.#container === null) return;
    if (this.#run?.startId === this.#container.startId) this.#run.ended.abort();
    this.#end(code);
    this.#world.onEvent(this.uid);
  }

  get #script(): Script {
    return this.#world.script(this.uid);
  }

  #begin(order: StartRequest): Promise<void> {
    if (this.#run?.startId === order.startId) return this.#run.done;
    const known = this.#operation?.startId === order.startId ? this.#operation : null;
    if (known !== null && known.state !== "Interrupted") return Promise.resolve();
    const { startId, specHash } = order;
    const startedTime = known?.startedTime ?? this.#clock.now();
    const deadlineTime = known?.deadlineTime ?? startedTime + order.timeoutMs;
    const previous = this.#abort("Superseded");
    this.#admission = { state: "Admitted", startId };
    this.#operation = { startId, state: "InProgress", specHash, startedTime, deadlineTime, failure: null };
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
    if (failure === null) this.#operation = this.#operation && { ...this.#operation, state: "Succeeded" };
    else this.#giveUp(run, failure);
    this.#run = null;
    this.#world.measure();
    this.#world.onEvent(this.uid);
    if (failure === null) void this.#exitLater();
  }

  async #launch(run: Run, order: StartRequest): Promise<OperationFailure | null> {
    if (run.aborted.signal.aborted || this.#clock.now() >= run.deadlineTime) return CANCELLED;
    if (this.#container !== null && this.#container.startId !== order.startId && !this.#kill()) {
      return failureOf("the container of an earlier start could not be removed");
    }
    const outcome = this.#script.outcome(this.#world.launchesOf(this.uid).length + 1);
    if (this.#container === null) {
      const { uid, sandboxId } = this;
      this.#world.launches.push({ uid, sandboxId, startId: order.startId, time: this.#clock.now() });
      if (outcome.kind !== "Refused") {
        this.#container = { uid, sandboxId, startId: order.startId, env: order.env };
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
    const isResumable = this.#admission.state === "Admitted" && this.#admission.startId === operation.startId;
    if (isResumable && !isExpired) {
      this.#operation = { ...operation, state: "Interrupted" };
      return;
    }
    const isLate = isExpired && isResumable;
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
    await this.#clock.sleep(Math.min(stopMs ?? graceMs, graceMs));
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
    this.#exit = { code, time: this.#clock.now() };
    this.#world.measure();
  }
}

function newScript(): Script {
  return {
    startMs: 2000,
    outcome: () => READY,
    exits: null,
    stopMs: 500,
    destroyMs: 500,
    deafKills: 0,
    latencyMs: 5,
    faults: [],
    refusesIncarnation: false,
  };
}

function identify(uid: string, incarnation: number): Instance {
  const sandboxId = `${uid}-${incarnation}`;
  return { sandboxId, incarnation, doId: createHash("sha256").update(sandboxId).digest("hex") };
}

function takeFault(script: Script, kind: CallKind): Fault | null {
  const found = script.faults.find(({ call, times }) => times > 0 && (call === kind || call === "any"));
  if (found === undefined) return null;
  found.times -= 1;
  return found.fault;
}

function failureOf(message: string, retryAfterMs: number | null = null): OperationFailure {
  return { messages: [message], code: null, exitCode: null, retryAfterMs };
}

const OTHER_INCARNATION: Observation = {
  kind: "Unknown",
  failure: { class: "Misconfigured", reason: "Misconfigured", message: "The sandbox belongs to another incarnation." },
};

const CANCELLED: OperationFailure = { ...failureOf("The start was cancelled."), code: START_CANCELLED };

function unknown(message: string): Observation {
  return { kind: "Unknown", failure: { class: "Uncertain", reason: "StartFailed", message } };
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

const BROKEN = "Broken";

/** A call breaks when the memory that it works in is lost. */
function whileRemembered(memory: AbortSignal, work: Promise<Answer>): Promise<Answer | typeof BROKEN> {
  const lost = new Promise<typeof BROKEN>((resolve) => {
    memory.addEventListener("abort", () => resolve(BROKEN));
  });
  return Promise.race([work, lost]);
}

/** Null where the work is not done in time. */
async function within<T>(clock: WorldClock, ms: number, work: Promise<T>): Promise<T | null> {
  const ended = new AbortController();
  const timeout = clock.sleep(ms, ended.signal).then(() => null);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    ended.abort();
  }
}
