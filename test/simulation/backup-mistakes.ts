/** Mistakes that somebody could make with backups: see `mistakes.ts`. */
import type { BackupMemory, BackupOutcome } from "../../src/backup.ts";
import type { Fleet } from "../../src/controller/fleet.ts";
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { MemoryStore } from "./memory-store.ts";
import { type NamedMistake, seeing } from "./mistakes.ts";
import { clones, idlers, interruptions, outages } from "./special-days.ts";

/** What the controller reads of each workspace. */
function reading(change: (record: WorkspaceRecord) => WorkspaceRecord): (store: ControllerStore) => ControllerStore {
  return (store) => ({
    ...store,
    loadDue: async (query) => {
      const { settings, ...lists } = await store.loadDue(query);
      const { due, resync, startable } = lists;
      return { settings, due: due.map(change), resync: resync.map(change), startable: startable.map(change) };
    },
  });
}

function remembering(change: (backups: BackupMemory) => Partial<BackupMemory>): (store: ControllerStore) => ControllerStore {
  return reading((record) => ({ ...record, backups: record.backups && { ...record.backups, ...change(record.backups) } }));
}

/** Retention without its floor. */
class FloorlessStore extends MemoryStore {
  override readRetentionCandidates(): ReturnType<MemoryStore["readRetentionCandidates"]> {
    const good = [...this.tables.backups.values()].filter(({ state }) => state === "Completed");
    const retention = { keepLast: 1, keepForSeconds: 0 };
    return good.map(({ id }) => ({ id, endedTime: 0, rank: 2, retention, workspaceGoneTime: null, referred: false }));
  }

  override claimBackupDeletion(_epoch: number, id: string): boolean {
    const row = this.tables.backups.get(id);
    if (row !== undefined) row.state = "Deleting";
    return true;
  }
}

/** Removes first and marks afterwards. */
class HastyStore extends MemoryStore {
  override readDeletions(limit: number): ReturnType<MemoryStore["readDeletions"]> {
    const marked = super.readDeletions(limit);
    const next = this.readRetentionCandidates(null, limit).map(({ id }) => ({
      id,
      objectId: this.tables.backups.get(id)?.objectId ?? null,
    }));
    return [...marked, ...next];
  }

  override forgetBackup(epoch: number, id: string): boolean {
    return super.forgetBackup(epoch, id) || this.claimBackupDeletion(epoch, id) || true;
  }
}

/** Whatever is not written down yet is nobody's. */
class ForgetfulSweepStore extends MemoryStore {
  override readBackupSweepView(): ReturnType<MemoryStore["readBackupSweepView"]> {
    return { ...super.readBackupSweepView(), oldestClaimTime: null };
  }
}

function answering(change: (outcome: BackupOutcome, sandboxId: string) => BackupOutcome): (fleet: Fleet) => Fleet {
  return (fleet) => ({
    ...seeing((observed) => observed)(fleet),
    backup: async (instance, epoch, order, waitMs) => change(await fleet.backup(instance, epoch, order, waitMs), instance.sandboxId),
  });
}

/** The last good one of each sandbox is taken for the answer. */
function confused(fleet: Fleet): Fleet {
  const good = new Map<string, BackupOutcome>();
  return answering((outcome, sandboxId) => {
    const known = good.get(sandboxId);
    if (outcome.kind === "Completed") good.set(sandboxId, outcome);
    return outcome.kind === "InProgress" ? (known ?? outcome) : outcome;
  })(fleet);
}

function starting(change: (order: Parameters<Fleet["start"]>[2]) => Parameters<Fleet["start"]>[2]): (fleet: Fleet) => Fleet {
  return (fleet) => ({
    ...seeing((observed) => observed)(fleet),
    start: (instance, epoch, order, waitMs) => fleet.start(instance, epoch, change(order), waitMs),
  });
}

function early(observed: Observation): Observation {
  if (observed.kind !== "Preparing") return observed;
  return { kind: "Running", startId: observed.startId, specHash: "v0:", startedTime: 0, activityTime: 0 };
}

