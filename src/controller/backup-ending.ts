/** How the active backup ended, as far as this pass knows, and what the record is then. Pure. */
import type { ActiveBackup, BackupAttempt, BackupEnding, BackupOutcome } from "../backup.ts";
import type { Instant, Observation } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { failuresBefore } from "./backup-due.ts";

/** The sandbox gives up at the deadline, and its word may come a little later. */
const ABANDON_MARGIN_MS = 15_000;

/** Null where none is active, or it goes on. `outcome`: what its sandbox answered; null where it was not asked. */
export function endingOf(record: WorkspaceRecord, observed: Observation, outcome: BackupOutcome | null, now: Instant): BackupEnding | null {
  const active = record.backups?.active ?? null;
  if (active === null) return null;
  if (active.state === "Requested")
    return canBeTaken(record, observed) ? null : skipped(active, "NotRunning", "The workspace does not run.");
  switch (outcome?.kind) {
    case "Completed":
      return { ...of(active), state: "Completed", reason: "", message: "", objectId: outcome.objectId, sizeBytes: outcome.sizeBytes };
    case "Skipped":
      return skipped(active, outcome.reason, outcome.message);
    case "Failed":
      return { ...of(active), state: "Failed", reason: outcome.reason, message: outcome.message };
    case "InProgress":
    case "Unknown":
    case undefined:
      return isAbandoned(record, active, now) ? abandoned(active) : null;
  }
}

/** The record as it is once the ending is written down. */
export function withEnding(record: WorkspaceRecord, ending: BackupEnding | null, now: Instant): WorkspaceRecord {
  const { backups } = record;
  if (backups === null || ending === null) return record;
  const { active, newest } = backups;
  const isGood = ending.state === "Completed" && ending.objectId !== null;
  return {
    ...record,
    backups: {
      ...backups,
      active: null,
      newest: isGood ? { id: ending.id, objectId: ending.objectId, endedTime: now, lostTime: null } : newest,
      last: active === null ? backups.last : (toAttempt(record, active, ending, now) ?? backups.last),
    },
  };
}

/** What does not run yet may be about to; what gave no answer is not known. */
function canBeTaken({ deletionTime }: WorkspaceRecord, { kind }: Observation): boolean {
  if (deletionTime !== null && kind !== "Running" && kind !== "Unknown") return false;
  return kind !== "Absent" && kind !== "Stopped" && kind !== "Failed" && kind !== "Destroying" && kind !== "Destroyed";
}

function isAbandoned({ instance }: WorkspaceRecord, { deadlineTime }: ActiveBackup, now: Instant): boolean {
  return instance === null || now >= (deadlineTime ?? 0) + ABANDON_MARGIN_MS;
}

function toAttempt(
  { backups, generation }: WorkspaceRecord,
  active: ActiveBackup,
  ending: BackupEnding,
  now: Instant,
): BackupAttempt | null {
  const { startId, startedTime } = active;
  if (startId === null || startedTime === null) return null;
  const isFailure = ending.state === "Failed" || ending.state === "Abandoned";
  const before = failuresBefore(backups?.last ?? null);
  const { trigger, state, message } = ending;
  return { trigger, state, startId, generation, startedTime, endedTime: now, failures: isFailure ? before + 1 : 0, message };
}

function of({ id, trigger }: ActiveBackup) {
  return { id, trigger, objectId: null, sizeBytes: null };
}

function skipped(active: ActiveBackup, reason: string, message: string): BackupEnding {
  return { ...of(active), state: "Skipped", reason, message };
}

function abandoned(active: ActiveBackup): BackupEnding {
  return { ...of(active), state: "Abandoned", reason: "DeadlineExceeded", message: "No outcome came before the deadline." };
}
