/** What holds of backups in every situation; the numbers are those of the promises in design.md section 2. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ActiveBackup, BackupAttempt, BackupMemory, BackupOutcome, StoredBackup } from "../../src/backup.ts";
import { conclude } from "../../src/controller/conclude.ts";
import { type Action, plan } from "../../src/controller/plan.ts";
import { restoreOf } from "../../src/controller/restore.ts";
import type { BackupPolicy } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { BACKUPS, OBJECT_ID, memory } from "../support/backup-builders.ts";
import { NOW, SECOND } from "../support/builders.ts";
import { type Situation, around, before, situations, startId } from "./situations.ts";

fc.configureGlobal({ seed: 794_825 });

const RUNS = { numRuns: 2000 };

const policies = fc.constantFrom<BackupPolicy>("Require", "BestEffort", "Skip");
const stored: fc.Arbitrary<StoredBackup> = fc.record({
  id: fc.constantFrom("backup-1", "backup-2"),
  objectId: fc.constant(OBJECT_ID),
  endedTime: before,
  lostTime: fc.option(before, { freq: 2 }),
});
const actives: fc.Arbitrary<ActiveBackup> = fc
  .record({
    trigger: fc.constantFrom("Request", "Schedule", "Suspend", "Final"),
    claim: fc.option(fc.record({ startId, startedTime: before, deadlineTime: around })),
  })
  .map(({ trigger, claim }) => {
    const unclaimed = { state: "Requested", startId: null, startedTime: null, deadlineTime: null } as const;
    return { id: "backup-3", trigger, directory: "/workspace", ...(claim === null ? unclaimed : { state: "InProgress", ...claim }) };
  });
const attempts: fc.Arbitrary<BackupAttempt> = fc
  .record({
    trigger: fc.constant("Suspend"),
    state: fc.constantFrom("Completed", "Skipped", "Failed", "Abandoned"),
    startId,
    generation: fc.constantFrom(1, 2),
    startedTime: before,
    took: fc.integer({ min: 1, max: 60 * SECOND }),
    failures: fc.nat({ max: 20 }),
    message: fc.constant("boom"),
  } as const)
  .map(({ took, ...fields }) => ({ ...fields, endedTime: Math.min(NOW - 1, fields.startedTime + took) }));
const memories: fc.Arbitrary<BackupMemory> = fc.record({
  active: fc.option(actives),
  newest: fc.option(stored),
  last: fc.option(attempts, { freq: 3 }),
  source: fc.option(stored),
});
const specParts = fc.record({
  backup: fc.option(
    fc
      .record({ everySeconds: fc.option(fc.integer({ min: 60, max: 2400 })), onSuspend: policies })
      .map((fields) => Object.assign({}, BACKUPS, fields)),
  ),
  source: fc.constantFrom(null, null, { workspace: "bob" } as const),
});

/** Any situation at all, where backups are taken. */
const kept: fc.Arbitrary<Situation> = fc
  .record({
    situation: situations,
    backups: memories,
    parts: specParts,
    finalBackup: policies,
    finalBackupDeadlineTime: fc.option(around, { freq: 4 }),
  })
  .map(({ situation, parts, finalBackupDeadlineTime, ...fields }) => {
    const { spec, deletionTime } = situation.record;
    const deadline = { finalBackupDeadlineTime: deletionTime === null ? null : finalBackupDeadlineTime };
    return { ...situation, record: { ...situation.record, ...fields, ...deadline, spec: spec && { ...spec, ...parts } } };
  });

const outcomes: fc.Arbitrary<BackupOutcome | null> = fc.constantFrom<BackupOutcome | null>(
  null,
  { kind: "InProgress" },
  { kind: "Completed", objectId: OBJECT_ID, sizeBytes: 1 },
  { kind: "Skipped", reason: "Empty", message: "" },
  { kind: "Failed", reason: "TakingFailed", message: "boom" },
  { kind: "Unknown", message: "no answer" },
);

function always(holds: (situation: Situation) => void): void {
  fc.assert(fc.property(kept, holds), RUNS);
}

