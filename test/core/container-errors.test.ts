/** What the sandbox reads of a container's end and of a start's failure. Pure, so it is tested here and not in workerd. */
import { describe, expect, test } from "vitest";
import { describeFailure, endOf, refusalIn } from "../../src/sandbox/container-errors.ts";
import type { Exit } from "../../src/workspace.ts";
import { NOW } from "../support/builders.ts";

type EndRow = readonly [situation: string, error: unknown, expected: string];

// oxfmt-ignore
const ends: readonly EndRow[] = [
  ["a monitor that did not reject",                      undefined,                                                                                 "0"],
  ["an exit",                                            new Error("Container exited with unexpected exit code: 3"),                                 "3"],
  ["an exit whose error has the code as a field",        withCode("Container exited with unexpected exit code: 3", 137),                             "137"],
  ["an exit of which only the field tells",              withCode("the container is gone", 1),                                                       "1"],
  ["an exit with code 0 in its field",                   withCode("Container exited with unexpected exit code: 3", 0),                               "0"],
  ["an exit before its health was known",                new Error("Container exited before we could determine the container health, exit code: 137"), "137"],
  ["an eviction",                                        new Error("Runtime signalled the container to exit: 143"),                                  "143 signalled"],
  ["an eviction that went well",                         new Error("Runtime signalled the container to exit: 0"),                                    "0 signalled"],
  ["an eviction whose error has the code as a field",    withCode("Runtime signalled the container to exit: 0", 137),                                "137 signalled"],
  ["a rollout",                                          new Error("Runtime signalled the container to exit due to a new version rollout: 0"),       "0 signalled"],
  ["a rollout that had to kill",                         new Error("Runtime signalled the container to exit due to a new version rollout: 137"),     "137 signalled"],
  ["a signal for a reason of a later version",           new Error("runtime signalled the container to exit due to host maintenance: 143"),          "143 signalled"],
  ["a signal without a code",                            new Error("Runtime signalled the container to exit due to a new version rollout"),          "unknown signalled"],
  ["a rollout as a cause",                               new Error("monitor failed", { cause: new Error("Runtime signalled the container to exit due to a new version rollout: 0") }), "0 signalled"],
  ["an error of another realm",                          { message: "Runtime signalled the container to exit: 143" },                                "143 signalled"],
  ["a string",                                           "Container exited with unexpected exit code: 9",                                            "9"],
  ["an end that nobody knows",                           new Error("Network connection lost."),                                                      "unknown"],
  ["an end with a code in words",                        { message: "", exitCode: "137" },                                                           "unknown"],
  ["an end that is no error",                            null,                                                                                       "unknown"],
];

test.for(ends)("%s", ([, error, expected]) => {
  const { code, signalled } = endOf(error);
  expect(`${code ?? "unknown"}${signalled ? " signalled" : ""}`).toBe(expected);
});

type RefusalRow = readonly [situation: string, error: unknown, expected: string | null];

const NO_INSTANCE = "there is no container instance that can be provided to this durable object";

// oxfmt-ignore
const refusals: readonly RefusalRow[] = [
  ["no instance",                  new Error(NO_INSTANCE),                                                NO_INSTANCE],
  ["no instance, of another realm", { message: NO_INSTANCE.toUpperCase() },                               NO_INSTANCE.toUpperCase()],
  ["no instance, beneath another", new Error("monitor failed", { cause: new Error(NO_INSTANCE) }),         NO_INSTANCE],
  ["too many instances",           "Maximum number of running container instances exceeded. Try again later", "Maximum number of running container instances exceeded. Try again later"],
  ["too many a second",            "you are requesting too many containers per second",                   "you are requesting too many containers per second"],
  ["a limit of the account",       "LOCATION_SURPASSED_BASE_LIMITS",                                      "LOCATION_SURPASSED_BASE_LIMITS"],
  ["another limit of the account", "SURPASSED_TOTAL_LIMITS",                                              "SURPASSED_TOTAL_LIMITS"],
  ["an exit",                      "Container exited with unexpected exit code: 1",                       null],
  ["an end without an error",      undefined,                                                             null],
];

test.for(refusals)("the refusal in %s", ([, error, expected]) => {
  expect(refusalIn(error)).toBe(expected);
});

describe("a failed start", () => {
  test("keeps all that its error says", () => {
    const error = {
      message: "outer",
      code: "CONTAINER_UNAVAILABLE",
      context: { reason: "container_starting", originalMessage: "within", retryAfterMs: 10 },
      cause: new Error("Container exited with unexpected exit code: 3"),
    };
    expect(describeFailure(error, null, {})).toEqual({
      messages: ["outer", "within", "Container exited with unexpected exit code: 3"],
      code: "CONTAINER_UNAVAILABLE",
      contextReason: "container_starting",
      exitCode: 3,
      retryAfterMs: 10,
    });
  });

  test("whose container ended says so first, and leaves out what merely follows from it", () => {
    const error = {
      message: "The container is not running, consider calling start()",
      code: "CONTAINER_UNAVAILABLE",
      context: { reason: "no_container_instance_available", error: "WORKSPACE_NOT_READY: …", originalMessage: "kept" },
    };
    expect(describeFailure(error, exit(3), {})).toEqual({
      messages: ["the container ended before it was verified (exit code 3)", "kept"],
      code: null,
      contextReason: null,
      exitCode: 3,
      retryAfterMs: null,
    });
  });

  test("says of an error that says nothing only what is known", () => {
    expect(describeFailure(undefined, null, {}).messages).toEqual(["the container ended before it was verified (exit code unknown)"]);
    expect(describeFailure({ message: "" }, null, {}).messages).toEqual([]);
  });

  const ENV = {
    A: "a-secret-of-many-letters",
    B: "a-secret-of-many-letters-and-more",
    C: 'two\n"lines" of a key',
    D: "short-secret",
    E: "",
  };

  // oxfmt-ignore
  const leaks: readonly (readonly [situation: string, message: string, expected: string])[] = [
    ["a value",                          "bad value a-secret-of-many-letters!",                    "bad value [redacted]!"],
    ["a value, each time",               "a-secret-of-many-letters a-secret-of-many-letters",      "[redacted] [redacted]"],
    ["a value that contains another",    "bad value a-secret-of-many-letters-and-more!",           "bad value [redacted]!"],
    ["a value of several lines",         'bad value two\n"lines" of a key!',                       "bad value [redacted]!"],
    ["a value as JSON writes it",        '{"error":"two\\n\\"lines\\" of a key"}',                 '{"error":"[redacted]"}'],
    ["nothing of a value that is a word", "short-secret",                                          "short-secret"],
  ];

  test.for(leaks)("does not repeat %s", ([, message, expected]) => {
    expect(describeFailure(new Error("outer", { cause: new Error(message) }), null, ENV).messages).toEqual(["outer", expected]);
  });
});

function withCode(message: string, exitCode: number): Error {
  return Object.assign(new Error(message), { exitCode });
}

function exit(code: number): Exit {
  return { code, time: NOW, signalled: false };
}
