/** Every combination of a sandbox's facts, and what it is seen as. */
import { describe, expect, test } from "vitest";
import { interpret } from "../../src/controller/observation.ts";
import type { AdmissionState, OperationFailure, SandboxFacts, StartOperation, StartStep } from "../../src/sandbox/protocol.ts";
import { NOW, START_ID } from "../support/builders.ts";

const boom: OperationFailure = { messages: ["boom"], code: null, exitCode: null, retryAfterMs: null };
const noCapacity: OperationFailure = {
  messages: ["Container failed to start: there is no container instance available at this time"],
  code: "INTERNAL_ERROR",
  exitCode: null,
  retryAfterMs: 10_000,
};
const noBackup: OperationFailure = { ...boom, messages: ["Backup not found: 6e0b."], code: "BACKUP_NOT_FOUND" };
const exit = { code: 137, time: NOW, signalled: false };

function operation(state: StartOperation["state"], failure: OperationFailure | null = null, step?: StartStep): StartOperation {
  return { startId: START_ID, state, specHash: "v1:aa", startedTime: NOW, deadlineTime: NOW + 1000, failure, ...(step && { step }) };
}

const inStep = (step: StartStep) => operation("InProgress", null, step);

function factsOf(change: Partial<SandboxFacts>): SandboxFacts {
  return { running: false, admission: "Revoked", operation: null, exit: null, startedTime: null, activityTime: null, ...change };
}

type Look = readonly [running: string, stopped: string];
type Row = readonly [admission: AdmissionState, operation: StartOperation | null, running: string, stopped: string];

// oxfmt-ignore
const table: readonly Row[] = [
  // admission, operation                       while a container runs     while none runs
  ["None",      null,                           "Unverified",              "Absent"],
  ["Admitted",  null,                           "Unverified",              "Stopped 137"],
  ["Admitted",  operation("InProgress"),        "Starting",                "Starting"],
  ["Admitted",  inStep("Container"),            "Starting",                "Starting"],
  ["Admitted",  inStep("Restore"),              "Preparing Restore",       "Starting"],
  ["Admitted",  inStep("Setup"),                "Preparing Setup",         "Starting"],
  ["Admitted",  operation("Interrupted", null, "Restore"), "Unverified",   "Stopped 137"],
  ["Admitted",  operation("Succeeded"),         "Running v1:aa",           "Stopped 137"],
  ["Admitted",  operation("Interrupted"),       "Unverified",              "Stopped 137"],
  ["Admitted",  operation("Failed", boom),      "Unverified",              "Failed"],
  ["Admitted",  operation("TimedOut", boom),    "Unverified",              "Failed"],
  ["Revoked",   null,                           "Unverified",              "Stopped 137"],
  ["Revoked",   operation("InProgress"),        "Starting",                "Starting"],
  ["Revoked",   operation("Succeeded"),         "Unverified",              "Stopped 137"],
  ["Revoked",   operation("Interrupted"),       "Unverified",              "Stopped 137"],
  ["Revoked",   operation("Failed", boom),      "Unverified",              "Failed"],
  ["Revoked",   operation("TimedOut", boom),    "Unverified",              "Failed"],
  ["Destroyed", null,                           "Destroying",              "Destroyed"],
  ["Revoked",   inStep("Setup"),                "Preparing Setup",         "Starting"],
  ["Destroyed", inStep("Restore"),              "Destroying",              "Destroyed"],
  ["Destroyed", operation("InProgress"),        "Destroying",              "Destroyed"],
  ["Destroyed", operation("Succeeded"),         "Destroying",              "Destroyed"],
  ["Destroyed", operation("Interrupted"),       "Destroying",              "Destroyed"],
  ["Destroyed", operation("Failed", boom),      "Destroying",              "Destroyed"],
  ["Destroyed", operation("TimedOut", boom),    "Destroying",              "Destroyed"],
];

test.for(table)("admission %s, operation %j", ([admission, known, ...expected]) => {
  const looks: Look = [look(true, admission, known), look(false, admission, known)];
  expect(looks).toEqual(expected);
});

function look(running: boolean, admission: AdmissionState, known: StartOperation | null): string {
  const observed = interpret(factsOf({ running, admission, operation: known, exit: running ? null : exit }));
  if (observed.kind === "Running") return `Running ${observed.specHash}`;
  if (observed.kind === "Preparing") return `Preparing ${observed.step}`;
  if (observed.kind === "Stopped") return `Stopped ${observed.exit?.code}`;
  return observed.kind;
}

type FailureRow = readonly [situation: string, operation: StartOperation, expected: string];