function afterAsking(holds: (situation: Situation, outcome: BackupOutcome | null, conclusion: Conclusion, action: Action) => void): void {
  fc.assert(
    fc.property(kept, outcomes, (situation, outcome) => {
      const action = planned(situation);
      if (action.kind === "Forget" || action.kind === "Expire") return;
      holds(situation, outcome, concluded(situation, outcome), action);
    }),
    RUNS,
  );
}

function planned({ record, observed, mayStart }: Situation): Action {
  return plan(record, observed, NOW, mayStart);
}

function concluded(situation: Situation, outcome: BackupOutcome | null = null): Conclusion {
  return conclude(situation.record, planned(situation), situation.observed, NOW, situation.chance, outcome);
}

function isClaimed({ backups }: WorkspaceRecord): boolean {
  return backups?.active?.state === "InProgress";
}

/** Whether what runs was backed up, or found to hold nothing, by an attempt of this generation. */
function isSaved({ backups, generation }: WorkspaceRecord, runningStartId: string): boolean {
  const last = backups?.last ?? null;
  const isGood = last?.state === "Completed" || last?.state === "Skipped";
  return isGood && last.startId === runningStartId && last.generation === generation;
}

describe("plan", () => {
  test("where no backup was wished, asked for or taken, everything is as where none are taken at all", () => {
    const idle = fc.record({ newest: fc.option(stored), last: fc.option(attempts) }).map(memory);
    fc.assert(
      fc.property(situations, idle, (situation, backups) => {
        const without = { ...situation, record: { ...situation.record, backups: null } };
        const withMemory = { ...situation, record: { ...situation.record, backups } };
        expect(planned(withMemory)).toEqual(planned(without));
        const { status, ...rest } = concluded(withMemory);
        const { status: statusWithout, ...restWithout } = concluded(without);
        expect(rest).toEqual(restWithout);
        const conditions = status.conditions.filter(({ type }) => type !== "BackupCurrent");
        expect({ ...status, conditions }).toEqual(statusWithout);
      }),
      RUNS,
    );
  });

  test("nothing is taken or ended on an unknown observation (4)", () => {
    always((situation) => {
      if (situation.observed.kind !== "Unknown") return;
      expect(["Rest", "Expire", "Forget"]).toContain(planned(situation).kind);
    });
  });

  test("what is required is there before a container is ended by wish (6)", () => {
    always((situation) => {
      const { record, observed } = situation;
      const { kind } = planned(situation);
      if (observed.kind !== "Running" || (kind !== "Stop" && kind !== "Destroy")) return;
      const isTooLate = record.finalBackupDeadlineTime === null || NOW >= record.finalBackupDeadlineTime;
      const policy = record.deletionTime === null ? record.spec?.backup?.onSuspend : isTooLate ? "Skip" : record.finalBackup;
      const isAskedFor = record.deletionTime === null && record.instance?.destroyRequested === true;
      if (policy === "Require" && !isAskedFor) expect(isSaved(record, observed.startId)).toBe(true);
    });
  });

  test("a deletion past its deadline waits for nothing but an answer (5)", () => {
    always((situation) => {
      const { record, observed } = situation;
      const deadline = record.finalBackupDeadlineTime ?? 0;
      if (record.deletionTime === null || observed.kind === "Unknown" || NOW < deadline) return;
      expect(["Destroy", "Forget"]).toContain(planned(situation).kind);
    });
  });

  test("a backup is begun only of what was restored and verified, and never of what is paused (6)", () => {
    always((situation) => {
      const { record, observed } = situation;
      if (planned(situation).kind !== "Backup" || isClaimed(record)) return;
      expect(observed.kind).toBe("Running");
      expect(record.backups).not.toBeNull();
      if (record.deletionTime === null) expect(record.spec?.paused).toBe(false);
    });
  });

  test("nothing is started while the outcome of a backup is awaited, or without what it is to begin with (6)", () => {
    always((situation) => {
      const { record } = situation;
      const { kind } = planned(situation);
      if (kind !== "Start" && kind !== "Enqueue") return;
      expect(isClaimed(record) && record.instance !== null).toBe(false);
      expect(record.spec && restoreOf(record, record.spec).kind).not.toBe("Missing");
    });
  });

  test("no backup keeps an expired workspace, or one that an operator wants replaced", () => {
    always((situation) => {
      const { record, observed } = situation;
      const isHeld = record.spec?.paused || record.deletionTime !== null || ["Unknown", "Destroyed"].includes(observed.kind);
      if (isHeld || !record.instance?.destroyRequested) return;
      expect(["Destroy", "Expire"]).toContain(planned(situation).kind);
    });
  });
});

