/** What may be asked of a controller store, for a run of which two stores must answer and look the same. */
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  LEASE_MS,
  NOW,
  QUERY,
  type StoreWorld,
  admissionOf,
  instanceOf,
  specOf,
  stranger,
  sweepOf,
  uidOf,
  unchanged,
} from "../contract/store-world.ts";
import { backupStepsOf } from "./store-backup-steps.ts";

export interface Step {
  readonly name: string;
  /** `a` and `b` choose who and how. Answers what is to be compared. */
  readonly run: (a: number, b: number) => Promise<unknown>;
}

const WORKSPACES = 4;
const LIMITS = [{}, { default: 2 }, { "*": 1 }, { "*": 1, default: null }];

/** What a run is about: the fewer kinds of steps it has, the further it comes with each. */
export type About = "workspaces" | "backups";

/** What backups need of the rest. */
const AROUND_BACKUPS: ReadonlySet<string> = new Set([
  "create",
  "time passes",
  "take the lease",
  "load",
  "admit",
  "expire",
  "forget",
  "set",
]);

export function commandsOf(world: StoreWorld, about: About): readonly Step[] {
  const { store } = world;
  const records: WorkspaceRecord[] = [];
  let epoch = 0;
  let starts = 0;
  let now = NOW;
  /** Read at some time, and perhaps out of date. */
  const recordOf = (n: number) => (about === "backups" ? records.at(-1 - (n % 4)) : records[n % Math.max(1, records.length)]);
  const epochOf = (n: number) => (n % 7 === 0 ? epoch - 1 : epoch);
  const step = (name: string, run: Step["run"]): Step => ({ name, run });
  const withRecord = (name: string, run: (record: WorkspaceRecord, a: number, b: number) => Promise<unknown>): Step =>
    step(name, async (a, b) => {
      const record = recordOf(a);
      return record === undefined ? null : run(record, a, b);
    });

  const steps = [
    step("create", async (a) => world.create(`w${a % WORKSPACES}`, a % WORKSPACES)),
    step("replace", async (a, b) => world.replace(uidOf(a % WORKSPACES), specOf(String(b)), now)),
    step("delete", async (a) => world.delete(uidOf(a % WORKSPACES), now)),
    step("poke", async (a) => world.poke(uidOf(a % WORKSPACES), now)),
    step("wake and reconcile", async (a, b) =>
      world.patch(uidOf(a % WORKSPACES), b % 2 ? { wakeTime: now } : { reconcileRequestTime: now }),
    ),
    step("time passes", async (a) => {
      now += [1, 1000, 20_000, 140_000][a % 4] ?? 0;
    }),
    step("take the lease", async (a) => {
      const lease = await store.acquireLease(`holder-${a % 3}`, now, LEASE_MS);
      epoch = lease?.epoch ?? epoch;
      return lease;
    }),
    step("renew or release", async (a, b) =>
      b % 2 ? store.renewLease(epochOf(a), now + LEASE_MS, now) : store.releaseLease(epochOf(a), now, b % 3 ? now : null),
    ),
    step("load", async (a, b) => {
      const resync = a % 3 === 0 ? null : { from: { phase: (a * 7919) % 1e6, uid: "" }, to: (b * 104_729) % 1e6, wraps: b % 2 === 0 };
      const backups = a % 5 !== 0;
      const query = { ...QUERY, now, resync, backups, laneWidth: 1 + (a % 3), runningLimits: LIMITS[b % 4] ?? {}, limit: 1 + (b % 5) };
      const loaded = await store.loadDue(query);
      records.push(...loaded.due, ...loaded.resync, ...loaded.startable);
      return loaded;
    }),
    withRecord("save", (record, a, b) => store.saveConclusion(epochOf(b), record, conclusionOf(record, a, b, now), now)),
    withRecord("admit", (record, a, b) => {
      // The ids and places of a start are given out once.
      starts += 1;
      if (record.lane !== null) return Promise.resolve(null);
      const incarnation = b % 3 === 0 ? record.incarnation + 1 : Math.max(1, record.incarnation);
      const instance = instanceOf(record.uid, incarnation);
      const sourceBackupId = b % 2 ? (record.backups?.source?.id ?? null) : record.sourceBackupId;
      const restoredBackupId = a % 3 === 0 ? sourceBackupId : null;
      const change = {
        instance,
        restoredBackupId,
        sourceBackupId,
        laneWidth: 1 + (a % 2),
        runningLimits: LIMITS[b % 4] ?? {},
        deadlineTime: now + 135_000,
      };
      return store.admitStart(epochOf(b), record, admissionOf(record, `s${starts}`, change), now).catch(() => "refused");
    }),
    withRecord("expire", (record, _a, b) => store.expire(epochOf(b), record, now)),
    withRecord("forget", (record, _a, b) => store.forget(epochOf(b), record, now)),
    step("look at the inventory", async (a) => {
      if (epoch === 0) return null;
      const view = await store.readInventoryView(epochOf(a), now);
      return { ...view, claims: view.claims.toSorted(byUid), claimed: [...view.claimed].toSorted() };
    }),
    step("record a sweep", async (a, b) => {
      if (epoch === 0) return null;
      const { unclaimed } = await store.readInventoryView(epoch, now);
      const states = ["Running", "Stopped", "Settling", "Unknown"] as const;
      const again = unclaimed.map((seen) => ({ ...seen, state: states[b % 4] ?? "Unknown", timesSeen: seen.timesSeen + 1 }));
      const gone = again.filter((_, index) => (index + a) % 3 === 0);
      const seen = [...again.filter((instance) => !gone.includes(instance)), stranger(`x${a % 3}`)];
      const owned = stranger(instanceOf(uidOf(b % WORKSPACES)).doId);
      const record = { ...sweepOf({}, now).record, outcome: a % 4 === 0 ? ("Failed" as const) : ("Complete" as const) };
      return store.recordSweep(
        epochOf(a),
        { unclaimed: b % 2 ? [...seen.filter(({ doId }) => doId !== owned.doId), owned] : seen, gone, record },
        now,
      );
    }),
    step("claim a destroy", async (a, b) =>
      store.claimDestroy(epochOf(b), stranger(a % 2 ? `x${b % 3}` : instanceOf(uidOf(b % WORKSPACES)).doId), now),
    ),
    step("protect", async (a) => world.protect(`x${a % 3}`)),
    step("ask for a replacement", async (a) => world.requestDestroy(instanceOf(uidOf(a % WORKSPACES)).doId, now)),
    step("set", async (a, b) => world.set({ paused: a % 2 === 0, laneWidth: b % 2 ? null : 2, gcMode: b % 3 ? null : "Report" })),
  ];
  if (about === "workspaces") return steps;
  const backups = backupStepsOf({ world, workspaces: WORKSPACES, now: () => now, epochOf, hasLease: () => epoch > 0, withRecord });
  return [...steps.filter(({ name }) => AROUND_BACKUPS.has(name)), ...backups];
}

function byUid(one: { readonly uid: string }, other: { readonly uid: string }): number {
  return one.uid < other.uid ? -1 : 1;
}

function conclusionOf(record: WorkspaceRecord, a: number, b: number, now: number): Conclusion {
  const changes: readonly Partial<Conclusion>[] = [
    {},
    { failures: b % 5, nextRetryTime: now + b, nextReconcileTime: now + b },
    { queuedTime: now - (b % 1000) },
    { readyTime: now, nextReconcileTime: null, queuedTime: null, laneReleased: true },
    { unreachableTime: now, nextReconcileTime: now + 2000 },
    { laneReleased: true, running: false },
    { brake: { retryAfterMs: b % 2 ? null : b % 400_000, reason: "RateLimited", message: "" }, queuedTime: now },
    { event: { type: "Warning", reason: "StartFailed", message: "" }, startId: null },
    { idleTime: now, observed: { kind: "Stopped", specHash: null, startedTime: null, activityTime: null, differences: [] } },
    { status: { observedGeneration: record.generation, phase: "Ready", conditions: [] }, nextReconcileTime: null },
  ];
  return unchanged(record, changes[a % changes.length]);
}
