/**
 * What the drift report is made from. The first parts of both lists, the settings and the counts are of one moment; with more than one
 * part the rest follows in statements of their own, in an order that no write changes.
 */
import { and, asc, gt, sql } from "drizzle-orm";
import type { UnclaimedBackup } from "../backup.ts";
import type { Unclaimed } from "../unclaimed.ts";
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { selectUnclaimedBackups } from "./backup-sweep.ts";
import { type ControllerView, selectController, toControllerView } from "./controller-reading.ts";
import { selectSettings } from "./controller-settings.ts";
import type { Database } from "./db.ts";
import { readRecord, selectRecords } from "./due.ts";
import { isUnclaimed } from "./instance-reading.ts";
import { inNamespaces } from "./reading.ts";
import { backups, unclaimed, workspaces } from "./schema.ts";
import { selectRunning, selectUnclaimedRunning } from "./usage-reading.ts";
import { selectUnclaimed, toUnclaimed } from "./unclaimed.ts";

export interface DriftQuery {
  /** Null for all, and for instances that belong to none. */
  readonly namespaces: readonly string[] | null;
  readonly now: Instant;
  /** Whether backups are taken. */
  readonly backups: boolean;
  /** Rows in one part. */
  readonly partSize: number;
}

export interface DriftView {
  readonly controller: ControllerView;
  /** By namespace. */
  readonly running: ReadonlyMap<string, number>;
  readonly records: readonly WorkspaceRecord[];
  readonly unclaimed: readonly Unclaimed[];
  /** Some of them, if there are very many. */
  readonly unclaimedBackups: readonly UnclaimedBackup[];
  readonly lostBackups: readonly LostBackup[];
}

/** A good backup whose objects a complete sweep missed. */
export interface LostBackup extends WorkspaceName {
  readonly id: string;
  readonly lostTime: Instant;
  readonly objectId: string;
}

/** Of each list of backups. */
const BACKUPS_SHOWN = 500;

export async function readDriftView(db: Database, query: DriftQuery): Promise<DriftView> {
  const [rows, settings, ledger, others, records, instances, unclaimedBackups, lost] = await db.batch([
    selectController(db),
    selectSettings(db),
    selectRunning(db),
    selectUnclaimedRunning(db),
    selectRecordPart(db, query, null),
    selectUnclaimedPart(db, query, null),
    selectUnclaimedBackups(db, query.backups && query.namespaces === null ? sql`1` : sql`0`).limit(BACKUPS_SHOWN),
    selectLost(db, query),
  ]);
  const read = (row: (typeof records)[number]) => readRecord(row, query.backups);
  return {
    controller: toControllerView(rows, settings),
    running: sum([...ledger, ...others]),
    records: await complete(records.map(read), query, async (last) => (await selectRecordPart(db, query, last)).map(read)),
    unclaimed: await complete(instances.map(toUnclaimed), query, async (last) =>
      (await selectUnclaimedPart(db, query, last)).map(toUnclaimed),
    ),
    unclaimedBackups,
    lostBackups: lost.flatMap(({ lostTime, objectId, ...backup }) =>
      lostTime === null || objectId === null ? [] : [{ ...backup, lostTime, objectId }],
    ),
  };
}

/** The quota of each row would be counted row by row; the report counts once, from `running`. */
function selectRecordPart(db: Database, query: DriftQuery, after: WorkspaceName | null) {
  const { namespaces, partSize } = query;
  return selectRecords(db, { ...query, runningLimits: {} })
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

function selectLost(db: Database, { namespaces, backups: areTaken }: DriftQuery) {
  return db
    .select({ id: backups.id, namespace: backups.namespace, name: backups.name, lostTime: backups.lostTime, objectId: backups.objectId })
    .from(backups)
    .where(
      and(
        areTaken ? undefined : sql`0`,
        namespaces === null ? undefined : inNamespaces(backups.namespace, namespaces),
        sql`${backups.state} = 'Completed' AND ${backups.lostTime} IS NOT NULL`,
      ),
    )
    .orderBy(asc(backups.id))
    .limit(BACKUPS_SHOWN);
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
