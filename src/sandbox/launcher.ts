/**
 * What a start run does: it ends with a container that answers and has its working directory. Runs within the gate's scope only.
 */
import type { Sandbox } from "@cloudflare/sandbox";
import { log } from "../log.ts";
import { messageOf } from "./container-errors.ts";
import type { Ledger } from "./ledger.ts";
import type { StartOrder } from "./protocol.ts";
import type { StartRun } from "./start-run.ts";
import type { Teardown } from "./teardown.ts";

/** Where the server in the sandbox image listens. */
const CONTROL_PORT = 3000;
/** How long the platform may take to give an instance, as in the SDK's own default; the rest is left for the ports. */
const INSTANCE_TIMEOUT_MS = 30_000;
const START_POLL_INTERVAL_MS = 150;

/** The SDK's part. */
export type LaunchSubject = Pick<Sandbox, "startAndWaitForPorts" | "mkdir" | "envVars">;

export class Launcher {
  readonly #subject: LaunchSubject;
  readonly #state: DurableObjectState<{}>;
  readonly #native: Container;
  readonly #ledger: Ledger;
  readonly #teardown: Teardown;

  constructor(subject: LaunchSubject, state: DurableObjectState<{}>, native: Container, ledger: Ledger, teardown: Teardown) {
    this.#subject = subject;
    this.#state = state;
    this.#native = native;
    this.#ledger = ledger;
    this.#teardown = teardown;
  }

  async launch(run: StartRun, order: StartOrder): Promise<void> {
    await this.#state.storage.sync();
    if (order.adopt) this.#adoptContainer(order.startId);
    else await this.#removeOtherContainer(order.startId);
    const leftMs = Math.max(START_POLL_INTERVAL_MS, run.deadlineTime - Date.now());
    await this.#subject.startAndWaitForPorts({
      ports: CONTROL_PORT,
      startOptions: { envVars: { ...this.#subject.envVars, ...order.env } },
      cancellationOptions: {
        abort: run.signal,
        instanceGetTimeoutMS: Math.min(INSTANCE_TIMEOUT_MS, leftMs / 2),
        // Counted in tries: more than there is time for, so that the run's signal ends the wait.
        portReadyTimeoutMS: 2 * leftMs + 2 * START_POLL_INTERVAL_MS,
        waitInterval: START_POLL_INTERVAL_MS,
      },
    });
    await this.#makeDirectory(order.directory);
  }

  /** Vouches for whatever runs. Nobody here knows since when it does. */
  #adoptContainer(startId: string): void {
    if (!this.#native.running || this.#ledger.record.container?.startId === startId) return;
    this.#ledger.update({ container: { startId, startedTime: Date.now() }, exit: null });
  }

  /** A container of another start has another environment and is not the one that this start may vouch for. */
  async #removeOtherContainer(startId: string): Promise<void> {
    if (!this.#native.running || this.#ledger.record.container?.startId === startId) return;
    if (!(await this.#teardown.kill())) throw new Error("the container of an earlier start could not be removed");
  }

  /** The container's words repeat the path, which a user chose: they must not be read as the platform's. */
  async #makeDirectory(path: string): Promise<void> {
    const isMade = await this.#subject.mkdir(path, { recursive: true }).then(
      () => true,
      (error: unknown) => {
        log("warn", "Working directory not created", { sandboxId: this.#state.id.toString(), error: messageOf(error) });
        return false;
      },
    );
    if (!isMade) throw new Error("the working directory could not be created");
  }
}
