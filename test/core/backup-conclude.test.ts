/** What a pass leaves behind where backups are taken: what is said of them, and when to look again. Invariants 6, 9 and 12. */
import { describe, expect, test } from "vitest";
import type { BackupOutcome } from "../../src/backup.ts";
import { conclude } from "../../src/controller/conclude.ts";
import type { Action } from "../../src/controller/plan.ts";
import type { Observation, Reason } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  HOUR,
  OBJECT_ID,
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
  admittedRecord,
  destroyed,
  destroying,
  exited,
  failed,
  idleRecord,
  idleSpec,
  mortalSpec,
  readyRecord,
  record,
  running,
  runs,
  silent,
  spec,
  stalledStatus,
  starting,
  startingRecord,
  statusOf,
  stopped,
  suspendedSpec,
  suspendedStatus,
} from "../support/builders.ts";
import { showConclusion, showEvent } from "../support/show.ts";

const completed: BackupOutcome = { kind: "Completed", objectId: OBJECT_ID, sizeBytes: 1 };
const inProgress: BackupOutcome = { kind: "InProgress" };
const noAnswer: BackupOutcome = { kind: "Unknown", message: "no answer" };
const broken: BackupOutcome = { kind: "Failed", reason: "TakingFailed", message: "no space left" };
const nothing: BackupOutcome = { kind: "Skipped", reason: "Empty", message: "" };

type Row = readonly [
  situation: string,
  record: WorkspaceRecord,
  action: Action["kind"],
  observed: Observation,
  outcome: BackupOutcome | null,
  expected: string,
];

const inLane = startingRecord({ backups: memory() });
const awaited = startingRecord({ backups: memory(), lane: null });
const stalled = admittedRecord({ backups: memory(), status: stalledStatus, startId: "start-1" });

// oxfmt-ignore
const preparing: readonly Row[] = [
  ["a restore gives the lane on, and is awaited",    inLane,   "Start", restoring, null, "Restoring | Ready=False(Restoring) Reconciling=True(Restoring) | look +5s | lane released"],
  ["so do the setup commands",                       inLane,   "Start", settingUp, null, "Starting | Ready=False(SettingUp) Reconciling=True(SettingUp) | look +5s | lane released"],
  ["a restore goes on without the lane",             awaited,  "Rest",  restoring, null, "Restoring | Ready=False(Restoring) Reconciling=True(Restoring) | look +5s"],
  ["it came to be Ready",                            awaited,  "Rest",  running,   null, "Ready | Ready=True(ContainerHealthy) | steady | ready +0s"],
  ["a restore of a stalled workspace leaves it so",  stalled,  "Rest",  restoring, null, "Stalled | Ready=False(StartFailed) Stalled=True(StartFailed) | steady"],
  ["a restore of what is to be suspended",           startingRecord({ backups: memory(), spec: suspendedSpec }), "Rest", restoring, null, "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) | look +2s | lane released"],
  ["a restore that failed is tried again",           awaited,  "Rest",  failed("Transient", "RestoreFailed"), null, "Pending | Ready=False(RestoreFailed) Reconciling=True(RestoreFailed) | look +3s | failures 1 | retry +3s"],
  ["so is a setup",                                  awaited,  "Rest",  failed("Transient", "SetupFailed"), null, "Pending | Ready=False(SetupFailed) Reconciling=True(SetupFailed) | look +3s | failures 1 | retry +3s"],
  ["four times",                                     startingRecord({ failures: 3 }), "Rest", failed("Transient", "RestoreFailed"), null, "Pending | Ready=False(RestoreFailed) Reconciling=True(RestoreFailed) | look +20.5s | failures 4 | retry +20.5s | lane released"],
  ["not five times: each costs a container",         startingRecord({ failures: 4 }), "Rest", failed("Transient", "RestoreFailed"), null, "Stalled | Ready=False(RestoreFailed) Stalled=True(RestoreFailed) | steady | failures 5 | lane released"],
  ["nor is a setup",                                 startingRecord({ failures: 4 }), "Rest", failed("Transient", "SetupFailed"), null, "Stalled | Ready=False(SetupFailed) Stalled=True(SetupFailed) | steady | failures 5 | lane released"],
  ["nor one whose outcome is not certain",           startingRecord({ failures: 7 }), "Rest", failed("Uncertain", "RestoreFailed"), null, "Stalled | Ready=False(RestoreFailed) Stalled=True(RestoreFailed) | steady | failures 8 | lane released"],
  ["what failed otherwise is tried for ever",        startingRecord({ failures: 8 }), "Rest", failed("Transient", "StartTimeout"), null, "Pending | Ready=False(StartTimeout) Reconciling=True(StartTimeout) | look +150.5s | failures 9 | retry +150.5s | lane released"],
  ["another wish has its own five tries",            startingRecord({ failures: 4, generation: 2 }), "Rest", failed("Transient", "SetupFailed"), null, "Pending | Ready=False(SetupFailed) Reconciling=True(SetupFailed) | look +3s | failures 1 | retry +3s | lane released"],
  ["an archive that is not there is no use to wait for", inLane, "Start", failed("Permanent", "SourceNotFound"), null, "Stalled | Ready=False(SourceNotFound) Stalled=True(SourceNotFound) | steady | failures 1 | lane released"],
];

