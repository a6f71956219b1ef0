/** Backups in the model: what the object does about one, what the table remembers of it, and what of it all matters. */
import type { ActiveBackup, BackupAttempt, BackupEnding, BackupMemory, BackupOutcome, BackupTrigger } from "../../../src/backup.ts";
import { hasFailed, retryTime } from "../../../src/controller/backup-due.ts";
import { withEnding } from "../../../src/controller/backup-ending.ts";
import type { Observation } from "../../../src/workspace.ts";
import type { WorkspaceRecord } from "../../../src/workspace-record.ts";
import { OBJECT_ID, requested, storedBackup, underWay } from "../../support/backup-builders.ts";
import { MINUTE, NOW, SECOND } from "../../support/builders.ts";
import type { Sandbox } from "./world.ts";

/** So that a failed one may be tried again, and a claim is worth nothing any more. */
const LONG_AGO = NOW - 10 * MINUTE;

export interface TakenBackup {
  readonly id: string;
  readonly state: "InProgress" | "Completed" | "Failed" | "Skipped";
  /** Begun since the end of its container was wished. */
  readonly fresh: boolean;
}

export const NO_ANSWER: BackupOutcome = { kind: "Unknown", message: "" };

/** Unlike any in a world that is canonical, and a pass claims one at most. */
const NEW_ID = "new backup";

/** As the table has it: with the generation that it was claimed in. */
interface Claim extends ActiveBackup {
  readonly generation?: number;
}

export function claimOf({ backups, generation }: WorkspaceRecord, observed: Observation, trigger: BackupTrigger): Claim {
  const startId = observed.kind === "Running" ? observed.startId : "";
  // Whatever is wished from now on is wished later.
  return { ...underWay({ id: backups?.active?.id ?? NEW_ID, trigger, startId, startedTime: NOW - 1 }), generation };
}

/** Begins it, unless it is known. */
export function runBackup(sandbox: Sandbox, { id, startId }: ActiveBackup): Sandbox {
  const { backup, operation, admission, running } = sandbox;
  if (backup !== null && (backup.id === id || backup.state === "InProgress")) return sandbox;
  const isVerified = running && admission === "Admitted" && operation?.state === "Succeeded" && operation.startId === startId;
  return { ...sandbox, backup: { id, state: isVerified ? "InProgress" : "Skipped", fresh: true } };
}

export function endBackup(sandbox: Sandbox, state: string): Sandbox {
  const { backup } = sandbox;
  return backup === null ? sandbox : { ...sandbox, backup: { ...backup, state: state === "Completed" ? state : "Failed" } };
}

/** Its container has ended, or is told to. */
export function cutOff(backup: TakenBackup | null): TakenBackup | null {
  return backup?.state === "InProgress" ? { ...backup, state: "Skipped" } : backup;
}

export function outcomeOf({ backup }: Sandbox, id: string): BackupOutcome {
  if (backup?.id !== id) return { kind: "Failed", reason: "", message: "" };
  switch (backup.state) {
    case "InProgress":
      return { kind: "InProgress" };
    case "Completed":
      return { kind: "Completed", objectId: OBJECT_ID, sizeBytes: 1 };
    case "Skipped":
      return { kind: "Skipped", reason: "NotRunning", message: "" };
    case "Failed":
      return { kind: "Failed", reason: "", message: "" };
  }
}

/** What the row's backups are once the batch that has the ending is written. */
export function afterEnding(record: WorkspaceRecord, ending: BackupEnding | null): BackupMemory | null {
  const { backups } = withEnding(record, ending, NOW);
  const claim: Claim | null = record.backups?.active ?? null;
  if (backups?.last == null || ending === null || claim?.generation === undefined) return backups;
  return { ...backups, last: { ...backups.last, generation: claim.generation } };
}

export function isSaving(ending: BackupEnding | null): boolean {
  return ending?.state === "Completed" || ending?.state === "Skipped";
}

/** Whether what runs may only be ended with a backup; what an operator asks for may. */
export function isRequired({ backups, spec, deletionTime, finalBackup, finalBackupDeadlineTime, instance }: WorkspaceRecord): boolean {
  if (backups === null) return false;
  if (deletionTime !== null) return finalBackup === "Require" && finalBackupDeadlineTime !== null && NOW < finalBackupDeadlineTime;
  return spec?.backup?.onSuspend === "Require" && instance?.destroyRequested !== true;
}

/** So long that what failed may be tried again. */
export function aged(backups: BackupMemory | null): BackupMemory | null {
  return backups?.last && hasFailed(backups.last) ? { ...backups, last: outlived(backups.last) } : backups;
}

/** So long that it says nothing of what is there now. */
export function outlived(last: BackupAttempt): BackupAttempt {
  return { ...last, endedTime: LONG_AGO };
}

/** A good one, of what may still be there. */
export function isFresh(last: BackupAttempt): boolean {
  return !hasFailed(last) && NOW < last.endedTime + 5 * MINUTE;
}

export function canonicalTaken(backup: TakenBackup | null, { backups }: WorkspaceRecord): TakenBackup | null {
  if (backup === null) return null;
  const isActive = backups?.active?.id === backup.id;
  if (isActive) return { ...backup, id: "active" };
  return backup.state === "InProgress" ? { ...backup, id: "of the past" } : null;
}

interface Start {
  readonly startId: string | null;
  readonly name: string;
}

/** Of times, their order; of ids, whether they are those of what is there now. */
export function canonicalMemory(row: WorkspaceRecord, start: Start): BackupMemory | null {
  const { backups, deletionTime, idleTime, generation } = row;
  if (backups === null) return null;
  const { active, newest, last } = backups;
  const nameOf = (startId: string | null) => (startId !== null && startId === start.startId ? start.name : "another");
  return {
    source: null,
    newest: newest && storedBackup({ endedTime: LONG_AGO }),
    active: active && canonicalActive(active, nameOf(active.startId), deletionTime ?? idleTime, generation),
    last: last && canonicalAttempt(last, nameOf(last.startId), deletionTime ?? idleTime, generation),
  };
}

function canonicalActive(active: Claim, startId: string, since: number | null, generation: number): Claim {
  const { state, deadlineTime, startedTime } = active;
  if (state === "Requested") return requested({ id: "active" });
  const isOld = since !== null && (startedTime ?? 0) < since;
  const times = { startedTime: isOld ? 0 : NOW - SECOND, deadlineTime: (deadlineTime ?? 0) > NOW ? NOW + MINUTE : LONG_AGO };
  return { ...underWay({ id: "active", trigger: "Suspend", startId, ...times }), generation: active.generation === generation ? 2 : 1 };
}

function canonicalAttempt(last: BackupAttempt, startId: string, since: number | null, generation: number): BackupAttempt {
  const isOld = since !== null && last.startedTime < since;
  return {
    ...last,
    trigger: "Suspend",
    startId,
    generation: last.generation === generation ? 2 : 1,
    startedTime: isOld ? 0 : NOW - SECOND,
    endedTime: isFresh(last) || (hasFailed(last) && NOW < retryTime(last)) ? NOW : LONG_AGO,
    failures: Math.min(1, last.failures),
  };
}
