/** What holds in every situation; the numbers are those of the promises in design.md section 2. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compare } from "../../src/controller/compare.ts";
import { conclude } from "../../src/controller/conclude.ts";
import { type Action, isStalled, plan } from "../../src/controller/plan.ts";
import { specHash } from "../../src/controller/spec-hash.ts";
import type { Condition, Conclusion, Failure, FailureClass, Observation, Reason, WorkspaceRecord } from "../../src/workspace.ts";
import { MINUTE, NOW, START_ID, changedSpec, firstInstance, record, runningSpec, spec } from "../support/builders.ts";

/** The same situations in every run. */
fc.configureGlobal({ seed: 794_825 });

const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const around = fc.integer({ min: NOW - 20 * MINUTE, max: NOW + 20 * MINUTE });
const before = fc.integer({ min: NOW - 20 * MINUTE, max: NOW });
const startId = fc.constantFrom(START_ID, START_ID, START_ID, "start-2");
const CLASSES = ["Progressing", "Capacity", "RateLimited", "Transient", "Uncertain", "Permanent", "NotRunning", "Misconfigured"] as const;

const REASONS: Partial<Record<FailureClass, Reason>> = { Capacity: "CapacityUnavailable", RateLimited: "RateLimited" };

const failures: fc.Arbitrary<Failure> = fc
  .record(
    { class: fc.constantFrom(...CLASSES), message: fc.string({ maxLength: 5 }), retryAfterMs: fc.nat() },
    { requiredKeys: ["class", "message"] },
  )
  .map((fields) => Object.assign(fields, { reason: REASONS[fields.class] ?? "StartFailed" }));
const exits = fc.record({ code: fc.option(fc.constantFrom(0, 1, 137, 143)), time: before });
const hashes = fc.constantFrom(specHash(runningSpec), specHash(changedSpec), "v0:other");

