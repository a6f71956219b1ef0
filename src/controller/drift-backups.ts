/** The drift report's items about backups: those that are late, objects that no row knows, rows that have lost their objects. */
import type { StoredBackup, UnclaimedBackup } from "../backup.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { overdueSince } from "./backup-due.ts";
import { backupGuardOf } from "./backup-orphans.ts";
import { type DriftContext, type DriftItem, about } from "./drift-item.ts";

/** A good backup whose objects the last complete sweep has missed. */
export interface LostBackup {
  readonly id: string;
  readonly objectId: string;
  readonly namespace: string;
  readonly name: string;
  readonly lostTime: Instant;
}

/** Without a row: nobody's, until its objects are gone. */
export function driftOfUnclaimedBackup(objects: UnclaimedBackup, context: DriftContext): readonly DriftItem[] {
  const { objectId, sizeBytes, firstSeenTime, timesSeen } = objects;
  const guard = backupGuardOf(objects, { ...context, graceMs: context.backupGraceMs }, null) ?? context.backupBrake;
  return [
    {
      type: "BackupOrphaned",
      workspace: null,
      instance: null,
      backup: { id: null, objectId },
      differences: [{ field: "/backup/objects", desired: "none", observed: `${sizeBytes} bytes` }],
      firstSeenTime,
      timesSeen,
      plannedAction: guard === "GcOff" || guard === "ReportOnly" ? "None" : "Remove",
      blockedBy: guard,
      reason: "NoRow",
      message: "",
    },
  ];
}

export function driftOfLostBackup({ id, objectId, namespace, name, lostTime }: LostBackup): readonly DriftItem[] {
  return [
    {
      type: "BackupOrphaned",
      workspace: { namespace, name },
      instance: null,
      backup: { id, objectId },
      differences: [{ field: "/backup/objects", desired: "archive and metadata", observed: "missing" }],
      firstSeenTime: lostTime,
      timesSeen: 1,
      plannedAction: "None",
      blockedBy: null,
      reason: "NoObjects",
      message: "The bucket no longer has it. Its workspace restores no older one by itself: delete the backup to have it do so.",
    },
  ];
}

/** Only of what runs: what sleeps was backed up before it did, or as its spec says. */
export function driftOfOverdueBackup(record: WorkspaceRecord, { now, settings }: DriftContext): readonly DriftItem[] {
  const { spec, backups } = record;
  const since = spec === null ? null : overdueSince(record, spec, now);
  if (spec === null || since === null) return [];
  return [
    {
      type: "BackupOverdue",
      ...about(record),
      differences: [
        { field: "/spec/backup/everySeconds", desired: `${spec.backup?.everySeconds} s`, observed: ageOf(backups?.newest, now) },
      ],
      firstSeenTime: since,
      timesSeen: backups?.last?.failures ?? 0,
      plannedAction: "Backup",
      blockedBy: settings.paused ? "ControllerPaused" : spec.paused ? "Paused" : record.unreachableTime === null ? null : "Unreachable",
      reason: backups?.last?.state ?? "NeverBackedUp",
      message: backups?.last?.message ?? "",
    },
  ];
}

function ageOf(newest: StoredBackup | null | undefined, now: Instant): string {
  return newest ? `${Math.floor((now - newest.endedTime) / 1000)} s` : "none";
}
