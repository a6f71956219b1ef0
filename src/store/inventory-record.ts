/** The stored form of an inventory record. One that does not read is as good as none: the next sweep writes another. */
import { z } from "zod";
import type { InventoryRecord } from "../unclaimed.ts";

const stored = z.object({
  time: z.number(),
  completeTime: z.number().nullable(),
  outcome: z.enum(["Complete", "LedgerOnly", "Failed"]),
  message: z.string(),
  running: z.int(),
  eligible: z.int(),
  limit: z.int(),
  brake: z.enum(["TooManyOrphans", "EmptyDesired"]).nullable(),
  retryTime: z.number().nullable().default(null),
});

export function toInventoryRecord(text: string | null): InventoryRecord | null {
  if (text === null) return null;
  try {
    return stored.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
