/**
 * A world small enough to visit all of it: what D1 holds, what each sandbox's object holds, and what the laws need to remember.
 *
 * Times are relative to `NOW` and canonical: what matters of a time is whether it is set, and on which side of now it lies.
 */
import { specHash } from "../../../src/controller/spec-hash.ts";
import type { AdmissionState, SandboxFacts, StartOperation } from "../../../src/sandbox/protocol.ts";
import type { BackupMemory } from "../../../src/backup.ts";
import type { Condition, FailureClass, WorkspaceSpec } from "../../../src/workspace.ts";
import type { LaneHold, WorkspaceRecord } from "../../../src/workspace-record.ts";
import { MINUTE, NOW, SECOND, instance, record, spec } from "../../support/builders.ts";
import { endsWith } from "../../support/backup-builders.ts";
import { type TakenBackup, canonicalMemory, canonicalTaken } from "./backups.ts";

export interface Operation {
  readonly startId: string;
  readonly state: StartOperation["state"];
  readonly specHash: string;
  readonly failure: FailureClass | null;
  /** Works on it in memory. */
  readonly live: boolean;
  /** Its container answers and is being restored. */
  readonly restoring: boolean;
}

export interface Sandbox {
  readonly epoch: number;
  readonly admission: AdmissionState;
  readonly operation: Operation | null;
  readonly running: boolean;
  readonly exit: End | null;
  /** No user has used it for longer than `idle` allows. */
  readonly unused: boolean;
  /** Its container has run for longer than `maxLifetimeSeconds`. */
  readonly old: boolean;
  /** The last backup that it was told to take. */
  readonly backup: TakenBackup | null;
}

export interface End {
  readonly code: number;
  /** The platform told it to go. */
  readonly signalled: boolean;
}

export interface Workspace {
  /** As the table has it: its spec is the wish also where it does not parse now, and its lane is in the world's. */
  readonly row: WorkspaceRecord | null;
  readonly parses: boolean;
  readonly sandbox: Sandbox;
  /** A start of this generation failed for good. */
  readonly doomed: boolean;
  /** The last start failed, or a container crashed that it or a pass had vouched for, and no pass has counted it. */
  readonly owed: boolean;
  /** How the sandbox ended last has been counted. */
  readonly counted: boolean;
  /** Suspended for idleness, and neither woken nor wished otherwise since. */
  readonly asleep: boolean;
  /** The time up to which it was wished has come. */
  readonly expired: boolean;
  /** What runs was saved, or held nothing, since its end was wished. */
  readonly saved: boolean;
}

export interface World {
  readonly epoch: number;
  readonly lane: (LaneHold & { readonly uid: string }) | null;
  readonly brake: boolean;
  readonly workspaces: Readonly<Record<string, Workspace>>;
}

const IDLE_MS = 600_000;
const LIFETIME_MS = 3_600_000;
/** So long that a workspace that was not used since is idle. */
export const LONG_AGO = NOW - IDLE_MS;
/** Of what nobody uses, a use before the usual mark of idleness, and a mark that came before it. */
const LAST_USE = LONG_AGO - 2 * SECOND;
const MARK = LONG_AGO - SECOND;
export const FORMER_MARK = LAST_USE - SECOND;

export const UNTOUCHED: Sandbox = {
  epoch: 1,
  admission: "None",
  operation: null,
  running: false,
  exit: null,
  unused: false,
  old: false,
  backup: null,
};
const NOTHING_BEFELL = { parses: true, doomed: false, owed: false, counted: false, asleep: false, expired: false, saved: false };
export const RUN_A = spec();
export const RUN_B = spec({ env: { B: "1" } });
export const SUSPENDED = spec({ operatingMode: "Suspended" });
export const PAUSED = spec({ paused: true });
export const RUN_IDLE = spec({ idle: { timeoutSeconds: IDLE_MS / 1000 } });
export const RUN_MORTAL = spec({
  maxLifetimeSeconds: LIFETIME_MS / 1000,
  expireTime: new Date(NOW + 24 * LIFETIME_MS).toISOString(),
});

const REQUIRED = endsWith("Require").backup;
export const RUN_SAVED = spec({ backup: REQUIRED });
export const SUSPENDED_SAVED = spec({ ...SUSPENDED, backup: REQUIRED });
export const IDLE_SAVED = spec({ ...RUN_IDLE, backup: REQUIRED });

export function newWorld(uids: readonly string[], wish: WorkspaceSpec, backups: BackupMemory | null): World {
  const workspaces = uids.map((uid): [string, Workspace] => [
    uid,
    { row: record({ uid, spec: wish, backups }), sandbox: UNTOUCHED, ...NOTHING_BEFELL },
  ]);
  return { epoch: 2, lane: null, brake: false, workspaces: Object.fromEntries(workspaces) };
}

