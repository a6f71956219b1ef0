/** The policy of backups: when one is taken, what waits for it, and what waits for nothing. Invariants 4, 5 and 6 as rows. */
import { describe, expect, test } from "vitest";
import type { BackupAttempt } from "../../src/backup.ts";
import { plan } from "../../src/controller/plan.ts";
import type { BackupPolicy, Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  HOUR,
  attempt,
  backedUp,
  endsWith,
  keptRecord,
  memory,
  requested,
  restoring,
  settingUp,
  storedBackup,
  underWay,
} from "../support/backup-builders.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  absent,
  destroyed,
  destroying,
  exited,
  expiringSpec,
  failed,
  idleStatus,
  instance,
  outdated,
  readyRecord,
  record,
  running,
  runs,
  silent,
  spec,
  stalledStatus,
  starting,
  startingRecord,
  stopped,
  unverified,
} from "../support/builders.ts";
import { OBSERVATIONS } from "./fixtures.ts";

type Row = readonly [situation: string, record: WorkspaceRecord, observed: Observation, expected: string];

const TOOK = attempt("Completed", { trigger: "Schedule", startedTime: NOW - 2 * HOUR, endedTime: NOW - 2 * HOUR + SECOND });
const due = keptRecord({ last: TOOK });
const tookLately = keptRecord({ last: attempt("Completed", { startedTime: NOW - HOUR + 1, endedTime: NOW - HOUR + 2 }) });
const tookAnHourAgo = keptRecord({ last: attempt("Completed", { startedTime: NOW - HOUR, endedTime: NOW - HOUR + 1 }) });
const failedJustNow = keptRecord({ last: attempt("Failed") });
const failedAWhileAgo = keptRecord({ last: attempt("Failed", { endedTime: NOW - 30 * SECOND }) });
const neverTook = keptRecord({});
const readyJustNow = keptRecord({}, { readyTime: NOW });
const notSeenReady = keptRecord({}, { readyTime: null });
const asked = keptRecord({ active: requested() }, { spec: spec() });
const askedPaused = keptRecord({ active: requested() }, { spec: backedUp({}, { paused: true }) });
const askedIllegible = keptRecord({ active: requested() }, { spec: null });
const askedAndDue = keptRecord({ active: requested(), last: TOOK });
const duePaused = keptRecord({ last: TOOK }, { spec: backedUp({}, { paused: true }) });
const dueIllegible = keptRecord({ last: TOOK }, { spec: null });
const dueWithout = keptRecord({ last: TOOK }, { backups: null });
const dueStalled = keptRecord({ last: TOOK }, { status: stalledStatus });
const dueReplaced = keptRecord({ last: TOOK }, { instance: instance({ destroyRequested: true }) });
const dueExpired = keptRecord({ last: TOOK }, { spec: expiringSpec(NOW, { backup: backedUp().backup }) });
const dueIdle = keptRecord({ last: TOOK }, { spec: backedUp({}, { idle: { timeoutSeconds: 600 } }) });
const unused = runs({ startedTime: NOW - HOUR, activityTime: NOW - 10 * MINUTE });

// oxfmt-ignore
const taking: readonly Row[] = [
  ["the schedule has its time",                              due,             running,    "Backup Schedule"],
  ["to the very millisecond",                                tookAnHourAgo,   running,    "Backup Schedule"],
  ["not before",                                             tookLately,      running,    "-"],
  ["the first comes a window after Ready",                   neverTook,       running,    "Backup Schedule"],
  ["not at once",                                            readyJustNow,    running,    "-"],
  ["nor of what no pass has seen Ready",                     notSeenReady,    running,    "-"],
  ["one that failed a moment ago is not repeated at once",   failedJustNow,   running,    "-"],
  ["but before its next window",                             failedAWhileAgo, running,    "Backup Schedule"],
  ["a request is taken up",                                  asked,           running,    "Backup Request"],
  ["a request goes before the schedule",                     askedAndDue,     running,    "Backup Request"],
  ["nothing is taken where backups are not",                 dueWithout,      running,    "-"],
  ["nothing is taken of what is paused",                     duePaused,       running,    "-"],
  ["nor on request",                                         askedPaused,     running,    "-"],
  ["nothing is taken with a spec that can not be read",      dueIllegible,    running,    "-"],
  ["nor on request",                                         askedIllegible,  running,    "-"],
  ["a stall is no reason not to save what runs",             dueStalled,      running,    "Backup Schedule"],
  ["an operator's word goes first",                          dueReplaced,     running,    "Destroy"],
  ["so does the time up to which it is wished",              dueExpired,      running,    "Expire"],
  ["what nobody uses is marked first",                       dueIdle,         unused,     "Suspend"],
  ["nothing is taken of what never ran",                     due,             absent,     "Enqueue"],
  ["nor of what stopped",                                    due,             stopped,    "Enqueue"],
  ["nor of what is being started",                           due,             starting,   "-"],
  ["nor of what is being restored",                          due,             restoring,  "-"],
  ["nor of what is being set up",                            due,             settingUp,  "-"],
  ["nor of what nobody vouches for",                         due,             unverified, "Enqueue"],
  ["nor of what does not answer",                            due,             silent,     "-"],
  ["nor on request",                                         asked,           silent,     "-"],
  ["a request of what stopped starts nothing but the wish",  asked,           stopped,    "Enqueue"],
  ["a request of what is being restored waits",              asked,           restoring,  "-"],
];

