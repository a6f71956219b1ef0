/** What the SDK keeps in the objects of a backup. */
import { archiveKey, metadataKey } from "../backup-objects.ts";

/** The binding that the SDK insists on. */
export interface BackupBindings {
  readonly BACKUP_BUCKET?: R2Bucket;
}

export interface BackupMetadata {
  readonly createdAt: string;
  /** Seconds. */
  readonly ttl: number;
  readonly sizeBytes: number;
}

const SQUASHFS_MAGIC = 0x73717368;
/** Magic and count of inodes, little endian. */
const HEADER_BYTES = 8;

export async function readMetadata(bucket: R2Bucket, id: string): Promise<BackupMetadata | null> {
  const object = await bucket.get(metadataKey(id));
  return object === null ? null : object.json<BackupMetadata>();
}

/** Whether the archive is known to hold its root and nothing else. */
export async function isEmptyArchive(bucket: R2Bucket, id: string): Promise<boolean> {
  const object = await bucket.get(archiveKey(id), { range: { offset: 0, length: HEADER_BYTES } });
  if (object === null || object.size < HEADER_BYTES) return false;
  const header = new DataView(await object.arrayBuffer());
  return header.getUint32(0, true) === SQUASHFS_MAGIC && header.getUint32(4, true) === 1;
}
