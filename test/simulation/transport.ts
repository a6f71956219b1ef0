/** A call to a sandbox on its way there and back, with whatever befalls it. */
import { classify } from "../../src/controller/failure.ts";
import type { Failure } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { CALL_FAULTS, type Faults } from "./faults.ts";
import type { Sandbox } from "./sandbox.ts";

/** Late, but seldom later than the caller's patience by much. */
const LATE_MS = 40_000;
const JITTER_SHARE = 0.15;

export class Transport {
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #faults: Faults;
  /** A call of this kind to this sandbox did not go as it should. */
  readonly #disturbed: (doId: string) => void;

  constructor(clock: Clock, chance: Chance, faults: Faults, disturbed: (doId: string) => void) {
    this.#clock = clock;
    this.#chance = chance;
    this.#faults = faults;
    this.#disturbed = disturbed;
  }

  call<Result>(sandbox: Sandbox, timeoutMs: number, work: () => Result | Promise<Result>): Result | Promise<Result | Failure> {
    const fault = this.#faults.draw(CALL_FAULTS);
    if (fault !== null) this.#disturbed(sandbox.doId);
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
        this.#disturbed(sandbox.doId);
        settle(TIMED_OUT);
      });
      sandbox.breakers.add(breaks);
      begin(settle);
    });
  }

  #jitterMs(): number {
    return this.#chance.happens(JITTER_SHARE) ? this.#chance.between(1, 400) : 0;
  }
}

function uncertain(message: string): Failure {
  return { ...classify({ messages: [message], code: null, retryAfterMs: null }), class: "Uncertain" };
}

const BROKEN = uncertain("Network connection lost.");
const TIMED_OUT = uncertain("The sandbox did not answer in time.");
