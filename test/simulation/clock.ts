/**
 * Time that passes only when nobody can go on without it. Timers fire one by one, and all that follows from one is done before the next:
 * each step is a macrotask of its own, so every microtask lies between two steps.
 */
import type { Instant } from "../../src/workspace.ts";

export interface Timer {
  readonly time: Instant;
  readonly order: number;
  /** Null once it has fired or was cancelled. */
  fire: (() => void) | null;
}

interface Sleeper {
  readonly signal: AbortSignal;
  readonly timer: Timer;
  readonly wake: () => void;
}

/** Macrotasks that are queued at once: a turn of the event loop costs more than a step. */
const STEPS_AT_ONCE = 64;
/** Whoever does so much in no time at all goes round in circles. */
const STEPS_WITHOUT_TIME = 10_000;

export class Clock {
  #now: Instant;
  #order = 0;
  #stepsWithoutTime = 0;
  readonly #heap: Timer[] = [];
  /** Looked at after each step: far cheaper than a listener. */
  readonly #sleepers: Sleeper[] = [];

  constructor(now: Instant) {
    this.#now = now;
  }

  now(): Instant {
    return this.#now;
  }

  at(time: Instant, fire: () => void): Timer {
    const timer: Timer = { time: Math.max(time, this.#now), order: (this.#order += 1), fire };
    this.#push(timer);
    return timer;
  }

  after(ms: number, fire: () => void): Timer {
    return this.at(this.#now + ms, fire);
  }

  /** Resolves early where the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      // Even then a step of its own: a loop that never waits would never end.
      const timer = this.after(signal?.aborted ? 0 : ms, resolve);
      if (signal !== undefined) this.#sleepers.push({ signal, timer, wake: resolve });
    });
  }

  /** Lets time pass up to `time`; settles when nothing is left to do before it. */
  run(time: Instant): Promise<void> {
    return new Promise((resolve, reject) => {
      let isDone = false;
      const step = (left: number) => {
        if (isDone) return;
        try {
          isDone = !this.#step(time);
        } catch (error) {
          isDone = true;
          reject(error);
          return;
        }
        if (isDone) resolve();
        else if (left === 0) queue();
      };
      const queue = () => {
        for (let left = STEPS_AT_ONCE - 1; left >= 0; left -= 1) setImmediate(step, left);
      };
      queue();
    });
  }

  /** False where nothing is left to do before `time`. */
  #step(time: Instant): boolean {
    this.#stepsWithoutTime += 1;
    if (this.#stepsWithoutTime > STEPS_WITHOUT_TIME) throw new Error("Much happens, and no time passes.");
    if (this.#wakeAborted()) return true;
    for (;;) {
      const [next] = this.#heap;
      if (next === undefined || next.time > time) {
        this.#now = Math.max(this.#now, time);
        return false;
      }
      this.#pop();
      const { fire } = next;
      if (fire === null) continue;
      next.fire = null;
      if (next.time > this.#now) this.#stepsWithoutTime = 0;
      this.#now = Math.max(this.#now, next.time);
      fire();
      return true;
    }
  }

  #wakeAborted(): boolean {
    const sleepers = this.#sleepers;
    let woke = false;
    for (let index = sleepers.length - 1; index >= 0; index -= 1) {
      const sleeper = sleepers[index] as Sleeper;
      if (sleeper.timer.fire !== null && !sleeper.signal.aborted) continue;
      woke ||= sleeper.timer.fire !== null;
      sleeper.timer.fire = null;
      sleeper.wake();
      sleepers[index] = sleepers.at(-1) as Sleeper;
      sleepers.pop();
    }
    return woke;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.push(timer) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Timer;
      if (!isBefore(timer, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Timer;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1;
      if (!isBefore(heap[child] as Timer, last)) break;
      heap[index] = heap[child] as Timer;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

/** For a process that died, and for answers that never come. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
