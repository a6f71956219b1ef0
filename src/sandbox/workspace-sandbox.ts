/**
 * The Durable Object of one workspace: the unmodified SDK class behind a start gate, with the controller's calls on top.
 *
 * Invariants (design.md section 2) that it keeps:
 *  2. No container starts but within a start operation that the controller admitted; every other attempt is refused at once.
 *  6. No call but `startWorkspace` starts a container or counts as activity.
 *  7. Observing makes no container request.
 * 11. A call with a lower epoch, or about another incarnation, changes nothing.
 * 13. The object may be reset at any await: what must be known then is in the ledger, and the next observation settles it.
 */
import { Sandbox } from "@cloudflare/sandbox";
import { log } from "../log.ts";
import { messageOf } from "./container-errors.ts";
import { ContainerWatch } from "./container-watch.ts";
import { passFence } from "./fencing.ts";
import { guardClient } from "./guarded-client.ts";
import { guardContainer } from "./guarded-container.ts";
import { Ledger } from "./ledger.ts";
import { poke } from "./poke.ts";
import type { Answer, Fence, SandboxFacts, StartOrder, WorkspaceControl } from "./protocol.ts";
import { refusalResponse, StartRefusedError } from "./refusal.ts";
import { StartGate } from "./start-gate.ts";
import { StartOperations } from "./start-operations.ts";
import type { StartRun } from "./start-run.ts";
import { Teardown } from "./teardown.ts";
import { settledWithin } from "./waiting.ts";

export interface SandboxEnv {
  readonly DB?: D1Database;
}

type StartArguments = Parameters<Sandbox["start"]>;
type FetchArguments = Parameters<Sandbox["containerFetch"]>;

/** Where the server in the sandbox image listens. */
const CONTROL_PORT = 3000;
/** How long the platform may take to give an instance, as in the SDK's own default; the rest is left for the ports. */
const INSTANCE_TIMEOUT_MS = 30_000;
const START_POLL_INTERVAL_MS = 150;
/** The SDK's stop and destroy talk to a container and a control plane that may hang; the native kill follows in any case. */
const SDK_LIMIT_MS = 3_000;
const RUN_END_LIMIT_MS = 10_000;
const VERIFY_DELAY_SECONDS = 30;
const SERVICE_UNAVAILABLE = 503;

export class WorkspaceSandbox extends Sandbox<SandboxEnv> implements WorkspaceControl {
  readonly #native: Container;
  readonly #ledger: Ledger;
  readonly #gate: StartGate;
  readonly #watch: ContainerWatch;
  readonly #teardown: Teardown;
  readonly #operations: StartOperations;

