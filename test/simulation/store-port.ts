/** The controller's store as one process has it, and what the simulation takes note of. */
import type { ControllerStore } from "../../src/store/controller-store.ts";
import { callStore } from "./calls.ts";
import { toInstance } from "./memory-rows.ts";
import type { Day } from "./ports.ts";
import type { Process } from "./process.ts";

type Call = <Result>(effect: () => Result) => Promise<Result>;

export function storeOf(process: Process, day: Day): ControllerStore {
  const { store, invariants } = day;
  const call: Call = (effect) => callStore(process, day, effect);
  return {
    acquireLease: (...query) => call(() => store.acquireLease(...query)),
    renewLease: (epoch, ...lease) => call(() => noting(store.renewLease(epoch, ...lease), () => invariants.wrote("the lease", epoch))),
    releaseLease: (epoch, ...lease) => call(() => noting(store.releaseLease(epoch, ...lease), () => invariants.wrote("the lease", epoch))),
    holdsLease: (...query) => call(() => store.holdsLease(...query)),
    loadDue: (query) =>
      call(() => {
        const loaded = store.loadDue(query);
        process.loaded(loaded.settings, day.clock.now());
        return loaded;
      }),
    saveConclusion: (epoch, record, conclusion, now) =>
      call(() => {
        const { version } = store.tables;
        const isSaved = store.saveConclusion(epoch, record, conclusion, now);
        if (isSaved && store.tables.version !== version) invariants.saved(process, epoch, record, conclusion, now);
        return isSaved;
      }),
    admitStart: (epoch, record, admission, now) =>
      call(() => {
        const version = store.admitStart(epoch, record, admission, now);
        if (version !== null) invariants.admitted(process, epoch, record, admission);
        return version;
      }),
    expire: (epoch, record, now) => call(() => noting(store.expire(epoch, record, now), () => invariants.expired(epoch, record))),
    forget: (epoch, record, now) =>
      call(() => {
        const instance = store.instanceOf(record.uid);
        const known = instance === null ? null : toInstance(instance);
        return noting(store.forget(epoch, record, now), () => invariants.forgotten(epoch, record, known));
      }),
    readInventoryView: (...query) => call(() => store.readInventoryView(...query)),
    recordSweep: (epoch, result, now) =>
      call(() =>
        noting(store.recordSweep(epoch, result, now), () => {
          invariants.wrote("a sweep", epoch);
          invariants.trace?.("", `sweep ${JSON.stringify(result.record)}`);
          for (const { doId, state, timesSeen, firstSeenTime } of result.unclaimed) {
            invariants.trace?.(doId, `seen ${state} ${timesSeen} times since ${Math.round((now - firstSeenTime) / 1000)} s`);
          }
          const { lastListing } = process;
          process.lastListing = null;
          invariants.dropped(result.gone, lastListing?.given ?? null);
          invariants.leaks.swept(process, lastListing, day.clock.now());
        }),
      ),
    claimDestroy: (epoch, instance, now) =>
      call(() => noting(store.claimDestroy(epoch, instance, now), () => invariants.claimedOrphan(process, instance.doId))),
    expireEvents: () => call(() => {}),
    ...backupsOf(day, call),
  };
}

type BackupCalls =
  | "claimBackup"
  | "readDeletions"
  | "forgetBackup"
  | "readRetentionCandidates"
  | "claimBackupDeletion"
  | "expireBackupRecords"
  | "readBackupSweepView"
  | "recordBackupSweep"
  | "claimObjectRemoval";

function backupsOf({ store, invariants, clock }: Day, call: Call): Pick<ControllerStore, BackupCalls> {
  const { backups } = invariants;
  const written = (epoch: number, isDone: boolean) => noting(isDone, () => invariants.wrote("a backup", epoch));
  return {
    claimBackup: (epoch, record, claim, now) =>
      call(() =>
        noting(written(epoch, store.claimBackup(epoch, record, claim, now)), () => {
          invariants.trace?.(
            record.uid,
            `claimed ${claim.id} of ${claim.startId} for ${claim.trigger}, every ${record.spec?.backup?.everySeconds} s`,
          );
          backups.claimed(record, claim, now);
        }),
      ),
    readDeletions: (limit) => call(() => store.readDeletions(limit)),
    forgetBackup: (epoch, id) => call(() => written(epoch, store.forgetBackup(epoch, id))),
    readRetentionCandidates: (...query) => call(() => store.readRetentionCandidates(...query)),
    claimBackupDeletion: (epoch, id) =>
      call(() => {
        const note = backups.marking(id, clock.now());
        const isMarked = written(epoch, store.claimBackupDeletion(epoch, id));
        note(isMarked);
        return isMarked;
      }),
    expireBackupRecords: (...query) => call(() => store.expireBackupRecords(...query)),
    readBackupSweepView: () => call(() => store.readBackupSweepView()),
    recordBackupSweep: (epoch, result, now) => call(() => written(epoch, store.recordBackupSweep(epoch, result, now))),
    claimObjectRemoval: (epoch, objectId, now) => call(() => written(epoch, store.claimObjectRemoval(epoch, objectId, now))),
  };
}

function noting(isDone: boolean, note: () => void): boolean {
  if (isDone) note();
  return isDone;
}
