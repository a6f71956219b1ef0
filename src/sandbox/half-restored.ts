/** Remembers a restore that has begun and not ended well, a user's own too: what it leaves must not pass for the workspace (invariant 6). */
import { evidenceOf } from "../failure-evidence.ts";
import type { HalfRestored, Ledger } from "./ledger.ts";
import type { BackupOrder } from "./protocol.ts";

/** The SDK refuses with these before it touches the container. */
const REFUSALS: ReadonlySet<string | null> = new Set(["BACKUP_NOT_FOUND", "BACKUP_EXPIRED", "INVALID_BACKUP_CONFIG"]);

export async function rememberingRestore<T>(ledger: Ledger, dir: string, restore: () => Promise<T>): Promise<T> {
  const before = ledger.record.halfRestored;
  const startId = ledger.record.container?.startId ?? null;
  ledger.update({ halfRestored: startId === null ? null : { startId, dir } });
  try {
    const result = await restore();
    ledger.update({ halfRestored: null });
    return result;
  } catch (error) {
    if (REFUSALS.has(evidenceOf(error).code)) ledger.update({ halfRestored: before });
    throw error;
  }
}

/** Whether the directory of that start's container has, or lies in, what such a restore has left. */
export function isHalfRestored(half: HalfRestored | null, { startId, directory }: BackupOrder): boolean {
  return half !== null && half.startId === startId && (isWithin(half.dir, directory) || isWithin(directory, half.dir));
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}