const taken = keptRecord({ active: underWay() });
const takenExpired = keptRecord({ active: underWay() }, { spec: expiringSpec(NOW) });
const takenReplaced = keptRecord({ active: underWay() }, { instance: instance({ destroyRequested: true }) });
const takenReplacedPaused = keptRecord(
  { active: underWay() },
  { instance: instance({ destroyRequested: true }), spec: spec({ paused: true }) },
);
const takenPaused = keptRecord({ active: underWay() }, { spec: spec({ paused: true }) });
const takenIllegible = keptRecord({ active: underWay() }, { spec: null });
const takenChanged = keptRecord({ active: underWay() }, { spec: endsWith("Skip", { env: { B: "1" } }), generation: 2 });
const takenSuspended = keptRecord({ active: underWay() }, { spec: endsWith("Skip", { operatingMode: "Suspended" }), generation: 2 });
const takenIdle = keptRecord({ active: underWay() }, { spec: dueIdle.spec });
const takenOfNobody = keptRecord({ active: underWay() }, { instance: null });

// oxfmt-ignore
const following: readonly Row[] = [
  ["a mark of idleness waits for it",                        takenIdle,       unused,     "Backup Schedule"],
  ["another wish waits for it",                              takenChanged,    running,    "Backup Schedule"],
  ["a suspension waits for it, whatever the policy",         takenSuspended,  running,    "Backup Schedule"],
  ["an operator's hold does not lose its outcome",           takenPaused,     running,    "Backup Schedule"],
  ["nor does a spec that can not be read",                   takenIllegible,  stopped,    "Backup Schedule"],
  ["an operator who asks for another sandbox does not wait", takenReplaced,   running,    "Destroy"],
  ["and has its outcome once the old one is gone",           takenReplaced,   destroyed,  "Backup Schedule"],
  ["a held one is not replaced, and is followed",            takenReplacedPaused, running, "Backup Schedule"],
  ["the time up to which it is wished does not wait",        takenExpired,    running,    "Expire"],
  ["without a sandbox there is nobody to ask",               takenOfNobody,   absent,     "Enqueue"],
];

const preparing = startingRecord({ backups: memory() });
const preparingOutOfLane = startingRecord({ backups: memory(), lane: null });
const preparingSuspended = startingRecord({ backups: memory(), spec: endsWith("Require", { operatingMode: "Suspended" }) });
const source = { workspace: "bob" } as const;
const cloned = record({ spec: spec({ source }), backups: memory({ source: storedBackup() }) });
const orphaned = record({ spec: spec({ source }), backups: memory() });
const orphanedInLane = startingRecord({ spec: spec({ source }), backups: memory() });
const orphanedReady = readyRecord({ spec: spec({ source }), backups: memory() });
const withoutMode = record({ spec: spec({ source }) });
const restored = record({ spec: spec({ source }), backups: memory({ newest: storedBackup() }) });

// oxfmt-ignore
const starts: readonly Row[] = [
  ["what is being restored is left alone, though it holds the lane", preparing, restoring, "-"],
  ["so is what is being set up",                             preparing,       settingUp,  "-"],
  ["and once the lane is somebody else's",                   preparingOutOfLane, settingUp, "-"],
  ["it is stopped where it is not wished any more: nothing in it is worth a backup", preparingSuspended, restoring, "Stop"],
  ["a workspace begins with its source",                     cloned,          absent,     "Start"],
  ["nothing is started without it",                          orphaned,        absent,     "-"],
  ["also not in the lane",                                   orphanedInLane,  absent,     "-"],
  ["nor again after it stopped",                             orphanedReady,   stopped,    "-"],
  ["what runs needs no source",                              orphanedReady,   running,    "-"],
  ["where backups are not taken no source is there",         withoutMode,     absent,     "-"],
  ["its own backup makes up for a source that is gone",      restored,        absent,     "Start"],
];

