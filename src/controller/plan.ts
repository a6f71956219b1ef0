/**
 * The decision: from the wish and one look, the one thing to do now. Pure and total; its order of guards, top to bottom, is the policy.
 *
 * 1. Nothing destructive follows an unknown observation (invariant 4). 2. Deletion goes before everything a user or operator can set,
 * and needs no parsable spec (invariant 5). 3. A start needs a place in the lane (invariant 1). 4. What is ended by wish, not by an
 * operator's word, is backed up first, as its spec says (invariant 6).
 */
import type { Exit, Instant, Observation, WorkspaceSpec } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import type { BackupTrigger } from "../backup.ts";
import { isUnderWay, nextBackupTime } from "./backup-due.ts";
import { compare, toObservedState } from "./compare.ts";
import { farewell, pendingEnd } from "./farewell.ts";
import { restoreOf } from "./restore.ts";
import { deservesNewTry, expiryOf, heedReturn } from "./wish.ts";

/** Named for the state it leads to; each can be repeated without harm. */
export type Action =
  /** Nothing to do now. */
  | { readonly kind: "Rest" }
  /** Join those who wait for the start lane. */
  | { readonly kind: "Enqueue" }
  | { readonly kind: "Start" }
  /** Remember that the workspace is suspended for idleness; the stop follows from that. */
  | { readonly kind: "Suspend" }
  | { readonly kind: "Stop" }
  | { readonly kind: "Destroy" }
  /** Take a backup of what runs, or ask how the one under way does. */
  | { readonly kind: "Backup"; readonly trigger: BackupTrigger }
  /** Its time is up: ask for its deletion. */
  | { readonly kind: "Expire" }
  | { readonly kind: "Forget" };

const REST: Action = { kind: "Rest" };

/** `mayStart`: the workspace holds a place in the lane, or one is free and it is its turn. */
export function plan(before: WorkspaceRecord, observed: Observation, now: Instant, mayStart: boolean): Action {
  const record = heedReturn(before, observed);
  if (record.deletionTime !== null) return planDeletion(record, observed, now);
  if (isExpired(record, now)) return { kind: "Expire" };
  if (observed.kind === "Unknown") return REST;
  const isPaused = record.spec?.paused ?? false;
  if (!isPaused && record.instance?.destroyRequested && observed.kind !== "Destroyed") return { kind: "Destroy" };
  // Whatever has become of the container, its outcome may be a good backup.
  if (isUnderWay(record.backups) && record.instance !== null) return follow(record);
  if (isPaused || record.spec === null) return REST;
  // An incarnation that is over has to be seen gone before another one may begin.
  if (observed.kind === "Destroying") return { kind: "Destroy" };
  return planSpec(record, record.spec, observed, now, mayStart);
}

function planDeletion(record: WorkspaceRecord, observed: Observation, now: Instant): Action {
  const { instance, backups } = record;
  if (instance === null) return { kind: "Forget" };
  // What was under way when its container ended may be a good backup all the same.
  if (observed.kind === "Destroyed") return isUnderWay(backups) && now < deadlineOf(record) ? follow(record) : { kind: "Forget" };
  if (observed.kind === "Unknown") return REST;
  return planEnd(record, observed, now) ?? { kind: "Destroy" };
}

/** That of the deletion holds for it, too. */
function deadlineOf({ backups, finalBackupDeadlineTime }: WorkspaceRecord): Instant {
  return Math.min(backups?.active?.deadlineTime ?? 0, finalBackupDeadlineTime ?? 0);
}

function follow({ backups }: WorkspaceRecord): Action {
  return { kind: "Backup", trigger: backups?.active?.trigger ?? "Request" };
}

/** Null where no end of what runs is wished. */
function planEnd(record: WorkspaceRecord, observed: Observation, now: Instant): Action | null {
  const pending = pendingEnd(record, observed, now);
  if (pending === null) return null;
  switch (farewell(record, pending, now).kind) {
    case "Take":
      return { kind: "Backup", trigger: pending.trigger };
    case "Follow":
      return follow(record);
    case "Wait":
      return REST;
    case "Go":
      return { kind: pending.end };
  }
}

