/** Rows that only the controller or a sweep writes, as they would. */
import type { BackupState, BackupSweepRecord, UnclaimedBackup } from "../../../src/backup.ts";
import type { InventoryRecord, Unclaimed } from "../../../src/unclaimed.ts";
import type { ObservedState } from "../../../src/workspace-record.ts";
import { testDoIdOf } from "./do-id.ts";
import { d1, NOW } from "./support.ts";

export const INVENTORY: InventoryRecord = {
  time: NOW - 10_000,
  completeTime: NOW - 10_000,
  outcome: "Complete",
  message: "",
  running: 3,
  eligible: 0,
  limit: 5,
  brake: null,
  retryTime: null,
};

export interface ControllerRow {
  readonly expiresTime?: number;
  readonly brakeUntilTime?: number;
  readonly brakeReason?: string;
  readonly brakeMessage?: string;
  readonly inventory?: Partial<InventoryRecord> | null;
  readonly backupSweep?: Partial<BackupSweepRecord> | null;
}

const BACKUP_SWEEP: BackupSweepRecord = {
  time: NOW - 20_000,
  completeTime: NOW - 20_000,
  outcome: "Complete",
  message: "",
  stored: 4,
  eligible: 1,
  limit: 5,
  brake: null,
};

export async function writeController(row: ControllerRow = {}): Promise<void> {
  const inventory = row.inventory === null ? null : JSON.stringify({ ...INVENTORY, ...row.inventory });
  const backupSweep = row.backupSweep === null ? null : JSON.stringify({ ...BACKUP_SWEEP, ...row.backupSweep });
  await d1
    .prepare(
      `INSERT OR REPLACE INTO controller (id, holder, epoch, expires_time, resync_time, brake_until_time, brake_failures, brake_reason, brake_message, inventory, backup_sweep)
       VALUES (1, 'holder-1', 7, ?, 0, ?, 0, ?, ?, ?, ?)`,
    )
    .bind(
      row.expiresTime ?? NOW + 30_000,
      row.brakeUntilTime ?? null,
      row.brakeReason ?? null,
      row.brakeMessage ?? null,
      inventory,
      backupSweep,
    )
    .run();
}

/** A ledger row for the workspace of this name, and what its last pass saw. */
export async function writeInstance(
  namespace: string,
  name: string,
  { running = true, observed = null, doId }: { running?: boolean; observed?: Partial<ObservedState> | null; doId?: string } = {},
): Promise<string> {
  const uid = await uidOf(namespace, name);
  const sandboxId = `${uid}-1`;
  const id = doId ?? testDoIdOf(sandboxId);
  const seen = observed && { kind: "Running", specHash: null, startedTime: NOW - 60_000, activityTime: NOW, differences: [], ...observed };
  await d1.batch([
    d1.prepare("UPDATE workspaces SET incarnation = 1, observed = ? WHERE uid = ?").bind(seen && JSON.stringify(seen), uid),
    d1
      .prepare(
        `INSERT INTO instances (do_id, sandbox_id, workspace_uid, namespace, name, incarnation, admitted_time, running)
         VALUES (?, ?, ?, ?, ?, 1, ?, ?)`,
      )
      .bind(id, sandboxId, uid, namespace, name, NOW - 60_000, running ? 1 : 0),
  ]);
  return id;
}

