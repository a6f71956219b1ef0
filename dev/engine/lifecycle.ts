import type { EngineEventType } from "./contract.ts";
import type { Container } from "./container.ts";
import { acceptsConnections, ContainerProcess } from "./container-process.ts";
import { drawFor, faultsOf, startVerdict } from "./faults.ts";
import type { Faults, ObjectFaults } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { OperationDeaths } from "./operation-deaths.ts";
import { takePorts } from "./port-pool.ts";
import { Refusals } from "./refusals.ts";
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
  readonly deaths = new OperationDeaths();
  #faults: Faults = {};
  #inventoryFailures = 0;
  #flakyDraws = 0;
  #admitted = 0;
  readonly #refusals = new Refusals();
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
    this.#inventoryFailures = 0;
    this.#refusals.reset(faults);
    this.deaths.reset(faults);
    this.#announceDeaths();
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
    if (this.#refusals.refuses(container, this.#options.containers())) {
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

  dieMidOperation(container: Container, exitCode: number): void {
    this.deaths.diedAtRequest();
    this.#diedMidOperation(container);
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
    this.deaths.announce(container);
    void this.#awaitExit(container, container.process);
    if (this.faultsOf(container).hangStart !== true) void this.#awaitListening(container);
  }

  async #awaitExit(container: Container, process: ContainerProcess): Promise<void> {
    const exitCode = await process.exited;
    this.#options.state.forgetProcess(container.identity.doId);
    if (this.deaths.diedAtOperation(container)) {
      this.#diedMidOperation(container);
      this.#announceDeaths();
    }
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

  #diedMidOperation(container: Container): void {
    this.#options.ledger.count("diedMidOperation");
    this.#event("DiedMidOperation", container);
  }

  #announceDeaths(): void {
    for (const container of this.#options.containers()) if (container.running) this.deaths.announce(container);
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