const observations: fc.Arbitrary<Observation> = fc.oneof(
  fc.constantFrom("Absent", "Unverified", "Destroying", "Destroyed").map((kind) => ({ kind })),
  fc.record({ kind: fc.constant("Stopped"), startId, exit: fc.option(exits) }),
  fc.record({ kind: fc.constant("Starting"), startId }),
  fc.record({ kind: fc.constant("Failed"), startId, specHash: hashes, failure: failures }),
  fc.record({ kind: fc.constant("Running"), startId, specHash: hashes }),
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

const specs = fc.record({
  operatingMode: fc.constantFrom("Running", "Running", "Suspended"),
  directory: fc.constant("/workspace"),
  env: fc.constantFrom({}, changedSpec.env),
  paused: fc.constantFrom(false, false, false, true),
});

/** Any record at all, also such as the loop would never write. */
const records: fc.Arbitrary<WorkspaceRecord> = fc
  .record({
    generation: fc.integer({ min: 1, max: 2 }),
    deletionTime: fc.constantFrom(null, null, null, NOW - MINUTE),
    spec: fc.option(specs, { freq: 6 }),
    status: fc.record({ observedGeneration: fc.integer({ min: 0, max: 2 }), phase: fc.constant("Pending"), conditions } as const),
    instance: fc.option(fc.constant(firstInstance)),
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

interface Situation {
  readonly record: WorkspaceRecord;
  readonly observed: Observation;
  readonly mayStart: boolean;
  readonly chance: number;
}

const situations: fc.Arbitrary<Situation> = fc.record({ record: records, observed: observations, mayStart: fc.boolean(), chance });
/** These leave the sandbox alone: what is seen after them is what was seen before. */
const QUIET: ReadonlySet<Action["kind"]> = new Set(["Rest", "Enqueue"]);

/** Enough that each of the combinations that matter comes up. */
const RUNS = { numRuns: 3000 };

function always(holds: (situation: Situation) => void): void {
  fc.assert(fc.property(situations, holds), RUNS);
}

function planned({ record: row, observed, mayStart }: Situation): Action["kind"] {
  return plan(row, observed, NOW, mayStart).kind;
}

function concluded(situation: Situation): Conclusion {
  const action = plan(situation.record, situation.observed, NOW, situation.mayStart);
  return conclude(situation.record, action, situation.observed, NOW, situation.chance);
}

/** For a pass that acts and then sees something else. */
function afterwards(holds: (situation: Situation, after: Observation, conclusion: Conclusion) => void): void {
  fc.assert(
    fc.property(situations, observations, (situation, seen) => {
      const action = plan(situation.record, situation.observed, NOW, situation.mayStart);
      const after = QUIET.has(action.kind) ? situation.observed : seen;
      holds(situation, after, conclude(situation.record, action, after, NOW, situation.chance));
    }),
    RUNS,
  );
}

/** The row as `saveConclusion` leaves it. */
function saved(row: WorkspaceRecord, conclusion: Conclusion): WorkspaceRecord {
  const { status, failures: count, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime, laneReleased } = conclusion;
  const lane = laneReleased ? null : row.lane;
  return { ...row, status, failures: count, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime, lane };
}

describe("plan", () => {
  test("nothing is done on an unknown observation, unless there never was a sandbox (4)", () => {
    always((situation) => {
      if (situation.observed.kind !== "Unknown") return;
      const { deletionTime, instance } = situation.record;
      expect(planned(situation)).toBe(deletionTime !== null && instance === null ? "Forget" : "Rest");
    });
  });

  test("only a wish for Running that is not held back leads to a start or into the queue (2)", () => {
    always((situation) => {
      const row = situation.record;
      const wishes = row.deletionTime === null && row.spec?.operatingMode === "Running" && !row.spec.paused;
      if (!wishes || isStalledByFailure(row)) expect(["Start", "Enqueue"]).not.toContain(planned(situation));
    });
  });

  test("nothing is started during the backoff of its own generation (12)", () => {
    always((situation) => {
      const { nextRetryTime, status, generation } = situation.record;
      if (nextRetryTime === null || nextRetryTime <= NOW || status.observedGeneration < generation) return;
      expect(["Start", "Enqueue"]).not.toContain(planned(situation));
    });
  });

  test("no start without a turn or a place in the lane (1)", () => {
    always((situation) => {
      if (!situation.mayStart) expect(planned(situation)).not.toBe("Start");
    });
  });

  test("forgotten is what has no sandbox or whose sandbox is gone for good, and only if it is being deleted (3, 5)", () => {
    always((situation) => {
      const { deletionTime, instance } = situation.record;
      const isGone = instance === null || situation.observed.kind === "Destroyed";
      expect(planned(situation) === "Forget").toBe(deletionTime !== null && isGone);
    });
  });

  test("a deletion never waits for anything but an answer (5)", () => {
    always((situation) => {
      if (situation.record.deletionTime === null || situation.observed.kind === "Unknown") return;
      expect(["Destroy", "Forget"]).toContain(planned(situation));
    });
  });

  test("only what runs or may run is stopped (9)", () => {
    always((situation) => {
      if (planned(situation) !== "Stop") return;
      expect(["Running", "Starting", "Unverified"]).toContain(situation.observed.kind);
    });
  });

  test("without a deletion nothing is destroyed but an older spec's container and an incarnation that is over", () => {
    always((situation) => {
      if (situation.record.deletionTime !== null || planned(situation) !== "Destroy") return;
      const { observed } = situation;
      const isOutdated = observed.kind === "Running" && observed.specHash !== "v0:other";
      expect(isOutdated || observed.kind === "Destroying").toBe(true);
    });
  });

  test("the plan rests exactly if nothing differs, given that nothing holds the workspace back", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      const free = record({ spec: row.spec && { ...row.spec, paused: false }, instance: row.instance });
      if (free.spec === null || observed.kind === "Unknown" || observed.kind === "Starting") return;
      expect(plan(free, observed, NOW, situation.mayStart).kind === "Rest").toBe(compare(free.spec, observed) === null);
    });
  });
});

