/** The stored forms of a status and of what was observed. Only the controller writes it; one that does not read is as good as none, and the next pass mends it. */
import { z } from "zod";
import type { WorkspaceStatus } from "../workspace.ts";
import type { ObservedState } from "../workspace-record.ts";

/** Of a workspace that no pass has looked at yet. */
export const INITIAL_STATUS: WorkspaceStatus = { observedGeneration: 0, phase: "Pending", conditions: [] };

/** The words are not checked: an older or newer controller may know others, and a reader shows what is there. */
const storedStatus = z.object({
  observedGeneration: z.int(),
  phase: z.string(),
  conditions: z.array(
    z.object({
      type: z.string(),
      status: z.string(),
      reason: z.string(),
      message: z.string(),
      observedGeneration: z.int(),
      lastTransitionTime: z.number(),
    }),
  ),
});

export function toStatus(stored: unknown): WorkspaceStatus {
  const parsed = storedStatus.safeParse(stored);
  return parsed.success ? (parsed.data as WorkspaceStatus) : INITIAL_STATUS;
}

const storedObserved = z.object({
  kind: z.enum(["Absent", "Stopped", "Starting", "Preparing", "Failed", "Unverified", "Running", "Destroying", "Destroyed"]),
  specHash: z.string().nullable(),
  startedTime: z.number().nullable(),
  activityTime: z.number().nullable(),
  differences: z.array(z.object({ type: z.string(), firstSeenTime: z.number(), timesSeen: z.int() })),
});

export function toObserved(stored: unknown): ObservedState | null {
  return storedObserved.safeParse(stored).data ?? null;
}
