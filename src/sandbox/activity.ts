/**
 * When a user's traffic last reached the container that runs (invariants 6 and 7).
 *
 * 1. It belongs to one container: what reached an earlier one says nothing about the next.
 * 2. Asking for it changes nothing and stores nothing.
 * 3. A reset of the object forgets at most `PERSIST_INTERVAL_MS` of it.
 * 4. A call that is pending is activity, but for a limited time: one whose client went away may never end (cloudflare/containers #241).
 */
import type { Ledger } from "./ledger.ts";

const KEY = "mooring:activity";
/** A row written for each request would cost more than the request, and each answer waits for what was written before it. */
export const PERSIST_INTERVAL_MS = 10_000;
/** Longer than anybody waits for a call that shows no sign of life, and what a leaked one costs is an hour of a container. */
export const PENDING_LIMIT_MS = 3_600_000;

/** Something that a user does with the container, from its begin to its end. */
export interface Visit {
  /** It showed a sign of life. Counts after the end, too: a connection outlives the call that opened it. */
  touch(): void;
  /** It keeps the container active no longer. Again it does nothing. */
  end(): void;
}

interface LastActivity {
  readonly container: string;
  readonly time: number;
}

interface Pending {
  readonly container: string;
  touchedTime: number;
}

export class Activity {
  readonly #storage: SyncKvStorage;
  readonly #ledger: Ledger;
  readonly #now: () => number;
  readonly #pending = new Set<Pending>();
  #last: LastActivity | null;
  #stored: LastActivity | null;
  /** Set while something is pending. */
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(storage: SyncKvStorage, ledger: Ledger, now: () => number) {
    this.#storage = storage;
    this.#ledger = ledger;
    this.#now = now;
    this.#stored = storage.get<LastActivity>(KEY) ?? null;
    this.#last = this.#stored;
  }

  /** Null where no traffic has reached the container that runs. */
  get time(): number | null {
    const now = this.#now();
    const container = this.#container;
    const times = [...this.#pending].filter((pending) => pending.container === container).map((pending) => activeUntil(pending, now));
    if (this.#last?.container === container) times.push(this.#last.time);
    return times.length === 0 ? null : Math.max(...times);
  }

  begin(): Visit {
    const pending: Pending = { container: this.#container, touchedTime: this.#now() };
    let hasEnded = false;
    const touch = () => {
      pending.touchedTime = this.#now();
      this.#note(pending.container, pending.touchedTime);
      if (!hasEnded) this.#hold(pending);
    };
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      touch();
      this.#release(pending);
    };
    touch();
    return { touch, end };
  }

  /** Names the container that runs, so that no two have the same name. */
  get #container(): string {
    const { container } = this.#ledger.record;
    return container === null ? "" : `${container.startId} ${container.startedTime}`;
  }

  #hold(pending: Pending): void {
    this.#pending.add(pending);
    this.#timer ??= setTimeout(() => this.#tick(), this.#msUntilDue());
  }

  #release(pending: Pending): void {
    this.#pending.delete(pending);
    if (this.#pending.size > 0 || this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
  }

  #tick(): void {
    this.#timer = null;
    const now = this.#now();
    for (const pending of this.#pending) {
      this.#note(pending.container, activeUntil(pending, now));
      if (pending.container !== this.#container || activeUntil(pending, now) < now) this.#release(pending);
      else this.#hold(pending);
    }
  }

  #note(container: string, time: number): void {
    if (container !== this.#container) return;
    const known = this.#last?.container === container ? this.#last.time : time;
    this.#last = { container, time: Math.max(known, time) };
    if (this.#stored?.container === container && this.#last.time - this.#stored.time < PERSIST_INTERVAL_MS) return;
    this.#storage.put(KEY, this.#last);
    this.#stored = this.#last;
  }

  #msUntilDue(): number {
    return Math.max(0, (this.#stored?.time ?? 0) + PERSIST_INTERVAL_MS - this.#now());
  }
}

function activeUntil({ touchedTime }: Pending, now: number): number {
  return Math.min(now, touchedTime + PENDING_LIMIT_MS);
}
