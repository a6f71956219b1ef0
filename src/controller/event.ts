/** What of a change of status is told in the workspace's history. */
import type { Reason, WorkspaceStatus } from "../workspace.ts";
import type { WorkspaceEvent } from "../workspace-record.ts";

const WARNINGS: ReadonlySet<Reason> = new Set([
  "StartFailed",
  "StartTimeout",
  "CapacityUnavailable",
  "RateLimited",
  "QuotaExceeded",
  "ContainerExited",
  "CrashLoopBackOff",
  "LifetimeExceeded",
  "RestoreFailed",
  "SetupFailed",
  "SourceNotFound",
  "BackupFailed",
  "Unreachable",
  "InvalidSpec",
  "Misconfigured",
]);

/** Null where neither the phase nor the reason for it is another. */
export function eventOf(before: WorkspaceStatus, after: WorkspaceStatus): WorkspaceEvent | null {
  const ready = after.conditions.find(({ type }) => type === "Ready");
  const last = before.conditions.find(({ type }) => type === "Ready");
  if (ready === undefined || (before.phase === after.phase && last?.reason === ready.reason)) return null;
  return { type: WARNINGS.has(ready.reason) ? "Warning" : "Normal", reason: ready.reason, message: ready.message };
}
