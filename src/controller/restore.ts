/** What the next container of a workspace begins with (invariant 6): its own newest good backup, or what its source stands for. */
import type { StoredBackup } from "../backup.ts";
import type { WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";

export type Restore =
  | { readonly kind: "Nothing" }
  | { readonly kind: "Backup"; readonly backup: StoredBackup }
  /** Something was wished that is not there: to start without it would look like a loss of all files. */
  | { readonly kind: "Missing"; readonly message: string };

const NOTHING: Restore = { kind: "Nothing" };
const NO_BACKUPS = "This installation takes no backups and restores none (BACKUP_MODE).";

export function restoreOf({ backups, unrestorable }: WorkspaceRecord, { source }: WorkspaceSpec): Restore {
  if (unrestorable) return { kind: "Missing", message: NO_BACKUPS };
  if (backups?.newest) return { kind: "Backup", backup: backups.newest };
  if (source === null) return NOTHING;
  if (backups === null) return { kind: "Missing", message: NO_BACKUPS };
  if (backups.source !== null) return { kind: "Backup", backup: backups.source };
  const message =
    "backup" in source
      ? `There is no good backup ${source.backup} in the namespace.`
      : `There is no good backup of a workspace ${source.workspace} in the namespace.`;
  return { kind: "Missing", message };
}

/** The source that a start pins: as long as the workspace has no good backup of its own, each start restores the same one. */
export function sourceToPin(record: WorkspaceRecord, restore: Restore): string | null {
  const isSource = restore.kind === "Backup" && restore.backup.id === record.backups?.source?.id;
  return isSource ? restore.backup.id : record.sourceBackupId;
}
