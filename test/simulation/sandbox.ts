/**
 * One sandbox: what `src/sandbox` keeps and does, as far as a controller can tell. Its facts become observations through the product's own
 * `interpret`.
 */
import type { AdmissionState, Answer, SandboxFacts, StartOperation, StartOrder } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import { within } from "./pauses.ts";
import { Runtime } from "./runtime.ts";
import { SandboxBackups } from "./sandbox-backups.ts";
import { Starts } from "./sandbox-starts.ts";
import type { Container, Surroundings } from "./surroundings.ts";

const RUN_END_LIMIT_MS = 10_000;

export class Sandbox {
  readonly doId: string;
  readonly sandboxId: string | null;
  readonly uid: string | null;
  fence: { readonly epoch: number; readonly incarnation: number } | null = null;
  admission: { readonly state: AdmissionState; readonly startId: string | null; readonly workspaceUid: string | null } = NOT_ADMITTED;
  operation: StartOperation | null = null;
  /** Of calls under way, broken where the memory is lost. */
  readonly breakers = new Set<() => void>();
  readonly runtime: Runtime;
  readonly starts: Starts;
  readonly backups: SandboxBackups;
  readonly #around: Surroundings;

  constructor(around: Surroundings, doId: string, sandboxId: string | null, uid: string | null) {
    this.#around = around;
    this.doId = doId;
    this.sandboxId = sandboxId;
    this.uid = uid;
    this.runtime = new Runtime(this, around);
    this.starts = new Starts(this, this.runtime, around);
    this.backups = new SandboxBackups(this, this.runtime, around);
  }

  get container(): Container | null {
    return this.runtime.container;
  }

  get run(): Starts["run"] {
    return this.starts.run;
  }

  /** Until its container answers or its deadline has passed, a start may bring a container up; one that was interrupted may be resumed. */
  isStarting(now: Instant): boolean {
    if (this.run !== null) return !this.run.isPreparing;
    const { operation, container } = this;
    const isOpen = operation?.state === "InProgress" || operation?.state === "Interrupted";
    return isOpen && operation.step === "Container" && container?.startId === operation.startId && now < operation.deadlineTime;
  }

  passFence(epoch: number, incarnation: number): "StaleEpoch" | "OtherIncarnation" | null {
    if (this.fence !== null && incarnation !== this.fence.incarnation) return "OtherIncarnation";
    if (this.fence !== null && epoch < this.fence.epoch) return "StaleEpoch";
    if (this.fence?.epoch !== epoch) this.fence = { epoch, incarnation };
    return null;
  }

  facts(): SandboxFacts {
    const { container, admission, operation } = this;
    return {
      running: container !== null,
      admission: admission.state,
      operation,
      exit: this.runtime.exit,
      startedTime: container?.startedTime ?? null,
      activityTime: container?.activityTime ?? null,
    };
  }

  observe(): Answer {
    this.starts.settle();
    return { accepted: true, facts: this.facts() };
  }

  async start(order: StartOrder, waitMs: number): Promise<Answer> {
    if (this.admission.state === "Destroyed") return { accepted: false, refusal: "Destroyed", facts: this.facts() };
    this.starts.settle();
    await within(this.#around.clock, waitMs, this.starts.begin(order));
    return { accepted: true, facts: this.facts() };
  }

  async stop(graceMs: number): Promise<Answer> {
    this.revoke();
    const { admission, container } = this;
    const stopMs = this.#around.stopMs();
    if (this.run !== null) await within(this.#around.clock, RUN_END_LIMIT_MS, this.starts.abort());
    else if (container !== null) {
      await this.#around.clock.sleep(Math.min(stopMs ?? graceMs, graceMs));
      if (this.container === container && this.admission === admission && stopMs !== null && stopMs <= graceMs)
        this.runtime.end(143, false, "stop");
    }
    if (this.admission === admission) {
      await this.runtime.teardown("stop");
      this.starts.settle();
    }
    return { accepted: true, facts: this.facts() };
  }

  async destroy(killer: "destroy" | "destroyOrphan" = "destroy"): Promise<Answer> {
    this.admission = { ...this.admission, state: "Destroyed" };
    const ended = this.starts.abort();
    await this.runtime.teardown(killer);
    await within(this.#around.clock, RUN_END_LIMIT_MS, ended);
    this.starts.settle();
    return { accepted: true, facts: this.facts() };
  }

  /** As an eviction or a deploy: the container goes on, and what was in memory is gone. */
  loseMemory(): void {
    this.runtime.loseMemory();
    this.backups.loseMemory();
    this.starts.loseMemory();
    for (const breaks of this.breakers) breaks();
    this.breakers.clear();
  }

  exit(code: number | null, signalled: boolean): void {
    const { run, container } = this;
    if (container === null) return;
    this.runtime.end(code, signalled, "itself");
    if (run?.startId === container.startId) {
      run.ended = true;
      run.wake();
    }
    if (this.admission.workspaceUid !== null) this.#around.poke(this.admission.workspaceUid);
  }

  /** Nobody ordered it. */
  startUnasked(): void {
    if (this.container === null) this.runtime.launch(null, null);
  }

  revoke(): void {
    if (this.admission.state === "Admitted") this.admission = { ...this.admission, state: "Revoked" };
  }
}

const NOT_ADMITTED = { state: "None", startId: null, workspaceUid: null } as const;
