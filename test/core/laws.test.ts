/** What holds in every situation; the numbers are those of the promises in design.md section 2. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DifferenceType, compare, toObservedState } from "../../src/controller/compare.ts";
import { conclude } from "../../src/controller/conclude.ts";
import { type Action, isStalled, plan } from "../../src/controller/plan.ts";
import { heedReturn } from "../../src/controller/wish.ts";
import type { Observation } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { MINUTE, NOW, SECOND, instance, record, spec } from "../support/builders.ts";
import { SECRET, type Situation, before, observations, situations } from "./situations.ts";

/** The same situations in every run. */
fc.configureGlobal({ seed: 794_825 });

/** These leave the sandbox alone: what is seen after them is what was seen before. */
const QUIET: ReadonlySet<Action["kind"]> = new Set(["Rest", "Enqueue", "Suspend"]);
/** These are done by the store: no conclusion follows them. */
const WRITES: ReadonlySet<Action["kind"]> = new Set(["Forget", "Expire"]);

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
  const { laneReleased, brake: _, event: __, running, ...memory } = conclusion;
  const lane = laneReleased ? null : row.lane;
  return { ...row, ...memory, instance: row.instance && { ...row.instance, running }, lane, reconcileRequestTime: null };
}

/** A wish to run that nothing but the lane, a failure or a stall can hold back. */
function isWishedRunning(row: WorkspaceRecord): boolean {
  const { spec: wish, idleTime, wakeTime, status, generation } = row;
  if (row.deletionTime !== null || wish === null || wish.operatingMode !== "Running" || wish.paused) return false;
  const isAsleep = wish.idle && idleTime !== null && status.observedGeneration === generation && (wakeTime === null || wakeTime < idleTime);
  return !isAsleep;
}

/** Whether somebody used it after it was marked as idle. */
function isBack({ idleTime }: WorkspaceRecord, observed: Observation): observed is Extract<Observation, { kind: "Running" }> {
  return observed.kind === "Running" && idleTime !== null && observed.activityTime > idleTime;
}

/** Whether a wish that was made before the last conclusion, and that nobody asked to be tried anew, goes on. */
function isOldWish({ status, generation, reconcileRequestTime }: WorkspaceRecord): boolean {
  return status.observedGeneration === generation && reconcileRequestTime === null;
}

function isExpired({ spec: wish }: WorkspaceRecord): boolean {
  return wish?.expireTime !== null && wish !== null && Date.parse(wish.expireTime) <= NOW;
}

