/** What a controller store is tested with, whatever is behind it: hands on its tables, and the values that its calls are given. */
import type { BackupClaim, BackupEnding, BackupSweepRecord, UnclaimedBackup } from "../../src/backup.ts";
import type { BackupDeletionAnswer } from "../../src/store/backup-intent.ts";
import type { BackupSweepResult } from "../../src/store/backup-sweep.ts";
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { DueQuery } from "../../src/store/due.ts";
import type { Admission } from "../../src/store/progress.ts";
import type { SweepResult } from "../../src/store/unclaimed.ts";
import type { ControllerSettings, Unclaimed } from "../../src/unclaimed.ts";
import type { BackupPolicy, Instance, Instant, WorkspaceSpec } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { orphan } from "../support/builders.ts";

/** Of a workspace's row, as a test sets and reads them. */
export interface Columns {
  generation: number;
  resourceVersion: number;
  deletionTime: Instant | null;
  finalBackup: BackupPolicy;
  finalBackupDeadlineTime: Instant | null;
  sourceBackupId: string | null;
  nextReconcileTime: Instant | null;
  wakeTime: Instant | null;
  reconcileRequestTime: Instant | null;
  incarnation: number;
  failures: number;
  nextRetryTime: Instant | null;
  readyTime: Instant | null;
  queuedTime: Instant | null;
  unreachableTime: Instant | null;
  idleTime: Instant | null;
  startId: string | null;
  resyncPhase: number;
}

export interface Look {
  /** By name. */
  readonly workspaces: Readonly<Record<string, Columns & { readonly status: unknown; readonly observed: unknown }>>;
  readonly instances: readonly { readonly doId: string; readonly running: boolean; readonly destroyRequestTime: Instant | null }[];
  /** Every column, in the order in which the rows were written. */
  readonly backups: readonly BackupColumns[];
  readonly unclaimedBackups: readonly UnclaimedBackup[];
  readonly lane: readonly { readonly startId: string; readonly slot: number; readonly deadlineTime: Instant }[];
  readonly unclaimed: readonly Omit<Unclaimed, "ownerLives" | "destroyRequested">[];
  readonly controller: {
    readonly epoch: number;
    readonly expiresTime: Instant;
    readonly resyncTime: Instant;
    readonly lastSweepTime: Instant | null;
    readonly brakeUntilTime: Instant | null;
    readonly brakeFailures: number;
    readonly inventory: unknown;
    readonly backupSweep: unknown;
  } | null;
  /** Written by the controller. */
  readonly events: number;
}

export interface BackupColumns {
  id: string;
  workspaceUid: string;
  namespace: string;
  name: string;
  trigger: string;
  state: string;
  reason: string;
  message: string;
  directory: string;
  requestedTime: Instant;
  startId: string | null;
  generation: number | null;
  startedTime: Instant | null;
  deadlineTime: Instant | null;
  failures: number;
  endedTime: Instant | null;
  objectId: string | null;
  sizeBytes: number | null;
  lostTime: Instant | null;
  workspaceGoneTime: Instant | null;
}

export interface StoreWorld {
  readonly store: ControllerStore;
  /** As the API does it, and then `columns` past it. Answers the uid. */
  readonly create: (name: string, n: number, columns?: Partial<Columns>) => Promise<string>;
  readonly patch: (uid: string, columns: Partial<Columns>) => Promise<void>;
  readonly replace: (uid: string, spec: WorkspaceSpec, now: Instant) => Promise<void>;
  readonly delete: (
    uid: string,
    now: Instant,
    finalBackup?: { readonly policy: BackupPolicy; readonly deadlineTime: Instant },
  ) => Promise<void>;
  /** As a client asks for it; null where the workspace is gone or being deleted. */
  readonly requestBackup: (uid: string, id: string, now: Instant) => Promise<{ readonly id: string; readonly created: boolean } | null>;
  /** As a client asks for it, by the name `w`. */
  readonly deleteBackup: (name: string, id: string, now: Instant) => Promise<BackupDeletionAnswer>;
  /** Past every rule. */
  readonly putBackup: (columns: BackupColumns) => Promise<void>;
  readonly poke: (uid: string, now: Instant) => Promise<void>;
  readonly requestDestroy: (doId: string, now: Instant) => Promise<void>;
  readonly protect: (doId: string) => Promise<void>;
  readonly set: (settings: Partial<ControllerSettings>) => Promise<void>;
  readonly look: () => Promise<Look>;
}

export const NOW = Date.UTC(2026, 10, 30, 12);
export const LEASE_MS = 30_000;
export const RESYNC_MS = 300_000;

export const QUERY: DueQuery = {
  now: NOW,
  resync: null,
  resyncIntervalMs: RESYNC_MS,
  laneWidth: 1,
  runningLimits: {},
  backups: true,
  limit: 100,
};