describe("conclude", () => {
  test("what is under way is looked after within seconds, or as soon as its sandbox answers", () => {
    afterAsking(({ observed }, _outcome, { nextReconcileTime, backup }, action) => {
      if (action.kind !== "Backup" || backup !== null) return;
      expect(nextReconcileTime).not.toBeNull();
      expect(nextReconcileTime ?? Infinity).toBeLessThanOrEqual(NOW + (observed.kind === "Unknown" ? 60 : 5) * SECOND);
    });
  });

  test("a claim ends by its outcome or its deadline, and only once", () => {
    afterAsking((situation, outcome, { backup }) => {
      const { record } = situation;
      const active = record.backups?.active ?? null;
      if (active === null) expect(backup).toBeNull();
      if (active?.state !== "InProgress" || backup === null) return;
      const isOver = record.instance === null || NOW >= (active.deadlineTime ?? 0);
      if (backup.state === "Abandoned") expect(isOver).toBe(true);
      else expect(backup.state).toBe(outcome?.kind);
      const ended = saved(situation, concluded(situation, outcome));
      expect(concluded({ ...situation, record: ended }, outcome).backup).toBeNull();
    });
  });

  test("a good backup is never lost to another one's end (6)", () => {
    afterAsking((situation, outcome, { backup }) => {
      if (backup?.state === "Completed") expect(backup.objectId).toBe(OBJECT_ID);
      else expect(saved(situation, concluded(situation, outcome)).backups?.newest).toEqual(situation.record.backups?.newest);
    });
  });

  test("whoever rests does not ask for another pass at once, again and again (9)", () => {
    afterAsking((situation, outcome, conclusion, action) => {
      if (action.kind !== "Rest" || (conclusion.nextReconcileTime ?? Infinity) > NOW) return;
      const again = { ...situation, record: saved(situation, conclusion) };
      if (planned(again).kind === "Rest") expect(concluded(again, outcome).nextReconcileTime ?? Infinity).toBeGreaterThan(NOW);
    });
  });

  test("the next look is not in the past", () => {
    afterAsking((_situation, _outcome, { nextReconcileTime }) => {
      expect(nextReconcileTime ?? NOW).toBeGreaterThanOrEqual(NOW);
    });
  });

  test("what waits to be ended, or to be deleted, is looked at again (13)", () => {
    afterAsking((_situation, _outcome, { nextReconcileTime, status }) => {
      if (status.phase === "Suspending" || status.phase === "Terminating") expect(nextReconcileTime).not.toBeNull();
    });
  });
});

/** The row as the next pass loads it. */
function saved({ record }: Situation, conclusion: Conclusion): WorkspaceRecord {
  const { laneReleased, brake: _, event: __, running, backup, ...fields } = conclusion;
  const { backups } = record;
  const good = backup?.state === "Completed" && backup.objectId !== null ? { ...backup, objectId: backup.objectId } : null;
  const newest = good === null ? (backups?.newest ?? null) : { id: good.id, objectId: good.objectId, endedTime: NOW, lostTime: null };
  const ended = backups && { ...backups, active: backup === null ? backups.active : null, newest };
  const instance = record.instance && { ...record.instance, running };
  return { ...record, ...fields, backups: ended, instance, lane: laneReleased ? null : record.lane, reconcileRequestTime: null };
}
