/** What may happen in the model beside a pass: the user, the operator, the platform, the clock. Each by the name that a trace shows. */
import { isUnderWay, type Progress, proceed } from "./sandbox.ts";
import type { WorkspaceSpec } from "../../../src/workspace.ts";
import { NOW } from "../../support/builders.ts";
import { PAUSED, RUN_A, RUN_B, SUSPENDED, type World, hashOf, withRow, withSandbox, withWorkspace, workspaceOf } from "./world.ts";

export interface Nature {
  readonly wishes: Readonly<Record<string, WorkspaceSpec>>;
  /** How a start may end. */
  readonly endings: readonly Progress[];
  /** Exit codes. */
  readonly exits: readonly number[];
  /** Whether a sandbox may lose its memory in the middle of a start. */
  readonly evictions: boolean;
  /** Whether a stored spec may stop parsing, and parse again. */
  readonly deploys: boolean;
}

export const WISHES = { "run A": RUN_A, "run B": RUN_B, suspend: SUSPENDED, pause: PAUSED };

/** What may happen next, and what the world is like then. */
export type Happenings = Readonly<Record<string, () => World>>;

/** What the API may write at any time. */
export function edits(world: World, uid: string, { wishes }: Nature): Happenings {
  const { row } = workspaceOf(world, uid);
  if (row === null || row.deletionTime !== null) return {};
  const others = Object.entries(wishes).filter(([, wish]) => !isSameWish(wish, row.spec));
  return {
    ...Object.fromEntries(others.map(([name, wish]) => [`${name} ${uid}`, () => put(world, uid, wish)])),
    [`delete ${uid}`]: () => withRow(world, uid, { deletionTime: NOW, nextReconcileTime: NOW }),
  };
}

function isSameWish(one: WorkspaceSpec, other: WorkspaceSpec | null): boolean {
  return one.operatingMode === other?.operatingMode && one.paused === other.paused && one.env["B"] === other.env["B"];
}

function put(world: World, uid: string, wish: WorkspaceSpec): World {
  const generation = (workspaceOf(world, uid).row?.generation ?? 0) + 1;
  const written = withRow(world, uid, { spec: wish, generation, nextReconcileTime: NOW });
  return withWorkspace(written, uid, { parses: true, doomed: false, crashed: false });
}

/** What the sandbox and its container may do of themselves. */
export function mishaps(world: World, uid: string, { endings, exits, evictions }: Nature): Happenings {
  const { sandbox, row } = workspaceOf(world, uid);
  if (row === null) return {};
  if (isUnderWay(sandbox)) {
    const ends = endings.map((ending) => [`start ${ending} ${uid}`, () => poke(withSandbox(world, uid, proceed(sandbox, ending)), uid)]);
    return { ...Object.fromEntries(ends), ...(evictions && losses(world, uid)) };
  }
  const { operation, running } = sandbox;
  const isOpen = operation?.state === "InProgress" || operation?.state === "Interrupted";
  return {
    ...(running && Object.fromEntries(exits.map((code) => [`exit ${code} ${uid}`, () => exit(world, uid, code)]))),
    ...(isOpen && { [`deadline ${uid}`]: () => withSandbox(world, uid, proceed(sandbox, "Transient")) }),
  };
}

function losses(world: World, uid: string): Happenings {
  const { operation } = workspaceOf(world, uid).sandbox;
  const lost = operation && { ...operation, live: false };
  return {
    [`memory lost ${uid}`]: () => withSandbox(world, uid, { operation: lost }),
    [`memory lost with a container ${uid}`]: () => withSandbox(world, uid, { operation: lost, running: true }),
  };
}

function exit(world: World, uid: string, code: number): World {
  const { sandbox, crashed, row } = workspaceOf(world, uid);
  const { operation, admission } = sandbox;
  const isVerified = operation?.state === "Succeeded" && admission === "Admitted" && operation.specHash === hashOf(row?.spec ?? null);
  const isHolder = world.lane?.uid === uid && world.lane.startId === operation?.startId;
  const isKnown = row !== null && row.status.observedGeneration === row.generation && (row.readyTime !== null || isHolder);
  const isCrash = code === 137 && isVerified && isKnown;
  const ended = withSandbox(world, uid, { running: false, exit: code });
  return poke(withWorkspace(ended, uid, { crashed: crashed || isCrash }), uid);
}

export function deploys(world: World, uid: string, nature: Nature): Happenings {
  const { row, parses } = workspaceOf(world, uid);
  if (row === null || !nature.deploys) return {};
  return {
    [parses ? `no longer parses ${uid}` : `parses again ${uid}`]: () => withWorkspace(world, uid, { parses: !parses, crashed: false }),
  };
}

/** A lane place runs out after its start has, and takes with it what nobody looked at for all that time. */
export function laneExpiry(world: World): Happenings {
  if (world.lane === null) return {};
  const { uid } = world.lane;
  const { operation } = workspaceOf(world, uid).sandbox;
  const isOpen = operation?.startId === world.lane.startId && (operation.state === "InProgress" || operation.state === "Interrupted");
  return isOpen ? {} : { "lane expires": () => withoutLane(world, uid) };
}

function withoutLane(world: World, uid: string): World {
  return { ...withWorkspace(world, uid, { crashed: false }), lane: null };
}

export function clock(world: World): Happenings {
  return {
    "time passes": () => Object.keys(world.workspaces).reduce(timePasses, world),
    ...(world.brake && { "brake ends": () => ({ ...world, brake: false }) }),
  };
}

/** Whatever was put off is due. */
export function timePasses(world: World, uid: string): World {
  const { row } = workspaceOf(world, uid);
  if (row === null) return world;
  const due = (time: number | null) => (time === null ? null : Math.min(time, NOW));
  const passed = { ...row, nextRetryTime: due(row.nextRetryTime), nextReconcileTime: due(row.nextReconcileTime) };
  return withWorkspace(world, uid, { row: passed });
}

function poke(world: World, uid: string): World {
  const { row } = workspaceOf(world, uid);
  return row === null ? world : withWorkspace(world, uid, { row: { ...row, nextReconcileTime: NOW } });
}
