import type { EngineCall, EngineCounters, EngineEvent } from "./contract.ts";

const MAX_CALLS = 10_000;

type Tally = "refused" | "failedStarts" | "killed" | "ghosts" | "diedMidOperation" | "destroyed" | "keptAfterEviction" | "unimplemented";

/** Everything the engine remembers about what it was asked and what it did; the tests judge by it. */
export class Ledger {
  #calls: Mutable<EngineCall>[] = [];
  #callCount = 0;
  #starts = 0;
  #startsByObject = new Map<string, number>();
  #inFlight = new Set<object>();
  #maxConcurrent = 0;
  #tallies = new Map<Tally, number>();
  #lastEventTime = Date.now();
  readonly #onEvent: ((event: EngineEvent) => void) | undefined;

  constructor(onEvent: ((event: EngineEvent) => void) | undefined) {
    this.#onEvent = onEvent;
  }

  /** Records a call at its arrival; the caller fills in the status when it answers. */
  call(entry: Omit<EngineCall, "time" | "status">): Mutable<EngineCall> {
    const call = { time: Date.now(), status: 0, ...entry };
    this.#callCount += 1;
    this.#calls.push(call);
    if (this.#calls.length > MAX_CALLS) this.#calls.shift();
    return call;
  }

  event(event: Omit<EngineEvent, "time">): void {
    this.#lastEventTime = Date.now();
    this.#onEvent?.({ time: this.#lastEventTime, ...event });
  }

  count(tally: Tally): void {
    this.#tallies.set(tally, (this.#tallies.get(tally) ?? 0) + 1);
  }

  /** `start` is any object that stands for this one start; it is in flight until startEnded. */
  startBegan(start: object, doId: string): void {
    this.#starts += 1;
    this.#startsByObject.set(doId, (this.#startsByObject.get(doId) ?? 0) + 1);
    this.#inFlight.add(start);
    this.#maxConcurrent = Math.max(this.#maxConcurrent, this.#inFlight.size);
  }

  startEnded(start: object): void {
    this.#inFlight.delete(start);
  }

  get calls(): readonly EngineCall[] {
    return this.#calls.map((call) => ({ ...call }));
  }

  /** Resolves once no container event has happened for this long. */
  async quiet(forMs: number): Promise<void> {
    for (let rest = this.#restOf(forMs); rest > 0; rest = this.#restOf(forMs)) {
      await new Promise((resolve) => setTimeout(resolve, rest));
    }
  }

  #restOf(forMs: number): number {
    return this.#lastEventTime + forMs - Date.now();
  }

  counters(): EngineCounters {
    const tally = (name: Tally) => this.#tallies.get(name) ?? 0;
    return {
      starts: this.#starts,
      startsByObject: Object.fromEntries(this.#startsByObject),
      inFlightStarts: this.#inFlight.size,
      maxConcurrentStarts: this.#maxConcurrent,
      refused: tally("refused"),
      failedStarts: tally("failedStarts"),
      killed: tally("killed"),
      ghosts: tally("ghosts"),
      diedMidOperation: tally("diedMidOperation"),
      destroyed: tally("destroyed"),
      keptAfterEviction: tally("keptAfterEviction"),
      unimplemented: tally("unimplemented"),
      calls: this.#callCount,
    };
  }

  /** Starts in flight stay in flight, and count for the new maximum. */
  reset(): void {
    this.#calls = [];
    this.#callCount = 0;
    this.#starts = 0;
    this.#startsByObject.clear();
    this.#maxConcurrent = this.#inFlight.size;
    this.#tallies.clear();
  }
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
