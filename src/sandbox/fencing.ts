/**
 * Refuses calls of a controller that lost its lease, and calls about another life of the sandbox (invariant 11).
 */
import type { Ledger } from "./ledger.ts";
import type { Fence } from "./protocol.ts";

export type FenceRefusal = "StaleEpoch" | "OtherIncarnation";

/** Records the fence where it is acceptable; the first call fixes the incarnation. */
export function passFence(ledger: Ledger, fence: Fence): FenceRefusal | null {
  const seen = ledger.record.fence;
  if (seen !== null && fence.incarnation !== seen.incarnation) return "OtherIncarnation";
  if (seen !== null && fence.epoch < seen.epoch) return "StaleEpoch";
  if (seen === null || fence.epoch > seen.epoch) {
    ledger.update({ fence: { epoch: fence.epoch, incarnation: fence.incarnation } });
  }
  return null;
}
