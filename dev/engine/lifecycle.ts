import type { EngineEventType } from "./contract.ts";
import type { Container } from "./container.ts";
import { acceptsConnections, ContainerProcess } from "./container-process.ts";
import { drawFor, faultsOf, startVerdict } from "./faults.ts";
import type { DieMidOperationFault, Faults, ObjectFaults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { takePorts } from "./port-pool.ts";
import { ROOT_VARIABLE } from "./state-directory.ts";
import type { StateDirectory } from "./state-directory.ts";

const LISTEN_POLL_MS = 15;
export const KILLED = 137;

export type StartAnswer =
  | { readonly kind: "Started" | "AlreadyStarted" | "Refused" }
  | { readonly kind: "Failed"; readonly message: string };

export interface LifecycleOptions {
  readonly seed: number;
  readonly ledger: Ledger;
  readonly state: StateDirectory;
  /** All containers there are, for the faults that depend on the others. */
  readonly containers: () => readonly Container[];
}

/** Starts and ends containers, with the faults that befall them. */
export class Lifecycle {
  #faults: Faults = {};
  #midOperationDeaths = 0;
  #inventoryFailures = 0;
  #flakyDraws = 0;
  #admitted = 0;
  readonly #refusals = new Map<string, number>();
  readonly #options: LifecycleOptions;

  constructor(options: LifecycleOptions) {
    this.#options = options;
  }

  get faults(): Faults {
    return this.#faults;
  }

  /** Limits of the form "the first n" begin anew. */
  set faults(faults: Faults) {
    this.#faults = faults;
    this.#midOperationDeaths = 0;
    this.#inventoryFailures = 0;
    this.#refusals.clear();
  }

  faultsOf(container: Container): ObjectFaults {
    return faultsOf(this.faults, container.identity.doId);
  }

  async start(container: Container): Promise<StartAnswer> {
    if (container.running) return { kind: "AlreadyStarted" };
    const { failStart } = this.faultsOf(container);
    if (failStart !== undefined) {
      this.#options.ledger.count("failedStarts");
      this.#event("StartFailed", container);
      return { kind: "Failed", message: failStart === "NoSuchImage" ? `No such image: ${container.image}` : failStart.message };
    }
    if (this.#refuses(container)) {
      container.state = "Refused";
      this.#options.ledger.count("refused");
      this.#event("StartRefused", container);
      return { kind: "Refused" };
    }
    await this.#admit(container);
    return { kind: "Started" };
  }

  /** Resolves when the container is dead. */
  async end(container: Container, exitCode: number): Promise<void> {
    if (!container.running) return;
    if (container.process === undefined) this.#exited(container, exitCode);
    else await container.process.end(exitCode);
  }

  exitAfter(container: Container, afterMs: number, exitCode: number): void {
    container.later(afterMs, () => void this.end(container, exitCode));
  }

  /** The request that kills this container, while the fault has deaths left. */
  dieMidOperationRule(container: Container): DieMidOperationFault | undefined {
    const rule = this.faults.dieMidOp;
    if (rule === undefined || (rule.doId !== undefined && rule.doId !== container.identity.doId)) return undefined;
    return this.#midOperationDeaths >= (rule.times ?? Infinity) ? undefined : rule;
  }

  dieMidOperation(container: Container, exitCode: number): void {
    this.#midOperationDeaths += 1;
    this.#options.ledger.count("diedMidOperation");
    this.#event("DiedMidOperation", container);
    void this.end(container, exitCode);
  }

  /** Its object has found it: it is no ghost any more. */
  adopt(container: Container): void {
    container.ghost = false;
  }

  freeze(container: Container): void {
    container.frozen = true;
    container.process?.stop();
  }

  thaw(container: Container): void {
    container.frozen = false;
    container.process?.resume();
  }

  refusesImage({ doId }: { readonly doId: string }): boolean {
    return faultsOf(this.faults, doId).failStart === "NoSuchImage";
  }

  /** Whether the call at hand is one of those that fail for no reason of its own. */
  flakes(): boolean {
    const { flaky } = this.faults;
    if (flaky === undefined) return false;
    this.#flakyDraws += 1;
    return drawFor(this.#options.seed, this.#flakyDraws, "flaky") < flaky.share;
  }

  /** Null while the inventory works. */
  inventoryFailure(): { readonly status: number } | null {
    if (this.flakes()) return { status: 500 };
    const rule = this.faults.inventory;
    if (rule === undefined || this.#inventoryFailures >= (rule.times ?? Infinity)) return null;
    this.#inventoryFailures += 1;
    return { status: rule.status };
  }

  markListening(container: Container): void {
    if (!container.running || container.listening) return;
    container.listening = true;
    this.#options.ledger.startEnded(container);
    this.#event("Listening", container);
  }

  async #admit(container: Container): Promise<void> {
    const now = Date.now();
    const others = this.#options.containers().filter((other) => other !== container && other.running && !other.listening);
    const own = this.faultsOf(container);
    this.#admitted += 1;
    const verdict = startVerdict(this.faults, own, {
      seed: this.#options.seed,
      ordinal: this.#admitted,
      startingSince: others.map((other) => other.startedTime),
      now,
    });
    container.state = "Running";
    container.ordinal = this.#admitted;
    container.startedTime = now;
    container.delayUntil = now + verdict.delayMs;
    this.#options.ledger.startBegan(container, container.identity.doId);
    this.#event("StartAccepted", container);
    if (verdict.killAfterMs !== null) {
      container.later(verdict.killAfterMs, () => {
        this.#options.ledger.count("killed");
        void this.end(container, KILLED);
      });
    }
    if (own.exit !== undefined) this.exitAfter(container, own.exit.afterMs, own.exit.code);
    if (verdict.ghost === null) return this.#run(container);
    this.#options.ledger.count("ghosts");
    container.later(verdict.ghost.contactLostAfterMs, () => this.#loseContact(container));
    container.later(verdict.ghost.upAfterMs, () => void this.#run(container));
  }

  #loseContact(container: Container): void {
    container.ghost = true;
    this.#event("ContactLost", container);
    container.cutAttachments();
  }

  async #run(container: Container): Promise<void> {
    const names = Object.entries(container.program.ports);
    const ports = await takePorts(names.length);
    // Finding free ports takes a moment, in which the container may have been ended.
    if (!container.running) return;
    container.ports = new Map(names.map(([port], index) => [Number(port), ports[index] ?? 0]));
    const { state } = this.#options;
    const { doId } = container.identity;
    container.process = new ContainerProcess({
      command: container.program.command,
      environment: {
        PATH: process.env["PATH"] ?? "/usr/bin:/bin",
        ...container.program.env,
        ...container.environment,
        ...Object.fromEntries(names.map(([port, name]) => [name, String(container.ports.get(Number(port)))])),
        [ROOT_VARIABLE]: state.freshRoot(doId),
        MOORING_CONTAINER_ID: doId,
      },
      directory: container.root,
      logFile: state.logOf(doId),
    });
    state.rememberProcess(doId, container.process.pid);
    void this.#awaitExit(container, container.process);
    if (this.faultsOf(container).hangStart !== true) void this.#awaitListening(container);
  }

  async #awaitExit(container: Container, process: ContainerProcess): Promise<void> {
    const exitCode = await process.exited;
    this.#options.state.forgetProcess(container.identity.doId);
    this.#exited(container, exitCode);
  }

  async #awaitListening(container: Container): Promise<void> {
    const local = container.mainPort === undefined ? undefined : container.ports.get(container.mainPort);
    while (container.running && !container.listening) {
      const wait = Math.max(container.delayUntil - Date.now(), 0);
      if (wait === 0 && (local === undefined || (await acceptsConnections(local)))) return this.markListening(container);
      await new Promise((resolve) => setTimeout(resolve, wait || LISTEN_POLL_MS));
    }
  }

  #exited(container: Container, exitCode: number): void {
    if (!container.running) return;
    container.exit(exitCode, Date.now());
    this.#options.ledger.startEnded(container);
    this.#event("Exited", container);
  }

  #refuses(container: Container): boolean {
    const rule = this.faults.refuseAdmission;
    if (rule === undefined) return false;
    const others = this.#options.containers().filter((other) => other !== container && other.running).length;
    const { doId } = container.identity;
    const refusals = this.#refusals.get(doId) ?? 0;
    if (others < rule.whileRunning || refusals >= rule.times) return false;
    this.#refusals.set(doId, refusals + 1);
    return true;
  }

  #event(type: EngineEventType, container: Container): void {
    const { doId, className } = container.identity;
    this.#options.ledger.event({
      type,
      doId,
      className,
      ...(container.ordinal === 0 ? {} : { ordinal: container.ordinal }),
      ...(type !== "Exited" || container.exitCode === undefined ? {} : { exitCode: container.exitCode }),
    });
  }
}