  constructor(ctx: DurableObjectState<{}>, env: SandboxEnv) {
    const native = ctx.container;
    if (native === undefined) throw new Error("Containers have not been enabled for this Durable Object class");
    const ledger = new Ledger(ctx.storage.kv);
    const gate = new StartGate(ledger);
    const announce = () => ctx.waitUntil(poke(env.DB, ledger.record.admission.workspaceUid, Date.now()));
    const watch = new ContainerWatch(native, ledger, announce);
    Object.defineProperty(ctx, "container", { configurable: true, value: guardContainer(native, gate, watch) });
    super(ctx, env);
    this.#native = native;
    this.#ledger = ledger;
    this.#gate = gate;
    this.#watch = watch;
    this.#teardown = new Teardown(native, ledger);
    this.#operations = new StartOperations(ledger, gate, this.#teardown, {
      launch: (run, order) => this.#launch(run, order),
      isRunning: () => native.running,
      refusalOf: (startId) => watch.refusalOf(startId),
      keepAlive: (work) => ctx.waitUntil(work),
      announce,
    });
    this.#guardClients();
  }

  async observeWorkspace(fence: Fence): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence);
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    this.#operations.settle(Date.now());
    return { accepted: true, facts: this.#facts() };
  }

  async startWorkspace(fence: Fence, order: StartOrder, waitMs: number): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence);
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    if (this.#isDestroyed()) return { accepted: false, refusal: "Destroyed", facts: this.#facts() };
    if (Date.now() > order.expiresTime) return { accepted: false, refusal: "Expired", facts: this.#facts() };
    this.#operations.settle(Date.now());
    await settledWithin(this.#operations.begin(order, Date.now()), waitMs);
    return { accepted: true, facts: this.#facts() };
  }

  async stopWorkspace(fence: Fence, graceMs: number): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence);
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    this.#ledger.revoke();
    const { admission } = this.#ledger.record;
    // A start admitted meanwhile owns whatever runs then.
    const superseded = () => this.#ledger.record.admission !== admission;
    await this.ctx.storage.sync();
    if (this.#gate.run === null) await this.#endGracefully(graceMs, superseded);
    else if (!superseded()) await settledWithin(this.#operations.abort("Stopped"), RUN_END_LIMIT_MS);
    if (!superseded()) {
      await this.#teardown.kill();
      this.#operations.settle(Date.now());
    }
    return { accepted: true, facts: this.#facts() };
  }

  async destroyWorkspace(fence: Fence): Promise<Answer> {
    const refusal = passFence(this.#ledger, fence);
    if (refusal !== null) return { accepted: false, refusal, facts: this.#facts() };
    const first = !this.#isDestroyed();
    this.#ledger.update({ admission: { ...this.#ledger.record.admission, state: "Destroyed" } });
    await this.ctx.storage.sync();
    const runEnded = this.#operations.abort("Destroyed");
    if (first || this.#native.running) await this.#bySdk("destroy", this.destroy());
    await this.#teardown.kill();
    await settledWithin(runEnded, RUN_END_LIMIT_MS);
    this.#operations.settle(Date.now());
    if (first || this.#native.running) await this.#verifyLater();
    return { accepted: true, facts: this.#facts() };
  }

  /** Called by the SDK's scheduler: a platform whose destroy did nothing, or was undone, is told again. */
  async verifyWorkspaceDestroyed(): Promise<void> {
    if (!this.#isDestroyed() || !this.#native.running) return;
    log("warn", "Destroyed workspace runs a container", { sandboxId: this.ctx.id.toString() });
    await this.#teardown.kill();
    if (this.#native.running) await this.#verifyLater();
  }

  override async fetch(request: Request): Promise<Response> {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    return refusal === null ? super.fetch(request) : refusalResponse(refusal);
  }

  override async containerFetch(...request: FetchArguments): Promise<Response> {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    if (refusal !== null) return refusalResponse(refusal);
    const response = await super.containerFetch(...request);
    if (response.status !== SERVICE_UNAVAILABLE) return response;
    // The SDK reports a start that the gate refused as 503, which its client would repeat.
    const refusedSince = this.#gate.trafficRefusal(this.#native.running);
    return refusedSince === null ? response : refusalResponse(refusedSince);
  }

  override async start(...options: StartArguments): Promise<void> {
    this.#assertReachable();
    await super.start(...options);
  }

  override async startAndWaitForPorts(...options: Parameters<Sandbox["startAndWaitForPorts"]>): Promise<void> {
    this.#assertReachable();
    await super.startAndWaitForPorts(...options);
  }

  /** How long a workspace runs is the controller's decision, whatever `sleepAfter` a caller of `getSandbox` asks for. */
  override async onActivityExpired(): Promise<void> {}

  override async onStart(): Promise<void> {
    this.#gate.containerAnswered();
    await super.onStart();
  }

  /** The SDK replaces its client whenever the transport is set. */
  #guardClients(): void {
    const guard = (client: typeof this.client) => guardClient(client, () => this.#gate.trafficRefusal(this.#native.running));
    let guarded = guard(this.client);
    Object.defineProperty(this, "client", {
      get: () => guarded,
      set: (client: typeof this.client) => {
        guarded = guard(client);
      },
    });
  }

  #assertReachable(): void {
    const refusal = this.#gate.trafficRefusal(this.#native.running);
    if (refusal !== null) throw new StartRefusedError(refusal);
  }

  async #launch(run: StartRun, order: StartOrder): Promise<void> {
    await this.ctx.storage.sync();
    await this.#removeOtherContainer(order.startId);
    const leftMs = Math.max(START_POLL_INTERVAL_MS, run.deadlineTime - Date.now());
    await this.startAndWaitForPorts({
      ports: CONTROL_PORT,
      startOptions: { envVars: { ...this.envVars, ...order.env } },
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

  /** The container's words repeat the path, which a user chose: they must not be read as the platform's. */
  async #makeDirectory(path: string): Promise<void> {
    const isMade = await this.mkdir(path, { recursive: true }).then(
      () => true,
      (error: unknown) => {
        log("warn", "Working directory not created", { sandboxId: this.ctx.id.toString(), error: messageOf(error) });
        return false;
      },
    );
    if (!isMade) throw new Error("the working directory could not be created");
  }

  /** A container of another start has another environment and is not the one that this start may vouch for. */
  async #removeOtherContainer(startId: string): Promise<void> {
    if (!this.#native.running || this.#ledger.record.container?.startId === startId) return;
    if (!(await this.#teardown.kill())) throw new Error("the container of an earlier start could not be removed");
  }

  async #endGracefully(graceMs: number, superseded: () => boolean): Promise<void> {
    if (!this.#native.running) return;
    await this.#bySdk("stop", this.stop("SIGTERM"));
    await this.#teardown.ended(graceMs, superseded);
  }

  /** What the SDK does is done for its own bookkeeping; whether it worked shows in what runs afterwards. */
  async #bySdk(call: "stop" | "destroy", work: Promise<void>): Promise<void> {
    const done = work.catch((error: unknown) => log("warn", "Sandbox call failed", { call, error: messageOf(error) }));
    if (!(await settledWithin(done, SDK_LIMIT_MS))) log("warn", "Sandbox call hangs", { call });
  }

  /** Through the SDK's scheduler, which owns the object's only alarm. */
  async #verifyLater(): Promise<void> {
    this.deleteSchedules("verifyWorkspaceDestroyed");
    await this.schedule(VERIFY_DELAY_SECONDS, "verifyWorkspaceDestroyed");
  }

  #isDestroyed(): boolean {
    return this.#ledger.record.admission.state === "Destroyed";
  }

  #facts(): SandboxFacts {
    this.#watch.reconcile();
    const { admission, operation, exit } = this.#ledger.record;
    return { running: this.#native.running, admission: admission.state, operation, exit };
  }
}
