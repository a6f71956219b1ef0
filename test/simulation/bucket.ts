/** The bucket of the simulation: what lies in it, and how it answers the controller. */
import type { BackupBucket, BucketListing, StoredObjects } from "../../src/controller/backup-bucket.ts";
import type { OperationFailure } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { BUCKET_FAULTS, type Faults } from "./faults.ts";
import { failureOf } from "./start-failures.ts";

export interface Objects {
  readonly files: number;
  hasArchive: boolean;
  hasMetadata: boolean;
  /** There, and not to be found for a while. */
  isHidden: boolean;
  uploadedTime: Instant;
}

const SLOW_MS = 30_000;
const MAX_SKEW_MS = 3000;
const BROKEN = "We encountered an internal error. Please try again.";

export class Bucket {
  readonly stored = new Map<string, Objects>();
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #faults: Faults;
  /** Its clock is another's. */
  readonly #skewMs: number;
  #ids = 0;

  constructor(clock: Clock, chance: Chance, faults: Faults) {
    this.#clock = clock;
    this.#chance = chance;
    this.#faults = faults;
    this.#skewMs = chance.between(-MAX_SKEW_MS, MAX_SKEW_MS);
  }

  newObjectId(): string {
    return `objects-${(this.#ids += 1)}`;
  }

  putArchive(objectId: string, files: number): void {
    this.stored.set(objectId, { files, hasArchive: true, hasMetadata: false, isHidden: false, uploadedTime: this.#now() });
  }

  /** The last step: from now on it can be restored. */
  putMetadata(objectId: string): void {
    const objects = this.stored.get(objectId);
    if (objects !== undefined) Object.assign(objects, { hasMetadata: true, uploadedTime: this.#now() });
  }

  /** All of these, or of those that were hidden before. */
  hide(isHidden: boolean, isMeant: (objects: Objects) => boolean): void {
    for (const objects of this.stored.values()) if (isMeant(objects)) objects.isHidden = isHidden;
  }

  removeAll(objectId: string): void {
    this.stored.delete(objectId);
  }

  /** As a start asks before it begins. */
  refusalOf(objectId: string): OperationFailure | null {
    if (this.#faults.draw(["bucketFails"]) !== null) return failureOf(BROKEN);
    const objects = this.stored.get(objectId);
    if (objects?.hasMetadata && objects.hasArchive && !objects.isHidden) return null;
    return { ...failureOf(`Backup not found: ${objectId}.`), code: "BACKUP_NOT_FOUND" };
  }

  /** What lies there at one moment, and is told perhaps later. */
  async list(): Promise<BucketListing> {
    const fault = this.#faults.draw(BUCKET_FAULTS);
    if (fault === "bucketFails") return { kind: "Failed", message: BROKEN };
    const found = [...this.stored].filter(([, { isHidden }]) => !isHidden);
    const stored = found.map(([objectId, objects]): StoredObjects => {
      const { hasArchive, hasMetadata, uploadedTime } = objects;
      return { objectId, hasArchive, hasMetadata, uploadedTime, sizeBytes: 1 };
    });
    if (fault === "bucketSlow") await this.#clock.sleep(this.#chance.lasting(100, SLOW_MS));
    return { kind: "Complete", stored };
  }

  /** One of the two objects. */
  async remove(objectId: string, which: "metadata" | "archive"): Promise<void> {
    const fault = this.#faults.draw(BUCKET_FAULTS);
    if (fault === "bucketSlow") await this.#clock.sleep(this.#chance.lasting(100, SLOW_MS));
    const isDone = fault !== "bucketFails" || this.#chance.happens(0.5);
    if (isDone) this.#drop(objectId, which);
    if (fault === "bucketFails") throw new Error(BROKEN);
  }

  #drop(objectId: string, which: "metadata" | "archive"): void {
    const objects = this.stored.get(objectId);
    if (objects === undefined) return;
    if (which === "metadata") objects.hasMetadata = false;
    else objects.hasArchive = false;
    if (!objects.hasArchive && !objects.hasMetadata) this.stored.delete(objectId);
  }

  #now(): Instant {
    return this.#clock.now() + this.#skewMs;
  }
}

export type BucketCall = <Result>(effect: () => Promise<Result>) => Promise<Result>;

/** The port, in the order of `src/controller/r2-bucket.ts`. `call` has what befalls the process in each of its steps. */
export function toBackupBucket(bucket: Bucket, call: BucketCall): BackupBucket {
  return {
    list: () => call(() => bucket.list()),
    async remove(objectId) {
      await call(() => bucket.remove(objectId, "metadata"));
      await call(() => bucket.remove(objectId, "archive"));
    },
  };
}
