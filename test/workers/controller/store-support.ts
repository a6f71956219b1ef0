/** Rows as the store's own readers see them, and the conclusions that its writers are given. */
import { acquireLease } from "../../../src/store/lease.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { loadDue } from "../../../src/store/due.ts";
import { createWorkspace } from "../../../src/store/intent.ts";
import { type Admission, admitStart } from "../../../src/store/progress.ts";
import { getWorkspace } from "../../../src/store/reading.ts";
import type { Conclusion, Instance, Instant, Workspace, WorkspaceRecord } from "../../../src/workspace.ts";
import { readyStatus } from "../../support/builders.ts";
import { all, d1, NOW, SPEC, uidOf } from "./support.ts";

export const db = openDatabase(d1);

export async function create(name: string, n: number, now: Instant = NOW): Promise<Workspace> {
  const created = await createWorkspace(db, { uid: uidOf(n), namespace: "default", name, labels: {}, annotations: {}, spec: SPEC, now });
  if (created === null) throw new Error("the name is taken");
  return created;
}

export async function workspace(name: string): Promise<Workspace> {
  const found = await getWorkspace(db, { namespace: "default", name });
  if (found === null) throw new Error(`${name} is gone`);
  return found;
}

/** As a pass would load it at `now`, due or not. */
export async function record(name: string, now: Instant = NOW): Promise<WorkspaceRecord> {
  const later = await loadDue(db, {
    now: now + 1e12,
    resync: { from: { phase: 0, uid: "" }, to: 0, wraps: true },
    laneWidth: 5000,
    limit: 5000,
  });
  const found = [...later.due, ...later.resync].find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`${name} is gone`);
  const [lane] = await all<{ start_id: string; queued_time: number; deadline_time: number }>(
    "SELECT * FROM start_lane WHERE workspace_uid = ? AND deadline_time > ?",
    found.uid,
    now,
  );
  return {
    ...found,
    lane: lane === undefined ? null : { startId: lane.start_id, queuedTime: lane.queued_time, deadlineTime: lane.deadline_time },
  };
}

export async function epoch(now: Instant = NOW): Promise<number> {
  const lease = await acquireLease(db, "holder", now, 30_000);
  if (lease === null) throw new Error("the lease is held");
  return lease.epoch;
}

export function conclusionOf(record: WorkspaceRecord, change: Partial<Conclusion> = {}): Conclusion {
  const { status, failures, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime } = record;
  const memory = { status, failures, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime };
  return { ...memory, laneReleased: false, brake: null, ...change };
}

export const READY_CONCLUSION: Partial<Conclusion> = {
  status: readyStatus,
  readyTime: NOW,
  queuedTime: null,
  nextReconcileTime: null,
};

export function instanceOf(uid: string, incarnation = 1): Instance {
  return { doId: `do-${uid}-${incarnation}`, sandboxId: `${uid}-${incarnation}`, incarnation };
}

export function admissionOf(record: WorkspaceRecord, startId: string, change: Partial<Admission> = {}): Admission {
  return {
    instance: instanceOf(record.uid),
    startId,
    deadlineTime: NOW + 135_000,
    laneWidth: 1,
    conclusion: conclusionOf(record),
    ...change,
  };
}

/** Admitted as a pass does it. */
export async function admitted(name: string, held: number, startId: string, change: Partial<Admission> = {}): Promise<WorkspaceRecord> {
  const before = await record(name);
  if ((await admitStart(db, held, before, admissionOf(before, startId, change), NOW)) === null) throw new Error("not admitted");
  return await record(name);
}

/** Every row of every table. */
export async function dump(): Promise<Readonly<Record<string, readonly unknown[]>>> {
  return {
    workspaces: await all("SELECT * FROM workspaces ORDER BY uid"),
    instances: await all("SELECT * FROM instances ORDER BY do_id"),
    lane: await all("SELECT * FROM start_lane ORDER BY slot"),
    controller: await all("SELECT * FROM controller"),
  };
}
