/** From a sandbox's report on a backup to its outcome. Pure. */
import type { BackupOutcome } from "../backup.ts";
import { BACKUP_DEADLINE, type BackupReport } from "../sandbox/protocol.ts";
import { classify } from "./failure.ts";

export function interpretReport(report: BackupReport): BackupOutcome {
  switch (report.state) {
    case "InProgress":
      return { kind: "InProgress" };
    case "Completed":
      return { kind: "Completed", objectId: report.objectId, sizeBytes: report.sizeBytes };
    case "Skipped":
      return { kind: "Skipped", reason: report.reason, message: SKIPPED[report.reason] };
    case "RuntimeReplaced":
      return { kind: "Failed", reason: "RuntimeReplaced", message: "Its container was replaced while it was taken." };
    case "Interrupted":
      return { kind: "Failed", reason: "Interrupted", message: "The sandbox was reset while it was taken." };
    case "Failed": {
      const { class: failureClass, message } = classify(report.failure);
      return { kind: "Failed", reason: reasonOf(report.failure.code, failureClass), message };
    }
  }
}

const SKIPPED: Readonly<Record<Extract<BackupReport, { state: "Skipped" }>["reason"], string>> = {
  NotRunning: "No container ran, or it ended meanwhile.",
  NotRestored: "Another container runs, or one that was not verified.",
  Empty: "The directory is empty.",
};

function reasonOf(code: string | null, failureClass: string): string {
  if (code === BACKUP_DEADLINE) return "DeadlineExceeded";
  return failureClass === "Misconfigured" ? "Misconfigured" : "TakingFailed";
}
