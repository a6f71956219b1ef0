/** What of its quota a namespace uses. The conditions stand in the statements that write, so that no two writers take one last place. */
import { and, eq, type SQL, sql } from "drizzle-orm";
import type { Database } from "./db.ts";
import { runningIn } from "./quota.ts";
import { instances, unclaimed, workspaces } from "./schema.ts";

/** Null: no limit, or none that the write in question could exceed. */
export interface Limits {
  readonly maxWorkspaces: number | null;
  readonly maxRunning: number | null;
}

export const NO_LIMITS: Limits = { maxWorkspaces: null, maxRunning: null };

export interface Usage {
  /** Those being deleted included. */
  readonly workspaces: number;
  /** Instances that run, orphans included, without those of the workspace in question. */
  readonly running: number;
}

/** Whose instance does not count: the workspace's own, and an unclaimed one that it is about to take over. */
export interface Exempt {
  readonly uid: string;
  readonly doId?: string;
}

export async function readUsage(db: Database, namespace: string, exempt: Exempt): Promise<Usage> {
  const [usage] = await db.all<Usage>(
    sql`SELECT ${workspacesIn(namespace)} AS workspaces, ${runningWithout(namespace, exempt)} AS running`,
  );
  return usage ?? { workspaces: 0, running: 0 };
}

/** True in SQL where the namespace has room for one more of each that is limited. */
export function hasRoom({ maxWorkspaces, maxRunning }: Limits, namespace: string, exempt: Exempt): SQL {
  const conditions = [
    maxWorkspaces === null ? undefined : sql`${workspacesIn(namespace)} < ${maxWorkspaces}`,
    maxRunning === null ? undefined : sql`${runningWithout(namespace, exempt)} < ${maxRunning}`,
  ];
  return and(...conditions) ?? sql`1`;
}

/** Rows that say how many run in each namespace, in one pass over those that run. */
export function selectRunning(db: Database) {
  return db
    .select({ namespace: instances.namespace, running: sql<number>`count(*)`.as("running_count") })
    .from(instances)
    .where(eq(instances.running, true))
    .groupBy(instances.namespace);
}

export function selectUnclaimedRunning(db: Database) {
  return db
    .select({ namespace: unclaimed.namespace, running: sql<number>`count(*)`.as("running_count") })
    .from(unclaimed)
    .where(eq(unclaimed.state, "Running"))
    .groupBy(unclaimed.namespace);
}

function workspacesIn(namespace: string): SQL {
  return sql`(SELECT count(*) FROM ${workspaces} WHERE ${workspaces.namespace} = ${namespace})`;
}

function runningWithout(namespace: string, { uid, doId }: Exempt): SQL {
  const running = runningIn(sql`${namespace}`, sql`${uid}`);
  if (doId === undefined) return running;
  const isOwn = and(eq(unclaimed.doId, doId), eq(unclaimed.namespace, namespace), eq(unclaimed.state, "Running"));
  return sql`(${running} - (SELECT count(*) FROM ${unclaimed} WHERE ${isOwn}))`;
}