describe.each([
  { part: "taking", table: taking },
  { part: "under way", table: following },
  { part: "starting", table: starts },
])("$part", ({ table }) => {
  test.for(table)("%s", ([, situation, observed, expected]) => {
    expect(show(situation, observed, situation.lane !== null || expected === "Start")).toBe(expected);
  });
});

/** Whatever becomes of the container: the claim may have come to a good backup. */
const FOLLOWED: Readonly<Record<string, string>> = { silent: "-" };

test.for(Object.entries(OBSERVATIONS))("what is under way is followed: %s", ([name, observed]) => {
  expect(show(taken, observed, true)).toBe(FOLLOWED[name] ?? "Backup Schedule");
});

const LAST: Readonly<Record<string, BackupAttempt | null>> = {
  none: null,
  good: attempt("Completed"),
  skipped: attempt("Skipped"),
  failed: attempt("Failed"),
  "failed a while ago": attempt("Failed", { startedTime: NOW - 40 * SECOND, endedTime: NOW - 30 * SECOND }),
  abandoned: attempt("Abandoned"),
  "good, for almost five minutes": attempt("Completed", agedBy(5 * MINUTE - 1)),
  "good, for five minutes": attempt("Completed", agedBy(5 * MINUTE)),
  "skipped, for almost five minutes": attempt("Skipped", agedBy(5 * MINUTE - 1)),
  "skipped, for five minutes": attempt("Skipped", agedBy(5 * MINUTE)),
  "failed, for almost five minutes": attempt("Failed", agedBy(5 * MINUTE - 1)),
  "failed, for five minutes": attempt("Failed", agedBy(5 * MINUTE)),
  "good, of another container": attempt("Completed", { startId: "start-of-long-ago" }),
  "good, before the end was wished": attempt("Completed", { startedTime: NOW - HOUR - 1, endedTime: NOW - 2 * SECOND }),
  "good, of an older generation": attempt("Completed", { generation: 0 }),
};

/** How each end of a container that runs is wished for. All of them came about an hour ago, with generation 1. */
const ENDS: Readonly<Record<string, (policy: BackupPolicy) => WorkspaceRecord>> = {
  "a suspension": (policy) => keptRecord({}, { spec: endsWith(policy, { operatingMode: "Suspended" }) }),
  idleness: markedAsIdle,
  "idleness that its user has ended": markedAsIdle,
  "another spec": (policy) => keptRecord({}, { spec: endsWith(policy, { env: { B: "1" } }) }),
  age: (policy) => keptRecord({}, { spec: endsWith(policy, { maxLifetimeSeconds: 3600 }) }),
  "a deletion": (policy) =>
    keptRecord({}, { deletionTime: NOW - HOUR, finalBackup: policy, finalBackupDeadlineTime: NOW + 1, spec: endsWith("Skip") }),
  "a deletion past its deadline": (policy) =>
    keptRecord({}, { deletionTime: NOW - HOUR, finalBackup: policy, finalBackupDeadlineTime: NOW, spec: endsWith("Skip") }),
  "a deletion without a deadline": (policy) =>
    keptRecord({}, { deletionTime: NOW - HOUR, finalBackup: policy, finalBackupDeadlineTime: null }),
  "a deletion whose spec can not be read": (policy) =>
    keptRecord({}, { deletionTime: NOW - HOUR, finalBackup: policy, finalBackupDeadlineTime: NOW + 1, spec: null }),
  "a deletion of what is paused": (policy) =>
    keptRecord(
      {},
      { deletionTime: NOW - HOUR, finalBackup: policy, finalBackupDeadlineTime: NOW + 1, spec: endsWith("Skip", { paused: true }) },
    ),
};

function markedAsIdle(policy: BackupPolicy): WorkspaceRecord {
  return keptRecord({}, { spec: endsWith(policy, { idle: { timeoutSeconds: 600 } }), status: idleStatus, idleTime: NOW - HOUR });
}

/** Not used since before any of them. */
const OLD = runs({ startedTime: NOW - 2 * HOUR, activityTime: NOW - 2 * HOUR });
const LOOKS: Readonly<Record<string, Observation>> = {
  "idleness that its user has ended": runs({ startedTime: NOW - 2 * HOUR, activityTime: NOW - MINUTE }),
};

