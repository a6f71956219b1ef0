/** Rows as the store's own readers see them, and the conclusions that its writers are given. */
import { acquireLease } from "../../../src/store/lease.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { loadDue } from "../../../src/store/due.ts";
import { createWorkspace, replaceWorkspace } from "../../../src/store/intent.ts";
import { type Admission, admitStart } from "../../../src/store/progress.ts";
import { getWorkspace } from "../../../src/store/reading.ts";
import type { SweepResult } from "../../../src/store/unclaimed.ts";
import type { Unclaimed } from "../../../src/unclaimed.ts";
import type { Instance, Instant, Workspace } from "../../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../../src/workspace-record.ts";
import { readyStatus } from "../../support/builders.ts";
import { all, d1, NOW, SPEC, uidOf } from "./support.ts";
import { type BackupColumns, unchanged } from "../../contract/store-world.ts";

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
    resyncIntervalMs: 300_000,
    laneWidth: 5000,
    runningLimits: {},
    backups: true,
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

export const conclusionOf = unchanged;

export function brakeOf(retryAfterMs: number | null = null): NonNullable<Conclusion["brake"]> {
  return { retryAfterMs, reason: "CapacityUnavailable", message: "no instance" };
}

export const READY_CONCLUSION: Partial<Conclusion> = {
  status: readyStatus,
  readyTime: NOW,
  queuedTime: null,
  nextReconcileTime: null,
};

export function instanceOf(uid: string, incarnation = 1): Instance {
  const doId = `do-${uid}-${incarnation}`;
  return { doId, sandboxId: `${uid}-${incarnation}`, incarnation, running: true, destroyRequested: false, adopted: false };
}

export function admissionOf(record: WorkspaceRecord, startId: string, change: Partial<Admission> = {}): Admission {
  return {
    instance: instanceOf(record.uid),
    startId,
    deadlineTime: NOW + 135_000,
    laneWidth: 1,
    runningLimits: {},
    restoredBackupId: null,
    sourceBackupId: record.sourceBackupId,
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
    unclaimed: await all("SELECT * FROM unclaimed ORDER BY do_id"),
    backups: await all("SELECT * FROM backups ORDER BY id"),
    unclaimedBackups: await all("SELECT * FROM unclaimed_backups ORDER BY object_id"),
    events: await all("SELECT * FROM events ORDER BY id"),
    lane: await all("SELECT * FROM start_lane ORDER BY slot"),
    controller: await all("SELECT * FROM controller"),
  };
}

/** A row of the table of backups, past every rule. */
export async function putBackup(row: BackupColumns): Promise<void> {
  const columns = Object.keys(row).map((column) => `"${column.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}"`);
  const query = `INSERT INTO backups (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  await d1
    .prepare(query)
    .bind(...Object.values(row))
    .run();
}

/** A row of the ledger past the store; by default of a workspace that has no row. */
export async function insertInstance(doId: string, change: { uid?: string; namespace?: string; running?: boolean } = {}): Promise<void> {
  const { uid = `uid-of-${doId}`, namespace = "default", running = true } = change;
  await d1
    .prepare(
      `INSERT INTO instances (do_id, sandbox_id, workspace_uid, namespace, name, incarnation, admitted_time, running)
       VALUES (?1, ?1 || '-name', ?2, ?3, 'a', 1, 0, ?4)`,
    )
    .bind(doId, uid, namespace, running ? 1 : 0)
    .run();
}

/** What a sweep that saw everything leaves of these. */
export function sweepOf(unclaimed: readonly Unclaimed[], gone: readonly Unclaimed[] = [], time: Instant = NOW): SweepResult {
  const record = { time, outcome: "Complete", message: "", running: unclaimed.length, eligible: 0, limit: 5 } as const;
  return { unclaimed, gone, record: { ...record, brake: null, retryTime: null } };
}

export async function setSettings(change: Readonly<Record<string, string | number | null>>): Promise<void> {
  await d1.exec("INSERT INTO settings (id, revision, paused, allow_empty) VALUES (1, 1, 0, 0) ON CONFLICT DO NOTHING");
  for (const [column, value] of Object.entries(change)) {
    await d1.prepare(`UPDATE settings SET ${column} = ?, revision = revision + 1`).bind(value).run();
  }
}

export async function loseLease(now: Instant = NOW): Promise<void> {
  if ((await acquireLease(db, "another", now + 60_000, 30_000)) === null) throw new Error("the lease is held");
}

/** An edit by a user that calls no controller, yet moves the row on. */
export async function editLabels(name: string): Promise<void> {
  const edit = { labels: { edited: "yes" }, annotations: {}, spec: SPEC, specChanged: false, now: NOW };
  if ((await replaceWorkspace(db, await workspace(name), edit)) === null) throw new Error("the edit met a conflict");
}
