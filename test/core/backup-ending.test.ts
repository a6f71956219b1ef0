/** How the active backup ended, what the record is then, and what a sandbox's report means. Invariants 4 and 6. */
import { describe, expect, test } from "vitest";
import type { BackupEnding, BackupOutcome } from "../../src/backup.ts";
import { endingOf, withEnding } from "../../src/controller/backup-ending.ts";
import { interpretReport } from "../../src/controller/backup-report.ts";
import { BACKUP_DEADLINE, type BackupReport, type OperationFailure } from "../../src/sandbox/protocol.ts";
import type { Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { OBJECT_ID, attempt, keptRecord, requested, restoring, settingUp, storedBackup, underWay } from "../support/backup-builders.ts";
import {
  NOW,
  SECOND,
  absent,
  destroyed,
  destroying,
  exited,
  failed,
  readyRecord,
  running,
  silent,
  starting,
  stopped,
  unverified,
} from "../support/builders.ts";

const NEW_OBJECT_ID = "0b1ec700-0000-4000-8000-000000000002";
const completed: BackupOutcome = { kind: "Completed", objectId: NEW_OBJECT_ID, sizeBytes: 7 };
const skipped: BackupOutcome = { kind: "Skipped", reason: "Empty", message: "The directory is empty." };
const failedOutcome: BackupOutcome = { kind: "Failed", reason: "TakingFailed", message: "no space left" };
const inProgress: BackupOutcome = { kind: "InProgress" };
const noAnswer: BackupOutcome = { kind: "Unknown", message: "no answer" };

const MARGIN = 15 * SECOND;
const taken = keptRecord({ active: underWay() });
const late = keptRecord({ active: underWay({ deadlineTime: NOW - MARGIN }) });
const notYetLate = keptRecord({ active: underWay({ deadlineTime: NOW - MARGIN + 1 }) });
const withoutInstance = keptRecord({ active: underWay() }, { instance: null });
const asked = keptRecord({ active: requested() });
const askedDeleting = keptRecord({ active: requested() }, { deletionTime: NOW - SECOND });

function show(ending: BackupEnding | null): string {
  if (ending === null) return "-";
  const { state, reason, message, objectId, sizeBytes } = ending;
  return [state, reason, message, objectId, sizeBytes].filter((part) => part !== null && part !== "").join(" | ");
}

type Row = readonly [situation: string, record: WorkspaceRecord, observed: Observation, outcome: BackupOutcome | null, ending: string];

const ABANDONED = "Abandoned | DeadlineExceeded | No outcome came before the deadline.";
const NOT_RUNNING = "Skipped | NotRunning | The workspace does not run.";

// oxfmt-ignore
const endings: readonly Row[] = [
  ["none are taken here",                          readyRecord(),   running,             completed,     "-"],
  ["none is active",                               keptRecord({}),  running,             completed,     "-"],
  ["good",                                         taken,           running,             completed,     `Completed | ${NEW_OBJECT_ID} | 7`],
  ["good although the container ended",            taken,           exited(137),         completed,     `Completed | ${NEW_OBJECT_ID} | 7`],
  ["good although it came after the deadline",     late,            running,             completed,     `Completed | ${NEW_OBJECT_ID} | 7`],
  ["good although the sandbox is silent by now",   taken,           silent,              completed,     `Completed | ${NEW_OBJECT_ID} | 7`],
  ["nothing to take",                              taken,           running,             skipped,       "Skipped | Empty | The directory is empty."],
  ["failed",                                       taken,           running,             failedOutcome, "Failed | TakingFailed | no space left"],
  ["goes on",                                      taken,           running,             inProgress,    "-"],
  ["goes on, as far as anybody knows",             taken,           silent,              noAnswer,      "-"],
  ["was not asked for",                            taken,           silent,              null,          "-"],
  ["a moment after the deadline its word may come", notYetLate,     running,             inProgress,    "-"],
  ["abandoned after that",                         late,            running,             inProgress,    ABANDONED],
  ["abandoned in silence",                         late,            silent,              noAnswer,      ABANDONED],
  ["abandoned without having been asked",          late,            silent,              null,          ABANDONED],
  ["abandoned without a deadline",                 keptRecord({ active: underWay({ deadlineTime: null }) }), running, null, ABANDONED],
  ["abandoned where there is no sandbox to ask",   withoutInstance, absent,              null,          ABANDONED],
  // A request.
  ["asked of what runs: it is to be taken",        asked,           running,             null,          "-"],
  ["asked of what starts",                         asked,           starting,            null,          "-"],
  ["asked of what is being restored",              asked,           restoring,           null,          "-"],
  ["asked of what is being set up",                asked,           settingUp,           null,          "-"],
  ["asked of what nobody vouches for yet",         asked,           unverified,          null,          "-"],
  ["asked of what does not answer",                asked,           silent,              null,          "-"],
  ["asked of what never ran",                      asked,           absent,              null,          NOT_RUNNING],
  ["asked of what stopped",                        asked,           stopped,             null,          NOT_RUNNING],
  ["asked of what crashed",                        asked,           exited(137),         null,          NOT_RUNNING],
  ["asked of what failed to start",                asked,           failed("Transient"), null,          NOT_RUNNING],
  ["asked of what is being destroyed",             asked,           destroying,          null,          NOT_RUNNING],
  ["asked of what was destroyed",                  asked,           destroyed,           null,          NOT_RUNNING],
  // A request of what is being deleted: what does not run will not.
  ["asked of what runs and is being deleted",      askedDeleting,   running,             null,          "-"],
  ["asked of what is being deleted and starts",    askedDeleting,   starting,            null,          NOT_RUNNING],
  ["asked of what is being deleted and set up",    askedDeleting,   settingUp,           null,          NOT_RUNNING],
  ["asked of what is being deleted, in silence",   askedDeleting,   silent,              null,          "-"],
];

test.for(endings)("%s", ([, situation, observed, outcome, expected]) => {
  const ending = endingOf(situation, observed, outcome, NOW);
  expect(show(ending)).toBe(expected);
  if (ending !== null) expect(ending).toMatchObject({ id: "backup-2", trigger: situation.backups?.active?.trigger });
});

describe("the record afterwards", () => {
  const after = (record: WorkspaceRecord, outcome: BackupOutcome | null, observed: Observation = running) =>
    withEnding(record, endingOf(record, observed, outcome, NOW), NOW).backups;

  test("has a good one as the newest", () => {
    expect(after(taken, completed)).toMatchObject({
      active: null,
      newest: { id: "backup-2", objectId: NEW_OBJECT_ID, endedTime: NOW, lostTime: null },
      last: { trigger: "Schedule", state: "Completed", startId: "start-1", generation: 1, startedTime: NOW - 4 * SECOND, endedTime: NOW },
    });
  });

  test.for([skipped, failedOutcome])("keeps the newest where it was $kind", (outcome) => {
    const newest = storedBackup();
    expect(after(keptRecord({ active: underWay(), newest }), outcome)).toMatchObject({
      active: null,
      newest,
      last: { state: outcome.kind },
    });
  });

  type CountRow = readonly [last: Parameters<typeof attempt>[0] | null, outcome: BackupOutcome, failures: number];

  // oxfmt-ignore
  const counts: readonly CountRow[] = [
    [null,        failedOutcome, 1],
    ["Completed", failedOutcome, 1],
    ["Skipped",   failedOutcome, 1],
    ["Failed",    failedOutcome, 4],
    ["Abandoned", failedOutcome, 4],
    ["Failed",    completed,     0],
    ["Failed",    skipped,       0],
  ];

  test.for(counts)("counts failures in a row: %s, then $kind", ([state, outcome, failures]) => {
    const last = state === null ? null : attempt(state, { failures: 3 });
    expect(after(keptRecord({ active: underWay(), last }), outcome)?.last?.failures).toBe(failures);
  });

  test("is the one of the generation that it is loaded with", () => {
    expect(after({ ...taken, generation: 4 }, completed)?.last?.generation).toBe(4);
  });

  test("does not count a request that was never claimed as an attempt", () => {
    const last = attempt("Failed", { failures: 3 });
    expect(after(keptRecord({ active: requested(), last }), null, stopped)).toMatchObject({ active: null, last });
  });

  test("is the same where nothing ended, or none are taken", () => {
    expect(withEnding(taken, null, NOW)).toBe(taken);
    const ending = endingOf(taken, running, completed, NOW);
    const none = readyRecord();
    expect(withEnding(none, ending, NOW)).toBe(none);
  });
});

describe("a report", () => {
  const failure = (messages: readonly string[], code: string | null = null): OperationFailure => ({
    messages,
    code,
    exitCode: null,
    retryAfterMs: null,
  });
  const misconfigured = "Backup not configured. Add a BACKUP_BUCKET R2 binding to your wrangler.jsonc.";

  type ReportRow = readonly [report: BackupReport, expected: string];

  // oxfmt-ignore
  const reports: readonly ReportRow[] = [
    [{ state: "InProgress" },                                              "InProgress"],
    [{ state: "Completed", objectId: OBJECT_ID, sizeBytes: 3 },            `Completed ${OBJECT_ID} 3`],
    [{ state: "Skipped", reason: "NotRunning" },                           "Skipped NotRunning No container ran, or it ended meanwhile."],
    [{ state: "Skipped", reason: "NotRestored" },                          "Skipped NotRestored Another container runs, or one that was not verified."],
    [{ state: "Skipped", reason: "Empty" },                                "Skipped Empty The directory is empty."],
    [{ state: "RuntimeReplaced" },                                         "Failed RuntimeReplaced Its container was replaced while it was taken."],
    [{ state: "Interrupted" },                                             "Failed Interrupted The sandbox was reset while it was taken."],
    [{ state: "Failed", failure: failure(["boom"]) },                      "Failed TakingFailed boom"],
    [{ state: "Failed", failure: failure(["late"], BACKUP_DEADLINE) },     "Failed DeadlineExceeded late"],
    [{ state: "Failed", failure: failure([misconfigured]) },               `Failed Misconfigured ${misconfigured}`],
    [{ state: "Failed", failure: failure([]) },                            "Failed TakingFailed "],
  ];

  test.for(reports)("%j", ([report, expected]) => {
    expect(Object.values(interpretReport(report)).join(" ")).toBe(expected);
  });
});