/** Ended so long ago. */
function agedBy(ms: number): Pick<BackupAttempt, "startedTime" | "endedTime"> {
  return { startedTime: NOW - ms - SECOND, endedTime: NOW - ms };
}

test("the end of a container waits as the snapshot says", async () => {
  const lines = Object.entries(ENDS).flatMap(([end, recordOf]) => [
    `## ${end}`,
    `${"".padEnd(34)}${POLICIES.map((policy) => policy.padEnd(16)).join("")}`,
    ...Object.entries(LAST).map(([name, last]) => {
      const cells = POLICIES.map((policy) => show({ ...recordOf(policy), backups: memory({ last }) }, LOOKS[end] ?? OLD, true).padEnd(16));
      return `${name.padEnd(34)}${cells.join("")}`.trimEnd();
    }),
    `${"under way".padEnd(34)}${POLICIES.map((policy) => show({ ...recordOf(policy), backups: memory({ active: underWay() }) }, LOOKS[end] ?? OLD, true).padEnd(16)).join("")}`.trimEnd(),
    `${"asked for".padEnd(34)}${POLICIES.map((policy) => show({ ...recordOf(policy), backups: memory({ active: requested() }) }, LOOKS[end] ?? OLD, true).padEnd(16)).join("")}`.trimEnd(),
    `${"not taken here".padEnd(34)}${POLICIES.map((policy) => show({ ...recordOf(policy), backups: null }, LOOKS[end] ?? OLD, true).padEnd(16)).join("")}`.trimEnd(),
    "",
  ]);
  await expect(lines.join("\n")).toMatchFileSnapshot("./backup-plan.grid.txt");
});

const POLICIES: readonly BackupPolicy[] = ["Require", "BestEffort", "Skip"];

const deleting = (overrides: Partial<WorkspaceRecord> = {}, backups = {}) =>
  keptRecord(backups, { deletionTime: NOW - HOUR, finalBackup: "Require", finalBackupDeadlineTime: NOW + MINUTE, ...overrides });
const deletingTaken = deleting({}, { active: underWay({ trigger: "Final" }) });
const deletingTakenTooLate = deleting({}, { active: underWay({ deadlineTime: NOW }) });
const deletingTakenPastItsOwn = deleting({ finalBackupDeadlineTime: NOW }, { active: underWay() });
const deletingTakenWithout = deleting({ finalBackupDeadlineTime: null }, { active: underWay() });
const deletingNever = deleting({ instance: null }, { active: underWay() });

// oxfmt-ignore
const ends: readonly Row[] = [
  ["a deletion ends at once what no backup can be of: a start",     deleting(),     starting,           "Destroy"],
  ["what is being restored",                                        deleting(),     restoring,          "Destroy"],
  ["what nobody vouches for",                                       deleting(),     unverified,         "Destroy"],
  ["what stopped",                                                  deleting(),     stopped,            "Destroy"],
  ["what failed",                                                   deleting(),     failed("Transient"), "Destroy"],
  ["what ended in the middle of its final backup",                  deletingTaken,  exited(137),        "Destroy"],
  ["silence ends nothing",                                          deletingTaken,  silent,             "-"],
  ["what was under way may be good though its container is gone",   deletingTaken,  destroyed,          "Backup Final"],
  ["but not for longer than the claim was worth",                   deletingTakenTooLate, destroyed,    "Forget"],
  ["nor for longer than the deletion waits",                        deletingTakenPastItsOwn, destroyed, "Forget"],
  ["nor where it does not wait",                                    deletingTakenWithout, destroyed,    "Forget"],
  ["without a sandbox there is nothing to wait for",                deletingNever,  absent,             "Forget"],
  ["what was never under way is forgotten at once",                 deleting(),     destroyed,          "Forget"],
  ["what does not go is told again",                                deletingTaken,  destroying,         "Destroy"],
  ["an outdated container is saved with another spec, too",
    keptRecord({}, { spec: endsWith("BestEffort") }),               outdated,       "Backup Suspend"],
];

test.for(ends)("%s", ([, situation, observed, expected]) => {
  expect(show(situation, observed, false)).toBe(expected);
});

function show(situation: WorkspaceRecord, observed: Observation, mayStart: boolean): string {
  const action = plan(situation, observed, NOW, mayStart);
  return action.kind === "Rest" ? "-" : action.kind === "Backup" ? `Backup ${action.trigger}` : action.kind;
}