describe("plan", () => {
  test("nothing is done on an unknown observation, unless there never was a sandbox (4)", () => {
    always((situation) => {
      if (situation.observed.kind !== "Unknown") return;
      const { deletionTime, instance: sandbox } = situation.record;
      const isOver = deletionTime === null && isExpired(situation.record);
      expect(planned(situation)).toBe(deletionTime !== null && sandbox === null ? "Forget" : isOver ? "Expire" : "Rest");
    });
  });

  test("deletion is asked for exactly if the time has come and nobody has asked yet", () => {
    always((situation) => {
      const { record: row } = situation;
      expect(planned(situation) === "Expire").toBe(row.deletionTime === null && isExpired(row));
    });
  });

  test("suspended for idleness is only what nobody used, or woke, for as long as it may", () => {
    always((situation) => {
      if (planned(situation) !== "Suspend") return;
      const { record: row, observed } = situation;
      const used = observed.kind === "Running" ? Math.max(observed.activityTime, row.wakeTime ?? 0) : NOW;
      expect(NOW - used).toBeGreaterThanOrEqual((row.spec?.idle?.timeoutSeconds ?? Infinity) * SECOND);
      expect(row.spec?.paused).toBe(false);
    });
  });

  test("whoever came back since the mark is not put out for idleness", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (!isBack(row, observed) || planned(situation) !== "Stop" || row.spec === null) return;
      const isOld = observed.startedTime + (row.spec.maxLifetimeSeconds ?? Infinity) * SECOND <= NOW;
      expect(row.spec.operatingMode === "Suspended" || isOld).toBe(true);
    });
  });

  test("only a wish for Running that is not held back leads to a start or into the queue (2)", () => {
    always((situation) => {
      const row = situation.record;
      if (!isWishedRunning(row) || isStalledByFailure(row)) expect(["Start", "Enqueue"]).not.toContain(planned(situation));
    });
  });

  test("nothing is started during the backoff of its own generation (12)", () => {
    always((situation) => {
      const { nextRetryTime } = situation.record;
      if (nextRetryTime === null || nextRetryTime <= NOW || !isOldWish(situation.record)) return;
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
      const { deletionTime, instance: sandbox } = situation.record;
      const isGone = sandbox === null || situation.observed.kind === "Destroyed";
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
      expect(["Running", "Starting", "Preparing", "Unverified"]).toContain(situation.observed.kind);
    });
  });

  test("without a deletion nothing is destroyed but an older spec's container, an incarnation that is over, and what an operator asked for", () => {
    always((situation) => {
      if (situation.record.deletionTime !== null || planned(situation) !== "Destroy") return;
      const { observed } = situation;
      const isOutdated = observed.kind === "Running" && observed.specHash !== "v0:other";
      const isAsked = situation.record.instance?.destroyRequested === true && observed.kind !== "Destroyed";
      expect(isOutdated || isAsked || observed.kind === "Destroying").toBe(true);
      expect(situation.record.spec?.paused ?? false).toBe(false);
    });
  });

  test("the plan rests exactly if nothing differs, given that nothing holds the workspace back", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      const free = record({ spec: row.spec && { ...row.spec, paused: false, expireTime: null }, instance: instance() });
      if (free.spec === null || ["Unknown", "Starting", "Preparing"].includes(observed.kind)) return;
      expect(plan(free, observed, NOW, situation.mayStart).kind === "Rest").toBe(differences(free, observed).length === 0);
    });
  });

  test("what is done is what the first difference asks for", () => {
    const answers: Readonly<Record<DifferenceType, readonly Action["kind"][]>> = {
      Missing: ["Start", "Enqueue", "Rest"],
      Unexpected: ["Stop"],
      OutOfSync: ["Destroy"],
      IdleOverrun: ["Suspend"],
      LifetimeOverrun: ["Stop"],
    };
    always((situation) => {
      const { record: row, observed } = situation;
      const [first] = differences(row, observed);
      const isAskedFor = observed.kind === "Destroying" || row.instance?.destroyRequested || WRITES.has(planned(situation));
      if (first === undefined || row.deletionTime !== null || row.spec?.paused || isAskedFor) return;
      expect(answers[first.type]).toContain(planned(situation));
    });
  });
});