export function specOf(version = "1", change: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return {
    operatingMode: "Running",
    directory: "/workspace",
    env: { VERSION: version },
    idle: null,
    maxLifetimeSeconds: null,
    expireTime: null,
    source: null,
    setup: [],
    backup: null,
    deletion: { finalBackup: "Skip", deadlineSeconds: 600 },
    paused: false,
    ...change,
  };
}

export function instanceOf(uid: string, incarnation = 1): Instance {
  const sandboxId = `${uid}-${incarnation}`;
  return { doId: `do-${sandboxId}`, sandboxId, incarnation, running: true, destroyRequested: false, adopted: false };
}

/** What a pass concludes that changes nothing. */
export function unchanged(record: WorkspaceRecord, change: Partial<Conclusion> = {}): Conclusion {
  const { status, failures, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime, observed, startId, idleTime } =
    record;
  return {
    status,
    failures,
    nextRetryTime,
    readyTime,
    queuedTime,
    unreachableTime,
    nextReconcileTime,
    observed,
    startId,
    idleTime,
    laneReleased: false,
    running: record.instance?.running ?? false,
    brake: null,
    event: null,
    backup: null,
    ...change,
  };
}

export function admissionOf(record: WorkspaceRecord, startId: string, change: Partial<Admission> = {}): Admission {
  const deadlineTime = NOW + 135_000;
  const conclusion = unchanged(record, { running: true });
  const { sourceBackupId } = record;
  return {
    instance: instanceOf(record.uid),
    startId,
    deadlineTime,
    laneWidth: 1,
    runningLimits: {},
    restoredBackupId: null,
    sourceBackupId,
    conclusion,
    ...change,
  };
}

/** An instance that nobody claims, seen running once. */
export function stranger(doId: string, change: Partial<Unclaimed> = {}): Unclaimed {
  return orphan({ doId, firstSeenTime: NOW, lastSeenTime: NOW, timesSeen: 1, ...change });
}

export function sweepOf(change: Partial<SweepResult> = {}, time: Instant = NOW): SweepResult {
  const record: SweepResult["record"] = {
    time,
    outcome: "Complete",
    message: "",
    running: 0,
    eligible: 0,
    limit: 5,
    brake: null,
    retryTime: null,
  };
  return { unclaimed: [], gone: [], record, ...change };
}

export function claimOf(id: string, change: Partial<BackupClaim> = {}): BackupClaim {
  return { id, trigger: "Schedule", startId: "s1", directory: "/workspace", deadlineTime: NOW + 600_000, failures: 0, ...change };
}

export function endingOf(id: string, change: Partial<BackupEnding> = {}): BackupEnding {
  const good = { state: "Completed", reason: "", message: "", objectId: `object-${id}`, sizeBytes: 4096 } as const;
  return { id, trigger: "Schedule", ...good, ...change };
}

/** A good backup of the workspace, as its pass left it. */
export function goodBackup(id: string, workspaceUid: string, endedTime: Instant, change: Partial<BackupColumns> = {}): BackupColumns {
  const owner = { workspaceUid, namespace: "default", name: "a", directory: "/workspace" };
  const told = { trigger: "Schedule", state: "Completed", reason: "", message: "" };
  const times = { requestedTime: endedTime - 9, startedTime: endedTime - 9, deadlineTime: endedTime + 600_000, endedTime };
  const claimed = { startId: "s1", generation: 1, failures: 0, objectId: `object-${id}`, sizeBytes: 4096 };
  return { id, ...owner, ...told, ...times, ...claimed, lostTime: null, workspaceGoneTime: null, ...change };
}

export function strayObjects(objectId: string, change: Partial<UnclaimedBackup> = {}): UnclaimedBackup {
  const times = { uploadedTime: NOW - 9000, firstSeenTime: NOW, lastSeenTime: NOW };
  return { objectId, sizeBytes: 100, ...times, timesSeen: 1, ...change };
}

export function bucketSweepOf(change: Partial<BackupSweepResult> = {}, time: Instant = NOW): BackupSweepResult {
  const record: BackupSweepRecord = {
    time,
    completeTime: null,
    outcome: "Complete",
    message: "",
    stored: 1,
    eligible: 0,
    limit: 5,
    brake: null,
  };
  return { record, unclaimed: [], gone: [], lost: [], found: [], ...change };
}

/** Each number gives another UUID, evenly spread and in no order. */
export function uidOf(n: number): string {
  const hex = (Math.imul(n + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0");
  return `${hex}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** The value's other fields. */
export function without<Value extends object, Key extends string>(value: Value, ...keys: readonly Key[]): Omit<Value, Key> {
  const dropped: ReadonlySet<string> = new Set(keys);
  return Object.fromEntries(Object.entries(value).filter(([key]) => !dropped.has(key))) as Omit<Value, Key>;
}
