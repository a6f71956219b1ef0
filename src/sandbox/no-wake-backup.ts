/**
 * One backup of one container, from its begin to its answer and to its real end (invariant 6).
 *
 * 1. It is answered once, by whichever comes first: the SDK, the end of the container and a short grace, or the limit.
 * 2. An archive that is ready only after the answer, or that another container may have had a hand in, is nobody's and is removed.
 */
import type { DirectoryBackup } from "@cloudflare/sandbox";
import { log } from "../log.ts";
import { removeBackup } from "../backup-objects.ts";
import { messageOf } from "./container-errors.ts";
import type { Hold } from "./no-wake-fence.ts";
import { BACKUP_DEADLINE, type OperationFailure } from "./protocol.ts";
import { holdsWithin } from "./waiting.ts";

/** Plain data. `Busy`: another backup or restore of the same sandbox is under way. `Empty`: the directory has no entry, or is not there. */
export type BackupResult =
  | { readonly status: "Completed"; readonly backup: DirectoryBackup; readonly sizeBytes: number }
  | { readonly status: "NotRunning" }
  | { readonly status: "RuntimeReplaced" }
  | { readonly status: "Empty" }
  | { readonly status: "Busy" }
  | { readonly status: "Failed"; readonly failure: OperationFailure };

export interface BackupWork {
  readonly hold: Hold;
  readonly limitMs: number;
  readonly bucket: R2Bucket | undefined;
  /** Within the fence. */
  archive(): Promise<BackupResult>;
  describe(error: unknown): OperationFailure;
}

const POLL_INTERVAL_MS = 25;
/** For the SDK's own outcome: a container that dies after the metadata was written takes nothing away from the backup. */
const OUTCOME_GRACE_MS = 500;

export const OVERDUE: BackupResult = {
  status: "Failed",
  failure: { messages: ["the backup was not ready before its deadline"], code: BACKUP_DEADLINE, exitCode: null, retryAfterMs: null },
};

export class NoWakeBackup {
  readonly #work: BackupWork;
  readonly #answer = Promise.withResolvers<BackupResult>();
  #isAnswered = false;

  constructor(work: BackupWork) {
    this.#work = work;
  }

  get answer(): Promise<BackupResult> {
    return this.#answer.promise;
  }

  /** Settles when the SDK has ended, and what is nobody's is gone. Never rejects. */
  async run(): Promise<void> {
    void this.#watch();
    const result = await this.#outcome();
    if (result.status !== "Completed") {
      this.#give(result);
      return;
    }
    if (this.#work.hold.state !== "Replaced" && this.#give(result)) return;
    await this.#remove(result.backup.id);
    this.#give({ status: "RuntimeReplaced" });
  }

  async #outcome(): Promise<BackupResult> {
    const { hold } = this.#work;
    try {
      const result = await this.#work.archive();
      return result.status === "Completed" ? result : (endOf(hold) ?? result);
    } catch (error) {
      // A connection may break before the platform says that its container has ended.
      await holdsWithin(() => hold.state !== "Holds", OUTCOME_GRACE_MS, POLL_INTERVAL_MS);
      return endOf(hold) ?? { status: "Failed", failure: this.#work.describe(error) };
    }
  }

  async #watch(): Promise<void> {
    const { hold, limitMs } = this.#work;
    const isOver = await holdsWithin(() => this.#isAnswered || hold.state !== "Holds", limitMs, POLL_INTERVAL_MS);
    if (isOver) await holdsWithin(() => this.#isAnswered, OUTCOME_GRACE_MS, POLL_INTERVAL_MS);
    this.#give(endOf(hold) ?? OVERDUE);
  }

  #give(result: BackupResult): boolean {
    if (this.#isAnswered) return false;
    this.#isAnswered = true;
    this.#answer.resolve(result);
    return true;
  }

  async #remove(id: string): Promise<void> {
    const { bucket } = this.#work;
    try {
      if (bucket !== undefined) await removeBackup(bucket, id);
    } catch (error) {
      log("warn", "Backup not removed", { objectId: id, error: messageOf(error) });
    }
  }
}

function endOf(hold: Hold): BackupResult | null {
  switch (hold.state) {
    case "Holds":
      return null;
    case "Ended":
      return { status: "NotRunning" };
    case "Replaced":
      return { status: "RuntimeReplaced" };
  }
}