describe("conclude", () => {
  test("it always answers, whatever the record, the action and the look", () => {
    const kinds = ["Rest", "Enqueue", "Start", "Suspend", "Stop", "Destroy", "Expire", "Forget"] as const;
    const actions = fc.constantFrom(...kinds);
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

  test("the next look is not in the past, and not after the time up to which it is wished", () => {
    always((situation) => {
      if (WRITES.has(planned(situation))) return;
      const { nextReconcileTime } = concluded(situation);
      if (nextReconcileTime !== null) expect(nextReconcileTime).toBeGreaterThanOrEqual(NOW);
      const { spec: wish, deletionTime } = situation.record;
      if (deletionTime !== null || wish === null || wish.expireTime === null) return;
      expect(nextReconcileTime ?? Infinity).toBeLessThanOrEqual(Date.parse(wish.expireTime));
    });
  });

  test("a Ready workspace is looked at again by the time that something would be done about it", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      const { status, nextReconcileTime } = concluded(situation);
      if (status.phase !== "Ready" || row.spec === null || row.spec.paused || observed.kind !== "Running") return;
      if (WRITES.has(planned(situation))) return;
      const idle = row.spec.idle && Math.max(observed.activityTime, row.wakeTime ?? 0) + row.spec.idle.timeoutSeconds * SECOND;
      const old = row.spec.maxLifetimeSeconds && observed.startedTime + row.spec.maxLifetimeSeconds * SECOND;
      expect(nextReconcileTime ?? Infinity).toBeLessThanOrEqual(Math.min(idle ?? Infinity, old ?? Infinity));
    });
  });

  test("idleness is remembered until a use, a wake or another wish ends it, and begins with its mark only", () => {
    afterwards((situation, after, { idleTime }) => {
      const { record: row } = situation;
      if (planned(situation) === "Suspend") return;
      const isWoken = row.wakeTime !== null && row.wakeTime >= (row.idleTime ?? 0);
      const isOver = row.status.observedGeneration !== row.generation || isWoken || isBack(row, after);
      if (idleTime !== null) expect({ idleTime, isOver }).toEqual({ idleTime: row.idleTime, isOver: false });
      const isKept = row.deletionTime === null && row.spec?.idle !== null && !isOver && row.idleTime !== null;
      const isReplaced = planned(situation) === "Destroy" && after.kind !== "Unknown";
      if (isKept && !isReplaced) expect(idleTime).toBe(row.idleTime);
    });
  });

  test("what still differs is looked at again, waits in the queue, or is held back in plain sight (13)", () => {
    afterwards((situation, after, conclusion) => {
      if (conclusion.nextReconcileTime !== null || conclusion.queuedTime !== null) return;
      const row = saved(situation.record, conclusion);
      expect(row.deletionTime).toBeNull();
      expect(after.kind).not.toBe("Unknown");
      if (row.spec === null || row.spec.paused || isStalledByFailure(row)) return;
      expect(differences(row, after)).toEqual([]);
    });
  });

  test("Ready means that a container runs with the wished spec (8)", () => {
    afterwards((situation, after, { status }) => {
      if (status.conditions.find(({ type }) => type === "Ready")?.status !== "True") return;
      const wish = spec({ ...situation.record.spec, operatingMode: "Running", idle: null, maxLifetimeSeconds: null });
      expect(differences({ ...situation.record, spec: wish }, after)).toEqual([]);
    });
  });

  test("failures that are not the workspace's fault are not counted against it (12)", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (observed.kind !== "Failed" || !["Capacity", "RateLimited", "Misconfigured"].includes(observed.failure.class)) return;
      const known = isOldWish(row) ? row.failures : 0;
      expect(concluded(situation).failures).toBeLessThanOrEqual(known);
    });
  });

  test("only what concerns every workspace brakes the lane, and always does where a start is counted (12)", () => {
    always((situation) => {
      const { observed, record: row } = situation;
      const isScarce = observed.kind === "Failed" && ["Capacity", "RateLimited", "Misconfigured"].includes(observed.failure.class);
      const { brake } = concluded(situation);
      if (!isScarce) expect(brake).toBeNull();
      const isReplaced = row.instance?.destroyRequested === true;
      if (isScarce && isWishedRunning(row) && !isReplaced && row.startId === observed.startId) {
        const { reason, message, retryAfterMs = null } = observed.failure;
        expect(brake).toEqual({ retryAfterMs, reason, message });
      }
    });
  });

  test("what the platform told to go is not counted, whatever its code and however soon (12)", () => {
    always((situation) => {
      const { observed, record: row } = situation;
      if (observed.kind !== "Stopped" || !observed.exit?.signalled) return;
      expect(concluded(situation).failures).toBeLessThanOrEqual(row.failures);
    });
  });

  test("the third crash in a row is a loop, and says how it ends (12)", () => {
    always((situation) => {
      const { observed, record: row } = situation;
      const { status, failures: count } = concluded(situation);
      const ready = status.conditions.find(({ type }) => type === "Ready");
      if (observed.kind !== "Stopped" || (ready?.reason !== "ContainerExited" && ready?.reason !== "CrashLoopBackOff")) return;
      if (count <= row.failures && count !== 1) return;
      expect(ready.reason).toBe(count >= 3 ? "CrashLoopBackOff" : "ContainerExited");
      expect(ready.message).toContain(String(observed.exit?.code ?? "unknown"));
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

  test("another wish, or try, starts without failures, without a retry time and without a stall of the old one (12)", () => {
    always((situation) => {
      const { record: row, observed } = situation;
      if (isOldWish(row) || row.deletionTime !== null || row.spec === null) return;
      // A start that the new generation found under way may have been for the very spec that it wishes.
      if (observed.kind === "Failed" && observed.startId === row.startId) return;
      // Whoever asked for another try of the same wish did so before this end of it.
      if (observed.kind === "Stopped" && observed.exit !== null && row.status.observedGeneration === row.generation) return;
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
      if (!isStalledByFailure(row) || !isWishedRunning(row)) return;
      if (observed.kind === "Running" || row.startId !== null || row.readyTime !== null) return;
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
      const { nextRetryTime, nextReconcileTime, failures: count } = concluded(withoutExpiry(situation));
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
      const { record: row, observed } = situation;
      // What is nobody's fault lets the others have their turn first.
      if (observed.kind === "Failed" && observed.failure.class === "Misconfigured") return;
      if (queuedTime !== null && row.queuedTime !== null && row.lane === null) expect(queuedTime).toBe(row.queuedTime);
    });
  });

  test("a pass that found nothing to do in a settled workspace changes nothing when repeated (9)", () => {
    always((situation) => {
      const first = concluded(situation);
      if (planned(situation) !== "Rest" || first.nextReconcileTime !== null) return;
      const settled = saved(situation.record, first);
      const second = conclude(settled, plan(settled, situation.observed, NOW, false), situation.observed, NOW + MINUTE, situation.chance);
      const { laneReleased, brake, event } = second;
      expect({ laneReleased, brake, event }).toEqual({ laneReleased: false, brake: null, event: null });
      expect(JSON.stringify(withoutCounts(saved(settled, second)))).toBe(JSON.stringify(withoutCounts(settled)));
    });
  });

  test("traffic alone moves nothing as long as the time that was written down is ahead (9)", () => {
    fc.assert(
      fc.property(situations, before, (situation, activityTime) => {
        const { observed } = situation;
        if (observed.kind !== "Running" || planned(situation) !== "Rest") return;
        const settled = saved(situation.record, concluded(situation));
        const later = { ...observed, activityTime: Math.max(observed.activityTime, activityTime) };
        if (planned({ ...situation, record: settled, observed: later }) !== "Rest" || isBack(settled, later)) return;
        const again = concluded({ ...situation, record: settled, observed: later });
        expect(again.event).toBeNull();
        if (settled.nextReconcileTime !== null && settled.nextReconcileTime <= NOW) return;
        expect(JSON.stringify(withoutCounts(saved(settled, again)))).toBe(JSON.stringify(withoutCounts(settled)));
      }),
      RUNS,
    );
  });

  test("there is an event exactly if the phase or the reason for it is another", () => {
    afterwards((situation, _after, { event, status }) => {
      const before = situation.record.status;
      const reason = (of: typeof status) => of.conditions.find(({ type }) => type === "Ready")?.reason;
      expect(event !== null).toBe(before.phase !== status.phase || reason(before) !== reason(status));
      if (event !== null) expect(event.reason).toBe(reason(status));
    });
  });

  test("no value of the environment is in anything that is remembered, reported or told", () => {
    afterwards((_situation, _after, conclusion) => {
      expect(JSON.stringify(conclusion)).not.toContain(SECRET);
    });
  });
});

function differences(row: WorkspaceRecord, observed: Observation) {
  return row.spec === null ? [] : compare(heedReturn(row, observed), row.spec, toObservedState(observed), NOW);
}

function withoutExpiry(situation: Situation): Situation {
  const { spec: wish } = situation.record;
  return { ...situation, record: { ...situation.record, spec: wish && { ...wish, expireTime: null } } };
}

/** Without what is not worth a write: how often something was seen, and that it was used again. */
function withoutCounts({ observed, ...row }: WorkspaceRecord): unknown {
  const seen = observed && { ...observed, activityTime: null, differences: observed.differences.map(({ type }) => type) };
  return { ...row, observed: seen };
}

/** A stall for the reason that the spec did not parse is over once it parses. */
function isStalledByFailure(row: WorkspaceRecord): boolean {
  const stall = row.status.conditions.find(({ type }) => type === "Stalled");
  return isStalled(row) && stall?.reason !== "InvalidSpec";
}
