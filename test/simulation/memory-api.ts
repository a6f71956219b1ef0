/** What the API, its operators and the sandboxes write, to the same tables: `src/store/intent.ts` and `src/sandbox/poke.ts`. */
import { INITIAL_STATUS } from "../../src/store/status.ts";
import type { ControllerSettings } from "../../src/unclaimed.ts";
import type { Instant, WorkspaceSpec } from "../../src/workspace.ts";
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
      Object.assign(row, { spec, generation: row.generation + 1, revision: row.revision + 1, nextReconcileTime: now });
    });
  }

  delete(uid: string, now: Instant): boolean {
    return this.#write(uid, (row) => {
      Object.assign(row, { deletionTime: now, revision: row.revision + 1, nextReconcileTime: now });
    });
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

const NOTHING_YET = {
  deletionTime: null,
  wakeTime: null,
  reconcileRequestTime: null,
  nextRetryTime: null,
  readyTime: null,
  queuedTime: null,
  unreachableTime: null,
  idleTime: null,
  startId: null,
  observed: null,
};
