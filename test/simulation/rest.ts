/** What must hold once nothing but the controller has acted for a while (promises 1, 3, 5, 8, 9, 13). */
import { backupProblemsOf, isWithoutSource } from "./backup-rest.ts";
import type { WorkspaceRow } from "./memory-rows.ts";
import type { Day } from "./ports.ts";
import { hashOf } from "./wishes.ts";

interface Problem {
  readonly invariant: number;
  readonly message: string;
}

/** By whom each is about. */
export type Problems = ReadonlyMap<string, Problem>;

export function problemsOf(day: Day): Problems {
  const { store, world, clock } = day;
  const { workspaces, unclaimed, lane, instances } = store.tables;
  const problems = new Map<string, Problem>();
  for (const row of workspaces.values()) {
    const message = problemOf(row, day);
    if (message !== null) problems.set(row.uid, { invariant: 13, message: `${row.name} (${row.uid}) ${message}` });
  }
  for (const { sandbox } of world.running) {
    const message = `${sandbox.sandboxId ?? sandbox.doId} runs, and nobody wants it`;
    if (!instances.has(sandbox.doId)) problems.set(sandbox.doId, { invariant: 3, message });
  }
  for (const { startId, deadlineTime } of lane) {
    if (deadlineTime > clock.now()) problems.set(startId, { invariant: 1, message: `${startId} holds a place in the lane` });
  }
  for (const { doId, state } of unclaimed.values()) {
    problems.set(`watched ${doId}`, { invariant: 3, message: `${doId.slice(0, 8)} is still watched, as ${state}` });
  }
  for (const [subject, message] of backupProblemsOf(day)) problems.set(subject, { invariant: 6, message });
  return problems;
}

/** What is wrong at two times: what a spec's idle time, lifetime or end has just set going is under way at one of them only. */
export function reportLasting(earlier: Problems, later: Problems, { invariants }: Day): void {
  for (const [subject, { invariant, message }] of later) if (earlier.has(subject)) invariants.report(invariant, message);
}

function problemOf(row: WorkspaceRow, day: Day): string | null {
  const { store, world, invariants, config } = day;
  const { status, generation, deletionTime, spec, namespace } = row;
  if (deletionTime !== null) return "is still being deleted";
  if (status.observedGeneration !== generation) return `has a status about ${status.observedGeneration}, not ${generation}`;
  const instance = store.instanceOf(row.uid);
  const container = instance === null ? null : world.sandboxOf(instance).container;
  if (spec?.paused) return null;
  if (!invariants.wishes.isToRun(row.uid)) {
    if (container !== null) return "runs although it is suspended";
    return status.phase === "Suspended" ? null : `is ${status.phase} although it is suspended`;
  }
  if (isWithoutSource(row, day, day.restTime)) return container === null ? null : "runs without what its source stands for";
  if (status.phase === "Queued" && config.quotas[namespace] !== undefined) return null;
  if (container === null) return `does not run and is ${status.phase}`;
  if (spec === null || container.specHash !== hashOf(spec) || !container.isVerified) return "runs something else than is wished";
  return status.phase === "Ready" ? null : `runs and is ${status.phase}`;
}

/** As it was when nothing was left to do. */
export interface Stillness {
  readonly events: number;
  readonly observations: number;
  readonly orders: number;
  /** Resource versions of the workspaces for which nothing is planned. */
  readonly versions: ReadonlyMap<string, number>;
  readonly hasPlans: boolean;
}

export function stillnessOf({ store, world }: Day): Stillness {
  const rows = [...store.tables.workspaces.values()];
  // A spec's idle time, lifetime or end comes whether or not anything else happens.
  const isPlanless = ({ nextReconcileTime, queuedTime, spec }: WorkspaceRow) =>
    nextReconcileTime === null &&
    queuedTime === null &&
    spec?.idle === null &&
    spec.maxLifetimeSeconds === null &&
    !spec.backup?.everySeconds;
  const still = rows.filter(isPlanless);
  return {
    events: store.tables.events,
    observations: world.observations,
    orders: world.orders,
    versions: new Map(still.map(({ uid, resourceVersion }) => [uid, resourceVersion])),
    hasPlans: still.length < rows.length,
  };
}

/** A steady state costs nothing but the lease, the sweep's record, and a look at each workspace once per resync. */
export function checkStillness({ store, world, invariants, config }: Day, before: Stillness, ms: number): void {
  const { workspaces, events } = store.tables;
  for (const [uid, version] of before.versions) {
    const now = workspaces.get(uid)?.resourceVersion;
    if (now !== version) invariants.report(9, `${uid} was written in a steady state`);
  }
  if (before.hasPlans) return;
  if (world.orders !== before.orders) invariants.report(9, `${world.orders - before.orders} orders in a steady state`);
  if (events !== before.events) invariants.report(9, `${events - before.events} events in a steady state`);
  const most = Math.ceil((workspaces.size * ms) / config.resyncIntervalMs) + workspaces.size / 2 + 5;
  const looks = world.observations - before.observations;
  if (looks > most) invariants.report(7, `${looks} looks at ${workspaces.size} workspaces in a steady state`);
}
