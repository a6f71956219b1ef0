import { randomBytes } from "node:crypto";
import { Container } from "./container.ts";
import type { ContainerIdentity } from "./container.ts";
import type { ContainerProgram } from "./contract.ts";
import type { ContainerName } from "./container-name.ts";
import { Ingress } from "./ingress.ts";
import type { Ledger } from "./ledger.ts";
import { KILLED } from "./lifecycle.ts";
import type { Lifecycle } from "./lifecycle.ts";
import { RemovalJudge } from "./removal-judge.ts";
import type { Removal } from "./removal-judge.ts";
import type { StateDirectory } from "./state-directory.ts";

export interface Sidecar {
  readonly dockerId: string;
  readonly name: string;
  readonly image: string;
  ingress: Ingress | undefined;
}

/** What the engine holds for one Durable Object: at most one app container and its sidecar. */
export interface Holding {
  readonly identity: ContainerIdentity;
  container: Container | undefined;
  /** The last container that was removed; the inventory still lists it. */
  removed: Container | undefined;
  sidecar: Sidecar | undefined;
}

export interface RegistryOptions {
  readonly image: (reference: string) => ContainerProgram | null;
  readonly ledger: Ledger;
  readonly state: StateDirectory;
}

export interface CreateRequest {
  readonly name: string;
  readonly image: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly workerName: string;
}

export type CreateAnswer = { readonly kind: "Created"; readonly dockerId: string } | { readonly kind: "Exists" | "NoSuchImage" };

/**
 * Containers by the Durable Object they belong to. Class and DO id decide; the session in a name is ignored, so that an object
 * finds its container again when workerd was killed and another session took over.
 */
export class Registry {
  readonly #holdings = new Map<string, Holding>();
  readonly #judge = new RemovalJudge();
  readonly #options: RegistryOptions;
  readonly #lifecycle: () => Lifecycle;

  constructor(options: RegistryOptions, lifecycle: () => Lifecycle) {
    this.#options = options;
    this.#lifecycle = lifecycle;
  }

  find(name: ContainerName): Holding | undefined {
    return this.#holdings.get(keyOf(name));
  }

  /** The app container of an object, for callers that know no class. */
  byObject(doId: string): Container | undefined {
    const held = this.containers().filter((container) => container.identity.doId === doId);
    return held.find((container) => container.running) ?? held[0];
  }

  containers(): readonly Container[] {
    return [...this.#holdings.values()].flatMap((holding) => holding.container ?? []);
  }

  /** The newest container of each object, removed ones included. */
  newestContainers(): readonly Container[] {
    return [...this.#holdings.values()].flatMap((holding) => holding.container ?? holding.removed ?? []);
  }

  async create(parsed: ContainerName, request: CreateRequest): Promise<CreateAnswer> {
    const { name, image, environment } = request;
    const holding = this.#hold(parsed, request.workerName);
    if (parsed.role === "Sidecar") {
      this.#judge.sidecarCreated(keyOf(parsed));
      if (holding.sidecar !== undefined) return { kind: "Exists" };
      holding.sidecar = { dockerId: randomBytes(32).toString("hex"), name, image, ingress: undefined };
      return { kind: "Created", dockerId: holding.sidecar.dockerId };
    }
    if (holding.container?.leaving !== undefined) await this.#settleRemoval(keyOf(parsed), holding.container);
    if (holding.container !== undefined) return { kind: "Exists" };
    const program = this.#options.image(image);
    if (program === null) return { kind: "NoSuchImage" };
    const root = this.#options.state.rootOf(parsed.doId);
    holding.container = new Container(name, holding.identity, image, program, environment, root);
    return { kind: "Created", dockerId: holding.container.dockerId };
  }

  /** Returns false when it runs already. */
  async startSidecar(holding: Holding, sidecar: Sidecar): Promise<boolean> {
    if (sidecar.ingress !== undefined) return false;
    sidecar.ingress = await Ingress.open({
      doId: holding.identity.doId,
      ledger: this.#options.ledger,
      lifecycle: this.#lifecycle(),
      container: () => holding.container,
    });
    return true;
  }

  /** The sidecar of a running container stays: an object that comes back requires it. */
  async deleteSidecar(parsed: ContainerName, holding: Holding): Promise<void> {
    this.#judge.sidecarDeleted(keyOf(parsed));
    if (holding.container?.running === true) return;
    const { sidecar } = holding;
    holding.sidecar = undefined;
    await sidecar?.ingress?.close();
  }

  /** Settles first whether the container is still there for an object that came back. */
  async inspected(parsed: ContainerName, container: Container): Promise<void> {
    this.#judge.inspected(keyOf(parsed));
    await container.leaving;
  }

  removalAwaited(parsed: ContainerName): void {
    this.#judge.removalAwaited(keyOf(parsed));
  }

  /** May answer before the container is gone: what the delete means can depend on the calls that follow it. */
  async deleteContainer(parsed: ContainerName, holding: Holding, container: Container): Promise<void> {
    const key = keyOf(parsed);
    if (container.leaving !== undefined) return this.#settleRemoval(key, container);
    if (!container.running) return this.#remove(holding, container);
    const removal = await this.#judge.appDeleted(key, () => container.watched);
    if (removal !== "Undecided") return this.#carryOut(removal, holding, container);
    container.leaving = this.#judge.verdict(key).then((verdict) => {
      container.leaving = undefined;
      return this.#carryOut(verdict, holding, container);
    });
  }

  async #settleRemoval(key: string, container: Container): Promise<void> {
    this.#judge.createdOrDeletedAgain(key);
    await container.leaving;
  }

  async #carryOut(removal: Removal, holding: Holding, container: Container): Promise<void> {
    const { doId, className } = container.identity;
    if (!container.running) return this.#remove(holding, container);
    const type = removal === "Eviction" ? "KeptAfterEviction" : "Destroyed";
    this.#options.ledger.count(removal === "Eviction" ? "keptAfterEviction" : "destroyed");
    this.#options.ledger.event({ type, doId, className, ordinal: container.ordinal });
    if (removal === "Eviction") return;
    await this.#lifecycle().end(container, KILLED);
    this.#remove(holding, container);
  }

  #remove(holding: Holding, container: Container): void {
    if (holding.container !== container) return;
    holding.container = undefined;
    holding.removed = container;
    this.#options.state.removeRoot(container.identity.doId);
  }

  async close(): Promise<void> {
    await Promise.all(this.containers().map((container) => this.#lifecycle().end(container, KILLED)));
    await Promise.all([...this.#holdings.values()].map(async (holding) => holding.sidecar?.ingress?.close()));
    for (const container of this.containers()) this.#options.state.removeRoot(container.identity.doId);
    this.#holdings.clear();
  }

  #hold(parsed: ContainerName, workerName: string): Holding {
    const key = keyOf(parsed);
    const known = this.#holdings.get(key);
    if (known !== undefined) return known;
    const identity = { doId: parsed.doId, className: parsed.className, workerName };
    const holding: Holding = { identity, container: undefined, removed: undefined, sidecar: undefined };
    this.#holdings.set(key, holding);
    return holding;
  }
}

function keyOf(name: ContainerName): string {
  return `${name.className}/${name.doId}`;
}
