/** Instances as an operator sees them: the ledger's and those that no record claims, in one order. */
import { and, asc, eq, gt, type SQL, sql } from "drizzle-orm";
import type { Unclaimed } from "../unclaimed.ts";
import type { WorkspaceName } from "../workspace.ts";
import type { ObservedState } from "../workspace-record.ts";
import type { Database } from "./db.ts";
import { parseJson } from "./rows.ts";
import { instances, unclaimed, workspaces } from "./schema.ts";
import { toObserved } from "./status.ts";
import { selectUnclaimed, toUnclaimed } from "./unclaimed.ts";

export interface ClaimedInstance {
  readonly doId: string;
  readonly sandboxId: string;
  readonly owner: WorkspaceName & { readonly uid: string; readonly incarnation: number };
  /** What the workspace's last pass saw; null where none has looked. */
  readonly observed: ObservedState | null;
  readonly destroyRequested: boolean;
  readonly adopted: boolean;
}

export type KnownInstance =
  | { readonly claimed: true; readonly doId: string; readonly instance: ClaimedInstance }
  | { readonly claimed: false; readonly doId: string; readonly instance: Unclaimed };

export interface InstanceQuery {
  /** Null for both. */
  readonly claimed: boolean | null;
  /** Null for every one, and for those that belong to none. */
  readonly namespace: string | null;
  /** The last DO id of the page before. */
  readonly after: string | null;
  readonly limit: number;
}

/** One page, ordered by DO id. */
export async function listInstances(db: Database, query: InstanceQuery): Promise<readonly KnownInstance[]> {
  const { claimed, namespace, after, limit } = query;
  const [ledger, others] = await db.batch([
    selectClaimed(db)
      .where(
        and(
          claimed === false ? sql`0` : undefined,
          after === null ? undefined : gt(instances.doId, after),
          namespace === null ? undefined : eq(instances.namespace, namespace),
        ),
      )
      .orderBy(asc(instances.doId))
      .limit(limit),
    selectUnclaimed(db)
      .where(
        and(
          claimed === true ? sql`0` : undefined,
          after === null ? undefined : gt(unclaimed.doId, after),
          namespace === null ? undefined : eq(unclaimed.namespace, namespace),
          isUnclaimed,
        ),
      )
      .orderBy(asc(unclaimed.doId))
      .limit(limit),
  ]);
  return [...ledger.map(ofLedger), ...others.map(ofUnclaimed)].toSorted((a, b) => (a.doId < b.doId ? -1 : 1)).slice(0, limit);
}

export async function getInstance(db: Database, doId: string): Promise<KnownInstance | null> {
  const [[ledger], [other]] = await db.batch([
    selectClaimed(db).where(eq(instances.doId, doId)),
    selectUnclaimed(db).where(and(eq(unclaimed.doId, doId), isUnclaimed)),
  ]);
  if (ledger !== undefined) return ofLedger(ledger);
  return other === undefined ? null : ofUnclaimed(other);
}

/** A sweep may have remembered an instance before a record claimed it. */
export const isUnclaimed: SQL = sql`NOT EXISTS (SELECT 1 FROM ${instances} WHERE ${instances.doId} = ${unclaimed.doId})`;

function selectClaimed(db: Database) {
  return db
    .select({
      doId: instances.doId,
      sandboxId: instances.sandboxId,
      uid: instances.workspaceUid,
      namespace: instances.namespace,
      name: instances.name,
      incarnation: instances.incarnation,
      destroyRequestTime: instances.destroyRequestTime,
      adopted: instances.adopted,
      observed: workspaces.observed,
    })
    .from(instances)
    .leftJoin(workspaces, and(eq(workspaces.uid, instances.workspaceUid), eq(workspaces.incarnation, instances.incarnation)))
    .$dynamic();
}

function ofLedger(row: Awaited<ReturnType<typeof selectClaimed>>[number]): KnownInstance {
  const { doId, sandboxId, uid, namespace, name, incarnation, adopted } = row;
  const instance: ClaimedInstance = {
    doId,
    sandboxId,
    owner: { uid, namespace, name, incarnation },
    observed: row.observed === null ? null : toObserved(parseJson(row.observed)),
    destroyRequested: row.destroyRequestTime !== null,
    adopted,
  };
  return { claimed: true, doId, instance };
}

function ofUnclaimed(row: Parameters<typeof toUnclaimed>[0]): KnownInstance {
  const instance = toUnclaimed(row);
  return { claimed: false, doId: instance.doId, instance };
}