export function workspaceOf(world: World, uid: string): Workspace {
  const workspace = world.workspaces[uid];
  if (workspace === undefined) throw new Error(`no such workspace: ${uid}`);
  return workspace;
}

export function withWorkspace(world: World, uid: string, change: Partial<Workspace>): World {
  return { ...world, workspaces: { ...world.workspaces, [uid]: { ...workspaceOf(world, uid), ...change } } };
}

export function withSandbox(world: World, uid: string, change: Partial<Sandbox>): World {
  const { sandbox, counted } = workspaceOf(world, uid);
  const after = { ...sandbox, ...change };
  return withWorkspace(world, uid, { sandbox: after, counted: counted && isSameEnd(sandbox, after) });
}

function isSameEnd({ operation, exit }: Sandbox, after: Sandbox): boolean {
  const isSameStart = operation?.startId === after.operation?.startId && operation?.state === after.operation?.state;
  return isSameStart && exit === after.exit;
}

/** A write to the row: whoever read it before has an old version. */
export function withRow(world: World, uid: string, change: Partial<WorkspaceRecord>): World {
  const { row } = workspaceOf(world, uid);
  return row === null ? world : withWorkspace(world, uid, { row: { ...row, ...change, resourceVersion: row.resourceVersion + 1 } });
}

/** The row as a pass loads it. */
export function load(world: World, uid: string): WorkspaceRecord | null {
  const { row, parses, expired } = workspaceOf(world, uid);
  if (row === null) return null;
  const lane = world.lane?.uid === uid ? world.lane : null;
  if (row.spec === null || !parses) return { ...row, spec: null, lane };
  return { ...row, spec: expired ? { ...row.spec, expireTime: new Date(NOW).toISOString() } : row.spec, lane };
}

export function wishesRunning(row: WorkspaceRecord): boolean {
  return row.deletionTime === null && row.spec?.operatingMode === "Running" && !row.spec.paused;
}

export function hashOf(wish: WorkspaceSpec | null): string {
  return wish === null ? "" : specHash(wish);
}

export function factsOf({ running, admission, operation, exit, unused, old }: Sandbox): SandboxFacts {
  const failure = operation?.failure;
  return {
    running,
    admission,
    operation: operation && {
      startId: operation.startId,
      state: operation.state,
      specHash: operation.specHash,
      startedTime: NOW,
      deadlineTime: NOW + MINUTE,
      step: operation.restoring ? "Restore" : "Container",
      failure: failure ? { messages: [MESSAGES[failure] ?? failure], code: null, exitCode: null, retryAfterMs: null } : null,
    },
    exit: exit === null || running ? null : { ...exit, time: NOW - SECOND },
    startedTime: running ? NOW - (old ? LIFETIME_MS : LIFETIME_MS / 2) : null,
    activityTime: running ? (unused ? LAST_USE : NOW - SECOND) : null,
  };
}

const MESSAGES: Partial<Record<FailureClass, string>> = {
  Capacity: "There is no container instance available at this time",
  Permanent: "no such image",
  Misconfigured: "Containers have not been enabled for this Durable Object class",
  Transient: "network connection lost",
};

/** The same world with its times, versions and ids as small as they go; worlds that differ in nothing else become equal. */
export function canonical(world: World): World {
  const places = queuePlaces(world);
  const { lane } = world;
  const workspaces = Object.entries(world.workspaces).map(([uid, workspace]): [string, Workspace] => [
    uid,
    canonicalWorkspace(workspace, places),
  ]);
  const heldLane = lane && {
    uid: lane.uid,
    startId: startName(lane.startId, workspaceOf(world, lane.uid).row),
    queuedTime: places.get(lane.queuedTime) ?? NOW,
    deadlineTime: NOW + MINUTE,
  };
  return { epoch: 2, lane: heldLane, brake: world.brake, workspaces: Object.fromEntries(workspaces) };
}

const AWAITED = "awaited";
const PAST = "of the past";

/** Who holds the lane is awaited, too. */
function startName(startId: string, row: WorkspaceRecord | null): string {
  return startId === row?.startId ? AWAITED : PAST;
}

function canonicalWorkspace({ row, sandbox, ...ghosts }: Workspace, places: Places): Workspace {
  if (row === null) return { row: null, sandbox: UNTOUCHED, ...NOTHING_BEFELL };
  const age = (generation: number) => (generation === row.generation ? 2 : 1);
  const canonicalSandbox = {
    epoch: 2,
    admission: sandbox.admission,
    operation: sandbox.operation && canonicalOperation(sandbox.operation, startName(sandbox.operation.startId, row)),
    running: sandbox.running,
    exit: sandbox.running ? null : sandbox.exit,
    unused: sandbox.running && sandbox.unused,
    old: sandbox.running && sandbox.old,
    backup: canonicalTaken(sandbox.backup, row),
  };
  const isRunning = { startId: sandbox.operation?.startId ?? null, name: canonicalSandbox.operation?.startId ?? "" };
  const backups = canonicalMemory(row, isRunning);
  return { row: { ...canonicalRow(row, places, age), backups }, sandbox: canonicalSandbox, ...ghosts };
}

