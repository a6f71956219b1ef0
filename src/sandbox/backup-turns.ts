/**
 * One backup or restore at a time. The SDK's own queue lets all who wait for one of them proceed together.
 *
 * Some of the SDK's calls never end: whoever has the turn keeps it no longer than until the container that it is about is replaced.
 */
export class BackupTurns {
  readonly #isRunning: () => boolean;
  #last: Promise<void> = Promise.resolve();
  #count = 0;
  /** Of whoever has the turn. One that began while nothing ran is about the container that it has started. */
  #current = { hasContainer: false, end: () => {} };

  constructor(isRunning: () => boolean) {
    this.#isRunning = isRunning;
  }

  /** Whether somebody has the turn or waits for it. */
  get taken(): boolean {
    return this.#count > 0;
  }

  /** Begins `work` once all before it have ended; at once where there are none. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    const last = Promise.withResolvers<void>();
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#count -= 1;
      last.resolve();
    };
    const begin = () => {
      this.#current = { hasContainer: this.#isRunning(), end };
      return work();
    };
    const turn = this.taken ? this.#last.then(begin) : begin();
    this.#count += 1;
    this.#last = last.promise;
    try {
      return await turn;
    } finally {
      end();
    }
  }

  /** To be called when a container was started. */
  containerStarted(): void {
    if (this.#current.hasContainer) this.#current.end();
    else this.#current.hasContainer = true;
  }
}
