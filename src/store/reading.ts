/** What the API reads. */
import { and, asc, type Column, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { Instant, Workspace, WorkspaceName } from "../workspace.ts";
import { newestGood } from "./backup-selections.ts";
import type { Database } from "./db.ts";
import { parseJson, toWorkspace } from "./rows.ts";
import { controller, instances, sequence, workspaces } from "./schema.ts";
import { instanceColumns } from "./selections.ts";

export async function getWorkspace(db: Database, { namespace, name }: WorkspaceName): Promise<Workspace | null> {
  const [row] = await selectWorkspaces(db).where(and(eq(workspaces.namespace, namespace), eq(workspaces.name, name)));
  return row ? readWorkspace(row) : null;
}

/** As in Kubernetes: `NotIn` and `DoesNotExist` also match what lacks the key. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values: readonly string[];
}

export interface ListQuery {
  /** Null for all. */
  readonly namespaces: readonly string[] | null;
  readonly labels: readonly LabelRequirement[];
  /** The last item of the page before. */
  readonly after: WorkspaceName | null;
  readonly limit: number;
}

export interface WorkspacePage {
  readonly items: readonly Workspace[];
  /** The newest write that the page can contain. */
  readonly resourceVersion: number;
}

/** One page, ordered by namespace and name. */
export async function listWorkspaces(db: Database, query: ListQuery): Promise<WorkspacePage> {
  const { namespaces, labels, after, limit } = query;
  const page = selectWorkspaces(db)
    .where(
      and(
        namespaces === null ? undefined : inNamespaces(workspaces.namespace, namespaces),
        after === null ? undefined : isAfter(after),
        ...labels.map(matchesLabel),
      ),
    )
    .orderBy(asc(workspaces.namespace), asc(workspaces.name))
    .limit(limit);
  const [versions, rows] = await db.batch([db.select({ value: sequence.value }).from(sequence), page]);
  return { items: rows.map(readWorkspace), resourceVersion: versions[0]?.value ?? 0 };
}

/** When the last tick ended that went through; null before the first. */
export async function readLastSweepTime(db: Database): Promise<Instant | null> {
  const [row] = await db.select({ lastSweepTime: controller.lastSweepTime }).from(controller);
  return row?.lastSweepTime ?? null;
}

function selectWorkspaces(db: Database) {
  return db
    .select({ workspace: workspaces, instance: instanceColumns, lastBackup: lastBackup.as("last_backup") })
    .from(workspaces)
    .leftJoin(instances, and(eq(instances.workspaceUid, workspaces.uid), eq(instances.incarnation, workspaces.incarnation)));
}

const lastBackup = sql.raw(newestGood("json_object('id', good.id, 'time', good.ended_time)", "good.workspace_uid = workspaces.uid")) as SQL<
  string | null
>;

function readWorkspace(row: Awaited<ReturnType<typeof selectWorkspaces>>[number]): Workspace {
  const sandboxId = row.instance?.sandboxId ?? null;
  return toWorkspace(row.workspace, {
    sandboxId,
    lastBackup: row.lastBackup === null ? null : (parseJson(row.lastBackup) as Workspace["lastBackup"]),
  });
}

/** `json_each` keeps the statement at one parameter; D1 allows 100. */
export function inNamespaces(column: Column, namespaces: readonly string[]): SQL {
  return inArray(column, sql`(SELECT value FROM json_each(${JSON.stringify(namespaces)}))`);
}

function isAfter({ namespace, name }: WorkspaceName): SQL {
  return sql`(${workspaces.namespace}, ${workspaces.name}) > (${namespace}, ${name})`;
}

function matchesLabel({ key, operator, values }: LabelRequirement): SQL {
  // A row that is not JSON must not fail the query for all the others.
  const labels = sql`CASE WHEN json_valid(${workspaces.labels}) THEN ${workspaces.labels} ELSE '{}' END`;
  const entry = sql`SELECT 1 FROM json_each(${labels}) WHERE key = ${key}`;
  const entryIn = sql`${entry} AND value IN (SELECT value FROM json_each(${JSON.stringify(values)}))`;
  switch (operator) {
    case "In":
      return sql`EXISTS (${entryIn})`;
    case "NotIn":
      return sql`NOT EXISTS (${entryIn})`;
    case "Exists":
      return sql`EXISTS (${entry})`;
    case "DoesNotExist":
      return sql`NOT EXISTS (${entry})`;
  }
}
