/** The backups of one sandbox: `src/sandbox/backup-operations.ts`, and what the SDK leaves in the bucket. */
import { BACKUP_DEADLINE, type BackupOrder, type BackupReport } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import { pause, within } from "./pauses.ts";
import type { Runtime } from "./runtime.ts";
import type { Sandbox } from "./sandbox.ts";
import { failureOf } from "./start-failures.ts";
import { type Container, type Course, NO_FILES, type Surroundings } from "./surroundings.ts";

interface Live {
  readonly order: BackupOrder;
  readonly deadlineTime: Instant;
  wake: () => void;
  done: Promise<void>;
}

interface Contents {
  readonly objectId: string;
  readonly files: number;
}

/** From the end of the container until the answer, at most. */
const OUTCOME_GRACE_MS = 300;
/** After a limit or a reset, what was under way may go on for so long. */
const AFTERMATH_MS = 60_000;

export class SandboxBackups {
  readonly #sandbox: Sandbox;
  readonly #runtime: Runtime;
  readonly #around: Surroundings;
  #live: Live | null = null;
  /** Of the last one that was begun; persisted. */
  #record: { readonly backupId: string; readonly report: BackupReport } | null = null;

  constructor(sandbox: Sandbox, runtime: Runtime, around: Surroundings) {
    this.#sandbox = sandbox;
    this.#runtime = runtime;
    this.#around = around;
    runtime.mourners.add(() => this.#live?.wake());
  }

  async run(order: BackupOrder, waitMs: number): Promise<BackupReport> {
    if (this.#live === null && this.#record?.backupId !== order.backupId) this.#begin(order);
    if (this.#live !== null && this.#live.order.backupId !== order.backupId) return failed("another backup is under way");
    await within(this.#around.clock, waitMs, this.#live?.done ?? Promise.resolve());
    return this.#reportOf(order.backupId);
  }

  loseMemory(): void {
    const live = this.#live;
    this.#live = null;
    live?.wake();
  }

  #begin(order: BackupOrder): void {
    const deadlineTime = this.#around.clock.now() + order.timeoutMs;
    const live: Live = { order, deadlineTime, wake: () => {}, done: Promise.resolve() };
    this.#record = { backupId: order.backupId, report: { state: "InProgress" } };
    this.#live = live;
    live.done = this.#perform(live);
  }

  async #perform(live: Live): Promise<void> {
    const { order } = live;
    const report = this.#absence(order) ?? (await this.#take(live));
    if (this.#live !== live) return;
    this.#live = null;
    this.#record = { backupId: order.backupId, report };
    const { workspaceUid } = this.#sandbox.admission;
    if (workspaceUid !== null) this.#around.poke(workspaceUid);
  }

  #absence({ startId }: BackupOrder): BackupReport | null {
    const { container } = this.#runtime;
    if (container === null) return { state: "Skipped", reason: "NotRunning" };
    if (this.#around.backsUpAnything()) return null;
    const { admission, operation } = this.#sandbox;
    const isVerified = operation?.startId === startId && operation.state === "Succeeded" && container.startId === startId;
    const isVouchedFor = isVerified && admission.state === "Admitted" && admission.startId === startId;
    return isVouchedFor ? null : { state: "Skipped", reason: "NotRestored" };
  }

  async #take(live: Live): Promise<BackupReport> {
    const { clock, bucket } = this.#around;
    const { container } = this.#runtime;
    if (container === null || clock.now() >= live.deadlineTime) return OVERDUE;
    const readTime = clock.now();
    const files = this.#runtime.filesOf(container);
    if (files === NO_FILES) return { state: "Skipped", reason: "Empty" };
    const objectId = bucket.newObjectId();
    const course = this.#around.backupCourse();
    const ended = await this.#archive(live, container, course, { objectId, files });
    if (ended !== null) {
      this.#leave(live, container, { objectId, files });
      return ended;
    }
    bucket.putMetadata(objectId);
    this.#around.backupTaken({ backupId: live.order.backupId, objectId, container, files, readTime });
    return { state: "Completed", objectId, sizeBytes: 1 };
  }

  /** Null where the archive is there, and the metadata may follow. */
  async #archive(live: Live, container: Container, { kind, ms }: Course, { objectId, files }: Contents): Promise<BackupReport | null> {
    const ended = await this.#step(live, container, kind === "Hangs" ? Number.POSITIVE_INFINITY : ms / 2);
    if (ended !== null) return ended;
    this.#around.bucket.putArchive(objectId, files);
    return kind === "Fails" ? failed("Failed to create backup archive") : this.#step(live, container, ms / 2);
  }

  /** Null where it went through: neither has the container ended, nor the memory been lost, nor the time run out. */
  async #step(live: Live, container: Container, ms: number): Promise<BackupReport | null> {
    const { clock } = this.#around;
    if (this.#runtime.container === container) await this.#pause(live, Math.min(ms, live.deadlineTime - clock.now()));
    if (this.#live !== live) return OVERDUE;
    if (this.#runtime.container !== container) {
      await this.#pause(live, OUTCOME_GRACE_MS);
      return this.#runtime.container === null ? { state: "Skipped", reason: "NotRunning" } : { state: "RuntimeReplaced" };
    }
    return clock.now() >= live.deadlineTime ? OVERDUE : null;
  }

  /** The SDK removes what is of no use, or does not; and what was under way may yet come to something, that is nobody's by then. */
  #leave(live: Live, container: Container, { objectId, files }: Contents): void {
    const { clock, bucket } = this.#around;
    if (this.#around.happensUnseen()) bucket.removeAll(objectId);
    if (this.#runtime.container !== container || !this.#around.happensUnseen()) return;
    clock.after(AFTERMATH_MS / 2, () => {
      if (this.#runtime.container !== container) return;
      bucket.putArchive(objectId, files);
      if (this.#live !== live && this.#around.happensUnseen()) bucket.putMetadata(objectId);
    });
  }

  #reportOf(backupId: string): BackupReport {
    const known = this.#record;
    if (known?.backupId !== backupId) return failed("another backup has been taken since");
    if (known.report.state !== "InProgress" || this.#live !== null) return known.report;
    this.#record = { backupId, report: { state: "Interrupted" } };
    return { state: "Interrupted" };
  }

  #pause(live: Live, ms: number): Promise<void> {
    return pause(this.#around.clock, ms, (wake) => {
      live.wake = wake;
    });
  }
}

function failed(message: string): BackupReport {
  return { state: "Failed", failure: failureOf(message) };
}

const OVERDUE: BackupReport = {
  state: "Failed",
  failure: { ...failureOf("the backup was not ready before its deadline"), code: BACKUP_DEADLINE },
};
