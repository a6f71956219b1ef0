/** The backups of one sandbox of the fake world, as `src/sandbox/protocol.ts` says. */
import type { BackupOrder, BackupReport } from "../../src/sandbox/protocol.ts";
import type { FakeWorld, RunningContainer } from "./fake-fleet.ts";
import { failureOf, within } from "./fake-sandbox-parts.ts";
import type { WorldClock } from "./fake-fleet.ts";

interface Taking {
  readonly backupId: string;
  /** Null once the memory it ran in is lost. */
  done: Promise<void> | null;
  report: BackupReport;
}

export interface BackupSubject {
  readonly uid: string;
  /** The container whose start was verified; null while none runs. */
  verified(): RunningContainer | null;
  running(): RunningContainer | null;
}

export class FakeBackups {
  readonly #world: FakeWorld;
  readonly #clock: WorldClock;
  readonly #subject: BackupSubject;
  #taking: Taking | null = null;

  constructor(world: FakeWorld, clock: WorldClock, subject: BackupSubject) {
    this.#world = world;
    this.#clock = clock;
    this.#subject = subject;
  }

  async take(order: BackupOrder, waitMs: number): Promise<BackupReport> {
    const known = this.#taking;
    const taking = known?.backupId === order.backupId ? known : this.#begin(order);
    if (taking.done !== null) await within(this.#clock, waitMs, taking.done);
    else if (taking.report.state === "InProgress") taking.report = { state: "Interrupted" };
    return taking.report;
  }

  loseMemory(): void {
    if (this.#taking !== null) this.#taking.done = null;
  }

  #begin(order: BackupOrder): Taking {
    const taking: Taking = { backupId: order.backupId, done: null, report: { state: "InProgress" } };
    this.#taking = taking;
    taking.done = this.#perform(taking, order);
    return taking;
  }

  async #perform(taking: Taking, order: BackupOrder): Promise<void> {
    const container = this.#subject.verified();
    if (container === null || container.startId !== order.startId) {
      taking.report = { state: "Skipped", reason: this.#subject.running() === null ? "NotRunning" : "NotRestored" };
      return;
    }
    const { uid } = this.#subject;
    const script = this.#world.script(uid);
    this.#world.backupsBegun.push({ uid, backupId: order.backupId, time: this.#clock.now() });
    const files = container.disk.files;
    await this.#clock.sleep(Math.min(script.backupMs, order.timeoutMs));
    // Whatever ran in a memory that is lost goes on nowhere.
    if (this.#taking !== taking || taking.done === null) return;
    taking.report = this.#outcome(order, container, files);
    taking.done = null;
    this.#world.onEvent(uid);
  }

  #outcome(order: BackupOrder, container: RunningContainer, files: string): BackupReport {
    const script = this.#world.script(this.#subject.uid);
    if (script.backupMs > order.timeoutMs) return { state: "Failed", failure: { ...failureOf("too slow"), code: "BACKUP_DEADLINE" } };
    if (this.#subject.running() === null) return { state: "Skipped", reason: "NotRunning" };
    if (this.#subject.running() !== container) return { state: "RuntimeReplaced" };
    const error = script.backupError(this.#world.backupsBegun.length);
    if (error !== null) return { state: "Failed", failure: failureOf(error) };
    if (files === "") return { state: "Skipped", reason: "Empty" };
    const objectId = this.#world.newObjectId();
    this.#world.bucket.put(objectId, files);
    return { state: "Completed", objectId, sizeBytes: files.length };
  }
}
