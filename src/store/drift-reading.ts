/**
 * What the drift report is made from. The first parts of both lists, the settings and the counts are of one moment; with more than one
 * part the rest follows in statements of their own, in an order that no write changes.
 */
import { and, asc, gt, sql } from "drizzle-orm";
import type { Unclaimed } from "../unclaimed.ts";
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { type ControllerView, selectController, toControllerView } from "./controller-reading.ts";
import { selectSettings } from "./controller-settings.ts";
import type { Database } from "./db.ts";
import { readRecord, selectRecords } from "./due.ts";
import { isUnclaimed } from "./instance-reading.ts";
import { inNamespaces } from "./reading.ts";
import { unclaimed, workspaces } from "./schema.ts";
import { selectRunning, selectUnclaimedRunning } from "./usage-reading.ts";
import { selectUnclaimed, toUnclaimed } from "./unclaimed.ts";

export interface DriftQuery {
  /** Null for all, and for instances that belong to none. */
  readonly namespaces: readonly string[] | null;
  readonly now: Instant;
  /** Rows in one part. */
  readonly partSize: number;
}

export interface DriftView {
  readonly controller: ControllerView;
  /** By namespace. */
  readonly running: ReadonlyMap<string, number>;
  readonly records: readonly WorkspaceRecord[];
  readonly unclaimed: readonly Unclaimed[];
}

export async function readDriftView(db: Database, query: DriftQuery): Promise<DriftView> {
  const [rows, settings, ledger, others, records, instances] = await db.batch([
    selectController(db),
    selectSettings(db),
    selectRunning(db),
    selectUnclaimedRunning(db),
    selectRecordPart(db, query, null),
    selectUnclaimedPart(db, query, null),
  ]);
  return {
    controller: toControllerView(rows, settings),
    running: sum([...ledger, ...others]),
    records: await complete(records.map(readRecord), query, async (last) => (await selectRecordPart(db, query, last)).map(readRecord)),
    unclaimed: await complete(instances.map(toUnclaimed), query, async (last) =>
      (await selectUnclaimedPart(db, query, last)).map(toUnclaimed),
    ),
  };
}

/** The quota of each row would be counted row by row; the report counts once, from `running`. */
function selectRecordPart(db: Database, { namespaces, now, partSize }: DriftQuery, after: WorkspaceName | null) {
  return selectRecords(db, now, {})
    .where(
      and(
        namespaces === null ? undefined : inNamespaces(workspaces.namespace, namespaces),
        after === null ? undefined : sql`(${workspaces.namespace}, ${workspaces.name}) > (${after.namespace}, ${after.name})`,
      ),
    )
    .orderBy(asc(workspaces.namespace), asc(workspaces.name))
    .limit(partSize);
}

function selectUnclaimedPart(db: Database, { namespaces, partSize }: DriftQuery, after: Pick<Unclaimed, "doId"> | null) {
  return selectUnclaimed(db)
    .where(
      and(
        namespaces === null ? undefined : inNamespaces(unclaimed.namespace, namespaces),
        after === null ? undefined : gt(unclaimed.doId, after.doId),
        isUnclaimed,
      ),
    )
    .orderBy(asc(unclaimed.doId))
    .limit(partSize);
}

async function complete<Row>(
  first: readonly Row[],
  { partSize }: DriftQuery,
  readAfter: (last: Row) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const rows = [...first];
  let part = first;
  for (let last = part.at(-1); last !== undefined && part.length === partSize; last = part.at(-1)) {
    part = await readAfter(last);
    rows.push(...part);
  }
  return rows;
}

function sum(counts: readonly { readonly namespace: string | null; readonly running: number }[]): ReadonlyMap<string, number> {
  const total = new Map<string, number>();
  for (const { namespace, running } of counts) {
    if (namespace !== null) total.set(namespace, (total.get(namespace) ?? 0) + running);
  }
  return total;
}
