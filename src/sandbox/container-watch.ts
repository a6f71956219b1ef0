/**
 * Sees the end of every container and records it (invariant 13).
 *
 * 1. The record of a container is written before it is started, and ended when its monitor settles.
 * 2. A container that ended while the object was out of memory ended with an unknown code, but it ended.
 * 3. A refused admission is no container: it leaves no exit.
 */
import { endOf, refusalIn } from "./container-errors.ts";
import type { Exit } from "../workspace.ts";
import type { Ledger } from "./ledger.ts";

export class ContainerWatch {
  readonly #native: Container;
  readonly #ledger: Ledger;
  readonly #ended: () => void;
  /** Of the container that runs now. Shared, so that one container has one monitor whoever asks. */
  #monitor: Promise<void> | null = null;
  /** Of the start tried last, where it got no instance. */
  #refusal: { readonly startId: string; readonly message: string } | null = null;

  constructor(native: Container, ledger: Ledger, ended: () => void) {
    this.#native = native;
    this.#ledger = ledger;
    this.#ended = ended;
    if (!native.running) this.#endUnseen();
  }

  /** Starts a container for `startId` and watches it from its first moment. */
  start(startId: string, options: ContainerStartupOptions | undefined): void {
    this.#monitor = null;
    this.#refusal = null;
    this.#ledger.update({ container: { startId, startedTime: Date.now() }, exit: null });
    try {
      this.#native.start(options);
    } catch (error) {
      this.#ledger.update({ container: null });
      throw error;
    }
    void this.monitor();
  }

  /** What the platform said where the last try of `startId` got no instance. The SDK's own error may not repeat it. */
  refusalOf(startId: string): string | null {
    return this.#refusal?.startId === startId ? this.#refusal.message : null;
  }

  /** The monitor of the running container. */
  monitor(): Promise<void> {
    if (this.#monitor !== null) return this.#monitor;
    const monitor = this.#native.monitor();
    this.#monitor = monitor;
    monitor.then(
      () => this.#end(monitor, undefined),
      (error: unknown) => this.#end(monitor, error),
    );
    return monitor;
  }

  /** Records the end of a container that nothing in this memory has watched. */
  reconcile(): void {
    if (!this.#native.running && this.#monitor === null) this.#endUnseen();
  }

  #end(monitor: Promise<void>, error: unknown): void {
    if (this.#monitor !== monitor) return;
    this.#monitor = null;
    const message = refusalIn(error);
    if (message !== null) {
      this.#refusal = { startId: this.#ledger.record.container?.startId ?? "", message };
      this.#ledger.update({ container: null });
      return;
    }
    this.#record({ ...endOf(error), time: Date.now() });
    this.#ended();
  }

  #endUnseen(): void {
    if (this.#ledger.record.container === null) return;
    this.#record({ code: null, signalled: false, time: Date.now() });
  }

  /** How the container of an earlier start ended says nothing about the start that replaces it. */
  #record(exit: Exit): void {
    const { container, operation } = this.#ledger.record;
    const isOfEarlier = operation !== null && container !== null && container.startId !== operation.startId;
    this.#ledger.update(isOfEarlier ? { container: null } : { container: null, exit });
  }
}
