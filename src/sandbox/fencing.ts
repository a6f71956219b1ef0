/**
 * Refuses calls of a controller that lost its lease, calls about another life of the sandbox, and calls that nobody waits for any more
 * (invariant 11).
 */
import type { Ledger } from "./ledger.ts";
import type { Fence } from "./protocol.ts";

/** Of an object that was only ever told to go, by its id. */
export const UNNAMED = 0;

export type FenceRefusal = "StaleEpoch" | "OtherIncarnation" | "Expired";

/** Records the fence where it is acceptable; the first call fixes the incarnation. */
export function passFence(ledger: Ledger, fence: Fence, now: number): FenceRefusal | null {
  const seen = ledger.record.fence;
  if (seen !== null && seen.incarnation !== UNNAMED && fence.incarnation !== seen.incarnation) return "OtherIncarnation";
  if (seen !== null && fence.epoch < seen.epoch) return "StaleEpoch";
  if (isExpired(fence.expiresTime, now)) return "Expired";
  if (seen === null || fence.epoch > seen.epoch || seen.incarnation === UNNAMED) {
    ledger.update({ fence: { epoch: fence.epoch, incarnation: fence.incarnation } });
  }
  return null;
}

export function isExpired(expiresTime: number | undefined, now: number): boolean {
  return expiresTime !== undefined && now > expiresTime;
}