const source = { workspace: "bob" } as const;
const orphaned = (overrides: Partial<WorkspaceRecord> = {}) => record({ spec: spec({ source }), backups: memory(), ...overrides });
const orphanedInEnd = () => readyRecord({ spec: spec({ source }), backups: memory({ active: underWay() }) });
const SOURCE_GONE = "Stalled | Ready=False(SourceNotFound) Stalled=True(SourceNotFound) | steady";
const noSource = statusOf("Stalled", { Ready: { reason: "SourceNotFound" }, Stalled: { status: "True", reason: "SourceNotFound" } });

// oxfmt-ignore
const sources: readonly Row[] = [
  ["nothing to begin with: nothing begins",          orphaned(), "Rest", absent,     null, SOURCE_GONE],
  ["also in the queue, which it leaves",             orphaned({ queuedTime: NOW }), "Rest", absent, null, SOURCE_GONE],
  ["also in the middle of a backoff",                admittedRecord({ ...orphaned({ nextRetryTime: NOW + SECOND }) }), "Rest", stopped, null, SOURCE_GONE],
  ["also in the lane, which it gives on",            startingRecord({ spec: spec({ source }), backups: memory() }), "Rest", absent, null, `${SOURCE_GONE} | lane released`],
  ["and it stays so",                                orphaned({ status: noSource }), "Rest", absent, null, SOURCE_GONE],
  ["though there is one by now",                     orphaned({ status: noSource, backups: memory({ source: storedBackup() }) }), "Rest", absent, null, SOURCE_GONE],
  ["until somebody asks",                            orphaned({ status: noSource, backups: memory({ source: storedBackup() }), reconcileRequestTime: NOW }), "Enqueue", absent, null, "Queued | Ready=False(Queued) Reconciling=True(Queued) | steady | queued +0s"],
  ["where backups are not taken there is none",      orphaned({ backups: null }), "Rest", absent, null, SOURCE_GONE],
  ["what crashed is counted first",                  readyRecord({ spec: spec({ source }), backups: memory() }), "Rest", exited(137), null, "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +3s | failures 1 | retry +3s"],
  ["a backup under way may become one",              orphanedInEnd(), "Backup", exited(0), inProgress, "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +2s"],
  ["as it does when it is good",                     orphanedInEnd(), "Backup", exited(0), completed, "Pending | Ready=False(Pending) Reconciling=True(Pending) BackupCurrent=True(BackupCompleted) | look +1s"],
  ["and does not when it failed",                    orphanedInEnd(), "Backup", exited(0), broken, SOURCE_GONE],
  ["silence says nothing of a source",               orphaned(), "Rest", silent,     null, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | unreachable +0s"],
];

const claimed = (overrides: Partial<WorkspaceRecord> = {}, age = 0) =>
  keptRecord({ active: underWay({ startedTime: NOW - age }) }, { readyTime: NOW - HOUR, ...overrides });
const UP = "Ready | Ready=True(ContainerHealthy)";
const usedAgo = (ms: number) => runs({ startedTime: NOW - HOUR, activityTime: NOW - ms });
const hourAgo = attempt("Completed", { startedTime: NOW - 50 * MINUTE, endedTime: NOW - 49 * MINUTE });
const late = underWay({ deadlineTime: NOW - MINUTE });

// oxfmt-ignore
const taking: readonly Row[] = [
  ["a Ready workspace is looked at when its backup is due", keptRecord({ last: hourAgo }, { readyTime: NOW - HOUR }), "Rest", running, null, `${UP} | look +600s | ready -3600s`],
  ["the first one is due a window after Ready",      startingRecord({ backups: memory(), spec: backedUp() }), "Start", running, null, `${UP} | look +3600s | ready +0s | lane released`],
  ["what slept through its window is due now",       startingRecord({ backups: memory({ last: attempt("Completed", { startedTime: NOW - 9 * HOUR }) }), spec: backedUp() }), "Start", running, null, `${UP} | look +0s | ready +0s | lane released`],
  ["no schedule, no look",                           keptRecord({}, { spec: endsWith("Require"), readyTime: NOW - HOUR }), "Rest", running, null, `${UP} | steady | ready -3600s`],
  ["idleness comes first where it does",             keptRecord({ last: hourAgo }, { readyTime: NOW - HOUR, spec: backedUp({}, { idle: { timeoutSeconds: 600 } }) }), "Rest", usedAgo(5 * MINUTE), null, `${UP} | look +300s | ready -3600s`],
  ["a claim just made is asked about soon",          claimed(),  "Backup", running,    inProgress, `${UP} | look +1s | ready -3600s`],
  ["then less and less often",                       claimed({}, 6 * SECOND), "Backup", running, inProgress, `${UP} | look +3s | ready -3600s`],
  ["every five seconds at least",                    claimed({}, 10 * MINUTE), "Backup", running, inProgress, `${UP} | look +5s | ready -3600s`],
  ["no answer is waited for like one",               claimed({}, 6 * SECOND), "Backup", running, noAnswer, `${UP} | look +3s | ready -3600s`],
  ["a sandbox that is silent costs no more than any", claimed(), "Rest",   silent,     null, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | ready -3600s | unreachable +0s"],
  ["a good one: the next is due a window after its begin", claimed({}, 10 * SECOND), "Backup", running, completed, `${UP} BackupCurrent=True(BackupCompleted) | look +3590s | ready -3600s`],
  ["a failed one is tried again",                    claimed(),  "Backup", running,    broken, `${UP} | look +30s | ready -3600s`],
  ["an abandoned one, too",                          keptRecord({ active: late }, { readyTime: NOW - HOUR }), "Backup", running, inProgress, `${UP} | look +30s | ready -3600s`],
  ["abandoned in silence",                           keptRecord({ active: late }, { readyTime: NOW - HOUR }), "Rest", silent, null, "Unknown | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | ready -3600s | unreachable +0s"],
  ["one of a paused workspace is asked about",       claimed({ spec: spec({ paused: true }) }), "Backup", running, inProgress, `${UP} | look +1s | ready -3600s`],
  ["and then let be",                                claimed({ spec: backedUp({}, { paused: true }) }), "Backup", running, broken, `${UP} | steady | ready -3600s`],
  ["one with a spec that can not be read is asked about", claimed({ spec: null }), "Backup", running, inProgress, "Stalled | Ready=False(InvalidSpec) Stalled=True(InvalidSpec) | look +1s"],
  ["a container that crashed in the middle is counted", claimed(), "Backup", exited(137), inProgress, "Pending | Ready=False(ContainerExited) Reconciling=True(ContainerExited) | look +1s | failures 1 | retry +3s"],
  ["one that stopped in the middle is not healthy",  claimed(),  "Backup", exited(0),  inProgress, "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +1s"],
  ["and is started once it is known what became of it", claimed(), "Backup", exited(0), broken, "Pending | Ready=False(Pending) Reconciling=True(Pending) | look +1s"],
  // A request.
  ["a request that met a start is taken up with it", startingRecord({ backups: memory({ active: requested() }) }), "Start", running, null, `${UP} | look +0s | ready +0s | lane released`],
  ["a request of what still starts waits for it",    startingRecord({ backups: memory({ active: requested() }) }), "Start", starting, null, "Starting | Ready=False(Starting) Reconciling=True(Starting) | look +0s"],
  ["a request of what is paused waits without a look", keptRecord({ active: requested() }, { spec: spec({ paused: true }), readyTime: NOW - HOUR }), "Rest", running, null, `${UP} | steady | ready -3600s`],
  ["a request with a spec that can not be read, too", keptRecord({ active: requested() }, { spec: null }), "Rest", running, null, "Stalled | Ready=False(InvalidSpec) Stalled=True(InvalidSpec) | steady"],
];

const suspending = (last: WorkspaceRecord["backups"], policy: Parameters<typeof endsWith>[0] = "Require") =>
  keptRecord({}, { spec: endsWith(policy, { operatingMode: "Suspended" }), backups: last });
const failedNow = attempt("Failed", { endedTime: NOW, startedTime: NOW - SECOND, message: "no space left" });
const idle = idleRecord({ spec: endsWith("Require", { idle: idleSpec.idle }), backups: memory({ active: underWay() }) });
const changed = (backups: WorkspaceRecord["backups"]) => keptRecord({}, { spec: endsWith("Require", { env: { B: "1" } }), backups });
const SUSPENDING = "Suspending | Ready=False(BackingUp) Reconciling=True(BackingUp)";
const old = runs({ startedTime: NOW - 2 * HOUR });
const mortal = keptRecord({}, { spec: endsWith("Require", { maxLifetimeSeconds: mortalSpec.maxLifetimeSeconds }), readyTime: NOW - HOUR });
const ofAge = { startedTime: NOW - SECOND, endedTime: NOW, message: "no space left" };

// oxfmt-ignore
const ending: readonly Row[] = [
  ["a suspension waits for its backup",              suspending(memory({ active: underWay({ startedTime: NOW }) })), "Backup", running, inProgress, `${SUSPENDING} | look +1s`],
  ["and goes on as soon as it is there",             suspending(memory({ active: underWay() })), "Backup", running, completed, "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) BackupCurrent=True(BackupCompleted) | look +0s"],
  ["or cannot be",                                   suspending(memory({ active: underWay() })), "Backup", running, nothing, "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) | look +0s"],
  ["it waits for another try",                       suspending(memory({ active: underWay() })), "Backup", running, broken, "Suspending | Ready=False(BackingUp) Reconciling=True(BackingUp) | look +30s"],
  ["less soon the fourth time",                      suspending(memory({ active: underWay(), last: attempt("Failed", { failures: 3 }) })), "Backup", running, broken, "Suspending | Ready=False(BackingUp) Reconciling=True(BackingUp) | look +240s"],
  ["one try is enough for who does his best",        suspending(memory({ active: underWay() }), "BestEffort"), "Backup", running, broken, "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) | look +0s"],
  ["a try that is to be repeated now",               suspending(memory({ last: attempt("Failed", { endedTime: NOW - 30 * SECOND }) })), "Rest", running, null, `${SUSPENDING} | look +0s`],
  ["a good one that grew old meanwhile",             suspending(memory({ last: attempt("Completed", { endedTime: NOW - 5 * MINUTE }) })), "Rest", running, null, `${SUSPENDING} | look +0s`],
  ["a stop that was told keeps its pace",            suspending(memory({ last: attempt("Completed") })), "Stop", running, null, "Suspending | Ready=False(Suspending) Reconciling=True(Suspending) | look +2s"],
  ["what stopped meanwhile is suspended",            suspending(memory({ active: underWay() })), "Backup", stopped, broken, "Suspended | Ready=False(SuspendedByUser) Suspended=True(SuspendedByUser) | steady"],
  ["idleness waits, too",                            idle,       "Backup", running,   inProgress, `${SUSPENDING} | look +2s | idle -5s`],
  ["until its user comes back",                      idle,       "Backup", usedAgo(SECOND), inProgress, `${UP} | look +2s | ready +0s`],
  ["also when it is there",                          idle,       "Backup", usedAgo(SECOND), completed, `${UP} BackupCurrent=True(BackupCompleted) | look +599s | ready +0s`],
  ["so does another spec",                           changed(memory({ active: underWay({ startedTime: NOW }) })), "Backup", running, inProgress, "Pending | Ready=False(BackingUp) Reconciling=True(BackingUp) | look +1s"],
  ["and goes on",                                    changed(memory({ active: underWay() })), "Backup", running, completed, "Pending | Ready=False(SpecChanged) Reconciling=True(SpecChanged) BackupCurrent=True(BackupCompleted) | look +0s"],
  ["or waits for another try",                       changed(memory({ last: failedNow })), "Rest", running, null, "Pending | Ready=False(BackingUp) Reconciling=True(BackingUp) | look +30s"],
  ["what is too old serves as long as it waits",     { ...mortal, backups: memory({ last: attempt("Failed", ofAge) }) }, "Rest", old, null, `${UP} | look +30s | ready -3600s`],
];

const deleting = (backups: WorkspaceRecord["backups"], deadline: number | null = NOW + MINUTE, policy = "Require" as const) =>
  keptRecord({}, { deletionTime: NOW - MINUTE, finalBackup: policy, finalBackupDeadlineTime: deadline, backups });
const GOING = "Terminating | Ready=False(Terminating) Reconciling=True(Terminating)";
const SAVING = "Terminating | Ready=False(BackingUp) Reconciling=True(BackingUp)";
const LOST = "Terminating | Ready=False(BackupFailed) Reconciling=True(BackupFailed)";
const ofThis = { startedTime: NOW - MINUTE, endedTime: NOW };

// oxfmt-ignore
const deletion: readonly Row[] = [
  ["a deletion waits for its backup",                deleting(memory({ active: underWay({ startedTime: NOW }) })), "Backup", running, inProgress, "Terminating | Ready=False(BackingUp) Reconciling=True(BackingUp) | look +1s"],
  ["and goes on as soon as it is there",             deleting(memory({ active: underWay() })), "Backup", running, completed, `${GOING} BackupCurrent=True(BackupCompleted) | look +0s`],
  ["it waits for another try",                       deleting(memory({ last: attempt("Failed", ofThis) })), "Rest", running, null, `${SAVING} | look +30s`],
  ["not for longer than until its deadline",         deleting(memory({ last: attempt("Failed", ofThis) }), NOW + SECOND), "Rest", running, null, `${SAVING} | look +1s`],
  ["what it waited for in vain is said",             deleting(memory({ last: attempt("Failed", ofThis) }), NOW), "Destroy", destroying, null, `${LOST} | look +30s`],
  ["also once it is gone",                           deleting(memory(), NOW), "Destroy", destroyed, null, `${LOST} | look +0s`],
  ["what there was to be saved is",                  deleting(memory({ last: attempt("Completed", ofThis) }), NOW), "Destroy", destroyed, null, `${GOING} | look +0s`],
  ["nothing to be saved is no loss",                 deleting(memory({ last: attempt("Skipped", ofThis) }), NOW), "Destroy", destroyed, null, `${GOING} | look +0s`],
  ["one from before the deletion is not its last word", deleting(memory({ last: attempt("Completed", { ...ofThis, startedTime: NOW - MINUTE - 1 }) }), NOW), "Destroy", destroyed, null, `${LOST} | look +0s`],
  ["before the deadline nothing is lost",            deleting(memory(), NOW + 1), "Destroy", destroyed, null, `${GOING} | look +0s`],
  ["what is under way is followed beyond the container", deleting(memory({ active: underWay({ startedTime: NOW }) })), "Backup", destroyed, inProgress, `${GOING} | look +1s`],
  ["a deletion that met silence is patient",         deleting(memory({ active: underWay() })), "Rest", silent, null, "Terminating | Ready=Unknown(Unreachable) Reconciling=True(Unreachable) | look +2s | ready -7200s | unreachable +0s"],
  ["where none are taken nothing is lost",           deleting(null, NOW), "Destroy", destroyed, null, `${GOING} | look +0s`],
  ["nor where none was wished",                      keptRecord({}, { deletionTime: NOW - MINUTE, finalBackup: "Skip", finalBackupDeadlineTime: NOW }), "Destroy", destroyed, null, `${GOING} | look +0s`],
  ["nor where nothing was ever waited for",          deleting(memory(), null), "Destroy", destroyed, null, `${GOING} | look +0s`],
];

describe.each([
  { part: "preparing", table: preparing },
  { part: "a source", table: sources },
  { part: "taking", table: taking },
  { part: "the end of a container", table: ending },
  { part: "the end of a workspace", table: deletion },
])("$part", ({ table }) => {
  test.for(table)("%s", ([, situation, action, observed, outcome, expected]) => {
    const conclusion = conclude(situation, actionOf(action), observed, NOW, 0.5, outcome);
    expect(showConclusion(conclusion)).toBe(expected);
  });
});

describe("BackupCurrent", () => {
  const lost = storedBackup({ lostTime: NOW - MINUTE });
  const stale = storedBackup({ endedTime: NOW - 3 * HOUR });
  const broke = attempt("Failed", { message: "no space left" });
  const up = { readyTime: NOW - 24 * HOUR };

  type CurrentRow = readonly [situation: string, record: WorkspaceRecord, status: "True" | "False", reason: Reason, message: string];

  // oxfmt-ignore
  const current: readonly CurrentRow[] = [
    ["a good one",                                keptRecord({ newest: storedBackup(), last: attempt("Completed") }, up), "True", "BackupCompleted", ""],
    ["none yet",                                  keptRecord({}, up),                                        "False", "NeverBackedUp", ""],
    ["none yet, and the first failed",            keptRecord({ last: broke }, up),                           "False", "NeverBackedUp", ""],
    ["the bucket has it no more",                 keptRecord({ newest: lost, last: broke }, up),             "False", "BackupLost", "The bucket no longer has the newest backup."],
    ["it is too old",                             keptRecord({ newest: stale, last: broke }, up),            "False", "BackupOverdue", ""],
    ["it is old, and nobody wishes a newer",      keptRecord({ newest: stale }, { ...up, spec: endsWith("Require") }), "True", "BackupCompleted", ""],
    ["it is old, and its spec can not be read",   keptRecord({ newest: stale }, { ...up, spec: null }),      "True", "BackupCompleted", ""],
    ["a newer one failed",                        keptRecord({ newest: storedBackup(), last: broke }, up),   "False", "BackupFailed", "no space left"],
    ["a newer one was abandoned",                 keptRecord({ newest: storedBackup(), last: attempt("Abandoned") }, up), "False", "BackupFailed", ""],
    ["a newer one was skipped",                   keptRecord({ newest: storedBackup(), last: attempt("Skipped") }, up), "True", "BackupCompleted", ""],
    ["what sleeps misses none",                   keptRecord({ newest: stale }, { readyTime: null, spec: suspendedSpec, status: suspendedStatus }), "True", "BackupCompleted", ""],
  ];

  test.for(current)("%s", ([, situation, status, reason, message]) => {
    const { conditions } = conclude(situation, { kind: "Rest" }, running, NOW, 0.5).status;
    expect(conditions.at(-1)).toMatchObject({ type: "BackupCurrent", status, reason, message, observedGeneration: 1 });
  });

  test("is not there where backups are not taken", () => {
    const { conditions } = conclude(readyRecord(), { kind: "Rest" }, running, NOW, 0.5).status;
    expect(conditions.map(({ type }) => type)).toEqual(["Ready", "Reconciling", "Stalled", "Suspended"]);
  });

  test("is said of what this very pass learnt", () => {
    const { status, backup } = conclude(claimed(), { kind: "Backup", trigger: "Schedule" }, running, NOW, 0.5, completed);
    expect(status.conditions.at(-1)).toMatchObject({ status: "True", reason: "BackupCompleted", lastTransitionTime: NOW });
    expect(backup).toMatchObject({ id: "backup-2", state: "Completed", objectId: OBJECT_ID });
  });
});

describe("history", () => {
  type EventRow = readonly [situation: string, record: WorkspaceRecord, action: Action["kind"], observed: Observation, expected: string];

  // oxfmt-ignore
  const events: readonly EventRow[] = [
    ["a restore",                        inLane,                                    "Start",  restoring, "Normal Restoring"],
    ["a setup",                          inLane,                                    "Start",  settingUp, "Normal SettingUp"],
    ["a failed restore",                 awaited,                                   "Rest",   failed("Transient", "RestoreFailed"), "Warning RestoreFailed: a failure of class Transient"],
    ["a failed setup",                   awaited,                                   "Rest",   failed("Transient", "SetupFailed"), "Warning SetupFailed: a failure of class Transient"],
    ["no source",                        orphaned(),                                "Rest",   absent,    "Warning SourceNotFound: There is no good backup of a workspace bob in the namespace."],
    ["an end that waits",                suspending(memory({ active: underWay() })), "Backup", running,  "Normal BackingUp: A backup is taken first."],
    ["an end that waits in vain",        suspending(memory({ last: failedNow })),   "Rest",   running,   "Normal BackingUp: A backup is taken first; the last try failed: no space left"],
    ["a deletion that lost the files",   deleting(memory(), NOW),                   "Destroy", destroyed, "Warning BackupFailed: No final backup could be taken before its deadline."],
    ["a stop in the middle of a backup", claimed(),                                 "Backup", exited(143, true), "Normal Pending: The container exited with code 143, as the platform told it to."],
    ["nothing where one is taken",       claimed(),                                 "Backup", running,   "-"],
  ];

  test.for(events)("%s", ([, situation, action, observed, expected]) => {
    expect(showEvent(conclude(situation, actionOf(action), observed, NOW, 0.5))).toBe(expected);
  });
});

test("a start that is being prepared is awaited, and its container holds a place", () => {
  const { startId, running: isRunning, observed } = conclude(inLane, { kind: "Start" }, restoring, NOW, 0.5);
  expect({ startId, isRunning, kind: observed?.kind }).toEqual({ startId: "start-1", isRunning: true, kind: "Preparing" });
});

function actionOf(kind: Action["kind"]): Action {
  return kind === "Backup" ? { kind, trigger: "Schedule" } : { kind };
}