// oxfmt-ignore
const failures: readonly FailureRow[] = [
  ["a failed start says what failed",                 operation("Failed", boom),         "Transient StartFailed: boom"],
  ["a failed start that left no trace",               operation("Failed"),               "Transient StartFailed: "],
  ["a start that ran out of time",                    operation("TimedOut", boom),       "Transient StartTimeout: boom"],
  ["a start that ran out of time without a word",     operation("TimedOut"),             "Transient StartTimeout: The start did not become ready in time."],
  ["a start that ran out of time for want of capacity", operation("TimedOut", noCapacity), `Capacity CapacityUnavailable: ${noCapacity.messages[0]}`],
  ["a container that did not come to its restore",    operation("Failed", boom, "Container"),   "Transient StartFailed: boom"],
  ["a restore that failed",                           operation("Failed", boom, "Restore"),     "Transient RestoreFailed: boom"],
  ["a setup that failed",                             operation("Failed", boom, "Setup"),       "Transient SetupFailed: boom"],
  ["a container that did not come in time",           operation("TimedOut", boom, "Container"), "Transient StartTimeout: boom"],
  ["a restore that took too long",                    operation("TimedOut", boom, "Restore"),   "Transient RestoreFailed: boom"],
  ["a setup that took too long",                      operation("TimedOut", boom, "Setup"),     "Transient SetupFailed: boom"],
  ["what is known better than by its step",           operation("Failed", noBackup, "Restore"), `Permanent SourceNotFound: ${noBackup.messages[0]}`],
  ["a source that is not there before any container", operation("Failed", noBackup, "Container"), `Permanent SourceNotFound: ${noBackup.messages[0]}`],
  ["a restore that lost its instance for want of capacity", operation("Failed", noCapacity, "Restore"), `Capacity CapacityUnavailable: ${noCapacity.messages[0]}`],
  ["a start that was refused for want of capacity",   operation("Failed", noCapacity),   `Capacity CapacityUnavailable: ${noCapacity.messages[0]}`],
];

test.for(failures)("%s", ([, known, expected]) => {
  const observed = interpret(factsOf({ operation: known }));
  const { class: of, reason, message } = observed.kind === "Failed" ? observed.failure : { class: observed.kind, reason: "", message: "" };
  expect(`${of} ${reason}: ${message}`).toBe(expected);
});

test("the platform's own wish for patience is passed on", () => {
  const observed = interpret(factsOf({ operation: operation("Failed", noCapacity) }));
  expect(observed).toMatchObject({ kind: "Failed", startId: START_ID, failure: { retryAfterMs: 10_000 } });
});

type TimesRow = readonly [situation: string, facts: Partial<SandboxFacts>, started: number, active: number];

// oxfmt-ignore
const times: readonly TimesRow[] = [
  // situation                                        facts                                                     started     active
  ["a container that nobody has used",                { startedTime: NOW + 10 },                                NOW + 10,   NOW + 10],
  ["a container that a user has reached",             { startedTime: NOW + 10, activityTime: NOW + 50 },        NOW + 10,   NOW + 50],
  ["traffic from before the container",               { startedTime: NOW + 10, activityTime: NOW + 5 },         NOW + 10,   NOW + 10],
  ["a container that nobody saw begin",               {},                                                       NOW,        NOW],
  ["a container that nobody saw begin, and was used", { activityTime: NOW + 50 },                               NOW,        NOW + 50],
];

test("counts idleness from the end of the preparation, however long that took", () => {
  const facts = factsOf({ running: true, admission: "Admitted", operation: { ...operation("Succeeded"), endedTime: NOW + 90 } });
  expect(interpret({ ...facts, startedTime: NOW + 10 })).toMatchObject({ startedTime: NOW + 10, activityTime: NOW + 90 });
  expect(interpret({ ...facts, startedTime: NOW + 10, activityTime: NOW + 95 })).toMatchObject({ activityTime: NOW + 95 });
});

test("knows the directory that its start prepared, where that was written down", () => {
  const facts = { running: true, admission: "Admitted" } as const;
  const known = { ...operation("Succeeded"), directory: "/home/alice" };
  expect(interpret(factsOf({ ...facts, operation: known }))).toMatchObject({ kind: "Running", directory: "/home/alice" });
  expect(interpret(factsOf({ ...facts, operation: operation("Succeeded") }))).not.toHaveProperty("directory");
});

test.for(times)("%s", ([, change, startedTime, activityTime]) => {
  const observed = interpret(factsOf({ running: true, admission: "Admitted", operation: operation("Succeeded"), ...change }));
  expect(observed).toEqual({ kind: "Running", startId: START_ID, specHash: "v1:aa", startedTime, activityTime });
});

describe("how a container ended", () => {
  const endOf = (admission: SandboxFacts["admission"]) => {
    const observed = interpret(factsOf({ admission, exit }));
    return observed.kind === "Stopped" ? observed.exit : observed.kind;
  };

  test("by itself, is as it was recorded", () => {
    expect(endOf("Admitted")).toEqual(exit);
  });

  test("because it was told to stop, is no crash, also where it had to be killed", () => {
    expect(endOf("Revoked")).toEqual({ ...exit, signalled: true });
  });
});
