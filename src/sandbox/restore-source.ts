/**
 * Whether a backup can be restored, by the bucket alone: asked before any container is started for it.
 *
 * The SDK asks the same again when it restores. Texts and codes are its own, and what the controller knows these failures by.
 */
import { archiveKey } from "../backup-objects.ts";
import { readMetadata } from "./backup-objects.ts";

/** As long as the SDK's own margin before the end of a backup's life. */
const EXPIRY_MARGIN_MS = 60_000;

export class RestoreSourceError extends Error {
  readonly code: string;
  readonly context: { readonly reason: string } | undefined;

  constructor(code: string, message: string, reason?: string) {
    super(message);
    this.name = "RestoreSourceError";
    this.code = code;
    this.context = reason === undefined ? undefined : { reason };
  }
}

/** Rejects where it cannot; with the bucket's own error where the bucket does not say. */
export async function assertRestorable(bucket: R2Bucket | undefined, id: string, now: number): Promise<void> {
  if (bucket === undefined) {
    const message = "Backup not configured. Add a BACKUP_BUCKET R2 binding to your wrangler.jsonc.";
    throw new RestoreSourceError("INVALID_BACKUP_CONFIG", message, "Missing BACKUP_BUCKET R2 binding");
  }
  const metadata = await readMetadata(bucket, id);
  if (metadata === null) {
    const message = `Backup not found: ${id}. Verify the backup ID is correct and the backup has not been deleted.`;
    throw new RestoreSourceError("BACKUP_NOT_FOUND", message);
  }
  const { createdAt, ttl } = metadata;
  const createdTime = Date.parse(createdAt);
  if (Number.isNaN(createdTime)) {
    throw new RestoreSourceError("BACKUP_RESTORE_FAILED", `Backup metadata has invalid createdAt timestamp: ${createdAt}`);
  }
  if (now + EXPIRY_MARGIN_MS > createdTime + ttl * 1000) {
    const message = `Backup ${id} has expired (created: ${createdAt}, TTL: ${ttl}s). Create a new backup.`;
    throw new RestoreSourceError("BACKUP_EXPIRED", message);
  }
  if ((await bucket.head(archiveKey(id))) === null) {
    const message = `Backup archive not found in R2: ${id}. The archive may have been deleted by R2 lifecycle rules.`;
    throw new RestoreSourceError("BACKUP_NOT_FOUND", message);
  }
}
