/** Whether a conclusion is worth a write. */
import type { Instance } from "../workspace.ts";
import type { Conclusion, ObservedState, WorkspaceRecord } from "../workspace-record.ts";

export function isChange(record: WorkspaceRecord, conclusion: Conclusion): boolean {
  return (
    conclusion.laneReleased ||
    conclusion.brake !== null ||
    conclusion.backup !== null ||
    record.reconcileRequestTime !== null ||
    record.startId !== conclusion.startId ||
    record.idleTime !== conclusion.idleTime ||
    (record.instance !== null && isOtherInstance(record.instance, conclusion)) ||
    essenceOf(record.observed) !== essenceOf(conclusion.observed) ||
    record.failures !== conclusion.failures ||
    record.nextRetryTime !== conclusion.nextRetryTime ||
    record.readyTime !== conclusion.readyTime ||
    record.queuedTime !== conclusion.queuedTime ||
    record.unreachableTime !== conclusion.unreachableTime ||
    record.nextReconcileTime !== conclusion.nextReconcileTime ||
    JSON.stringify(record.status) !== JSON.stringify(conclusion.status)
  );
}

/** Until this record's own start has vouched for what runs, or nothing runs any more. */
export function isStillAdopted({ adopted }: Instance, { running, readyTime }: Conclusion): boolean {
  return adopted && running && readyTime === null;
}

export function isOtherInstance(instance: Instance, conclusion: Conclusion): boolean {
  return instance.running !== conclusion.running || instance.adopted !== isStillAdopted(instance, conclusion);
}

/** What of a look is worth a write by itself: not that it was used again, nor that it was seen once more. */
function essenceOf(observed: ObservedState | null): string {
  if (observed === null) return "";
  const { kind, specHash, startedTime, differences } = observed;
  return JSON.stringify([kind, specHash, startedTime, differences.map(({ type }) => type)]);
}