/** One that runs and was seen often enough, unless `change` says otherwise; answers its DO id. */
export async function writeUnclaimed(sandboxId: string, change: Partial<Unclaimed> = {}): Promise<string> {
  const row: Unclaimed = {
    doId: testDoIdOf(sandboxId),
    sandboxId,
    owner: null,
    ownerLives: false,
    state: "Running",
    firstSeenTime: NOW - 600_000,
    lastSeenTime: NOW - 10_000,
    timesSeen: 20,
    startedTime: null,
    protected: false,
    destroyRequested: false,
    destroyAttempts: 0,
    lastDestroyTime: null,
    ...change,
  };
  const { owner, sandboxId: name } = row;
  const ofOwner = [owner?.uid ?? null, owner?.namespace ?? null, owner?.name ?? null, owner?.incarnation ?? null];
  const seen = [row.state, row.firstSeenTime, row.lastSeenTime, row.timesSeen, row.startedTime];
  const asked = [row.protected ? 1 : 0, row.destroyRequested ? NOW - 1000 : null];
  await d1
    .prepare(`INSERT INTO unclaimed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .bind(row.doId, name, ...ofOwner, ...seen, ...asked, row.destroyAttempts, row.lastDestroyTime)
    .run();
  return row.doId;
}

export interface BackupRow {
  readonly id?: string;
  readonly uid?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly state?: BackupState;
  readonly requestedTime?: number;
  readonly endedTime?: number | null;
  readonly lostTime?: number | null;
}

/** A good one of the workspace of this name, unless `row` says otherwise; answers its id. Its archive has the same id. */
export async function writeBackup(row: BackupRow = {}): Promise<string> {
  const { id = crypto.randomUUID(), namespace = "default", name = "alice-1", state = "Completed" } = row;
  const uid = row.uid ?? (await uidOf(namespace, name));
  const requested = row.requestedTime ?? NOW - 60_000;
  const isClaimed = state !== "Requested";
  const isStored = state === "Completed" || state === "Deleting";
  const endedTime = row.endedTime !== undefined ? row.endedTime : isClaimed && state !== "InProgress" ? requested + 2000 : null;
  const claim = isClaimed ? ["start-1", 1, requested + 1000, NOW + 600_000] : [null, null, null, null];
  const archive = isStored ? [id, 4096] : [null, null];
  await d1
    .prepare(
      `INSERT INTO backups (id, workspace_uid, namespace, name, "trigger", state, directory, requested_time, start_id, generation, started_time,
         deadline_time, ended_time, object_id, size_bytes, lost_time)
       VALUES (?, ?, ?, ?, 'Request', ?, '/workspace', ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .bind(id, uid, namespace, name, state, requested, ...claim, endedTime, ...archive, row.lostTime ?? null)
    .run();
  return id;
}

/** Objects in the bucket that no record knows. */
export async function writeUnclaimedBackup(objectId: string, change: Partial<UnclaimedBackup> = {}): Promise<void> {
  const row = { uploadedTime: NOW - 400_000_000, firstSeenTime: NOW - 600_000, lastSeenTime: NOW - 20_000, ...change };
  await d1
    .prepare("INSERT INTO unclaimed_backups VALUES (?, ?, ?, ?, ?, ?)")
    .bind(objectId, row.uploadedTime, change.sizeBytes ?? 4096, row.firstSeenTime, row.lastSeenTime, change.timesSeen ?? 3)
    .run();
}

async function uidOf(namespace: string, name: string): Promise<string> {
  const uid = await d1.prepare("SELECT uid FROM workspaces WHERE namespace = ? AND name = ?").bind(namespace, name).first<string>("uid");
  if (uid === null) throw new Error(`there is no ${namespace}/${name}`);
  return uid;
}

export interface EventRow {
  readonly reason: string;
  readonly actor: string | null;
  readonly namespace: string | null;
  readonly name: string | null;
  readonly do_id: string | null;
  readonly workspace_uid: string | null;
  readonly message: string;
}

/** The whole history, oldest first. */
export async function events(): Promise<readonly EventRow[]> {
  const { results } = await d1.prepare("SELECT * FROM events ORDER BY id").all<EventRow>();
  return results;
}

export async function reasons(): Promise<readonly string[]> {
  return (await events()).map(({ reason, actor }) => `${reason} by ${actor}`);
}

export async function row(table: string, doIdOrName: string): Promise<Record<string, unknown> | null> {
  const key = table === "workspaces" ? "name" : "do_id";
  return await d1.prepare(`SELECT * FROM ${table} WHERE ${key} = ?`).bind(doIdOrName).first();
}
