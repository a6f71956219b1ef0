/** The stored form of how the last sweep of the bucket went. One that does not read is as good as none: the next sweep writes another. */
import { z } from "zod";
import type { BackupSweepRecord } from "../backup.ts";

const stored = z.object({
  time: z.number(),
  completeTime: z.number().nullable(),
  outcome: z.enum(["Complete", "Failed"]),
  message: z.string(),
  stored: z.int(),
  eligible: z.int(),
  limit: z.int(),
  brake: z.enum(["TooManyOrphans", "EmptyDesired"]).nullable(),
});

export function toBackupSweepRecord(text: string | null): BackupSweepRecord | null {
  if (text === null) return null;
  try {
    return stored.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
