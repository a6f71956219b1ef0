/** Has a backup taken: claimed in D1 first, so that whatever happens then is found again, and asked for until there is an outcome. */
import type { ActiveBackup, BackupClaim, BackupOutcome, BackupTrigger } from "../backup.ts";
import type { BackupSettings } from "../config.ts";
import type { ControllerStore } from "../store/controller-store.ts";
import type { Instant, Observation } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { failuresBefore, isUnderWay } from "./backup-due.ts";
import type { Fleet } from "./fleet.ts";

export interface BackupDeps {
  readonly store: ControllerStore;
  readonly fleet: Fleet;
  readonly epoch: number;
  readonly now: () => Instant;
  readonly newId: () => string;
  /** Null: none are taken. */
  readonly backups: BackupSettings | null;
  /** How long a pass may wait for an outcome; what is left of it is found by the next. */
  readonly waitMs: () => number;
}

export interface Taken {
  readonly record: WorkspaceRecord;
  readonly outcome: BackupOutcome | null;
}

/** Null where the claim could not be committed: the row moved on, or another backup is active. */
export async function takeBackup(
  record: WorkspaceRecord,
  trigger: BackupTrigger,
  observed: Observation,
  deps: BackupDeps,
): Promise<Taken | null> {
  if (deps.backups === null) return null;
  const claimed = isUnderWay(record.backups) ? record : await claim(record, trigger, observed, deps.backups, deps);
  const active = claimed?.backups?.active ?? null;
  if (claimed === null || active === null) return null;
  // What is done in a pass among all others keeps nobody waiting: a claim, and all of a deletion. The rest has a room of its own.
  const waitMs = claimed === record && record.deletionTime === null ? deps.waitMs() : 0;
  return { record: claimed, outcome: await ask(claimed, active, waitMs, deps.backups, deps) };
}

/** The record as it is once the claim is committed. */
async function claim(
  record: WorkspaceRecord,
  trigger: BackupTrigger,
  observed: Observation,
  { timeoutMs }: BackupSettings,
  { store, epoch, newId, now }: BackupDeps,
): Promise<WorkspaceRecord | null> {
  const { backups, spec } = record;
  if (observed.kind !== "Running" || backups === null) return null;
  const startedTime = now();
  const { startId } = observed;
  // A request that waits is met by whatever is taken.
  const request = backups.active;
  // The spec may name another by now, where this container has other files, or none.
  const directory = observed.directory ?? request?.directory ?? spec?.directory ?? DEFAULT_DIRECTORY;
  const order: BackupClaim = {
    id: request?.id ?? newId(),
    trigger: request?.trigger ?? trigger,
    startId,
    directory,
    deadlineTime: startedTime + timeoutMs,
    failures: failuresBefore(backups.last),
  };
  if (!(await store.claimBackup(epoch, record, order, startedTime))) return null;
  const { id, deadlineTime } = order;
  const active: ActiveBackup = { id, state: "InProgress", trigger: order.trigger, startId, directory, startedTime, deadlineTime };
  return { ...record, backups: { ...backups, active } };
}

/** Of a workspace whose stored spec no longer parses, which is being deleted. */
const DEFAULT_DIRECTORY = "/workspace";

async function ask(
  { instance, spec }: WorkspaceRecord,
  { id, startId, directory, deadlineTime }: ActiveBackup,
  waitMs: number,
  { mode }: BackupSettings,
  { fleet, epoch, now }: BackupDeps,
): Promise<BackupOutcome | null> {
  if (instance === null || startId === null) return null;
  const order = {
    backupId: id,
    startId,
    directory,
    excludes: spec?.backup?.excludes ?? [],
    // A sandbox that has not heard of it yet begins nothing that could not end in time.
    timeoutMs: Math.max(0, (deadlineTime ?? 0) - now()),
    localBucket: mode === "local",
  };
  return fleet.backup(instance, epoch, order, waitMs);
}
