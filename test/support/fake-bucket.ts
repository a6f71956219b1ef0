/** A bucket of archives whose contents are a word: what a container's files were when it was backed up. */
import type { BackupBucket, BucketListing, StoredObjects } from "../../src/controller/backup-bucket.ts";
import type { Instant } from "../../src/workspace.ts";

export interface FakeObjects extends StoredObjects {
  /** What the archive holds. */
  readonly files: string;
}

export class FakeBucket implements BackupBucket {
  readonly stored = new Map<string, FakeObjects>();
  /** Answers of the next listings, and errors of the next removals. */
  readonly listFaults: string[] = [];
  readonly removeFaults: string[] = [];
  /** Objects that the bucket never lets go. */
  readonly locked = new Set<string>();
  readonly removed: string[] = [];
  readonly #now: () => Instant;

  constructor(now: () => Instant) {
    this.#now = now;
  }

  put(objectId: string, files: string, parts: Partial<FakeObjects> = {}): void {
    const whole = { objectId, files, hasArchive: true, hasMetadata: true, uploadedTime: this.#now(), sizeBytes: files.length };
    this.stored.set(objectId, { ...whole, ...parts });
  }

  async list(): Promise<BucketListing> {
    const message = this.listFaults.shift();
    return message === undefined ? { kind: "Complete", stored: [...this.stored.values()] } : { kind: "Failed", message };
  }

  async remove(objectId: string): Promise<void> {
    const message = this.removeFaults.shift();
    if (message !== undefined) throw new Error(message);
    if (this.locked.has(objectId)) throw new Error("locked");
    this.stored.delete(objectId);
    this.removed.push(objectId);
  }
}
