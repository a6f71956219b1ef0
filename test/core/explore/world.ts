/**
 * A world small enough to visit all of it: what D1 holds, what each sandbox's object holds, and what the laws need to remember.
 *
 * Times are relative to `NOW` and canonical: what matters of a time is whether it is set, and on which side of now it lies.
 */
import { specHash } from "../../../src/controller/spec-hash.ts";
import type { AdmissionState, SandboxFacts, StartOperation } from "../../../src/sandbox/protocol.ts";
import type { Condition, FailureClass, LaneHold, WorkspaceRecord, WorkspaceSpec } from "../../../src/workspace.ts";
import { MINUTE, NOW, SECOND, record, spec } from "../../support/builders.ts";

export interface Operation {
  readonly startId: string;
  readonly state: StartOperation["state"];
  readonly specHash: string;
  readonly failure: FailureClass | null;
  /** Works on it in memory. */
  readonly live: boolean;
}

export interface Sandbox {
  readonly epoch: number;
  readonly admission: AdmissionState;
  readonly operation: Operation | null;
  readonly running: boolean;
  readonly exit: number | null;
}

export interface Workspace {
  /** As the table has it: its spec is the wish also where it does not parse now, and its lane is in the world's. */
  readonly row: WorkspaceRecord | null;
  readonly parses: boolean;
  readonly sandbox: Sandbox;
  /** A start of this generation failed for good. */
  readonly doomed: boolean;
  /** A container crashed that was Ready, or verified by the start in the lane, and no pass has counted it. */
  readonly crashed: boolean;
}

export interface World {
  readonly epoch: number;
  readonly lane: (LaneHold & { readonly uid: string }) | null;
  readonly brake: boolean;
  readonly workspaces: Readonly<Record<string, Workspace>>;
}

export const UNTOUCHED: Sandbox = { epoch: 1, admission: "None", operation: null, running: false, exit: null };
export const RUN_A = spec();
export const RUN_B = spec({ env: { B: "1" } });
export const SUSPENDED = spec({ operatingMode: "Suspended" });
export const PAUSED = spec({ paused: true });

export function newWorld(uids: readonly string[]): World {
  const workspaces = uids.map((uid): [string, Workspace] => [
    uid,
    { row: record({ uid }), parses: true, sandbox: UNTOUCHED, doomed: false, crashed: false },
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
  return withWorkspace(world, uid, { sandbox: { ...workspaceOf(world, uid).sandbox, ...change } });
}

/** A write to the row: whoever read it before has an old version. */
export function withRow(world: World, uid: string, change: Partial<WorkspaceRecord>): World {
  const { row } = workspaceOf(world, uid);
  return row === null ? world : withWorkspace(world, uid, { row: { ...row, ...change, resourceVersion: row.resourceVersion + 1 } });
}

/** The row as a pass loads it. */
export function load(world: World, uid: string): WorkspaceRecord | null {
  const { row, parses } = workspaceOf(world, uid);
  if (row === null) return null;
  return { ...row, spec: parses ? row.spec : null, lane: world.lane?.uid === uid ? world.lane : null };
}

export function wishesRunning(row: WorkspaceRecord): boolean {
  return row.deletionTime === null && row.spec?.operatingMode === "Running" && !row.spec.paused;
}

export function hashOf(wish: WorkspaceSpec | null): string {
  return wish === null ? "" : specHash(wish);
}

export function factsOf({ running, admission, operation, exit }: Sandbox): SandboxFacts {
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
      failure: failure ? { messages: [MESSAGES[failure] ?? failure], code: null, exitCode: null, retryAfterMs: null } : null,
    },
    exit: exit === null || running ? null : { code: exit, time: NOW - SECOND },
  };
}

const MESSAGES: Partial<Record<FailureClass, string>> = {
  Capacity: "There is no container instance available at this time",
  Permanent: "no such image",
  Transient: "network connection lost",
};

/** The same world with its times, versions and ids as small as they go; worlds that differ in nothing else become equal. */
export function canonical(world: World): World {
  const places = queuePlaces(world);
  const { lane } = world;
  const workspaces = Object.entries(world.workspaces).map(([uid, workspace]): [string, Workspace] => [
    uid,
    canonicalWorkspace(workspace, lane?.uid === uid ? lane.startId : null, places),
  ]);
  const heldLane = lane && { uid: lane.uid, startId: HELD, queuedTime: places.get(lane.queuedTime) ?? NOW, deadlineTime: NOW + MINUTE };
  return { epoch: 2, lane: heldLane, brake: world.brake, workspaces: Object.fromEntries(workspaces) };
}

const HELD = "holds the lane";
const PAST = "of the past";

function canonicalWorkspace({ row, parses, sandbox, doomed, crashed }: Workspace, held: string | null, places: Places): Workspace {
  if (row === null) return { row: null, parses: true, sandbox: UNTOUCHED, doomed: false, crashed: false };
  const age = (generation: number) => (generation === row.generation ? 2 : 1);
  const canonicalSandbox = {
    epoch: 2,
    admission: sandbox.admission,
    operation: sandbox.operation && canonicalOperation(sandbox.operation, sandbox.operation.startId === held),
    running: sandbox.running,
    exit: sandbox.running ? null : sandbox.exit,
  };
  return { row: canonicalRow(row, places, age), parses, sandbox: canonicalSandbox, doomed, crashed };
}

/** How a start ended matters only as long as it holds the lane, and what it ran with only as long as it may run. */
function canonicalOperation(operation: Operation, isHeld: boolean): Operation {
  const { state, specHash: hash, failure, live } = operation;
  return {
    startId: isHeld ? HELD : PAST,
    state,
    specHash: state === "Failed" && !isHeld ? "" : hash,
    failure: failure !== null && !isHeld ? "Transient" : failure,
    live: live && state === "InProgress",
  };
}

/** Without what no step looks at: when to look next, since when there was no answer, and what the status says but for a stall. */
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
  const bareRow = { ...row, failures: 0, nextReconcileTime: NOW, status };
  return { ...workspace, row: bareRow, sandbox: { ...sandbox, exit: sandbox.exit === 137 ? 137 : null } };
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
    instance: row.instance && { doId: "", sandboxId: "", incarnation: 1 },
    lane: null,
    deletionTime: row.deletionTime === null ? null : NOW - SECOND,
    failures: Math.min(2, row.failures),
    nextRetryTime: sideOfNow(row.nextRetryTime),
    readyTime: row.readyTime === null ? null : NOW - SECOND,
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
