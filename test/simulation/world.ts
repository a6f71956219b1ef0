/** All sandboxes and what the platform says of them: the Fleet and the Inventory of the simulated day. */
import { createHash } from "node:crypto";
import { classify } from "../../src/controller/failure.ts";
import { type Fleet, LeaseLostError, type OrphanOutcome } from "../../src/controller/fleet.ts";
import { interpret } from "../../src/controller/observation.ts";
import type { Answer } from "../../src/sandbox/protocol.ts";
import type { Failure, Instance, Observation } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { fateOf } from "./fates.ts";
import { CALL_FAULTS, type Faults } from "./faults.ts";
import { Sandbox } from "./sandbox.ts";
import type { Container, Killer, Surroundings } from "./surroundings.ts";

/** As in `src/controller/sandbox-fleet.ts`. */
const OBSERVE_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
const STOP_TIMEOUT_MS = 20_000;
const DESTROY_TIMEOUT_MS = 20_000;
/** Late, but seldom later than the caller's patience by much. */
const LATE_MS = 40_000;
const JITTER_SHARE = 0.15;
/** How long the platform remembers what stopped. */
export const REMEMBERED_MS = 15 * 60_000;

export interface WorldEvents {
  /** What the sandbox may read from D1. */
  hasRow(uid: string): boolean;
  poke(uid: string): void;
  startBegan(sandbox: Sandbox): void;
  containerStarted(container: Container): void;
  containerEnds(container: Container, killer: Killer): void;
  startFailed(sandbox: Sandbox, isWorkspacesFault: boolean): void;
  /** A call of this kind to this sandbox did not go as it should. */
  disturbed(doId: string): void;
}

export class World implements Fleet {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly running = new Set<Container>();
  /** Ended within what the platform remembers, oldest first. */
  readonly ended: Container[] = [];
  /** Sandboxes in which a start may be under way. */
  readonly starting = new Set<Sandbox>();
  /** Workspaces whose image does not exist. */
  readonly cursed = new Set<string>();
  noCapacityUntilTime = 0;
  rateLimitedUntilTime = 0;
  /** Orders to stop or destroy; those to start always do. */
  ordersExpire = true;
  observations = 0;
  /** All that the controller asked of the sandboxes but looks. */
  orders = 0;
  readonly #around: Surroundings;
  readonly #events: WorldEvents;
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #faults: Faults;
  /** By uid and incarnation. */
  readonly #identities = new Map<string, Instance[]>();

