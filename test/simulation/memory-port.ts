import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { MemoryStore } from "./memory-store.ts";

/** The port as the controller is given it, each call at once. */
export function toControllerStore(memory: MemoryStore): ControllerStore {
  return {
    acquireLease: async (...call) => memory.acquireLease(...call),
    renewLease: async (...call) => memory.renewLease(...call),
    releaseLease: async (...call) => memory.releaseLease(...call),
    holdsLease: async (...call) => memory.holdsLease(...call),
    loadDue: async (...call) => memory.loadDue(...call),
    saveConclusion: async (...call) => memory.saveConclusion(...call),
    admitStart: async (...call) => memory.admitStart(...call),
    expire: async (...call) => memory.expire(...call),
    forget: async (...call) => memory.forget(...call),
    readInventoryView: async (...call) => memory.readInventoryView(...call),
    recordSweep: async (...call) => memory.recordSweep(...call),
    claimDestroy: async (...call) => memory.claimDestroy(...call),
    expireEvents: async () => {},
    claimBackup: async (...call) => memory.claimBackup(...call),
    readDeletions: async (...call) => memory.readDeletions(...call),
    forgetBackup: async (...call) => memory.forgetBackup(...call),
    readRetentionCandidates: async (...call) => memory.readRetentionCandidates(...call),
    claimBackupDeletion: async (...call) => memory.claimBackupDeletion(...call),
    expireBackupRecords: async (...call) => memory.expireBackupRecords(...call),
    readBackupSweepView: async () => memory.readBackupSweepView(),
    recordBackupSweep: async (...call) => memory.recordBackupSweep(...call),
    claimObjectRemoval: async (...call) => memory.claimObjectRemoval(...call),
  };
}
