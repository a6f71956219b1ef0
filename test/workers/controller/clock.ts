/**
 * Time that passes only when nothing else can happen. `run` drives it: while a database call is under way it waits for that, and once
 * everybody waits for the clock it moves on to the next timer.
 */
import type { Instant } from "../../../src/workspace.ts";
import type { WorldClock } from "../../support/fake-fleet.ts";

interface Timer {
  readonly time: Instant;
  readonly fire: () => void;
}

export class FakeClock implements WorldClock {
  #now: Instant;
  #timers: Timer[] = [];
  #busy = 0;
  #onIdle: (() => void) | null = null;

  constructor(now: Instant) {
    this.#now = now;
  }

  now(): Instant {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer: Timer = { time: this.#now + Math.max(0, ms), fire: resolve };
      this.#timers.push(timer);
      signal?.addEventListener("abort", () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
        resolve();
      });
    });
  }

  /** For real I/O: no time passes meanwhile. */
  async busy<T>(work: Promise<T>): Promise<T> {
    this.#busy += 1;
    try {
      return await work;
    } finally {
      this.#busy -= 1;
      if (this.#busy === 0) this.#onIdle?.();
    }
  }

  /** Lets time pass until `work` is settled. */
  async run<T>(work: Promise<T>): Promise<T> {
    const state = { settled: false };
    const settle = () => {
      state.settled = true;
    };
    work.then(settle, settle);
    for (;;) {
      await this.#quiet();
      if (state.settled) return await work;
      if (!this.#next()) throw new Error("Everybody waits, and no timer is set.");
    }
  }

  async pass(ms: number): Promise<void> {
    await this.run(this.sleep(ms));
  }

  async #quiet(): Promise<void> {
    for (;;) {
      await turn();
      if (this.#busy === 0) return;
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      this.#onIdle = null;
    }
  }

  #next(): boolean {
    if (this.#timers.length === 0) return false;
    const time = Math.min(...this.#timers.map((timer) => timer.time));
    const due = this.#timers.filter((timer) => timer.time <= time);
    this.#timers = this.#timers.filter((timer) => timer.time > time);
    this.#now = Math.max(this.#now, time);
    for (const timer of due) timer.fire();
    return true;
  }
}

/** All that follows from what has happened so far, I/O excepted, is done after this. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
