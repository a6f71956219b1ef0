/**
 * One start operation as far as it lives in memory. What must survive a reset is in the ledger.
 */

import { START_CANCELLED, START_DEADLINE } from "./protocol.ts";

/** Why a run was ended from outside. */
export type AbortCause = "Deadline" | "Stopped" | "Destroyed" | "Superseded";

const CAUSE_TEXT: Readonly<Record<AbortCause, string>> = {
  Deadline: "the start was not verified before its deadline",
  Stopped: "the start was cancelled because the workspace was stopped",
  Destroyed: "the start was cancelled because the workspace was destroyed",
  Superseded: "the start was cancelled because another one was admitted",
};

export class StartAbortedError extends Error {
  readonly code: typeof START_CANCELLED | typeof START_DEADLINE;

  constructor(cause: AbortCause, beneath?: unknown) {
    super(CAUSE_TEXT[cause], { cause: beneath });
    this.name = "StartAbortedError";
    this.code = cause === "Deadline" ? START_DEADLINE : START_CANCELLED;
  }
}

export class StartRun {
  readonly startId: string;
  readonly #controller = new AbortController();
  #deadlineTime: number;
  /** Set while the deadline is watched. */
  #deadline: ReturnType<typeof setTimeout> | null = null;
  #mayStart = true;
  #abortCause: AbortCause | null = null;

  constructor(startId: string, deadlineTime: number) {
    this.startId = startId;
    this.#deadlineTime = deadlineTime;
  }

  get deadlineTime(): number {
    return this.#deadlineTime;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get abortCause(): AbortCause | null {
    return this.#abortCause;
  }

  /** False from the moment its container answered, or the run was aborted: one admission is for one container. */
  get mayStart(): boolean {
    return this.#mayStart;
  }

  closeStartWindow(): void {
    this.#mayStart = false;
  }

  /** Aborts the run at its deadline, which may be moved. */
  watchDeadline(deadlineTime = this.#deadlineTime): void {
    this.unwatchDeadline();
    this.#deadlineTime = deadlineTime;
    this.#deadline = setTimeout(() => this.abort("Deadline"), Math.max(0, deadlineTime - Date.now()));
  }

  unwatchDeadline(): void {
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    this.#deadline = null;
  }

  /** The first cause stays. */
  abort(cause: AbortCause): void {
    this.#mayStart = false;
    if (this.#abortCause !== null) return;
    this.#abortCause = cause;
    this.#controller.abort(new StartAbortedError(cause));
  }

  /** Settles with `work`, or rejects as soon as the run is aborted; `work` may then go on and is refused by the gate. */
  async orAborted<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    signal.throwIfAborted();
    const settled = new AbortController();
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { signal: settled.signal });
    });
    try {
      return await Promise.race([work, aborted]);
    } finally {
      settled.abort();
    }
  }
}
