/** The memory store as the contract suite takes hold of it. */
import type { BackupRow } from "../../simulation/memory-backup-rows.ts";
import { MemoryApi } from "../../simulation/memory-api.ts";
import { toControllerStore } from "../../simulation/memory-port.ts";
import { MemoryStore } from "../../simulation/memory-store.ts";
import { type Look, NOW, type StoreWorld, specOf, uidOf, without } from "../../contract/store-world.ts";

export function memoryWorld(): StoreWorld {
  const memory = new MemoryStore();
  const api = new MemoryApi(memory);
  const { tables } = memory;
  const patch: StoreWorld["patch"] = async (uid, columns) => {
    Object.assign(tables.workspaces.get(uid) ?? {}, columns);
  };
  return {
    store: toControllerStore(memory),
    async create(name, n, columns = {}) {
      const uid = uidOf(n);
      api.create(uid, "default", name, specOf(), NOW);
      await patch(uid, columns);
      return uid;
    },
    patch,
    replace: async (uid, spec, now) => void api.replace(uid, spec, now),
    delete: async (uid, now, finalBackup) => void api.delete(uid, now, finalBackup),
    async requestBackup(uid, id, now) {
      const asked = api.requestBackup(uid, id, now);
      return asked === null ? null : { id: asked.backup.id, created: asked.created };
    },
    deleteBackup: async (name, id, now) => (tables.backups.get(id)?.name === name ? api.deleteBackup(id, now) : "Missing"),
    putBackup: async (columns) => void tables.backups.set(columns.id, { ...columns } as BackupRow),
    poke: async (uid, now) => api.poke(uid, now),
    async requestDestroy(doId, now) {
      const row = tables.instances.get(doId);
      if (row !== undefined) row.destroyRequestTime = now;
    },
    protect: async (doId) => void api.protect(doId, true),
    set: async (settings) => api.set(settings),
    look: async () => lookAt(memory),
  };
}

function lookAt({ tables }: MemoryStore): Look {
  const { workspaces, instances, lane, unclaimed, backups, unclaimedBackups, controller, events } = tables;
  const rows = [...workspaces.values()].map((row) => [
    row.name,
    without(row, "uid", "namespace", "name", "spec", "revision", "creationTime"),
  ]);
  return {
    workspaces: Object.fromEntries(rows) as Look["workspaces"],
    instances: [...instances.values()].map(({ doId, running, destroyRequestTime }) => ({ doId, running, destroyRequestTime })),
    lane: lane.map(({ startId, slot, deadlineTime }) => ({ startId, slot, deadlineTime })),
    unclaimed: [...unclaimed.values()].map((row) => without(row, "destroyRequestTime")),
    backups: [...backups.values()].map((row) => ({ ...row })),
    unclaimedBackups: [...unclaimedBackups.values()].toSorted((one, other) => (one.objectId < other.objectId ? -1 : 1)),
    controller: controller === null ? null : without(controller, "holder"),
    events,
  };
}
