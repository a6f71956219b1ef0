/** What the API, its operators and the sandboxes write, to the same tables: `src/store/intent.ts` and `src/sandbox/poke.ts`. */
import type { BackupDeletionAnswer } from "../../src/store/backup-intent.ts";
import { INITIAL_STATUS } from "../../src/store/status.ts";
import type { ControllerSettings } from "../../src/unclaimed.ts";
import type { BackupPolicy, Instant, WorkspaceSpec } from "../../src/workspace.ts";
import { type BackupRow, isActive, referredIds } from "./memory-backup-rows.ts";
import { newBackup } from "./memory-backups.ts";
import type { WorkspaceRow } from "./memory-rows.ts";
import type { MemoryStore } from "./memory-store.ts";

const RESYNC_PHASES = 1_000_000;

export class MemoryApi {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** Null where the name is taken. */
  create(uid: string, namespace: string, name: string, spec: WorkspaceSpec, now: Instant): WorkspaceRow | null {
    const { workspaces } = this.#store.tables;
    const resourceVersion = this.#store.nextVersion();
    for (const row of workspaces.values()) if (row.name === name && row.namespace === namespace) return null;
    const row: WorkspaceRow = {
      uid,
      namespace,
      name,
      spec,
      generation: 1,
      revision: 1,
      resourceVersion,
      creationTime: now,
      nextReconcileTime: now,
      status: INITIAL_STATUS,
      resyncPhase: Number.parseInt(uid.slice(0, 8), 16) % RESYNC_PHASES,
      incarnation: 0,
      failures: 0,
      ...NOTHING_YET,
    };
    workspaces.set(uid, row);
    return row;
  }

  /** A spec that is another wish. False where the workspace is gone or being deleted, as for all that follow. */
  replace(uid: string, spec: WorkspaceSpec, now: Instant): boolean {
    return this.#write(uid, (row) => {
      if (JSON.stringify(row.spec?.source) !== JSON.stringify(spec.source)) row.sourceBackupId = null;
      Object.assign(row, { spec, generation: row.generation + 1, revision: row.revision + 1, nextReconcileTime: now });
    });
  }

  delete(uid: string, now: Instant, { policy, deadlineTime }: FinalBackup = { policy: "Skip", deadlineTime: now }): boolean {
    return this.#write(uid, (row) => {
      Object.assign(row, { finalBackup: policy, finalBackupDeadlineTime: deadlineTime });
      Object.assign(row, { deletionTime: now, revision: row.revision + 1, nextReconcileTime: now });
    });
  }

  /** Of a deletion that is under way. */
  weakenFinalBackup(uid: string, policy: BackupPolicy, now: Instant): boolean {
    const row = this.#store.tables.workspaces.get(uid);
    const version = this.#store.nextVersion();
    if (row === undefined || row.deletionTime === null || POLICIES.indexOf(policy) <= POLICIES.indexOf(row.finalBackup)) return false;
    Object.assign(row, { finalBackup: policy, nextReconcileTime: now, resourceVersion: version });
    return true;
  }

  wake(uid: string, now: Instant): boolean {
    return this.#write(uid, (row) => {
      Object.assign(row, { wakeTime: Math.max(now, row.idleTime ?? 0), nextReconcileTime: now });
    });
  }

  requestReconcile(uid: string, now: Instant): boolean {
    return this.#write(uid, (row) => {
      Object.assign(row, { reconcileRequestTime: now, nextReconcileTime: now });
    });
  }

  /** The backup as requested, or the one that is asked for or under way already. */
  requestBackup(uid: string, id: string, now: Instant): { readonly backup: BackupRow; readonly created: boolean } | null {
    const { workspaces, backups } = this.#store.tables;
    const row = workspaces.get(uid);
    if (row === undefined) return null;
    const version = this.#store.nextVersion();
    if (row.deletionTime !== null) return null;
    const active = backups.activeOf(uid);
    if (active !== null) return { backup: active, created: false };
    const backup = newBackup(id, row, "Request", row.spec?.directory ?? "", now);
    backups.set(id, backup);
    Object.assign(row, { nextReconcileTime: now, resourceVersion: version });
    return { backup, created: true };
  }

  deleteBackup(id: string, now: Instant): BackupDeletionAnswer {
    const { backups, workspaces } = this.#store.tables;
    const row = backups.get(id);
    if (row === undefined) return "Missing";
    if (row.state === "InProgress") return "InProgress";
    if (isActive(row)) Object.assign(row, { state: "Skipped", reason: "Cancelled", endedTime: now });
    else if (row.state !== "Deleting" && referredIds(backups, workspaces.values()).has(id)) return "InUse";
    else row.state = "Deleting";
    return "Deleted";
  }

  /** Of the instance that the workspace has now. */
  requestDestroy(uid: string, now: Instant): boolean {
    const instance = this.#store.instanceOf(uid);
    if (instance === null) return false;
    return this.#write(uid, (row) => {
      instance.destroyRequestTime = now;
      row.nextReconcileTime = now;
    });
  }

  requestOrphanDestroy(doId: string, now: Instant): boolean {
    const row = this.#store.tables.unclaimed.get(doId);
    if (row !== undefined) row.destroyRequestTime = now;
    return row !== undefined;
  }

  protect(doId: string, isProtected: boolean): boolean {
    const row = this.#store.tables.unclaimed.get(doId);
    if (row !== undefined) row.protected = isProtected;
    return row !== undefined;
  }

  set(settings: Partial<ControllerSettings>): void {
    this.#store.tables.settings = { ...this.#store.tables.settings, ...settings };
  }

  /** By a sandbox: moves the time in any case, and no version. */
  poke(uid: string, now: Instant): void {
    const row = this.#store.tables.workspaces.get(uid);
    if (row === undefined) return;
    const next = row.nextReconcileTime;
    row.nextReconcileTime = next !== null && next <= now ? next + 1 : now;
  }

  #write(uid: string, change: (row: WorkspaceRow) => void): boolean {
    const row = this.#store.tables.workspaces.get(uid);
    if (row === undefined) return false;
    const version = this.#store.nextVersion();
    if (row.deletionTime !== null) return false;
    change(row);
    row.resourceVersion = version;
    return true;
  }
}

/** Each weaker than those before it. */
const POLICIES: readonly BackupPolicy[] = ["Require", "BestEffort", "Skip"];

interface FinalBackup {
  readonly policy: BackupPolicy;
  readonly deadlineTime: Instant;
}

const NOTHING_YET = {
  deletionTime: null,
  finalBackup: "Skip",
  finalBackupDeadlineTime: null,
  sourceBackupId: null,
  wakeTime: null,
  reconcileRequestTime: null,
  nextRetryTime: null,
  readyTime: null,
  queuedTime: null,
  unreachableTime: null,
  idleTime: null,
  startId: null,
  observed: null,
} as const;
