/** The connection: drizzle over the D1 binding. Statements that belong together go through `batch`; D1 has no transactions. */
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import * as schema from "./schema.ts";

export type Database = DrizzleD1Database<typeof schema>;

export function openDatabase(d1: D1Database): Database {
  return drizzle(d1, { schema });
}
