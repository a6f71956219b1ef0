/** Where the SDK keeps a backup in the bucket, and how one is removed. Its names are the contract: `backups/<uuid>/{data.sqsh,meta.json}`. */
export const BACKUPS_PREFIX = "backups/";
export const ARCHIVE_NAME = "data.sqsh";
export const METADATA_NAME = "meta.json";

export function archiveKey(objectId: string): string {
  return `${BACKUPS_PREFIX}${objectId}/${ARCHIVE_NAME}`;
}

export function metadataKey(objectId: string): string {
  return `${BACKUPS_PREFIX}${objectId}/${METADATA_NAME}`;
}

/** The metadata first: a backup without it is never restored. */
export async function removeBackup(bucket: Pick<R2Bucket, "delete">, objectId: string): Promise<void> {
  await bucket.delete(metadataKey(objectId));
  await bucket.delete(archiveKey(objectId));
}
