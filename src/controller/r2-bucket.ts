/** The bucket over an R2 binding. */
import { ARCHIVE_NAME, BACKUPS_PREFIX, METADATA_NAME, removeBackup } from "../backup-objects.ts";
import type { Instant } from "../workspace.ts";
import type { BackupBucket, BucketListing, StoredObjects } from "./backup-bucket.ts";

const KEY = /^backups\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/(data\.sqsh|meta\.json)$/;
/** The most that R2 gives at once. */
const PAGE_SIZE = 1000;
/** Half a million backups: a bucket that does not end is not read to its end. */
const MAX_PAGES = 1000;

type Bucket = Pick<R2Bucket, "list" | "delete">;

export function openR2Bucket(bucket: Bucket): BackupBucket {
  return {
    list: () =>
      list(bucket).catch((error: unknown) => ({ kind: "Failed", message: error instanceof Error ? error.message : String(error) })),
    remove: (objectId) => removeBackup(bucket, objectId),
  };
}

async function list(bucket: Bucket): Promise<BucketListing> {
  const stored = new Map<string, StoredObjects>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const listed = await bucket.list({ prefix: BACKUPS_PREFIX, limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) });
    for (const object of listed.objects) add(stored, object);
    if (!listed.truncated) return { kind: "Complete", stored: [...stored.values()] };
    cursor = listed.cursor;
  }
  return { kind: "Failed", message: `The list has more than ${MAX_PAGES} pages.` };
}

/** Under any other name it is not ours. */
function add(stored: Map<string, StoredObjects>, { key, size, uploaded }: Pick<R2Object, "key" | "size" | "uploaded">): void {
  const [, objectId, file] = KEY.exec(key) ?? [];
  if (objectId === undefined) return;
  const known = stored.get(objectId);
  const uploadedTime: Instant = uploaded.getTime();
  stored.set(objectId, {
    objectId,
    hasArchive: (known?.hasArchive ?? false) || file === ARCHIVE_NAME,
    hasMetadata: (known?.hasMetadata ?? false) || file === METADATA_NAME,
    uploadedTime: Math.max(known?.uploadedTime ?? 0, uploadedTime),
    sizeBytes: (known?.sizeBytes ?? 0) + size,
  });
}
