/** Actions and conclusions as one line, so that a failed test reads like the table it stands in. */
import type { Action } from "../../src/controller/plan.ts";
import type { Instant } from "../../src/workspace.ts";
import type { Conclusion, WorkspaceRecord } from "../../src/workspace-record.ts";
import { NOW } from "./builders.ts";

/** `-` for nothing to do. */
export function show(action: Action): string {
  return action.kind === "Rest" ? "-" : action.kind;
}

/**
 * For example `Ready | Ready=True(ContainerHealthy) | look +600s | failures 2`: the phase, the conditions that are not False beside
 * Ready itself, when to look again, and then whatever else is not at its zero value.
 */
export function showConclusion(conclusion: Conclusion, now: Instant = NOW): string {
  const { status, failures, nextRetryTime, readyTime, queuedTime, unreachableTime, nextReconcileTime, laneReleased, brake } = conclusion;
  const { idleTime } = conclusion;
  const parts = [
    status.phase,
    showConditions(conclusion),
    nextReconcileTime === null ? "steady" : `look ${offset(nextReconcileTime, now)}`,
    failures > 0 && `failures ${failures}`,
    nextRetryTime !== null && `retry ${offset(nextRetryTime, now)}`,
    readyTime !== null && `ready ${offset(readyTime, now)}`,
    queuedTime !== null && `queued ${offset(queuedTime, now)}`,
    idleTime !== null && `idle ${offset(idleTime, now)}`,
    unreachableTime !== null && `unreachable ${offset(unreachableTime, now)}`,
    laneReleased && "lane released",
    brake !== null && `brake ${brake.retryAfterMs === null ? "by count" : `${brake.retryAfterMs / 1000}s`}`,
  ];
  return parts.filter((part) => part !== false).join(" | ");
}

/** For example `Warning ContainerExited: The container exited with code 137.`; `-` for none. */
export function showEvent({ event }: Pick<Conclusion, "event">): string {
  return event === null ? "-" : `${event.type} ${event.reason}${event.message === "" ? "" : `: ${event.message}`}`;
}

/** Ready in any case; of the others those that hold. */
export function showConditions({ status }: Pick<WorkspaceRecord, "status">): string {
  return status.conditions
    .filter((condition) => condition.type === "Ready" || condition.status === "True")
    .map((condition) => `${condition.type}=${condition.status}(${condition.reason})`)
    .join(" ");
}

/** `+2s`, `-60s`, `+0s`. */
export function offset(time: Instant, now: Instant = NOW): string {
  const seconds = (time - now) / 1000;
  return `${seconds < 0 ? "" : "+"}${seconds}s`;
}