/** How a start ended matters only as long as it is awaited, and what it ran with only as long as it may run. */
function canonicalOperation(operation: Operation, name: string): Operation {
  const { state, specHash: hash, failure, live, restoring } = operation;
  const isAwaited = name === AWAITED;
  return {
    startId: name,
    state,
    specHash: state === "Failed" && !isAwaited ? "" : hash,
    failure: failure !== null && !isAwaited ? "Transient" : failure,
    live: live && state === "InProgress",
    restoring: restoring && state === "InProgress",
  };
}

/** Without what no step looks at: when to look next, what was seen last, and what the status says but for a stall. */
export function bare(world: World): World {
  const workspaces = Object.entries(world.workspaces).map(([uid, workspace]): [string, Workspace] => [uid, bareWorkspace(workspace)]);
  return { ...world, workspaces: Object.fromEntries(workspaces) };
}

function bareWorkspace(workspace: Workspace): Workspace {
  const { row, sandbox } = workspace;
  if (row === null) return workspace;
  const { observedGeneration, conditions } = row.status;
  const stalls = conditions.filter(({ type, status }) => type === "Stalled" && status === "True");
  const status = { observedGeneration, phase: "Pending", conditions: stalls.map(bareCondition) } as const;
  const bareRow = { ...row, failures: 0, nextReconcileTime: NOW, status, observed: null };
  return { ...workspace, row: bareRow, sandbox: { ...sandbox, exit: sandbox.exit?.signalled ? null : sandbox.exit } };
}

function bareCondition(condition: Condition): Condition {
  return { ...condition, message: "" };
}

function canonicalRow(row: WorkspaceRecord, places: Places, age: (generation: number) => number): WorkspaceRecord {
  const { status } = row;
  return {
    ...row,
    generation: 2,
    resourceVersion: 1,
    incarnation: row.incarnation === 0 ? 0 : 1,
    instance: row.instance && instance({ doId: "", sandboxId: "", destroyRequested: row.instance.destroyRequested }),
    lane: null,
    deletionTime: row.deletionTime === null ? null : NOW - SECOND,
    finalBackupDeadlineTime: sideOfNow(row.finalBackupDeadlineTime),
    failures: Math.min(2, row.failures),
    startId: row.startId === null ? null : AWAITED,
    observed: row.observed && { ...row.observed, startedTime: null, activityTime: null, differences: [] },
    idleTime: canonicalMark(row.idleTime),
    wakeTime: canonicalWake(row),
    reconcileRequestTime: row.reconcileRequestTime === null ? null : NOW,
    nextRetryTime: sideOfNow(row.nextRetryTime),
    readyTime: row.readyTime === null ? null : NOW - MINUTE,
    queuedTime: row.queuedTime === null ? null : (places.get(row.queuedTime) ?? NOW),
    unreachableTime: row.unreachableTime === null ? null : NOW - SECOND,
    nextReconcileTime: sideOfNow(row.nextReconcileTime),
    status: {
      observedGeneration: age(status.observedGeneration),
      phase: status.phase,
      conditions: status.conditions.map((condition) =>
        Object.assign({}, condition, { observedGeneration: age(condition.observedGeneration), lastTransitionTime: NOW }),
      ),
    },
  };
}

function canonicalMark(idleTime: number | null): number | null {
  if (idleTime === null) return null;
  return idleTime < LAST_USE ? FORMER_MARK : MARK;
}

/** One from before the workspace went idle means nothing any more; nor does one of long ago, but that it ended the idleness. */
function canonicalWake({ wakeTime, idleTime }: WorkspaceRecord): number | null {
  if (wakeTime === null || (idleTime !== null && wakeTime < idleTime)) return null;
  if (wakeTime > LONG_AGO) return NOW - SECOND;
  return idleTime === null ? null : LONG_AGO;
}

function sideOfNow(time: number | null): number | null {
  if (time === null) return null;
  return time <= NOW ? NOW : NOW + 5 * SECOND;
}

type Places = ReadonlyMap<number, number>;

/** Places in the queue, in their order, all of them in the past. */
function queuePlaces(world: World): Places {
  const rows = Object.values(world.workspaces).map(({ row }) => row?.queuedTime ?? null);
  const times = [...rows, world.lane?.queuedTime ?? null].filter((time) => time !== null);
  const distinct = [...new Set(times)].toSorted((a, b) => a - b);
  return new Map(distinct.map((time, index) => [time, NOW - (distinct.length - index) * SECOND]));
}
