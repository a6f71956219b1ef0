/** Backups as tests name them. Every time is an offset from `NOW`. */
import type { ActiveBackup, BackupAttempt, BackupMemory, StoredBackup } from "../../src/backup.ts";
import type { BackupPolicy, BackupSpec, Observation, WorkspaceSpec } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { MINUTE, NOW, SECOND, START_ID, readyRecord, spec } from "./builders.ts";

export const HOUR = 60 * MINUTE;
export const OBJECT_ID = "0b1ec700-0000-4000-8000-000000000001";

/** Takes an hour's rest between two, and one try before a container is ended. */
export const BACKUPS: BackupSpec = {
  everySeconds: 3600,
  onSuspend: "BestEffort",
  excludes: [],
  retention: { keepLast: 5, keepForSeconds: 604_800 },
};

export function backedUp(overrides: Partial<BackupSpec> = {}, others: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return spec({ backup: { ...BACKUPS, ...overrides }, ...others });
}

/** No schedule: only what ends a container takes one. */
export function endsWith(onSuspend: BackupPolicy, others: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return backedUp({ everySeconds: null, onSuspend }, others);
}

/** Of ten minutes ago. */
export function storedBackup(overrides: Partial<StoredBackup> = {}): StoredBackup {
  return { id: "backup-1", objectId: OBJECT_ID, endedTime: NOW - 10 * MINUTE, lostTime: null, ...overrides };
}

/** Asked for a second ago. */
export function requested(overrides: Partial<ActiveBackup> = {}): ActiveBackup {
  const unclaimed = { startId: null, startedTime: null, deadlineTime: null };
  return { id: "backup-2", state: "Requested", trigger: "Request", directory: "/workspace", ...unclaimed, ...overrides };
}

/** Claimed four seconds ago. */
export function underWay(overrides: Partial<ActiveBackup> = {}): ActiveBackup {
  const claim = { startId: START_ID, startedTime: NOW - 4 * SECOND, deadlineTime: NOW + 5 * MINUTE };
  return { id: "backup-2", state: "InProgress", trigger: "Schedule", directory: "/workspace", ...claim, ...overrides };
}

/** Of this generation and the container that runs, taken just now. */
export function attempt(state: BackupAttempt["state"], overrides: Partial<BackupAttempt> = {}): BackupAttempt {
  const times = { startedTime: NOW - 3 * SECOND, endedTime: NOW - SECOND };
  const failures = state === "Failed" || state === "Abandoned" ? 1 : 0;
  return { trigger: "Suspend", state, startId: START_ID, generation: 1, ...times, failures, message: "", ...overrides };
}

export function memory(overrides: Partial<BackupMemory> = {}): BackupMemory {
  return { active: null, newest: null, last: null, source: null, ...overrides };
}

/** Ready for two hours, where backups are taken. */
export function keptRecord(backups: Partial<BackupMemory>, overrides: Partial<WorkspaceRecord> = {}): WorkspaceRecord {
  return readyRecord({ spec: backedUp(), readyTime: NOW - 2 * HOUR, backups: memory(backups), ...overrides });
}

export const restoring: Observation = { kind: "Preparing", startId: START_ID, step: "Restore" };
export const settingUp: Observation = { kind: "Preparing", startId: START_ID, step: "Setup" };
