/**
 * The controller's backups: begun once each, joined, and answered again (invariants 6 and 13).
 *
 * 1. Written down as begun before anything is done, so that an object that lost its memory does not begin the same one again.
 * 2. Taken only from the container that the order's start restored and verified.
 * 3. Ended by a stop or a destroy as if nothing had run: neither of them waits for it.
 */
import { describeFailure } from "./container-errors.ts";
import { isHalfRestored } from "./half-restored.ts";
import type { Ledger } from "./ledger.ts";
import type { BackupResult } from "./no-wake-backup.ts";
import type { BackupOrder, BackupReport, OperationFailure } from "./protocol.ts";
import { settledWithin } from "./waiting.ts";

const KEY = "mooring:backup";

interface BackupRecord {
  readonly backupId: string;
  readonly report: BackupReport;
}

export interface BackupEffects {
  /** Takes it, without a start; never rejects for what happens to the container. */
  take(order: BackupOrder): Promise<BackupResult>;
  isRunning(): boolean;
  sync(): Promise<void>;
  /** Keeps the object alive for work that nobody awaits. */
  keepAlive(work: Promise<unknown>): void;
  /** Tells the controller that a backup ended. */
  announce(): void;
}

export class BackupOperations {
  readonly #storage: SyncKvStorage;
  readonly #ledger: Ledger;
  readonly #effects: BackupEffects;
  #live: { readonly backupId: string; readonly done: Promise<void> } | null = null;

  constructor(storage: SyncKvStorage, ledger: Ledger, effects: BackupEffects) {
    this.#storage = storage;
    this.#ledger = ledger;
    this.#effects = effects;
  }

  /** Begins or joins the backup, and reports what it is after `waitMs` or its end. */
  async run(order: BackupOrder, waitMs: number): Promise<BackupReport> {
    if (this.#live === null && this.#record?.backupId !== order.backupId) this.#begin(order);
    if (this.#live !== null && this.#live.backupId !== order.backupId) return failed("another backup is under way");
    await settledWithin(this.#live?.done ?? Promise.resolve(), waitMs);
    return this.#reportOf(order.backupId);
  }

  get #record(): BackupRecord | undefined {
    return this.#storage.get<BackupRecord>(KEY);
  }

  #begin(order: BackupOrder): void {
    const { backupId } = order;
    this.#write(backupId, { state: "InProgress" });
    const done = this.#perform(order).finally(() => {
      this.#live = null;
      this.#effects.announce();
    });
    this.#live = { backupId, done };
    this.#effects.keepAlive(done);
  }

  async #perform(order: BackupOrder): Promise<void> {
    let report: BackupReport;
    try {
      await this.#effects.sync();
      report = this.#absence(order) ?? this.#report(order, await this.#effects.take(order));
    } catch (error) {
      report = { state: "Failed", failure: describeFailure(error, null, {}) };
    }
    this.#write(order.backupId, report);
  }

  #report(order: BackupOrder, result: BackupResult): BackupReport {
    switch (result.status) {
      case "Completed":
        return { state: "Completed", objectId: result.backup.id, sizeBytes: result.sizeBytes };
      case "NotRunning":
      case "Empty":
        return { state: "Skipped", reason: result.status };
      case "RuntimeReplaced":
        return { state: "RuntimeReplaced" };
      case "Busy":
        return failed("another backup or restore of this sandbox is under way");
      case "Failed":
        // A stop refuses what is under way before the container has ended.
        return this.#isVouchedFor(order) ? { state: "Failed", failure: result.failure } : { state: "Skipped", reason: "NotRunning" };
    }
  }

  /** Why there is nothing to take, or null. */
  #absence(order: BackupOrder): BackupReport | null {
    if (!this.#effects.isRunning()) return { state: "Skipped", reason: "NotRunning" };
    return this.#isVouchedFor(order) ? null : { state: "Skipped", reason: "NotRestored" };
  }

  /** Whether what runs is what the order's start restored, set up and verified, and nobody has told it to go. */
  #isVouchedFor(order: BackupOrder): boolean {
    const { startId } = order;
    const { admission, operation, container, halfRestored } = this.#ledger.record;
    const isVerified = operation?.startId === startId && operation.state === "Succeeded" && !isHalfRestored(halfRestored, order);
    return isVerified && admission.state === "Admitted" && admission.startId === startId && container?.startId === startId;
  }

  /** An end that this memory has not seen is none that the backup came to. */
  #reportOf(backupId: string): BackupReport {
    const known = this.#record;
    if (known?.backupId !== backupId) return failed("another backup has been taken since");
    if (known.report.state !== "InProgress" || this.#live !== null) return known.report;
    const report: BackupReport = { state: "Interrupted" };
    this.#write(backupId, report);
    return report;
  }

  #write(backupId: string, report: BackupReport): void {
    this.#storage.put<BackupRecord>(KEY, { backupId, report });
  }
}

function failed(message: string): BackupReport {
  const failure: OperationFailure = { messages: [message], code: null, exitCode: null, retryAfterMs: null };
  return { state: "Failed", failure };
}
