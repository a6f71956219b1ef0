/**
 * What a start does in its container once that answers: the restore, the directory, the setup commands (invariants 2 and 6).
 *
 * Runs within the start run's scope, whose window is closed by then: nothing here can start another container.
 */
import type { Sandbox } from "@cloudflare/sandbox";
import { log } from "../log.ts";
import { isEmptyArchive } from "./backup-objects.ts";
import { clearDirectory, isEmptyDirectory, runCommand } from "./container-commands.ts";
import { messageOf, withoutValues } from "./container-errors.ts";
import type { Ledger } from "./ledger.ts";
import { SETUP_FAILED, type RestoreOrder, type StartOrder } from "./protocol.ts";

export interface PreparationParts {
  /** The SDK's part. */
  readonly subject: Pick<Sandbox, "restoreBackup" | "mkdir" | "client">;
  readonly sandboxId: string;
  readonly native: Container;
  readonly ledger: Ledger;
  readonly bucket: R2Bucket | undefined;
}

/** With the words before it, no more than a status message keeps. */
const OUTPUT_TAIL_LENGTH = 240;
/** Nothing is known by what a user's command says, so that words of an ordinary message may go, too. */
const MIN_SECRET_LENGTH = 4;

export class SetupFailedError extends Error {
  override readonly name = "SetupFailedError";
  readonly code = SETUP_FAILED;
}

export class Preparation {
  readonly #parts: PreparationParts;

  constructor(parts: PreparationParts) {
    this.#parts = parts;
  }

  /** Into a directory that holds nothing of the image's, and ends only where it holds what the archive does. */
  async restore({ objectId, localBucket }: RestoreOrder, directory: string): Promise<void> {
    const { subject, native, ledger, bucket } = this.#parts;
    const { container } = ledger.record;
    // The presigned mode mounts the archive over the directory, which hides what the image has there.
    if (localBucket) await clearDirectory(subject.client, directory);
    const { success } = await subject.restoreBackup({ id: objectId, dir: directory, localBucket });
    const isEmpty = await isEmptyDirectory(subject.client, directory);
    const holdsArchive = !isEmpty || (bucket !== undefined && (await isEmptyArchive(bucket, objectId)));
    if (!success || !holdsArchive) throw new Error("the restored directory does not hold what was backed up");
    if (!native.running || ledger.record.container !== container) throw new Error("the container was replaced during the restore");
  }

  async makeDirectory(path: string): Promise<void> {
    const made = await this.#orNull("Working directory not created", this.#parts.subject.mkdir(path, { recursive: true }));
    if (made === null) throw new Error("the working directory could not be created");
  }

  async setUp({ setup, directory, env }: StartOrder): Promise<void> {
    for (const [index, command] of setup.entries()) {
      const result = await this.#orNull("Setup command not run", runCommand(this.#parts.subject.client, command, directory));
      if (result === null) throw new SetupFailedError(`setup command ${index + 1} could not be run`);
      const { exitCode, stdout, stderr } = result;
      if (exitCode === 0) continue;
      // A value that the cut goes through would not be recognised any more.
      const tail = withoutValues(`${stdout}\n${stderr}`, env, MIN_SECRET_LENGTH).trim().slice(-OUTPUT_TAIL_LENGTH);
      throw new SetupFailedError(`setup command ${index + 1} failed with exit code ${exitCode}: ${tail}`);
    }
  }

  /** Null where it fails. The container's words repeat what a user chose: only the log has them, where nobody reads them as the platform's. */
  async #orNull<T>(failure: string, work: Promise<T>): Promise<T | null> {
    try {
      return await work;
    } catch (error) {
      log("warn", failure, { sandboxId: this.#parts.sandboxId, error: messageOf(error) });
      return null;
    }
  }
}
