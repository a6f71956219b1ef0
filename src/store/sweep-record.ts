/** The stored form of how a sweep went. */
import { type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";

interface SweepRecord {
  readonly time: number;
  readonly outcome: string;
}

/**
 * What to write into `column`. A sweep that failed leaves what the one before knew, its `counted` among it; a record that does not read
 * knew nothing.
 */
export function sweepRecordJson(column: SQLiteColumn, record: SweepRecord, counted: string): SQL {
  const json = JSON.stringify(record);
  if (record.outcome !== "Failed") return sql`json_set(${json}, '$.completeTime', ${record.time})`;
  const last = (name: string) => sql`CASE WHEN json_valid(${column}) THEN json_extract(${column}, ${`$.${name}`}) END`;
  return sql`json_set(${json}, '$.completeTime', ${last("completeTime")}, '$.brake', ${last("brake")},
    ${`$.${counted}`}, coalesce(${last(counted)}, 0), '$.eligible', coalesce(${last("eligible")}, 0),
    '$.limit', coalesce(${last("limit")}, 0))`;
}
