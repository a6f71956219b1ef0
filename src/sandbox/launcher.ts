/**
 * What a start run does: it ends with a container that answers, and has its working directory restored and set up. Runs within the gate's
 * scope only.
 */
import type { Sandbox } from "@cloudflare/sandbox";
import { Preparation, type PreparationParts } from "./preparation.ts";
import type { StartOrder, StartStep } from "./protocol.ts";
import { assertRestorable } from "./restore-source.ts";
import type { StartRun } from "./start-run.ts";
import type { Teardown } from "./teardown.ts";

/** Where the server in the sandbox image listens. */
const CONTROL_PORT = 3000;
/** How long the platform may take to give an instance, as in the SDK's own default; the rest is left for the ports. */
const INSTANCE_TIMEOUT_MS = 30_000;
const START_POLL_INTERVAL_MS = 150;

interface LauncherParts extends PreparationParts {
  readonly subject: PreparationParts["subject"] & Pick<Sandbox, "startAndWaitForPorts" | "envVars">;
  readonly storage: Pick<DurableObjectStorage, "sync">;
  readonly teardown: Teardown;
}

export class Launcher {
  readonly #parts: LauncherParts;
  readonly #preparation: Preparation;

  constructor(parts: LauncherParts) {
    this.#parts = parts;
    this.#preparation = new Preparation(parts);
  }

  /** `enter` is told each step after the first as it begins. */
  async launch(run: StartRun, order: StartOrder, enter: (step: StartStep) => void): Promise<void> {
    const { storage, native, bucket } = this.#parts;
    await storage.sync();
    // The files of a container that is kept are its user's: neither restored over nor set up again.
    const keeps = order.adopt && native.running;
    const restore = keeps ? null : order.restore;
    const setsUp = !keeps && order.setup.length > 0;
    if (restore !== null) await assertRestorable(bucket, restore.objectId, Date.now());
    if (keeps) this.#adoptContainer(order.startId);
    else if (restore !== null || setsUp) await this.#removeContainer();
    else await this.#removeOtherContainer(order.startId);
    await this.#startContainer(run, order);
    if (restore !== null) {
      enter("Restore");
      await this.#preparation.restore(restore, order.directory);
    }
    await this.#preparation.makeDirectory(order.directory);
    if (setsUp) {
      enter("Setup");
      await this.#preparation.setUp(order);
    }
  }

  async #startContainer(run: StartRun, order: StartOrder): Promise<void> {
    const { subject } = this.#parts;
    const leftMs = Math.max(START_POLL_INTERVAL_MS, run.deadlineTime - Date.now());
    await subject.startAndWaitForPorts({
      ports: CONTROL_PORT,
      startOptions: { envVars: { ...subject.envVars, ...order.env } },
      cancellationOptions: {
        abort: run.signal,
        instanceGetTimeoutMS: Math.min(INSTANCE_TIMEOUT_MS, leftMs / 2),
        // Counted in tries: more than there is time for, so that the run's signal ends the wait.
        portReadyTimeoutMS: 2 * leftMs + 2 * START_POLL_INTERVAL_MS,
        waitInterval: START_POLL_INTERVAL_MS,
      },
    });
  }

  /** Vouches for whatever runs. Nobody here knows since when it does. */
  #adoptContainer(startId: string): void {
    const { ledger } = this.#parts;
    if (ledger.record.container?.startId === startId) return;
    ledger.update({ container: { startId, startedTime: Date.now() }, exit: null });
  }

  /** A container of another start has another environment and is not the one that this start may vouch for. */
  async #removeOtherContainer(startId: string): Promise<void> {
    if (this.#parts.ledger.record.container?.startId !== startId) await this.#removeContainer();
  }

  /** A restore and a setup are for a fresh container: the same start may have begun them in the one that runs. */
  async #removeContainer(): Promise<void> {
    const { native, teardown } = this.#parts;
    if (native.running && !(await teardown.kill())) throw new Error("the container of an earlier start could not be removed");
  }
}
