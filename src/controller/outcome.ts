/** The part of a conclusion that one situation decides; the rest carries over. */
import type { ConditionType, Instant, Reason } from "../workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../workspace-record.ts";
import type { Verdict } from "./conditions.ts";

export type Outcome = Verdict & Partial<Omit<Conclusion, "status" | "observed" | "startId" | "running" | "event">>;

/** What the look showed was of a wish that holds no longer. */
export function superseded(now: Instant): Outcome {
  return { phase: "Pending", ready: "False", reason: "SpecChanged", message: "", reconciling: true, nextReconcileTime: now };
}

/** A look that gave no answer is not why something is as it is now. */
export function lastReason(record: WorkspaceRecord, wanted: ConditionType): { readonly reason: Reason; readonly message: string } {
  const known = record.status.conditions.find(({ type, reason }) => type === wanted && reason !== "Unreachable");
  return { reason: known?.reason ?? "Pending", message: known?.message ?? "" };
}