describe("conclude", () => {
  test("it always answers, whatever the record, the action and the look", () => {
    const actions = fc.constantFrom<Action["kind"]>("Rest", "Enqueue", "Start", "Stop", "Destroy", "Forget");
    fc.assert(
      fc.property(situations, actions, ({ record: row, observed, chance: luck }, kind) => {
        const { status } = conclude(row, { kind }, observed, NOW, luck);
        expect(status.conditions.map(({ type }) => type)).toEqual(["Ready", "Reconciling", "Stalled", "Suspended"]);
      }),
      RUNS,
    );
  });

  test("the status is about the generation that was looked at, and never a later one (8)", () => {
    always((situation) => {
      const { status } = concluded(situation);
      expect(status.observedGeneration).toBe(situation.record.generation);
      expect(new Set(status.conditions.map(({ observedGeneration }) => observedGeneration))).toEqual(
        new Set([situation.record.generation]),
      );
    });
  });

  test("a transition time moves if and only if the status does", () => {
    always((situation) => {
      const known = new Map(situation.record.status.conditions.map((condition) => [condition.type, condition]));
      for (const { type, status, lastTransitionTime } of concluded(situation).status.conditions) {
        const old = known.get(type);
        expect(lastTransitionTime).toBe(old?.status === status ? old.lastTransitionTime : NOW);
      }
    });
  });

  test("the next look is not in the past", () => {
    always((situation) => {
      const { nextReconcileTime } = concluded(situation);
      if (nextReconcileTime !== null) expect(nextReconcileTime).toBeGreaterThanOrEqual(NOW);
    });
  });

  test("what still differs is looked at again, waits in the queue, or is held back in plain sight (13)", () => {
    afterwards((situation, after, conclusion) => {
      if (conclusion.nextReconcileTime !== null || conclusion.queuedTime !== null) return;
      const row = saved(situation.record, conclusion);
      expect(row.deletionTime).toBeNull();
      expect(after.kind).not.toBe("Unknown");
      if (row.spec === null || row.spec.paused || isStalledByFailure(row)) return;
      expect(compare(row.spec, after)).toBeNull();
    });
  });

  test("Ready means that a container runs with the wished spec (8)", () => {
    afterwards((situation, after, { status }) => {
      if (status.conditions.find(({ type }) => type === "Ready")?.status !== "True") return;
      expect(after.kind).toBe("Running");
      const wish = spec({ ...situation.record.spec, operatingMode: "Running" });
      expect(compare(wish, after)).toBeNull();
    });
  });

  test("failures that are not the workspace's fault are not counted against it (12)", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (observed.kind !== "Failed" || !["Capacity", "RateLimited", "Misconfigured"].includes(observed.failure.class)) return;
      const known = row.status.observedGeneration === row.generation ? row.failures : 0;
      expect(concluded(situation).failures).toBeLessThanOrEqual(known);
    });
  });

  test("only the want of capacity brakes the lane, and always does where a start is counted (12)", () => {
    always((situation) => {
      const { observed, record: row } = situation;
      const isScarce = observed.kind === "Failed" && ["Capacity", "RateLimited"].includes(observed.failure.class);
      const { brake } = concluded(situation);
      if (!isScarce) expect(brake).toBeNull();
      const counts = row.deletionTime === null && row.spec?.operatingMode === "Running" && !row.spec.paused;
      if (isScarce && counts && row.lane?.startId === observed.startId) {
        expect(brake).toEqual({ retryAfterMs: observed.failure.retryAfterMs ?? null });
      }
    });
  });

  test("one pass counts one failure at most", () => {
    always((situation) => {
      expect(concluded(situation).failures).toBeLessThanOrEqual(situation.record.failures + 1);
    });
  });

  test("a failure is counted once: what it left behind is not counted again", () => {
    always((situation) => {
      const first = concluded(situation);
      const again = { ...situation, record: saved(situation.record, first) };
      if (first.failures > situation.record.failures) expect(concluded(again).failures).toBe(first.failures);
    });
  });

  test("a new generation starts without failures, without a retry time and without a stall of the old one (12)", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (row.status.observedGeneration === row.generation || row.deletionTime !== null || row.spec === null) return;
      // A start that the new generation found under way may have been for the very spec that it wishes.
      if (observed.kind === "Failed" && observed.startId === row.lane?.startId) return;
      const conclusion = conclude(row, { kind: "Rest" }, observed, NOW, situation.chance);
      expect({
        failures: conclusion.failures,
        nextRetryTime: conclusion.nextRetryTime,
        stalled: isStalled(saved(row, conclusion)),
      }).toEqual({
        failures: 0,
        nextRetryTime: null,
        stalled: false,
      });
    });
  });

  test("a stall lasts until the generation changes, whatever is seen meanwhile (12)", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (!isStalledByFailure(row) || row.deletionTime !== null || row.spec?.operatingMode !== "Running" || row.spec.paused) return;
      if (observed.kind === "Running" || observed.kind === "Destroying" || row.lane !== null || row.readyTime !== null) return;
      expect(isStalled(saved(row, concluded(situation)))).toBe(true);
    });
  });

  test("the lane is given on if and only if no start of its holder can be under way (1)", () => {
    afterwards((situation, after, { laneReleased }) => {
      const mayBeUnderWay = ["Starting", "Unverified", "Unknown"].includes(after.kind);
      expect(laneReleased).toBe(situation.record.lane !== null && !mayBeUnderWay);
    });
  });

  test("a backoff is between a second and five minutes, and the next look is not before it (12)", () => {
    always((situation) => {
      const { nextRetryTime, nextReconcileTime, failures: count } = concluded(situation);
      if (count <= situation.record.failures || nextRetryTime === null || nextRetryTime === situation.record.nextRetryTime) return;
      expect(nextRetryTime - NOW).toBeGreaterThanOrEqual(1000);
      expect(nextRetryTime - NOW).toBeLessThanOrEqual(5 * MINUTE);
      expect(nextReconcileTime).toBe(nextRetryTime);
    });
  });

  test("who waits is in the queue, who is Ready or being deleted or paused or suspended is not", () => {
    always((situation) => {
      const { queuedTime } = concluded(situation);
      const { record: row, observed } = situation;
      if (queuedTime === null) return;
      expect(row.deletionTime).toBeNull();
      if (observed.kind === "Unknown") expect(queuedTime).toBe(row.queuedTime);
      else expect(row.spec).toMatchObject({ operatingMode: "Running", paused: false });
    });
  });

  test("a place in the queue is never lost to waiting", () => {
    always((situation) => {
      const { queuedTime } = concluded(situation);
      const { record: row } = situation;
      if (queuedTime !== null && row.queuedTime !== null && row.lane === null) expect(queuedTime).toBe(row.queuedTime);
    });
  });

  test("a pass that found nothing to do in a settled workspace changes nothing when repeated (9)", () => {
    always((situation) => {
      const first = concluded(situation);
      if (planned(situation) !== "Rest" || first.nextReconcileTime !== null) return;
      const settled = saved(situation.record, first);
      const second = conclude(settled, plan(settled, situation.observed, NOW, false), situation.observed, NOW + MINUTE, situation.chance);
      const { laneReleased, brake, ...fields } = second;
      expect({ laneReleased, brake }).toEqual({ laneReleased: false, brake: null });
      expect(JSON.stringify({ ...settled, ...fields })).toBe(JSON.stringify(settled));
    });
  });
});

/** A stall for the reason that the spec did not parse is over once it parses. */
function isStalledByFailure(row: WorkspaceRecord): boolean {
  const stall = row.status.conditions.find(({ type }) => type === "Stalled");
  return isStalled(row) && stall?.reason !== "InvalidSpec";
}
