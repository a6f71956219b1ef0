/**
 * Which good backups are no longer kept (invariant 6). Pure; the statement that claims a removal has the floor once more.
 *
 * 1. What a record restores from is kept. 2. Of a workspace that lives, the newest is kept. 3. One of `keepLast`, or younger than
 * `keepForSeconds`, is kept. 4. Once the workspace is gone, all are kept for a while, and then none.
 */
import type { RetentionCandidate } from "../backup.ts";
import type { Instant } from "../workspace.ts";

export function isDisposable(candidate: RetentionCandidate, now: Instant, keepAfterDeletionMs: number): boolean {
  const { endedTime, rank, retention, workspaceGoneTime, referred } = candidate;
  if (referred) return false;
  if (workspaceGoneTime !== null) return now - workspaceGoneTime >= keepAfterDeletionMs;
  // What cannot be read keeps everything.
  if (rank === 1 || retention === null || rank <= retention.keepLast) return false;
  return retention.keepForSeconds === null || now - endedTime > retention.keepForSeconds * 1000;
}
