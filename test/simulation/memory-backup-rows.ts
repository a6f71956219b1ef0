/** The rows of `backups` as the memory store keeps them, and the look-ups of `src/store/backup-selections.ts` over them. */
import type { Backup, BackupMemory, StoredBackup } from "../../src/backup.ts";
import type { Instant } from "../../src/workspace.ts";
import type { WorkspaceRow } from "./memory-rows.ts";

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

export interface BackupRow extends Mutable<Backup> {
  startId: string | null;
  generation: number | null;
  deadlineTime: Instant | null;
  failures: number;
  objectId: string | null;
  workspaceGoneTime: Instant | null;
}

/** By id, and beside that by workspace: a day may see thousands. */
export class BackupTable extends Map<string, BackupRow> {
  readonly #byWorkspace = new Map<string, Set<BackupRow>>();

  override set(id: string, row: BackupRow): this {
    this.delete(id);
    this.#byWorkspace.set(row.workspaceUid, this.of(row.workspaceUid).add(row));
    return super.set(id, row);
  }

  override delete(id: string): boolean {
    const row = this.get(id);
    if (row !== undefined) this.of(row.workspaceUid).delete(row);
    return super.delete(id);
  }

  of(workspaceUid: string): Set<BackupRow> {
    return this.#byWorkspace.get(workspaceUid) ?? new Set();
  }

  /** The one that is asked for or under way. */
  activeOf(workspaceUid: string): BackupRow | null {
    return [...this.of(workspaceUid)].find(isActive) ?? null;
  }
}

export function isActive({ state }: BackupRow): boolean {
  return state === "Requested" || state === "InProgress";
}

/** One that ended, and was claimed before. */
export function isAttempt({ state, startedTime }: BackupRow): boolean {
  return startedTime !== null && (state === "Completed" || state === "Skipped" || state === "Failed" || state === "Abandoned");
}

export function memoryOf(table: BackupTable, workspace: WorkspaceRow): BackupMemory {
  const own = [...table.of(workspace.uid)];
  const active = own.find(isActive);
  const last = own.filter(isAttempt).toSorted(byAttempt).at(-1);
  return {
    active: active === undefined ? null : toActive(active),
    newest: toStored(newestOf(own)),
    last: last === undefined ? null : toAttempt(last),
    source: toStored(sourceOf(table, workspace)),
  };
}

/** Of all backups to which a record refers. */
export function referredIds(table: BackupTable, workspaces: Iterable<WorkspaceRow>): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const row of workspaces) {
    const { source } = row.spec ?? { source: null };
    if (row.sourceBackupId !== null) ids.add(row.sourceBackupId);
    const isByName = source !== null && !("backup" in source);
    if (row.sourceBackupId === null || !isByName) ids.add(sourceOf(table, { ...row, sourceBackupId: null })?.id ?? "");
  }
  return ids;
}

/** How many good backups of the same workspace, with their objects, are newer. */
export function newerGood(table: BackupTable, row: BackupRow): number {
  const newer = [...table.of(row.workspaceUid)].filter(({ state, lostTime }) => state === "Completed" && lostTime === null);
  return newer.filter((other) => byEnd(other, row) > 0).length;
}

export function byAttempt(one: BackupRow, other: BackupRow): number {
  return (one.startedTime ?? 0) - (other.startedTime ?? 0) || byEnd(one, other);
}

function byEnd(one: BackupRow, other: BackupRow): number {
  return (one.endedTime ?? 0) - (other.endedTime ?? 0) || Number(one.id > other.id) - Number(one.id < other.id);
}

function newestOf(rows: Iterable<BackupRow>): BackupRow | null {
  return (
    [...rows]
      .filter(({ state }) => state === "Completed")
      .toSorted(byEnd)
      .at(-1) ?? null
  );
}

function sourceOf(table: BackupTable, { uid, namespace, spec, sourceBackupId }: WorkspaceRow): BackupRow | null {
  const source = spec?.source ?? null;
  if (sourceBackupId !== null) return goodOrNone(table.get(sourceBackupId));
  if (source === null) return null;
  const isOf = (row: BackupRow) => row.namespace === namespace;
  if ("backup" in source) {
    const named = goodOrNone(table.get(source.backup));
    return named !== null && isOf(named) ? named : null;
  }
  return newestOf([...table.values()].filter((row) => isOf(row) && row.name === source.workspace && row.workspaceUid !== uid));
}

function goodOrNone(row: BackupRow | undefined): BackupRow | null {
  return row?.state === "Completed" ? row : null;
}

function toStored(row: BackupRow | null): StoredBackup | null {
  if (row === null) return null;
  const { id, objectId, endedTime, lostTime } = row;
  return { id, objectId: objectId ?? "", endedTime: endedTime ?? 0, lostTime };
}

function toActive({ id, state, trigger, startId, directory, startedTime, deadlineTime }: BackupRow): BackupMemory["active"] {
  return { id, state: state as "Requested" | "InProgress", trigger, startId, directory, startedTime, deadlineTime };
}

function toAttempt(row: BackupRow): BackupMemory["last"] {
  const { trigger, startId, generation, startedTime, endedTime, failures, message } = row;
  const state = row.state as "Completed" | "Skipped" | "Failed" | "Abandoned";
  const times = { startedTime: startedTime ?? 0, endedTime: endedTime ?? 0 };
  return { trigger, state, startId: startId ?? "", generation: generation ?? 0, ...times, failures, message };
}
