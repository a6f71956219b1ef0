/** Any situation at all, for the laws: records also such as the loop would never write, and every look. */
import fc from "fast-check";
import { toObservedState } from "../../src/controller/compare.ts";
import { specHash } from "../../src/controller/spec-hash.ts";
import type { Condition, Failure, FailureClass, Observation, Reason, WorkspaceSpec } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { MINUTE, NOW, START_ID, changedSpec, instance, record, runningSpec } from "../support/builders.ts";

export const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
export const around = fc.integer({ min: NOW - 20 * MINUTE, max: NOW + 20 * MINUTE });
export const before = fc.integer({ min: NOW - 20 * MINUTE, max: NOW });
export const startId = fc.constantFrom(START_ID, START_ID, START_ID, "start-2");
const CLASSES = ["Progressing", "Capacity", "RateLimited", "Transient", "Uncertain", "Permanent", "NotRunning", "Misconfigured"] as const;

const REASONS: Partial<Record<FailureClass, Reason>> = {
  Capacity: "CapacityUnavailable",
  RateLimited: "RateLimited",
  Misconfigured: "Misconfigured",
};

const failures: fc.Arbitrary<Failure> = fc
  .record(
    { class: fc.constantFrom(...CLASSES), message: fc.string({ maxLength: 5 }), retryAfterMs: fc.nat() },
    { requiredKeys: ["class", "message"] },
  )
  .map((fields) => Object.assign(fields, { reason: REASONS[fields.class] ?? "StartFailed" }));
const exits = fc.record({ code: fc.option(fc.constantFrom(0, 1, 137, 143)), time: before, signalled: fc.boolean() });
const hashes = fc.constantFrom(specHash(runningSpec), specHash(changedSpec), "v0:other");

export const observations: fc.Arbitrary<Observation> = fc.oneof(
  fc.constantFrom("Absent", "Unverified", "Destroying", "Destroyed").map((kind) => ({ kind })),
  fc.record({ kind: fc.constant("Stopped"), startId, exit: fc.option(exits) }),
  fc.record({ kind: fc.constant("Starting"), startId }),
  fc.record({ kind: fc.constant("Preparing"), startId, step: fc.constantFrom("Restore", "Setup") }),
  fc.record({ kind: fc.constant("Failed"), startId, specHash: hashes, failure: failures }),
  fc
    .record({ kind: fc.constant("Running" as const), startId, specHash: hashes, startedTime: before, activityTime: before })
    .map((seen) => Object.assign(seen, { activityTime: Math.max(seen.startedTime, seen.activityTime) })),
  fc.record({ kind: fc.constant("Unknown"), failure: failures }),
);

const conditions: fc.Arbitrary<readonly Condition[]> = fc
  .tuple(
    ...(["Ready", "Reconciling", "Stalled", "Suspended"] as const).map((type) =>
      fc.record({
        type: fc.constant(type),
        status: fc.constantFrom("True", "True", "False", "Unknown"),
        reason: fc.constantFrom("StartFailed", "Unreachable", "InvalidSpec"),
        message: fc.string({ maxLength: 5 }),
        observedGeneration: fc.integer({ min: 0, max: 3 }),
        lastTransitionTime: before,
      } as const),
    ),
  )
  .chain((all) => fc.oneof({ weight: 3, arbitrary: fc.constant(all) }, { weight: 1, arbitrary: fc.subarray(all) }));

/** Would be found in anything that was made of it. */
export const SECRET = "hunter2-hunter2";

const specs: fc.Arbitrary<WorkspaceSpec> = fc.record({
  operatingMode: fc.constantFrom("Running", "Running", "Suspended"),
  directory: fc.constant("/workspace"),
  env: fc.constantFrom<WorkspaceSpec["env"]>({}, changedSpec.env, { TOKEN: SECRET }),
  idle: fc.option(fc.record({ timeoutSeconds: fc.integer({ min: 10, max: 1200 }) }), { freq: 2 }),
  maxLifetimeSeconds: fc.option(fc.integer({ min: 60, max: 1200 }), { freq: 2 }),
  expireTime: fc.option(
    around.map((time) => new Date(time).toISOString()),
    { freq: 2 },
  ),
  paused: fc.constantFrom(false, false, false, true),
  source: fc.constant(null),
  setup: fc.constant([]),
  backup: fc.constant(null),
  deletion: fc.constant({ finalBackup: "Skip", deadlineSeconds: 600 } as const),
});
const instances = fc.record({ running: fc.boolean(), destroyRequested: fc.constantFrom(false, false, true) }).map(instance);

/** Any record at all, also such as the loop would never write. */
const records: fc.Arbitrary<WorkspaceRecord> = fc
  .record({
    generation: fc.integer({ min: 1, max: 2 }),
    deletionTime: fc.constantFrom(null, null, null, NOW - MINUTE),
    spec: fc.option(specs, { freq: 6 }),
    status: fc.record({ observedGeneration: fc.integer({ min: 0, max: 2 }), phase: fc.constant("Pending"), conditions } as const),
    instance: fc.option(instances),
    startId: fc.option(startId, { freq: 2 }),
    idleTime: fc.option(before, { freq: 2 }),
    wakeTime: fc.option(before, { freq: 2 }),
    reconcileRequestTime: fc.option(before, { freq: 2 }),
    quotaReached: fc.boolean(),
    observed: observations.map(toObservedState),
    lane: fc.option(fc.record({ startId, queuedTime: before, deadlineTime: around }), { freq: 2 }),
    failures: fc.nat({ max: 20 }),
    nextRetryTime: fc.option(around, { freq: 2 }),
    readyTime: fc.option(before, { freq: 2 }),
    queuedTime: fc.option(before, { freq: 2 }),
    unreachableTime: fc.option(before),
    nextReconcileTime: fc.option(around),
  })
  .map((fields) => record({ ...fields, incarnation: 1 }))
  .filter(({ status, generation }) => status.observedGeneration <= generation);

export interface Situation {
  readonly record: WorkspaceRecord;
  readonly observed: Observation;
  readonly mayStart: boolean;
  readonly chance: number;
}

export const situations: fc.Arbitrary<Situation> = fc.record({ record: records, observed: observations, mayStart: fc.boolean(), chance });
