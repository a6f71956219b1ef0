/** What may happen in the model beside a pass: the user, the operator, the platform, the clock. Each by the name that a trace shows. */
import { isUnderWay, type Progress, proceed } from "./sandbox.ts";
import type { Instance, WorkspaceSpec } from "../../../src/workspace.ts";
import { MINUTE, NOW } from "../../support/builders.ts";
import { ofBackup, requests, unsaved } from "./backup-events.ts";
import { aged, cutOff } from "./backups.ts";
import {
  type End,
  type Workspace,
  type World,
  FORMER_MARK,
  LONG_AGO,
  PAUSED,
  RUN_A,
  RUN_B,
  SUSPENDED,
  hashOf,
  wishesRunning,
  withRow,
  withSandbox,
  withWorkspace,
  workspaceOf,
} from "./world.ts";

export interface Nature {
  readonly wishes: Readonly<Record<string, WorkspaceSpec>>;
  /** How a start may end. */
  readonly endings: readonly Progress[];
  /** How a container may end. */
  readonly exits: readonly End[];
  /** Whether a sandbox may lose its memory in the middle of a start. */
  readonly evictions: boolean;
  /** Whether a stored spec may stop parsing, and parse again. */
  readonly deploys: boolean;
  /** Whether users may leave a workspace alone for long, come back to it, and wake it. */
  readonly idles: boolean;
  /** Whether a container may live too long, and the time up to which a workspace is wished may come. */
  readonly ages: boolean;
  /** Whether somebody may ask for another try. */
  readonly retries: boolean;
  /** Whether an operator may ask for a sandbox to be replaced. */
  readonly replacements: boolean;
  /** Whether backups are taken, a client may ask for one, and their deadlines may pass. */
  readonly backups: boolean;
}

export const WISHES = { "run A": RUN_A, "run B": RUN_B, suspend: SUSPENDED, pause: PAUSED };

/** What may happen next, and what the world is like then. */
export type Happenings = Readonly<Record<string, () => World>>;

/** What the API may write at any time. */
export function edits(world: World, uid: string, { wishes, ...nature }: Nature): Happenings {
  const { row } = workspaceOf(world, uid);
  if (row === null || row.deletionTime !== null) return {};
  const { instance } = row;
  const others = Object.entries(wishes).filter(([, wish]) => !isSameWish(wish, row.spec));
  return {
    ...Object.fromEntries(others.map(([name, wish]) => [`${name} ${uid}`, () => put(world, uid, wish)])),
    [`delete ${uid}`]: () => remove(world, uid),
    ...(nature.backups && requests(world, uid)),
    ...(nature.idles && { [`wake ${uid}`]: () => wake(world, uid) }),
    ...(nature.retries && { [`ask for another try of ${uid}`]: () => tryAnew(world, uid) }),
    ...(nature.replacements && instance && { [`ask for another sandbox for ${uid}`]: () => replace(world, uid, instance) }),
  };
}