  constructor(clock: Clock, chance: Chance, faults: Faults, events: WorldEvents) {
    this.#clock = clock;
    this.#chance = chance;
    this.#faults = faults;
    this.#events = events;
    this.#around = {
      clock,
      fateOf: (sandbox) => fateOf(sandbox, this, clock.now(), chance, faults),
      stopMs: () => (chance.happens(0.1) ? null : chance.between(10, 3000)),
      killMs: () => chance.between(5, 800),
      isDeaf: (sandbox) => this.#isDeaf(sandbox),
      poke: (uid) => events.poke(uid),
      startBegan: (sandbox) => {
        this.starting.add(sandbox);
        events.startBegan(sandbox);
      },
      containerStarted: (container) => {
        this.running.add(container);
        events.containerStarted(container);
      },
      containerEnds: (container, killer) => {
        events.containerEnds(container, killer);
        this.running.delete(container);
        this.ended.push(container);
        while ((this.ended[0]?.endedTime ?? Number.POSITIVE_INFINITY) < clock.now() - REMEMBERED_MS) this.ended.shift();
      },
      startFailed: (sandbox, isWorkspacesFault) => events.startFailed(sandbox, isWorkspacesFault),
    };
  }

  identify(uid: string, incarnation: number): Instance {
    const ofUid = this.#identities.get(uid) ?? [];
    if (ofUid.length === 0) this.#identities.set(uid, ofUid);
    const known = ofUid[incarnation];
    if (known !== undefined) return known;
    const sandboxId = `${uid}-${incarnation}`;
    const doId = createHash("sha256").update(sandboxId).digest("hex");
    const identity = { sandboxId, incarnation, doId, running: true, destroyRequested: false, adopted: false };
    ofUid[incarnation] = identity;
    return identity;
  }

  observe(instance: Instance, epoch: number): Promise<Observation> {
    this.observations += 1;
    return this.#ask(instance, epoch, OBSERVE_TIMEOUT_MS, (sandbox) => sandbox.observe());
  }

  start(instance: Instance, epoch: number, request: Parameters<Fleet["start"]>[2], waitMs: number): Promise<Observation> {
    return this.#order(instance, epoch, waitMs + ANSWER_TIMEOUT_MS, (sandbox) => sandbox.start(request, waitMs), true);
  }

  stop(instance: Instance, epoch: number): Promise<Observation> {
    return this.#order(instance, epoch, STOP_TIMEOUT_MS, (sandbox) => sandbox.stop(STOP_GRACE_MS));
  }

  destroy(instance: Instance, epoch: number): Promise<Observation> {
    return this.#order(instance, epoch, DESTROY_TIMEOUT_MS, (sandbox) => sandbox.destroy());
  }

  async destroyOrphan(doId: string, epoch: number): Promise<OrphanOutcome> {
    this.orders += 1;
    const sandbox = this.sandboxes.get(doId) ?? this.#sandbox(doId, null, null);
    const answer = await this.#transport<Answer | "StaleEpoch" | "Wanted">(sandbox, DESTROY_TIMEOUT_MS, () => {
      if (epoch < (sandbox.fence?.epoch ?? epoch)) return "StaleEpoch";
      const { workspaceUid, state } = sandbox.admission;
      if (state !== "Destroyed" && workspaceUid !== null && this.#events.hasRow(workspaceUid)) return "Wanted";
      sandbox.fence = { epoch, incarnation: sandbox.fence?.incarnation ?? 0 };
      return sandbox.destroy("destroyOrphan");
    });
    if (answer === "StaleEpoch") throw new LeaseLostError("A controller with a higher epoch is at work.");
    if (answer === "Wanted") return { kind: "Wanted" };
    if ("class" in answer) return { kind: "Unknown", failure: answer };
    return { kind: answer.facts.running ? "StillRuns" : "Gone" };
  }

  sandboxOf(instance: Pick<Instance, "doId" | "sandboxId">): Sandbox {
    const uid = instance.sandboxId.slice(0, instance.sandboxId.lastIndexOf("-"));
    return this.sandboxes.get(instance.doId) ?? this.#sandbox(instance.doId, instance.sandboxId, uid);
  }

  /** A container in an object that no controller ever heard of. */
  addStranger(): Container | null {
    const doId = createHash("sha256").update(`stranger-${this.#chance.next()}`).digest("hex");
    const sandbox = this.#sandbox(doId, null, null);
    sandbox.startUnasked();
    return sandbox.container;
  }

  /** Starts that may still bring a container up. */
  startsInFlight(): number {
    const now = this.#clock.now();
    for (const sandbox of this.starting) if (!sandbox.isStarting(now)) this.starting.delete(sandbox);
    return this.starting.size;
  }

  #sandbox(doId: string, sandboxId: string | null, uid: string | null): Sandbox {
    const sandbox = new Sandbox(this.#around, doId, sandboxId, uid);
    this.sandboxes.set(doId, sandbox);
    return sandbox;
  }

  /** Its caller has given up by then and may have decided otherwise, so an order that arrives later does nothing. */
  #order(
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: Sandbox) => Promise<Answer>,
    expires = this.ordersExpire,
  ): Promise<Observation> {
    this.orders += 1;
    const expiresTime = this.#clock.now() + timeoutMs;
    return this.#ask(instance, epoch, timeoutMs, (sandbox) => {
      const isExpired = expires && this.#clock.now() > expiresTime;
      return isExpired ? { accepted: false, refusal: "Expired", facts: sandbox.facts() } : work(sandbox);
    });
  }

  async #ask(
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: Sandbox) => Answer | Promise<Answer>,
  ): Promise<Observation> {
    const sandbox = this.sandboxOf(instance);
    const answer = await this.#transport<Answer>(sandbox, timeoutMs, () => {
      const refusal = sandbox.passFence(epoch, instance.incarnation);
      return refusal === null ? work(sandbox) : { accepted: false, refusal, facts: sandbox.facts() };
    });
    if ("class" in answer) return { kind: "Unknown", failure: answer };
    if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError("A controller with a higher epoch is at work.");
    if (!answer.accepted && answer.refusal === "OtherIncarnation") return { kind: "Unknown", failure: OTHER_INCARNATION };
    return interpret(answer.facts);
  }

  /** A call on its way there and back, with whatever befalls it. */
  #transport<Result>(sandbox: Sandbox, timeoutMs: number, work: () => Result | Promise<Result>): Result | Promise<Result | Failure> {
    const fault = this.#faults.draw(CALL_FAULTS);
    if (fault !== null) this.#events.disturbed(sandbox.doId);
    if (fault === "callBreaks") return BROKEN as never;
    const latencyMs = fault === "callLate" ? this.#chance.lasting(1000, LATE_MS) : this.#jitterMs();
    if (fault === null && latencyMs === 0) {
      const result = work();
      if (!(result instanceof Promise)) return result;
      return this.#answerWithin(sandbox, timeoutMs, (settle) => void result.then(settle));
    }
    return this.#answerWithin(sandbox, timeoutMs, (settle) => {
      if (fault === "callHangs") return;
      this.#clock.after(latencyMs, () => {
        void Promise.resolve(work()).then((result) => {
          if (fault !== "callAnswerLost") settle(result);
          else if (this.#chance.happens(0.5)) settle(BROKEN);
        });
        if (fault === "callReset") this.#clock.after(this.#chance.between(0, 2000), () => sandbox.loseMemory());
      });
    });
  }

  #answerWithin<Result>(
    sandbox: Sandbox,
    timeoutMs: number,
    begin: (settle: (result: Result | Failure) => void) => void,
  ): Promise<Result | Failure> {
    return new Promise((resolve) => {
      const settle = (result: Result | Failure) => {
        timer.fire = null;
        sandbox.breakers.delete(breaks);
        resolve(result);
      };
      const breaks = () => settle(BROKEN);
      const timer = this.#clock.after(timeoutMs, () => {
        this.#events.disturbed(sandbox.doId);
        settle(TIMED_OUT);
      });
      sandbox.breakers.add(breaks);
      begin(settle);
    });
  }

  #jitterMs(): number {
    return this.#chance.happens(JITTER_SHARE) ? this.#chance.between(1, 400) : 0;
  }

  #isDeaf(sandbox: Sandbox): boolean {
    const isDeaf = this.#faults.draw(["killDeaf"]) !== null;
    if (isDeaf) this.#events.disturbed(sandbox.doId);
    return isDeaf;
  }
}

function uncertain(message: string): Failure {
  return { ...classify({ messages: [message], code: null, retryAfterMs: null }), class: "Uncertain" };
}

const BROKEN = uncertain("Network connection lost.");
const TIMED_OUT = uncertain("The sandbox did not answer in time.");
const OTHER_INCARNATION: Failure = {
  class: "Misconfigured",
  reason: "Misconfigured",
  message: "The sandbox belongs to another incarnation.",
};
