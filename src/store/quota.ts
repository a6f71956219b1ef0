/** How many instances run in a namespace, counted from what was observed: a failed one holds no place, an orphan does. */
import { type SQL, sql } from "drizzle-orm";
import { instances, unclaimed } from "./schema.ts";

/** By namespace, `*` for every one without an entry; null: no limit. */
export type RunningLimits = Readonly<Record<string, number | null>>;

const UNLIMITED = 1_000_000_000;

/** Whether as many run in `namespace`, without those of the workspace `exceptUid`, as the limits allow. */
export function isQuotaReached(limits: RunningLimits, namespace: SQL, exceptUid: SQL): SQL<boolean> {
  if (Object.keys(limits).length === 0) return sql<boolean>`0`.mapWith(Boolean);
  const numbers = JSON.stringify(Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, limit ?? UNLIMITED])));
  const limit = sql`coalesce(json_extract(${numbers}, '$."' || ${namespace} || '"'), json_extract(${numbers}, '$."*"'), ${UNLIMITED})`;
  return sql<boolean>`(${runningIn(namespace, exceptUid)} >= ${limit})`.mapWith(Boolean);
}

export function runningIn(namespace: SQL, exceptUid: SQL): SQL<number> {
  return sql<number>`(
    (SELECT count(*) FROM ${instances} WHERE ${instances.namespace} = ${namespace} AND ${instances.running} = 1 AND ${instances.workspaceUid} <> ${exceptUid})
    + (SELECT count(*) FROM ${unclaimed} WHERE ${unclaimed.namespace} = ${namespace} AND ${unclaimed.state} = 'Running'))`;
}