/** Needs no look at the sandbox. */
export function isExpired({ spec, deletionTime }: WorkspaceRecord, now: Instant): boolean {
  const expiry = deletionTime === null ? expiryOf(spec) : null;
  return expiry !== null && now >= expiry;
}

function planSpec(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, now: Instant, mayStart: boolean): Action {
  const [first] = compare(record, spec, toObservedState(observed), now);
  if (first === undefined) return planBackup(record, spec, observed, now);
  switch (first.type) {
    case "Unexpected":
    case "LifetimeOverrun":
      return planEnd(record, observed, now) ?? { kind: "Stop" };
    case "OutOfSync":
      return planEnd(record, observed, now) ?? { kind: "Destroy" };
    case "IdleOverrun":
      return { kind: "Suspend" };
    case "Missing":
      return planMissing(record, observed, now, mayStart);
  }
}

function planBackup(record: WorkspaceRecord, spec: WorkspaceSpec, observed: Observation, now: Instant): Action {
  if (observed.kind !== "Running" || record.backups === null) return REST;
  if (record.backups.active !== null) return follow(record);
  const dueTime = nextBackupTime(record, spec);
  return dueTime !== null && now >= dueTime ? { kind: "Backup", trigger: "Schedule" } : REST;
}

function planMissing(record: WorkspaceRecord, observed: Observation, now: Instant, mayStart: boolean): Action {
  if (isStalled(record) || failureToCount(record, observed) !== null) return REST;
  if (observed.kind === "Preparing" || isBackingOff(record, now)) return REST;
  if (record.spec !== null && restoreOf(record, record.spec).kind === "Missing") return REST;
  if (mayStart) return { kind: "Start" };
  return observed.kind === "Starting" || record.queuedTime !== null ? REST : { kind: "Enqueue" };
}

/** Retrying is pointless until the generation changes or somebody asks for it. */
export function isStalled(record: WorkspaceRecord): boolean {
  return (
    !deservesNewTry(record) &&
    record.status.conditions.some(({ type, status, reason }) => type === "Stalled" && status === "True" && reason !== "InvalidSpec")
  );
}

/** A new wish deserves a new try: what an older generation waited for does not hold it back. */
function isBackingOff(record: WorkspaceRecord, now: Instant): boolean {
  return !deservesNewTry(record) && record.nextRetryTime !== null && record.nextRetryTime > now;
}

export type CountableFailure =
  | { readonly kind: "StartFailed"; readonly failure: Extract<Observation, { kind: "Failed" }>["failure"] }
  | { readonly kind: "Crashed"; readonly exit: Exit };

/** What this look shows for the first time: the end of the start that was admitted last, or the crash of a Ready container. */
export function failureToCount(record: WorkspaceRecord, observed: Observation): CountableFailure | null {
  if (observed.kind === "Failed" && record.startId === observed.startId) {
    return { kind: "StartFailed", failure: observed.failure };
  }
  if (observed.kind !== "Stopped" || observed.exit === null || !vouchedFor(record, observed.startId)) return null;
  return isCrash(record, observed.exit) ? { kind: "Crashed", exit: observed.exit } : null;
}

/** Ready until now, or verified so recently that no pass has seen it. */
function vouchedFor({ readyTime, startId }: WorkspaceRecord, observed: string | null): boolean {
  return readyTime !== null || (startId !== null && startId === observed);
}

/** What the platform asked for is no crash. A container that ends again and again soon after it was Ready is one, however cleanly it ends. */
function isCrash({ readyTime }: WorkspaceRecord, { code, signalled, time }: Exit): boolean {
  if (signalled) return false;
  const wasShort = readyTime === null || time - readyTime < SHORT_LIFE_MS;
  return wasShort || (code !== null && !CLEAN_CODES.has(code));
}

const SHORT_LIFE_MS = 30_000;

/** 0 is a clean end, 143 the SIGTERM of an idle stop or a rollout; without a code nobody knows. */
const CLEAN_CODES: ReadonlySet<number> = new Set([0, 143]);
