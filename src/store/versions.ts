/** The resource version: one sequence for all rows, so that a later write of any row has a higher number. */
import { and, eq, type SQL, sql } from "drizzle-orm";
import type { WorkspaceRecord } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { isHeld } from "./lease.ts";
import { sequence, workspaces } from "./schema.ts";

/** The statement to put first in a batch whose other statements use `currentVersion`. A number nobody takes is a harmless gap. */
export function nextVersion(db: Database) {
  return db
    .insert(sequence)
    .values({ id: 1, value: 1 })
    .onConflictDoUpdate({ target: sequence.id, set: { value: sql`${sequence.value} + 1` } });
}

export const currentVersion = sql<number>`(SELECT value FROM sequence)`;

/** Whether the batch's own write of the workspace took place. */
export function isWritten(uid: string): SQL {
  return sql`EXISTS (SELECT 1 FROM ${workspaces} WHERE ${workspaces.uid} = ${uid} AND ${workspaces.resourceVersion} = ${currentVersion})`;
}

/** Whether the row is still as the pass read it, and the lease still the pass's. */
export function isCurrent(record: WorkspaceRecord, epoch: number): SQL | undefined {
  return and(eq(workspaces.uid, record.uid), eq(workspaces.resourceVersion, record.resourceVersion), isHeld(epoch));
}
