/** What may be asked of a controller store about backups, for the same comparison. */
import type { BackupEnding } from "../../src/backup.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  type StoreWorld,
  bucketSweepOf,
  claimOf,
  endingOf,
  goodBackup,
  specOf,
  strayObjects,
  uidOf,
  unchanged,
} from "../contract/store-world.ts";
import type { Step } from "./store-steps.ts";

export interface StepContext {
  readonly world: StoreWorld;
  readonly workspaces: number;
  readonly now: () => number;
  /** Sometimes that of somebody else. */
  readonly epochOf: (n: number) => number;
  /** Whether anybody ever took the lease. */
  readonly hasLease: () => boolean;
  /** Read at some time, and perhaps out of date. */
  readonly withRecord: (name: string, run: (record: WorkspaceRecord, a: number, b: number) => Promise<unknown>) => Step;
}

const STATES = ["Completed", "Completed", "Skipped", "Failed", "Abandoned"] as const;
const STORED = ["Completed", "Completed", "Completed", "Deleting", "Failed", "Skipped"] as const;
const TRIGGERS = ["Schedule", "Suspend", "Final"] as const;

export function backupStepsOf(context: StepContext): readonly Step[] {
  const ids = new Ids();
  return [...writesOf(context, ids), ...removalsOf(context, ids)];
}

/** Beyond the workspaces'. */
const FIRST_ID = 1000;

/** Each is given out once, and then named again and again; the first is nobody's. */
class Ids {
  #given = 0;

  next(): string {
    this.#given += 1;
    return uidOf(FIRST_ID + this.#given);
  }

  of(n: number): string {
    return uidOf(FIRST_ID + (n % (this.#given + 1)));
  }
}

function writesOf({ world, workspaces, now, epochOf, withRecord }: StepContext, ids: Ids): readonly Step[] {
  const { store } = world;
  const run: Record<string, Step["run"]> = {
    "find a backup": (a, b) => {
      const n = a % workspaces;
      const state = STORED[b % STORED.length] ?? "Completed";
      const isGone = b % 4 === 0;
      const id = ids.next();
      const objectId = state === "Completed" || state === "Deleting" ? `object-${id}` : null;
      const times = { lostTime: b % 5 === 0 ? now() : null, workspaceGoneTime: isGone ? now() - (b % 90_000) : null };
      const owner = isGone ? `gone-${n}` : uidOf(n);
      return world.putBackup(goodBackup(id, owner, now() - (a % 90_000), { name: `w${n}`, state, objectId, ...times }));
    },
    "ask for a backup": (a) => world.requestBackup(uidOf(a % workspaces), ids.next(), now()),
    "ask for its deletion": async (a, b) => {
      const { backups } = await world.look();
      const { id, name } = backups[b % (backups.length + 1)] ?? { id: ids.of(b), name: `w${a % workspaces}` };
      return world.deleteBackup(name, id, now());
    },
    "wish a source": (a, b) => {
      const sources = [null, { backup: ids.of(b) }, { workspace: `w${b % workspaces}` }];
      return world.replace(uidOf(a % workspaces), specOf(String(b % 3), { source: sources[a % 3] ?? null }), now());
    },
    "wish another keep": (a, b) => {
      const retention = { keepLast: 1 + (b % 3), keepForSeconds: b % 2 === 0 ? null : b % 1000 };
      const backup = { everySeconds: null, onSuspend: "Skip", excludes: [], retention } as const;
      return world.replace(uidOf(a % workspaces), specOf("1", { backup: b % 5 === 0 ? null : backup }), now());
    },
    "delete with a final backup": (a, b) =>
      world.delete(uidOf(a % workspaces), now(), { policy: b % 2 === 0 ? "Require" : "BestEffort", deadlineTime: now() + (b % 1000) }),
  };
  return [
    ...Object.entries(run).map(([name, step]): Step => ({ name, run: step })),
    withRecord("claim a backup", (record, a, b) => {
      const id = b % 5 === 0 ? ids.of(a) : (record.backups?.active?.id ?? ids.next());
      const change = { trigger: TRIGGERS[b % 3] ?? "Schedule", failures: b % 4, deadlineTime: now() + 600_000 };
      return store.claimBackup(epochOf(b), record, claimOf(id, change), now());
    }),
    withRecord("end a backup", (record, a, b) => {
      const active = record.backups?.active ?? null;
      const id = active?.id ?? ids.of(a);
      const state = STATES[b % STATES.length] ?? "Failed";
      const objects = state === "Completed" ? { objectId: `o-${id}-${now()}` } : { objectId: null, sizeBytes: null };
      const ending: BackupEnding = endingOf(id, { trigger: active?.trigger ?? "Schedule", state, reason: "Why", ...objects });
      // Two backups of one moment would have the same objects.
      return store.saveConclusion(epochOf(b), record, unchanged(record, { backup: ending }), now()).catch(() => "refused");
    }),
  ];
}

function removalsOf({ world, now, epochOf, hasLease }: StepContext, ids: Ids): readonly Step[] {
  const { store } = world;
  const run: Record<string, Step["run"]> = {
    "look for what is beyond its keep": (a, b) => store.readRetentionCandidates(b % 2 === 0 ? null : ids.of(a), 1 + (b % 5)),
    "mark what is beyond its keep": async (a, b) => {
      const candidates = await store.readRetentionCandidates(null, 5);
      return store.claimBackupDeletion(epochOf(b), candidates[a % 7]?.id ?? ids.of(a));
    },
    "remove what is marked": async (a, b) => {
      const deletions = await store.readDeletions(1 + (b % 3));
      const forgotten = await store.forgetBackup(epochOf(a), deletions[0]?.id ?? ids.of(b));
      return [deletions, forgotten];
    },
    "let old rows go": (a, b) => store.expireBackupRecords(epochOf(a), now() - ([0, 1000, 50_000][b % 3] ?? 0)),
    "sweep the bucket": async (a, b) => {
      const view = await store.readBackupSweepView();
      if (!hasLease()) return view;
      const objectId = b % 2 === 0 ? `x${a % 3}` : ([...view.known].toSorted()[a % 3] ?? "x");
      const unclaimed = [strayObjects(objectId, { timesSeen: b % 7 })];
      const gone = view.unclaimed.filter((_, index) => (index + a) % 3 === 0).map((seen) => seen.objectId);
      const outcome = b % 4 === 0 ? ("Failed" as const) : ("Complete" as const);
      const record = { ...bucketSweepOf({}, now()).record, outcome, eligible: b % 5 };
      const result = { record, unclaimed, gone: gone.filter((id) => id !== objectId), lost: [ids.of(a)], found: [ids.of(b)] };
      return [{ ...view, known: [...view.known].toSorted() }, await store.recordBackupSweep(epochOf(a), result, now())];
    },
    "claim the removal of objects": (a, b) => store.claimObjectRemoval(epochOf(b), `x${a % 3}`, now()),
  };
  return Object.entries(run).map(([name, step]): Step => ({ name, run: step }));
}
