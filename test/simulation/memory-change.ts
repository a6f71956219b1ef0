/** Whether a conclusion is worth a write: the rule of `src/store/change.ts`. */
import type { WorkspaceStatus } from "../../src/workspace.ts";
import type { Conclusion, ObservedState, WorkspaceRecord } from "../../src/workspace-record.ts";

const SIMPLE = [
  "startId",
  "idleTime",
  "failures",
  "nextRetryTime",
  "readyTime",
  "queuedTime",
  "unreachableTime",
  "nextReconcileTime",
] as const;

export function isChange(record: WorkspaceRecord, conclusion: Conclusion): boolean {
  return (
    conclusion.laneReleased ||
    conclusion.brake !== null ||
    conclusion.backup !== null ||
    record.reconcileRequestTime !== null ||
    (record.instance !== null && record.instance.running !== conclusion.running) ||
    SIMPLE.some((field) => record[field] !== conclusion[field]) ||
    !isSameLook(record.observed, conclusion.observed) ||
    !isSameStatus(record.status, conclusion.status)
  );
}

/** That it was used again, or seen once more, is no other look. */
function isSameLook(one: ObservedState | null, other: ObservedState | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.kind === other.kind &&
    one.specHash === other.specHash &&
    one.startedTime === other.startedTime &&
    one.differences.length === other.differences.length &&
    one.differences.every(({ type }, index) => type === other.differences[index]?.type)
  );
}

const FIELDS = ["type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"] as const;

function isSameStatus(one: WorkspaceStatus, other: WorkspaceStatus): boolean {
  return (
    one.observedGeneration === other.observedGeneration &&
    one.phase === other.phase &&
    one.conditions.length === other.conditions.length &&
    one.conditions.every((condition, index) => FIELDS.every((field) => condition[field] === other.conditions[index]?.[field]))
  );
}
