import { randomBytes } from "node:crypto";
import type { ContainerProgram, EngineInstance } from "./contract.ts";
import type { ContainerProcess } from "./container-process.ts";

/** Created: known, never started. Refused: the platform had no instance for it. */
export type ContainerState = "Created" | "Refused" | "Running" | "Exited";

export interface ContainerIdentity {
  readonly doId: string;
  readonly className: string;
  readonly workerName: string;
}

/** A connection that ends or is cut with the container: a wait call, a relayed stream. */
export interface Attachment {
  /** The container exited. */
  exited(exitCode: number): void;
  /** The object loses contact while the container lives on. */
  cut(): void;
}

/** One app container, from its create call to its removal. It can be started once, as workerd does. */
export class Container {
  readonly dockerId = randomBytes(32).toString("hex");
  readonly name: string;
  readonly identity: ContainerIdentity;
  readonly image: string;
  readonly program: ContainerProgram;
  readonly environment: Readonly<Record<string, string>>;
  readonly root: string;

  state: ContainerState = "Created";
  ordinal = 0;
  startedTime = 0;
  endedTime = 0;
  exitCode: number | undefined;
  /** The main port accepts connections and the start delay is over. */
  listening = false;
  /** The object lost contact; it does not know that the container runs or comes up. */
  ghost = false;
  frozen = false;
  delayUntil = 0;
  process: ContainerProcess | undefined;
  /** Its process has been told to kill itself at an operation. */
  doomed = false;
  /** Set while its removal was asked for and it is not clear yet whether it is to be carried out. */
  leaving: Promise<void> | undefined;
  /** Container port -> local port, filled at the start of the process. */
  ports: ReadonlyMap<number, number> = new Map();

  readonly #attachments = new Set<Attachment>();
  readonly #waits = new Set<Attachment>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    name: string,
    identity: ContainerIdentity,
    image: string,
    program: ContainerProgram,
    environment: Readonly<Record<string, string>>,
    root: string,
  ) {
    this.name = name;
    this.identity = identity;
    this.image = image;
    this.program = program;
    this.environment = environment;
    this.root = root;
  }

  get running(): boolean {
    return this.state === "Running";
  }

  /** A ghost that has not come up answers nobody, and nobody can tell that it is there. */
  get visible(): boolean {
    return this.state !== "Refused" && this.leaving === undefined && !(this.ghost && this.process === undefined);
  }

  get mainPort(): number | undefined {
    const ports = Object.keys(this.program.ports).map(Number);
    return ports.length === 0 ? undefined : Math.min(...ports);
  }

  /** An object waits for its exit. */
  get watched(): boolean {
    return this.#waits.size > 0;
  }

  /** As attach, for a wait call. */
  watch(attachment: Attachment): () => void {
    this.#waits.add(attachment);
    const detach = this.attach(attachment);
    return () => {
      this.#waits.delete(attachment);
      detach();
    };
  }

  attach(attachment: Attachment): () => void {
    this.#attachments.add(attachment);
    return () => this.#attachments.delete(attachment);
  }

  cutAttachments(): void {
    for (const attachment of this.#attachments) attachment.cut();
    this.#attachments.clear();
    this.#waits.clear();
  }

  /** Runs the task after this long, unless the container has exited by then. */
  later(afterMs: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, afterMs);
    this.#timers.add(timer);
  }

  exit(exitCode: number, now: number): void {
    this.state = "Exited";
    this.exitCode = exitCode;
    this.endedTime = now;
    this.listening = false;
    this.ghost = false;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const attachment of this.#attachments) attachment.exited(exitCode);
    this.#attachments.clear();
  }

  describe(): EngineInstance {
    return {
      id: this.identity.doId,
      name: this.name,
      className: this.identity.className,
      state: this.running ? (this.listening ? "Running" : "Starting") : "Exited",
      startedTime: this.startedTime,
      ordinal: this.ordinal,
      ghost: this.ghost,
      frozen: this.frozen,
      environment: this.environment,
      root: this.root,
      ...(this.process === undefined ? {} : { pid: this.process.pid }),
      ...(this.exitCode === undefined ? {} : { exitCode: this.exitCode }),
    };
  }
}
