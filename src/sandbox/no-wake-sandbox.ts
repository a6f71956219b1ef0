/**
 * The SDK's class with a backup that never starts a container. Needs no controller: subclass it instead of `Sandbox`.
 *
 * Everything else does what it did before, except that backups and restores of one sandbox really take turns.
 */
import { Sandbox, type BackupOptions, type DirectoryBackup } from "@cloudflare/sandbox";
import { removeBackup } from "../backup-objects.ts";
import { type BackupBindings, isEmptyArchive, readMetadata } from "./backup-objects.ts";
import { BackupTurns } from "./backup-turns.ts";
import { isEmptyDirectory } from "./container-commands.ts";
import { describeFailure } from "./container-errors.ts";
import { guardClient } from "./guarded-client.ts";
import { type BackupResult, NoWakeBackup, OVERDUE } from "./no-wake-backup.ts";
import { NoWakeFence } from "./no-wake-fence.ts";
import { refusalResponse } from "./refusal.ts";
import { Renewals } from "./renewals.ts";
import { containerOf, replaceContainer } from "./replaced-methods.ts";

const SERVICE_UNAVAILABLE = 503;

/** Of the SDK's own, which a subclass is not shown. */
interface Inner {
  readonly inflightRequests: number;
  /** When its idle limit is reached. */
  sleepAfterMs: number;
  /** What its own queue waits for. */
  backupInProgress: Promise<unknown>;
}

export class NoWakeSandbox<Env = unknown> extends Sandbox<Env> {
  readonly #fence: NoWakeFence;
  readonly #renewals: Renewals;
  readonly #turns: BackupTurns;

  constructor(ctx: DurableObjectState<{}>, env: Env) {
    const native = containerOf(ctx);
    const turns = new BackupTurns(() => native.running);
    const fence = new NoWakeFence(native, () => turns.containerStarted());
    replaceContainer(ctx, fence.container);
    super(ctx, env);
    this.#fence = fence;
    this.#turns = turns;
    this.#renewals = new Renewals(fence, () => Date.now());
    guardClient(this, () => fence.refusal(), this.#renewals);
  }

  /**
   * Takes a backup of the container that runs. Options as for `createBackup`; `limitMs` is how long anybody waits for it.
   *
   * - Starts no container: not where none runs, not where it dies in the middle, not in the SDK's clean-up. Other callers still may.
   * - `NotRunning`: at once where nothing runs, and within a second where the container ends in the middle. Nothing was kept.
   * - `RuntimeReplaced`: another container was started meanwhile. Nothing was kept, as far as the bucket lets it be removed.
   * - `Completed`: the archive and its metadata are in the bucket, and all of it comes from the container that ran at the call.
   * - `Empty`: the directory does not exist or has no entry, or none that `excludes` leaves. Nothing was kept, so an empty disk never passes
   *   for a good backup.
   * - `Busy`: another backup or restore of this sandbox is under way. Nothing was done.
   * - `Failed`: anything else, a passed limit included. Never throws for what happens to the container.
   * - Renews no idle limit (`sleepAfter`): a container that only backups touch still goes to sleep, if need be in the middle of one.
   *
   * What a backup has not finished at its answer goes on only to be cleaned up, and keeps its turn until then, or until another container
   * is started. On every transport. Over those that keep a connection, a call that joins the one a backup is opening, while the container
   * dies, fails instead of starting one.
   */
  async createBackupIfRunning(options: BackupOptions, limitMs = Infinity): Promise<BackupResult> {
    if (!this.#fence.container.running) return { status: "NotRunning" };
    if (this.#turns.taken) return { status: "Busy" };
    if (limitMs <= 0) return OVERDUE;
    const hold = this.#fence.hold();
    const backup = new NoWakeBackup({
      hold,
      limitMs,
      bucket: this.#bucket,
      archive: () => this.#fence.within(hold, () => this.#archive(options)),
      describe: (error) => describeFailure(error, null, this.secrets()),
    });
    this.ctx.waitUntil(this.#inTurn(() => this.#renewals.backup(this.#inner.inflightRequests === 0, () => backup.run())));
    return backup.answer;
  }

  override async createBackup(options: BackupOptions): Promise<DirectoryBackup> {
    return this.#inTurn(() => super.createBackup(options));
  }

  override async restoreBackup(...backup: Parameters<Sandbox["restoreBackup"]>): ReturnType<Sandbox["restoreBackup"]> {
    return this.#inTurn(() => super.restoreBackup(...backup));
  }

  override async fetch(request: Request): Promise<Response> {
    const refusal = this.#fence.refusal();
    return refusal === null ? this.#renewals.call(() => super.fetch(request)) : refusalResponse(refusal);
  }

  override async containerFetch(...request: Parameters<Sandbox["containerFetch"]>): Promise<Response> {
    const refusal = this.#fence.refusal();
    if (refusal !== null) return refusalResponse(refusal);
    const response = await this.#renewals.call(() => super.containerFetch(...request));
    if (response.status !== SERVICE_UNAVAILABLE) return response;
    // The SDK reports a start that was refused as 503, which its client would repeat.
    const refusedSince = this.#fence.refusal();
    return refusedSince === null ? response : refusalResponse(refusedSince);
  }

  override async start(...options: Parameters<Sandbox["start"]>): Promise<void> {
    this.#fence.assertHolds();
    // What follows in the SDK looks again later, and would start.
    if (!this.#fence.isWithin) await this.#renewals.call(() => super.start(...options));
  }

  override async startAndWaitForPorts(...options: Parameters<Sandbox["startAndWaitForPorts"]>): Promise<void> {
    this.#fence.assertHolds();
    if (!this.#fence.isWithin) await this.#renewals.call(() => super.startAndWaitForPorts(...options));
  }

  override renewActivityTimeout(): void {
    if (this.#renewals.isOfBackup) this.#inner.sleepAfterMs = this.#renewals.deferred(this.#inner.sleepAfterMs);
    else super.renewActivityTimeout();
  }

  /** Values that no message may carry. */
  protected secrets(): Readonly<Record<string, string>> {
    const bindings = Object.entries(this.env as object).filter((binding): binding is [string, string] => typeof binding[1] === "string");
    return { ...Object.fromEntries(bindings), ...this.envVars };
  }

  get #bucket(): R2Bucket | undefined {
    return (this.env as BackupBindings).BACKUP_BUCKET;
  }

  get #inner(): Inner {
    return this as unknown as Inner;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(() => {
      this.#inner.backupInProgress = Promise.resolve();
      return work();
    });
  }

  async #archive(options: BackupOptions): Promise<BackupResult> {
    if (await isEmptyDirectory(this.client, options.dir)) return { status: "Empty" };
    const backup = await super.createBackup(options);
    const bucket = this.#bucket;
    const metadata = bucket === undefined ? null : await readMetadata(bucket, backup.id);
    if (bucket === undefined || metadata === null) throw new Error("the backup's metadata is not in the bucket");
    if (await isEmptyArchive(bucket, backup.id)) {
      await removeBackup(bucket, backup.id);
      return { status: "Empty" };
    }
    return { status: "Completed", backup, sizeBytes: metadata.sizeBytes };
  }
}
