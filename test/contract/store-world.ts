/** What a controller store is tested with, whatever is behind it: hands on its tables, and the values that its calls are given. */
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { DueQuery } from "../../src/store/due.ts";
import type { Admission } from "../../src/store/progress.ts";
import type { SweepResult } from "../../src/store/unclaimed.ts";
import type { ControllerSettings, Unclaimed } from "../../src/unclaimed.ts";
import type { Instance, Instant, WorkspaceSpec } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { orphan } from "../support/builders.ts";

/** Of a workspace's row, as a test sets and reads them. */
export interface Columns {
  generation: number;
  resourceVersion: number;
  deletionTime: Instant | null;
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
  } | null;
  /** Written by the controller. */
  readonly events: number;
}

export interface StoreWorld {
  readonly store: ControllerStore;
  /** As the API does it, and then `columns` past it. Answers the uid. */
  readonly create: (name: string, n: number, columns?: Partial<Columns>) => Promise<string>;
  readonly patch: (uid: string, columns: Partial<Columns>) => Promise<void>;
  readonly replace: (uid: string, spec: WorkspaceSpec, now: Instant) => Promise<void>;
  readonly delete: (uid: string, now: Instant) => Promise<void>;
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
  limit: 100,
};

export function specOf(version = "1"): WorkspaceSpec {
  return {
    operatingMode: "Running",
    directory: "/workspace",
    env: { VERSION: version },
    idle: null,
    maxLifetimeSeconds: null,
    expireTime: null,
    paused: false,
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
    ...change,
  };
}

export function admissionOf(record: WorkspaceRecord, startId: string, change: Partial<Admission> = {}): Admission {
  const deadlineTime = NOW + 135_000;
  const conclusion = unchanged(record, { running: true });
  return { instance: instanceOf(record.uid), startId, deadlineTime, laneWidth: 1, runningLimits: {}, conclusion, ...change };
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
