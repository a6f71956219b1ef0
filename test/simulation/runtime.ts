/** The container of one sandbox: how it comes, what its directory holds, and how it ends. */
import type { SandboxFacts } from "../../src/sandbox/protocol.ts";
import type { Sandbox } from "./sandbox.ts";
import { type Container, type Killer, NO_FILES, type Surroundings } from "./surroundings.ts";

const KILL_LIMIT_MS = 3000;

export class Runtime {
  container: Container | null = null;
  exit: SandboxFacts["exit"] = null;
  /** Of whoever waits for the end of the container. */
  readonly mourners = new Set<() => void>();
  readonly #sandbox: Sandbox;
  readonly #around: Surroundings;
  #kill: Promise<boolean> | null = null;

  constructor(sandbox: Sandbox, around: Surroundings) {
    this.#sandbox = sandbox;
    this.#around = around;
  }

  launch(startId: string | null, specHash: string | null): void {
    const startedTime = this.#around.clock.now();
    this.container = { sandbox: this.#sandbox, startId, specHash, startedTime, ...UNUSED };
    this.exit = null;
    this.#around.containerStarted(this.container);
  }

  verify(): void {
    const { container } = this;
    if (container === null) return;
    const now = this.#around.clock.now();
    container.isVerified = true;
    container.verifiedTime = now;
    this.#around.containerVerified(container);
    const writeMs = this.#around.firstWriteMs();
    if (writeMs !== null) container.changesFromTime = now + writeMs;
  }

  /** What the directory holds by now. */
  filesOf(container: Container): number {
    if (this.#around.clock.now() >= container.changesFromTime) container.files = this.#around.newFiles();
    return container.files;
  }

  end(code: number | null, signalled: boolean, killer: Killer): void {
    const { container } = this;
    if (container === null) return;
    const time = this.#around.clock.now();
    this.#around.containerEnds(container, killer);
    this.container = null;
    container.endedTime = time;
    this.exit = { code, time, signalled };
    for (const tell of this.mourners) tell();
  }

  /** Whether nothing runs any more. Calls share one attempt. */
  teardown(killer: Killer): Promise<boolean> {
    if (this.#kill !== null) return this.#kill;
    const { container } = this;
    if (container === null) return Promise.resolve(true);
    const attempt = this.#killOnce(container, killer).finally(() => {
      if (this.#kill === attempt) this.#kill = null;
    });
    this.#kill = attempt;
    return attempt;
  }

  loseMemory(): void {
    this.#kill = null;
  }

  async #killOnce(container: Container, killer: Killer): Promise<boolean> {
    const isDeaf = this.#around.isDeaf(this.#sandbox);
    await this.#around.clock.sleep(isDeaf ? KILL_LIMIT_MS : this.#around.killMs());
    if (!isDeaf && this.container === container) this.end(137, false, killer);
    return this.container === null;
  }
}

const UNUSED = {
  activityTime: null,
  earlierActivityTime: null,
  endedTime: null,
  isVerified: false,
  verifiedTime: null,
  isCondemned: false,
  files: NO_FILES,
  changesFromTime: Number.POSITIVE_INFINITY,
};
