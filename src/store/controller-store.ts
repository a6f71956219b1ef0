/** All that the controller asks of the store, as one port: the simulation has another implementation of the same. */
import { claimBackup } from "./backup-progress.ts";
import { claimBackupDeletion, expireBackupRecords, forgetBackup, readDeletions, readRetentionCandidates } from "./backup-removal.ts";
import { claimObjectRemoval, readBackupSweepView, recordBackupSweep } from "./backup-sweep.ts";
import type { Database } from "./db.ts";
import { loadDue } from "./due.ts";
import { expireEvents } from "./events.ts";
import { acquireLease, holdsLease, releaseLease, renewLease } from "./lease.ts";
import { admitStart, expire, forget, saveConclusion } from "./progress.ts";
import { claimDestroy, readInventoryView, recordSweep } from "./unclaimed.ts";

export type ControllerStore = ReturnType<typeof createControllerStore>;

export function createControllerStore(db: Database) {
  return {
    acquireLease: withDatabase(db, acquireLease),
    renewLease: withDatabase(db, renewLease),
    releaseLease: withDatabase(db, releaseLease),
    holdsLease: withDatabase(db, holdsLease),
    loadDue: withDatabase(db, loadDue),
    saveConclusion: withDatabase(db, saveConclusion),
    admitStart: withDatabase(db, admitStart),
    expire: withDatabase(db, expire),
    forget: withDatabase(db, forget),
    readInventoryView: withDatabase(db, readInventoryView),
    recordSweep: withDatabase(db, recordSweep),
    claimDestroy: withDatabase(db, claimDestroy),
    expireEvents: withDatabase(db, expireEvents),
    claimBackup: withDatabase(db, claimBackup),
    readDeletions: withDatabase(db, readDeletions),
    forgetBackup: withDatabase(db, forgetBackup),
    readRetentionCandidates: withDatabase(db, readRetentionCandidates),
    claimBackupDeletion: withDatabase(db, claimBackupDeletion),
    expireBackupRecords: withDatabase(db, expireBackupRecords),
    readBackupSweepView: withDatabase(db, readBackupSweepView),
    recordBackupSweep: withDatabase(db, recordBackupSweep),
    claimObjectRemoval: withDatabase(db, claimObjectRemoval),
  };
}

function withDatabase<Parameters extends readonly unknown[], Result>(
  db: Database,
  work: (db: Database, ...parameters: Parameters) => Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  return (...parameters) => work(db, ...parameters);
}
