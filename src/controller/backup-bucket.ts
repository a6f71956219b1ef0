/** The port to the bucket that holds the archives. What is in it belongs to Mooring; what does not look so is left alone. */
import type { Instant } from "../workspace.ts";

/** The objects below `backups/<objectId>/`. */
export interface StoredObjects {
  /** A UUID. */
  readonly objectId: string;
  readonly hasArchive: boolean;
  readonly hasMetadata: boolean;
  /** Of the youngest of them, by the bucket's clock. */
  readonly uploadedTime: Instant;
  readonly sizeBytes: number;
}

/** `Complete`: every page was read. */
export type BucketListing =
  | { readonly kind: "Complete"; readonly stored: readonly StoredObjects[] }
  | { readonly kind: "Failed"; readonly message: string };

export interface BackupBucket {
  /** Never rejects. */
  list(): Promise<BucketListing>;
  /** The metadata first: a backup without it is never restored. What is not there is no error. Rejects where the bucket does. */
  remove(objectId: string): Promise<void>;
}