function isSameWish(one: WorkspaceSpec, other: WorkspaceSpec | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function remove(world: World, uid: string): World {
  const { row } = workspaceOf(world, uid);
  const final = row?.backups ? ({ finalBackup: "Require", finalBackupDeadlineTime: NOW + MINUTE } as const) : {};
  return unsaved(withRow(world, uid, { deletionTime: NOW, nextReconcileTime: NOW, ...final }), uid);
}

function wake(world: World, uid: string): World {
  return withWorkspace(withRow(world, uid, { wakeTime: NOW, nextReconcileTime: NOW }), uid, { asleep: false });
}

function tryAnew(world: World, uid: string): World {
  return withWorkspace(withRow(world, uid, { reconcileRequestTime: NOW, nextReconcileTime: NOW }), uid, { doomed: false });
}

function replace(world: World, uid: string, instance: Instance): World {
  return withRow(world, uid, { instance: { ...instance, destroyRequested: true }, nextReconcileTime: NOW });
}

function put(world: World, uid: string, wish: WorkspaceSpec): World {
  const generation = (workspaceOf(world, uid).row?.generation ?? 0) + 1;
  const written = withRow(world, uid, { spec: wish, generation, nextReconcileTime: NOW });
  return unsaved(withWorkspace(written, uid, { parses: true, doomed: false, owed: false, asleep: false, expired: false }), uid);
}

/** What the sandbox and its container may do of themselves. */
export function mishaps(world: World, uid: string, nature: Nature): Happenings {
  if (workspaceOf(world, uid).row === null) return {};
  return { ...ofContainer(world, uid, nature), ...(nature.backups && ofBackup(world, uid)) };
}

function ofContainer(world: World, uid: string, { endings, exits, evictions }: Nature): Happenings {
  const { sandbox } = workspaceOf(world, uid);
  if (isUnderWay(sandbox)) {
    const ends = endings.map((ending) => [`start ${ending} ${uid}`, () => poke(ended(world, uid, ending), uid)]);
    return { ...Object.fromEntries(ends), ...(evictions && losses(world, uid)) };
  }
  const { operation, running } = sandbox;
  const isOpen = operation?.state === "InProgress" || operation?.state === "Interrupted";
  return {
    ...(running && Object.fromEntries(exits.map((end) => [`${nameOf(end)} ${uid}`, () => exit(world, uid, end)]))),
    ...(isOpen && { [`deadline ${uid}`]: () => ended(world, uid, "Transient") }),
  };
}

function nameOf({ code, signalled }: End): string {
  return signalled ? `told to go, exit ${code}` : `exit ${code}`;
}

/** A failure of what is wished is to be counted, if the platform is not to blame for it. */
export function ended(world: World, uid: string, ending: Progress): World {
  const { sandbox, owed } = workspaceOf(world, uid);
  const after = withSandbox(world, uid, proceed(sandbox, ending));
  // A container of an interrupted start that ended was the failure.
  const isFailure = (ending === "Transient" || ending === "Permanent") && sandbox.exit === null;
  return isFailure ? withWorkspace(after, uid, { owed: owed || isOfTheWish(workspaceOf(world, uid)) }) : after;
}

/** Whether what the sandbox runs, or tried to, is the start admitted last, and of the spec that is wished. */
function isOfTheWish({ row, sandbox, parses }: Workspace): boolean {
  if (row === null || !parses || !wishesRunning(row)) return false;
  return row.startId === sandbox.operation?.startId && sandbox.operation.specHash === hashOf(row.spec);
}

function losses(world: World, uid: string): Happenings {
  const { operation } = workspaceOf(world, uid).sandbox;
  const lost = operation && { ...operation, live: false };
  return {
    [`memory lost ${uid}`]: () => withSandbox(world, uid, { operation: lost }),
    [`memory lost with a container ${uid}`]: () => withSandbox(world, uid, { operation: lost, running: true }),
  };
}

function exit(world: World, uid: string, end: End): World {
  const { sandbox, owed, row, asleep } = workspaceOf(world, uid);
  const { operation, admission } = sandbox;
  const isVerified = operation?.state === "Succeeded" && admission === "Admitted" && operation.specHash === hashOf(row?.spec ?? null);
  const isAwaited = row !== null && row.startId === operation?.startId;
  const isKnown = row !== null && row.status.observedGeneration === row.generation && (row.readyTime !== null || isAwaited);
  const isCrash = end.code === 137 && !end.signalled && isVerified && isKnown && !asleep;
  const over = withSandbox(world, uid, { running: false, exit: end, backup: cutOff(sandbox.backup) });
  return poke(withWorkspace(over, uid, { owed: owed || isCrash }), uid);
}

/** How users and time go on. */
export function agings(world: World, uid: string, { idles, ages }: Nature): Happenings {
  const { row, sandbox, expired } = workspaceOf(world, uid);
  if (row === null || row.spec === null) return {};
  const { running, unused, old } = sandbox;
  const isLong = running && row.spec.maxLifetimeSeconds !== null && !old;
  return {
    ...(idles && running && !isLeftAlone(row.wakeTime, unused) && { [`unused for long ${uid}`]: () => leaveAlone(world, uid) }),
    ...(idles && running && unused && { [`used ${uid}`]: () => comeBack(world, uid) }),
    ...(ages && isLong && { [`lives too long ${uid}`]: () => withSandbox(world, uid, { old: true }) }),
    ...(ages &&
      row.spec.expireTime !== null &&
      !expired && { [`time is up for ${uid}`]: () => withWorkspace(world, uid, { expired: true }) }),
  };
}

function isLeftAlone(wakeTime: number | null, unused: boolean): boolean {
  return unused && (wakeTime === null || wakeTime <= LONG_AGO);
}

/** What was saved of it before says nothing of what is done now. */
function comeBack(world: World, uid: string): World {
  const { row, asleep } = workspaceOf(world, uid);
  const used = withSandbox(world, uid, { unused: false });
  return asleep && row?.deletionTime === null ? unsaved(used, uid) : used;
}

/** So long that the last wake is long ago, too, and a mark of idleness that did not keep its user away even longer. */
function leaveAlone(world: World, uid: string): World {
  const { row, sandbox } = workspaceOf(world, uid);
  const later = withSandbox(world, uid, { unused: true });
  if (row === null) return later;
  const wakeTime = row.wakeTime && LONG_AGO;
  const idleTime = sandbox.unused ? row.idleTime : row.idleTime && FORMER_MARK;
  return withWorkspace(later, uid, { row: { ...row, wakeTime, idleTime } });
}

export function deploys(world: World, uid: string, nature: Nature): Happenings {
  const { row, parses } = workspaceOf(world, uid);
  if (row === null || !nature.deploys) return {};
  return {
    [parses ? `no longer parses ${uid}` : `parses again ${uid}`]: () => withWorkspace(world, uid, { parses: !parses, owed: false }),
  };
}

/** A lane place runs out after its start has; what became of that is still to be seen. */
export function laneExpiry(world: World): Happenings {
  if (world.lane === null) return {};
  const { uid } = world.lane;
  const { operation } = workspaceOf(world, uid).sandbox;
  const isOpen = operation?.startId === world.lane.startId && (operation.state === "InProgress" || operation.state === "Interrupted");
  return isOpen ? {} : { "lane expires": () => ({ ...world, lane: null }) };
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
  const passed = {
    ...row,
    backups: aged(row.backups),
    nextRetryTime: due(row.nextRetryTime),
    nextReconcileTime: due(row.nextReconcileTime),
  };
  return withWorkspace(world, uid, { row: passed });
}

function poke(world: World, uid: string): World {
  const { row } = workspaceOf(world, uid);
  return row === null ? world : withWorkspace(world, uid, { row: { ...row, nextReconcileTime: NOW } });
}
