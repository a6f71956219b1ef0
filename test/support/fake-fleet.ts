/**
 * A small world of sandboxes behind the Fleet port, over a clock that the test moves. Faults are scripted per workspace; everything that happened is counted.
 *
 * Nothing here decides anything for the controller: what a sandbox knows becomes an observation through the product's own `interpret`.
 */
import { createHash } from "node:crypto";
import type { BackupOutcome } from "../../src/backup.ts";
import { classify } from "../../src/controller/failure.ts";
import { type Fleet, LeaseLostError, type OrphanOutcome, type StartRequest } from "../../src/controller/fleet.ts";
import { interpretReport } from "../../src/controller/backup-report.ts";
import { interpret } from "../../src/controller/observation.ts";
import type { Answer, BackupAnswer, BackupOrder } from "../../src/sandbox/protocol.ts";
import type { Failure, Instance, Instant, Observation } from "../../src/workspace.ts";
import { FakeBucket } from "./fake-bucket.ts";
import { FakeSandbox, type SandboxName } from "./fake-sandbox.ts";
import { within } from "./fake-sandbox-parts.ts";

export interface WorldClock {
  now(): Instant;
  /** Resolves early where the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export type CallKind = "observe" | "start" | "backup" | "stop" | "destroy" | "destroyOrphan";

/**
 * - `Hangs`: never arrives, never answered. - `AnswerLost`: arrives and is done, and the answer never comes.
 * - `Breaks`: fails at once without having arrived. - `Fails`: arrives, is done, and the answer is an error.
 * - `ResetByDeploy`: arrives, and a deploy resets the object a little later, in the middle of what takes longer.
 * - `Late`: arrives only after `ms`.
 */
export type Fault = "Hangs" | "AnswerLost" | "Breaks" | "Fails" | "ResetByDeploy" | { readonly kind: "Late"; readonly ms: number };

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
  /** The platform says for a while, so long after the container's start, that none runs. */
  flaps: { readonly afterMs: number; readonly forMs: number } | null;
  /** From a container's answer until it is restored and set up. */
  prepareMs: number;
  /** Why the preparation in the nth container fails, from 1; null: it does not. */
  prepareError: (nth: number) => string | null;
  backupMs: number;
  /** Why the nth backup of the world fails, from 1; null: it does not. */
  backupError: (nth: number) => string | null;
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
  readonly doId: string;
  /** Null for a stranger. */
  readonly startId: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Null where nobody saw it begin. */
  readonly startedTime: Instant | null;
  /** What its files are, as a word; empty: there are none. */
  readonly disk: { files: string };
}

const OBSERVE_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
const DESTROY_TIMEOUT_MS = 20_000;
/** Less than any effect takes by default. */
const DEPLOY_AFTER_MS = 100;

const DO_ID = /^[0-9a-f]{64}$/;

const NETWORK_LOST = "Network connection lost.";
const RESET_BY_DEPLOY = "Durable Object reset because its code was updated.";
const INTERNAL_ERROR = "internal error; reference = 0123456789";
const LEASE_LOST = "A controller with a higher epoch is at work.";

export class FakeWorld {
  readonly fleet: Fleet;
  /** For workspaces without a script of their own. */
  readonly defaults: Script = newScript();
  /** Every container start that was tried, instance or not. */
  readonly launches: Launch[] = [];
  readonly calls: Call[] = [];
  readonly bucket: FakeBucket;
  readonly backupsBegun: { readonly uid: string; readonly backupId: string; readonly time: Instant }[] = [];
  maxStartsInFlight = 0;
  /** Called when a container starts, stops or fails. */
  onEvent: (uid: string) => void = () => {};
  /** What a sandbox is answered that asks for its own workspace's row. */
  hasRow: (uid: string) => Promise<boolean> = async () => false;
  readonly #clock: WorldClock;
  /** By Durable Object id. */
  readonly #sandboxes = new Map<string, FakeSandbox>();
  readonly #scripts = new Map<string, Script>();
  readonly #maxContainers = new Map<string, number>();
  #objects = 0;