export const BACKUP_MISTAKES: readonly NamedMistake[] = [
  { name: "a backup of what was not restored", breaks: [6], backsUpAnything: true, fleet: seeing(early) },
  {
    name: "a start that is resumed for as long as its restore might take",
    breaks: [1],
    resumesLate: true,
    config: { prepareTimeoutMs: 900_000 },
    script: interruptions,
  },
  { name: "retention without a floor", breaks: [6], store: () => new FloorlessStore() },
  {
    name: "retention that keeps but one",
    breaks: [6],
    controllerStore: (store) => ({
      ...store,
      readRetentionCandidates: async (...query) => {
        const candidates = await store.readRetentionCandidates(...query);
        return candidates.map((candidate) => ({ ...candidate, retention: { keepLast: 1, keepForSeconds: null } }));
      },
    }),
  },
  { name: "objects that are removed before their row is marked", breaks: [6], store: () => new HastyStore() },
  {
    name: "a claim that is not written down",
    breaks: [6],
    script: idlers,
    controllerStore: (store) => ({ ...store, claimBackup: () => Promise.resolve(true) }),
  },
  { name: "the outcome of another backup", breaks: [6], fleet: confused },
  {
    name: "an end that waits for no backup",
    breaks: [6],
    controllerStore: reading((record) => {
      const backup = record.spec?.backup;
      return backup ? { ...record, spec: record.spec && { ...record.spec, backup: { ...backup, onSuspend: "Skip" } } } : record;
    }),
  },
  {
    name: "a deletion without its final backup",
    breaks: [6],
    controllerStore: reading((record) => ({ ...record, finalBackup: "Skip" })),
  },
  {
    name: "an end for which an older backup will do",
    breaks: [6],
    controllerStore: remembering(({ last }) => ({
      last: last && { ...last, startedTime: Number.MAX_SAFE_INTEGER, generation: last.generation },
    })),
  },
  {
    name: "a sweep that ignores what is under way",
    breaks: [6],
    store: () => new ForgetfulSweepStore(),
    config: { backups: { mode: "local", timeoutMs: 120_000, sweepIntervalMs: 15_000, orphanGraceMs: 0, keepAfterDeletionMs: 3_600_000 } },
    script: outages,
  },
  {
    name: "a final backup that is waited for without an end",
    breaks: [5, 10],
    fleet: answering((outcome) => (outcome.kind === "Completed" ? { kind: "Failed", reason: "TakingFailed", message: "" } : outcome)),
    controllerStore: reading((record) => ({
      ...record,
      finalBackupDeadlineTime: record.finalBackupDeadlineTime === null ? null : Number.MAX_SAFE_INTEGER,
    })),
  },
  {
    name: "windows that pile up",
    breaks: [6],
    controllerStore: remembering(({ last, newest }) => ({
      last: last && { ...last, startedTime: last.startedTime - 86_400_000 },
      newest: newest && { ...newest, endedTime: 0 },
    })),
  },
  { name: "a restart from the source", breaks: [6], controllerStore: remembering(() => ({ newest: null })) },
  { name: "a start that restores nothing", breaks: [6], fleet: starting((order) => ({ ...order, restore: null })) },
  {
    name: "a source that is another one each time",
    breaks: [6],
    script: clones,
    controllerStore: (store) => ({
      ...store,
      admitStart: (epoch, record, admission, now) => store.admitStart(epoch, record, { ...admission, sourceBackupId: null }, now),
    }),
  },
  {
    name: "a backup that counts as use",
    breaks: [6],
    script: idlers,
    controllerStore: reading((record) => ({ ...record, wakeTime: Math.max(record.wakeTime ?? 0, record.backups?.last?.endedTime ?? 0) })),
  },
  {
    name: "objects that nobody removes",
    breaks: [6],
    controllerStore: (store) => ({ ...store, claimObjectRemoval: () => Promise.resolve(false) }),
  },
  {
    name: "a part of the list that is taken for the whole",
    breaks: [6],
    bucket: (bucket) => ({
      ...bucket,
      list: async () => {
        const listing = await bucket.list();
        return listing.kind === "Complete" ? { ...listing, stored: listing.stored.slice(0, listing.stored.length / 2) } : listing;
      },
    }),
  },
  {
    name: "backups that outlive their workspace for ever",
    breaks: [6],
    config: {
      backups: {
        mode: "local",
        timeoutMs: 120_000,
        sweepIntervalMs: 600_000,
        orphanGraceMs: 300_000,
        keepAfterDeletionMs: Number.MAX_SAFE_INTEGER,
      },
    },
  },
];
