/** A verdict spelled out as conditions. All of them are set each time; a transition time moves only when its status does. */
import type { Condition, ConditionStatus, Instant, Phase, Reason, WorkspaceStatus } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { hasFailed, overdueSince } from "./backup-due.ts";

export interface Verdict {
  readonly phase: Phase;
  readonly ready: ConditionStatus;
  /** Why Ready is what it is. */
  readonly reason: Reason;
  readonly message: string;
  /** The controller is on its way to the wish. */
  readonly reconciling?: boolean;
  /** Retrying is pointless until the generation changes. */
  readonly stall?: Pick<Condition, "reason" | "message"> | undefined;
  /** Down because it was wished so. */
  readonly suspended?: boolean;
}

type Draft = Pick<Condition, "type" | "status" | "reason" | "message">;

export function nextStatus(record: WorkspaceRecord, verdict: Verdict, now: Instant): WorkspaceStatus {
  const { reason, message } = verdict;
  const settled: Draft = { type: "Reconciling", status: "False", reason: "Settled", message: "" };
  const drafts: readonly Draft[] = [
    { type: "Ready", status: verdict.ready, reason, message },
    verdict.reconciling ? { type: "Reconciling", status: "True", reason, message: "" } : settled,
    verdict.stall
      ? { type: "Stalled", status: "True", reason: verdict.stall.reason, message: verdict.stall.message }
      : { type: "Stalled", status: "False", reason: "Retryable", message: "" },
    verdict.suspended
      ? { type: "Suspended", status: "True", reason, message: "" }
      : { type: "Suspended", status: "False", reason: suspendedReason(record, verdict), message: "" },
    ...backupCurrent(record, now),
  ];
  return {
    observedGeneration: record.generation,
    phase: verdict.phase,
    conditions: drafts.map((draft) => date(draft, record, now)),
  };
}

/** Whether what the next container would begin with is as new as the spec wishes; no word where no backups are taken. */
function backupCurrent(record: WorkspaceRecord, now: Instant): readonly Draft[] {
  const { backups, spec } = record;
  if (backups === null) return [];
  if (backups.newest === null) return notCurrent("NeverBackedUp");
  if (backups.newest.lostTime !== null) return notCurrent("BackupLost", "The bucket no longer has the newest backup.");
  if (spec !== null && overdueSince(record, spec, now) !== null) return notCurrent("BackupOverdue");
  if (backups.last !== null && hasFailed(backups.last)) return notCurrent("BackupFailed", backups.last.message);
  return [{ type: "BackupCurrent", status: "True", reason: "BackupCompleted", message: "" }];
}

function notCurrent(reason: Reason, message = ""): readonly Draft[] {
  return [{ type: "BackupCurrent", status: "False", reason, message }];
}

function suspendedReason({ deletionTime, spec }: WorkspaceRecord, { phase }: Verdict): Reason {
  if (deletionTime !== null) return "Terminating";
  return phase === "Suspending" || spec?.operatingMode === "Suspended" ? "Suspending" : "WishedRunning";
}

function date(draft: Draft, record: WorkspaceRecord, now: Instant): Condition {
  const before = record.status.conditions.find(({ type }) => type === draft.type);
  const lastTransitionTime = before?.status === draft.status ? before.lastTransitionTime : now;
  return { ...draft, observedGeneration: record.generation, lastTransitionTime };
}
