/** Rows and what they mean. A row is parsed, not trusted: what no longer reads well gets a defined meaning and never throws. */
import { parseStoredSpec } from "../spec.ts";
import type { BackupPolicy, Workspace } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import type { workspaces } from "./schema.ts";
import { toObserved, toStatus } from "./status.ts";

type WorkspaceRow = typeof workspaces.$inferSelect;

/** What a reader sees beside the row. */
type Beside = Pick<Workspace, "sandboxId" | "lastBackup">;

export function toWorkspace(row: WorkspaceRow, { sandboxId, lastBackup }: Beside): Workspace {
  return {
    uid: row.uid,
    namespace: row.namespace,
    name: row.name,
    generation: row.generation,
    revision: row.revision,
    resourceVersion: row.resourceVersion,
    creationTime: row.creationTime,
    deletionTime: row.deletionTime,
    labels: toStringMap(row.labels),
    annotations: toStringMap(row.annotations),
    spec: parseJson(row.spec),
    status: toStatus(parseJson(row.status)),
    sandboxId,
    incarnation: row.incarnation,
    failures: row.failures,
    nextRetryTime: row.nextRetryTime,
    lastBackup,
  };
}

/** Of a record: what does not lie in its own row. */
type FoundBeside = Pick<WorkspaceRecord, "instance" | "lane" | "quotaReached" | "backups" | "unrestorable">;

export function toRecord(row: WorkspaceRow, { instance, lane, quotaReached, backups, unrestorable }: FoundBeside): WorkspaceRecord {
  return {
    uid: row.uid,
    namespace: row.namespace,
    name: row.name,
    generation: row.generation,
    resourceVersion: row.resourceVersion,
    deletionTime: row.deletionTime,
    finalBackup: toPolicy(row.finalBackup),
    finalBackupDeadlineTime: row.finalBackupDeadlineTime,
    backups,
    unrestorable,
    sourceBackupId: row.sourceBackupId,
    spec: parseStoredSpec(parseJson(row.spec)),
    status: toStatus(parseJson(row.status)),
    incarnation: row.incarnation,
    instance,
    lane,
    startId: row.startId,
    observed: row.observed === null ? null : toObserved(parseJson(row.observed)),
    idleTime: row.idleTime,
    wakeTime: row.wakeTime,
    reconcileRequestTime: row.reconcileRequestTime,
    quotaReached,
    failures: row.failures,
    nextRetryTime: row.nextRetryTime,
    readyTime: row.readyTime,
    queuedTime: row.queuedTime,
    unreachableTime: row.unreachableTime,
    nextReconcileTime: row.nextReconcileTime,
    resyncPhase: row.resyncPhase,
  };
}

/** A deletion that does not say, or says what this version does not know, waits for nothing. */
function toPolicy(text: string | null): BackupPolicy {
  return text === "Require" || text === "BestEffort" ? text : "Skip";
}

function toStringMap(text: string): Readonly<Record<string, string>> {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