  constructor(clock: WorldClock) {
    this.#clock = clock;
    this.bucket = new FakeBucket(() => clock.now());
    this.fleet = {
      identify,
      observe: (instance, epoch) => this.#ask("observe", instance, epoch, OBSERVE_TIMEOUT_MS, (sandbox) => sandbox.observe()),
      start: (instance, epoch, request: StartRequest, waitMs) =>
        this.#ask("start", instance, epoch, waitMs + ANSWER_TIMEOUT_MS, (sandbox) => sandbox.start(request, waitMs)),
      backup: (instance, epoch, order, waitMs) => this.#backup(instance, epoch, order, waitMs),
      stop: (instance, epoch) => this.#ask("stop", instance, epoch, STOP_GRACE_MS + 10_000, (sandbox) => sandbox.stop(STOP_GRACE_MS)),
      destroy: (instance, epoch) => this.#ask("destroy", instance, epoch, DESTROY_TIMEOUT_MS, (sandbox) => sandbox.destroy()),
      destroyOrphan: (doId, epoch) => this.#destroyOrphan(doId, epoch),
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

  /** What runs without an admission: strangers, and what outlived its stop or destroy. */
  get unclaimedRunning(): readonly RunningContainer[] {
    return [...this.#sandboxes.values()].filter((sandbox) => sandbox.isUnclaimed).flatMap((sandbox) => sandbox.containerOrNone);
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

  sandbox({ sandboxId }: Pick<Instance, "sandboxId">): FakeSandbox {
    return this.#sandbox({ doId: doIdOf(sandboxId), sandboxId, uid: uidOf(sandboxId) });
  }

  /** A container behind the controller's back. By its object's id alone, the sandbox has no name that anybody knows. */
  startStranger(where: { readonly doId: string } | { readonly sandboxId: string }): FakeSandbox {
    const sandbox = "sandboxId" in where ? this.sandbox(where) : this.#sandbox({ ...where, sandboxId: where.doId, uid: where.doId });
    sandbox.startUnseen();
    return sandbox;
  }

  /** A user's traffic to the workspace, now; whether it reached a container. */
  use(uid: string): boolean {
    return this.sandboxesOf(uid)
      .map((sandbox) => sandbox.use())
      .includes(true);
  }

  /** A user's files in whatever runs for the workspace; a write is use, too. */
  write(uid: string, files: string): void {
    for (const { disk } of this.sandboxesOf(uid).flatMap((sandbox) => sandbox.containerOrNone)) disk.files = files;
    this.use(uid);
  }

  /** What whatever runs for the workspace has on its disk; null where nothing runs. */
  filesOf(uid: string): string | null {
    return this.sandboxesOf(uid).flatMap((sandbox) => sandbox.containerOrNone)[0]?.disk.files ?? null;
  }

  newObjectId(): string {
    this.#objects += 1;
    return `00000000-0000-4000-8000-${String(this.#objects).padStart(12, "0")}`;
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

  #sandbox(name: SandboxName): FakeSandbox {
    const known = this.#sandboxes.get(name.doId) ?? new FakeSandbox(this, this.#clock, name);
    this.#sandboxes.set(name.doId, known);
    return known;
  }

  async #ask(
    kind: CallKind,
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: FakeSandbox) => Promise<Answer>,
  ): Promise<Observation> {
    const sandbox = this.sandbox(instance);
    const expiresTime = this.#clock.now() + timeoutMs;
    const reply = await this.#call(kind, sandbox, epoch, timeoutMs, async () => {
      const { refusesIncarnation } = this.script(sandbox.uid);
      const refusal = refusesIncarnation ? "OtherIncarnation" : sandbox.passFence(epoch, instance.incarnation, expiresTime);
      return refusal === null ? work(sandbox) : { accepted: false, refusal, facts: sandbox.facts() };
    });
    if ("error" in reply) return { kind: "Unknown", failure: uncertain(reply.error) };
    const { answer } = reply;
    if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
    if (!answer.accepted && answer.refusal === "OtherIncarnation") return OTHER_INCARNATION;
    return interpret(answer.facts);
  }

