/** In which order the memory store lists what is due: the ORDER BY clauses of `src/store/due.ts`. */
import type { ResyncWindow } from "../../src/store/due.ts";
import type { WorkspaceRow } from "./memory-rows.ts";

/** Those whose sandbox does not answer last, of the others deletions first, what follows a backup later, then what has waited longest. */
export function byUrgency(isBackingUp: (row: WorkspaceRow) => boolean): (one: WorkspaceRow, other: WorkspaceRow) => number {
  return (one, other) =>
    Number(one.unreachableTime !== null) - Number(other.unreachableTime !== null) ||
    Number(one.deletionTime === null) - Number(other.deletionTime === null) ||
    Number(isBackingUp(one)) - Number(isBackingUp(other)) ||
    (one.nextReconcileTime ?? 0) - (other.nextReconcileTime ?? 0) ||
    one.resourceVersion - other.resourceVersion;
}

export function byPlace(one: WorkspaceRow, other: WorkspaceRow): number {
  return (
    (one.queuedTime ?? 0) - (other.queuedTime ?? 0) ||
    one.creationTime - other.creationTime ||
    Number(one.uid > other.uid) - Number(one.uid < other.uid)
  );
}

export function isTurn(row: WorkspaceRow, { from, to, wraps }: ResyncWindow): boolean {
  const isUpTo = row.resyncPhase <= to;
  return wraps ? isAbove(row, from) || isUpTo : isAbove(row, from) && isUpTo;
}

function isAbove({ resyncPhase, uid }: WorkspaceRow, from: ResyncWindow["from"]): boolean {
  return resyncPhase > from.phase || (resyncPhase === from.phase && uid > from.uid);
}

export function inTurn({ from }: ResyncWindow): (one: WorkspaceRow, other: WorkspaceRow) => number {
  return (one, other) =>
    Number(!isAbove(one, from)) - Number(!isAbove(other, from)) ||
    one.resyncPhase - other.resyncPhase ||
    (one.uid < other.uid ? -1 : Number(one.uid > other.uid));
}
