/** What the drift report is made of. */
import type { Instant, WorkspaceName } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import type { Difference } from "./compare.ts";
import type { GcContext } from "./orphans.ts";

export const DRIFT_TYPES = [
  "Missing",
  "Unexpected",
  "OutOfSync",
  "Orphaned",
  "Stalled",
  "Unreachable",
  "IdleOverrun",
  "LifetimeOverrun",
  "DestroyNotEffective",
  "BackupOverdue",
  "BackupOrphaned",
] as const;
export type DriftType = (typeof DRIFT_TYPES)[number];

/** `None`: nothing will be done until somebody acts. */
export type PlannedAction = "Start" | "Stop" | "Suspend" | "Destroy" | "Replace" | "Delete" | "Observe" | "Backup" | "Remove" | "None";

export interface DriftItem {
  readonly type: DriftType;
  readonly workspace: WorkspaceName | null;
  readonly instance: { readonly doId: string; readonly sandboxId: string | null } | null;
  /** Null where it is about none. */
  readonly backup: { readonly id: string | null; readonly objectId: string } | null;
  readonly differences: readonly Omit<Difference, "type">[];
  readonly firstSeenTime: Instant;
  /** By passes or sweeps that wrote down what they saw; 0 where none has yet. */
  readonly timesSeen: number;
  readonly plannedAction: PlannedAction;
  /** Why it is not done now; null where it is about to be. */
  readonly blockedBy: string | null;
  readonly reason: string;
  readonly message: string;
}

export interface DriftContext extends GcContext {
  /** The start lane takes nobody before this. */
  readonly brakeUntilTime: Instant | null;
  /** Why the last sweep destroyed no orphan. */
  readonly gcBrake: "TooManyOrphans" | "EmptyDesired" | null;
  /** Objects in the bucket that are younger are left alone. */
  readonly backupGraceMs: number;
  /** Why the last sweep of the bucket removed none. */
  readonly backupBrake: "TooManyOrphans" | "EmptyDesired" | null;
  /** Whether the last sweep saw everything. */
  readonly isComplete: boolean;
}

/** The parts that name a workspace. */
export function about({ namespace, name, instance }: WorkspaceRecord): Pick<DriftItem, "workspace" | "instance" | "backup"> {
  const sandbox = instance === null ? null : { doId: instance.doId, sandboxId: instance.sandboxId };
  return { workspace: { namespace, name }, instance: sandbox, backup: null };
}
