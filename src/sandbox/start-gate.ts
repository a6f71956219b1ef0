/**
 * The only way to a container start, and the one judge of who may talk to the container (invariants 2 and 7).
 *
 * 1. `ctx.container.start()` passes only for the live start run, from within it, while its admission stands in the ledger.
 * 2. That is checked at the very call, synchronously, so at each try of each loop of the SDK, whoever began the loop.
 * 3. A run starts no second container once one has answered.
 * 4. Traffic from outside the run passes only to a container that runs and whose start was verified.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Ledger } from "./ledger.ts";
import { WORKSPACE_NOT_READY, WORKSPACE_NOT_RUNNING, type RefusalCode } from "./not-running.ts";
import { StartRefusedError } from "./refusal.ts";
import type { StartRun } from "./start-run.ts";

export class StartGate {
  readonly #ledger: Ledger;
  /** Holds the run itself rather than its id: a late callback of an earlier run of the same start is not the live one. */
  readonly #scope = new AsyncLocalStorage<StartRun>();
  #run: StartRun | null = null;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** The run under way; at most one. */
  get run(): StartRun | null {
    return this.#run;
  }

  open(run: StartRun): void {
    this.#run = run;
  }

  close(run: StartRun): void {
    run.closeStartWindow();
    if (this.#run === run) this.#run = null;
  }

  within<T>(run: StartRun, work: () => Promise<T>): Promise<T> {
    return this.#scope.run(run, work);
  }

  /** To be called when a container has answered: the calling run needs no other. */
  containerAnswered(): void {
    this.#liveCaller()?.closeStartWindow();
  }

  /** Throws unless the caller may start a container at this moment. */
  assertMayStart(now: number): void {
    const run = this.#liveCaller();
    const { admission } = this.#ledger.record;
    const admitted = run !== null && admission.state === "Admitted" && admission.startId === run.startId && now < admission.deadlineTime;
    if (!admitted || !run.mayStart) throw new StartRefusedError(this.#absence());
  }

  /** Why a call to the container is refused, or null where it may pass. */
  trafficRefusal(running: boolean): RefusalCode | null {
    const caller = this.#liveCaller();
    if (caller !== null) return running || caller.mayStart ? null : WORKSPACE_NOT_READY;
    const { admission, operation } = this.#ledger.record;
    const verified = admission.state === "Admitted" && operation?.state === "Succeeded" && operation.startId === admission.startId;
    return running && verified ? null : this.#absence();
  }

  #liveCaller(): StartRun | null {
    const run = this.#scope.getStore();
    return run !== undefined && run === this.#run && !run.signal.aborted ? run : null;
  }

  #absence(): RefusalCode {
    const { admission, operation } = this.#ledger.record;
    const preparing = operation?.state === "InProgress" || operation?.state === "Interrupted";
    return admission.state === "Admitted" && preparing ? WORKSPACE_NOT_READY : WORKSPACE_NOT_RUNNING;
  }
}