  async #backup(instance: Instance, epoch: number, order: BackupOrder, waitMs: number): Promise<BackupOutcome> {
    const sandbox = this.sandbox(instance);
    const timeoutMs = waitMs + ANSWER_TIMEOUT_MS;
    const expiresTime = this.#clock.now() + timeoutMs;
    const reply = await this.#call<BackupAnswer>("backup", sandbox, epoch, timeoutMs, async () => {
      const refusal = sandbox.passFence(epoch, instance.incarnation, expiresTime);
      return refusal === null ? sandbox.backup(order, waitMs) : { accepted: false, refusal };
    });
    if ("error" in reply) return { kind: "Unknown", message: reply.error };
    const { answer } = reply;
    if (answer.accepted) return interpretReport(answer.report);
    if (answer.refusal === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
    return { kind: "Unknown", message: "The sandbox refused the order." };
  }

  async #destroyOrphan(doId: string, epoch: number): Promise<OrphanOutcome> {
    if (!DO_ID.test(doId)) return { kind: "Unknown", failure: uncertain("Invalid Durable Object ID: must be 64 hex digits") };
    const sandbox = this.#sandbox({ doId, sandboxId: doId, uid: doId });
    const expiresTime = this.#clock.now() + DESTROY_TIMEOUT_MS;
    const reply = await this.#call("destroyOrphan", sandbox, epoch, DESTROY_TIMEOUT_MS, () => sandbox.destroyOrphan(epoch, expiresTime));
    if ("error" in reply) return { kind: "Unknown", failure: uncertain(reply.error) };
    if (reply.answer === "StaleEpoch") throw new LeaseLostError(LEASE_LOST);
    if (reply.answer === "Expired") return { kind: "Unknown", failure: uncertain("The order arrived too late.") };
    return { kind: reply.answer };
  }

  async #call<T>(kind: CallKind, sandbox: FakeSandbox, epoch: number, timeoutMs: number, work: () => Promise<T>): Promise<Reply<T>> {
    this.calls.push({ kind, uid: sandbox.uid, epoch, time: this.#clock.now() });
    const script = this.script(sandbox.uid);
    const fault = takeFault(script, kind);
    if (fault === "Breaks") return { error: NETWORK_LOST };
    const arrive = async (): Promise<Reply<T>> => {
      await this.#clock.sleep(typeof fault === "object" && fault !== null ? fault.ms : script.latencyMs);
      const reply = whileRemembered(sandbox.memory, work());
      if (fault !== "ResetByDeploy") return reply;
      await this.#clock.sleep(DEPLOY_AFTER_MS);
      sandbox.loseMemory();
      return { error: RESET_BY_DEPLOY };
    };
    const call = fault === "Hangs" ? never<Reply<T>>() : arrive();
    const reply = await within(this.#clock, timeoutMs, fault === "AnswerLost" ? call.then(() => never<Reply<T>>()) : call);
    if (reply === null) return { error: `The sandbox did not answer within ${timeoutMs} ms.` };
    return fault === "Fails" ? { error: INTERNAL_ERROR } : reply;
  }
}

/** What a call comes to: an answer, or the text of an error. */
type Reply<T> = { readonly answer: T } | { readonly error: string };

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
    flaps: null,
    prepareMs: 1000,
    prepareError: () => null,
    backupMs: 500,
    backupError: () => null,
  };
}

function identify(uid: string, incarnation: number): Instance {
  const sandboxId = `${uid}-${incarnation}`;
  return { sandboxId, incarnation, doId: doIdOf(sandboxId), running: true, destroyRequested: false, adopted: false };
}

function doIdOf(sandboxId: string): string {
  return createHash("sha256").update(sandboxId).digest("hex");
}

function uidOf(sandboxId: string): string {
  return sandboxId.includes("-") ? sandboxId.slice(0, sandboxId.lastIndexOf("-")) : sandboxId;
}

function takeFault(script: Script, kind: CallKind): Fault | null {
  const found = script.faults.find(({ call, times }) => times > 0 && (call === kind || call === "any"));
  if (found === undefined) return null;
  found.times -= 1;
  return found.fault;
}

const OTHER_INCARNATION: Observation = {
  kind: "Unknown",
  failure: { class: "Misconfigured", reason: "Misconfigured", message: "The sandbox belongs to another incarnation." },
};

function uncertain(message: string): Failure {
  return { ...classify({ messages: [message], code: null, retryAfterMs: null }), class: "Uncertain" };
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

/** A call breaks when the memory that it works in is lost. */
function whileRemembered<T>(memory: AbortSignal, work: Promise<T>): Promise<Reply<T>> {
  const lost = new Promise<Reply<T>>((resolve) => {
    memory.addEventListener("abort", () => resolve({ error: NETWORK_LOST }));
  });
  const done = work.then(
    (answer): Reply<T> => ({ answer }),
    (error: unknown): Reply<T> => ({ error: error instanceof Error ? error.message : String(error) }),
  );
  return Promise.race([done, lost]);
}
