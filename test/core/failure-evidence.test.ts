/** What is read of an error, whatever it is. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evidenceOf, messageOf } from "../../src/failure-evidence.ts";

fc.configureGlobal({ seed: 794_825 });

const NOTHING = { messages: [], code: null, contextReason: null, retryAfterMs: null };

type Row = readonly [situation: string, error: unknown, expected: Partial<ReturnType<typeof evidenceOf>>];

// oxfmt-ignore
const rows: readonly Row[] = [
  ["nothing says nothing",                               undefined,                                                  {}],
  ["null says nothing",                                  null,                                                       {}],
  ["a string is a message",                              "boom",                                                     { messages: ["boom"] }],
  ["a number is shown",                                  7,                                                          { messages: ["7"] }],
  ["a message that is no string is shown",               { message: 7 },                                             { messages: ["7"] }],
  ["an error without a message says nothing",            new Error(""),                                              {}],
  ["causes follow, outermost first",                     new Error("a", { cause: new Error("b", { cause: "c" }) }),  { messages: ["a", "b", "c"] }],
  ["a text is said once",                                new Error("a", { cause: new Error("a") }),                  { messages: ["a"] }],
  ["a context follows its error",                        { message: "a", context: { error: "b", originalMessage: "c" }, cause: "d" }, { messages: ["a", "b", "c", "d"] }],
  ["a context may hold other things",                    { message: "a", context: { error: { message: "b" }, originalMessage: 1 } }, { messages: ["a"] }],
  ["a context may have stayed with its response only",   { message: "a", errorResponse: { context: { error: "b", reason: "r", retryAfterMs: 1 } } }, { messages: ["a", "b"], contextReason: "r", retryAfterMs: 1 }],
  ["the outermost code counts",                          { message: "a", code: "A", cause: { message: "b", code: "B" } }, { messages: ["a", "b"], code: "A" }],
  ["a code may be a cause's",                            { message: "a", cause: { message: "b", code: "B" } },       { messages: ["a", "b"], code: "B" }],
  ["a code that is no text is none",                     { message: "a", code: 500 },                                { messages: ["a"] }],
  ["the outermost reason counts",                        { message: "a", context: { reason: "A" }, cause: { message: "b", context: { reason: "B" } } }, { messages: ["a", "b"], contextReason: "A" }],
  ["a reason may be a cause's",                          { message: "a", cause: { message: "b", context: { reason: "B" } } }, { messages: ["a", "b"], contextReason: "B" }],
  ["patience may be a cause's",                          { message: "a", cause: { message: "b", context: { retryAfterMs: 10 } } }, { messages: ["a", "b"], retryAfterMs: 10 }],
  ["patience may be for no time",                        { message: "a", context: { retryAfterMs: 0 } },             { messages: ["a"], retryAfterMs: 0 }],
  ["patience may be in seconds",                         { message: "a", context: { retryAfter: 2 } },               { messages: ["a"], retryAfterMs: 2000 }],
  ["patience of less than no time is none",              { message: "a", context: { retryAfterMs: -1 } },            { messages: ["a"] }],
  ["patience without end is none",                       { message: "a", context: { retryAfterMs: Infinity } },      { messages: ["a"] }],
  ["patience in words is none",                          { message: "a", context: { retryAfterMs: "10" } },          { messages: ["a"] }],
];

test.for(rows)("%s", ([, error, expected]) => {
  expect(evidenceOf(error)).toEqual({ ...NOTHING, ...expected });
});

describe("a chain", () => {
  test("is followed for eight links, as the SDK does", () => {
    const chain = Array.from({ length: 9 }, (_, index) => `link ${9 - index}`).reduce<Error | undefined>(
      (cause, message) => new Error(message, { cause }),
      undefined,
    );
    expect(evidenceOf(chain).messages).toEqual(["link 1", "link 2", "link 3", "link 4", "link 5", "link 6", "link 7", "link 8"]);
  });

  test("that leads back to itself ends", () => {
    const inner = new Error("inner");
    const outer = new Error("outer", { cause: inner });
    inner.cause = outer;
    expect(evidenceOf(outer).messages).toEqual(["outer", "inner"]);
  });
});

describe("an error that does not let itself be read", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const throwing = {
    get message() {
      throw new Error("no");
    },
    get cause() {
      throw new Error("no");
    },
    toString() {
      throw new Error("no");
    },
  };

  test.for([
    ["a revoked proxy", proxy],
    ["one whose every field throws", throwing],
    ["one without a prototype", Object.create(null)],
    ["one whose message has no text", { message: Object.create(null) }],
  ] as const)("%s", ([, error]) => {
    expect(messageOf(error)).toBe("an error that cannot be shown");
    expect(evidenceOf(error)).toEqual({ ...NOTHING, messages: ["an error that cannot be shown"] });
  });

  test("whatever it is, reading it does not throw", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
        const { messages, retryAfterMs } = evidenceOf({ message: thrown, code: thrown, context: { reason: thrown, retryAfterMs: thrown } });
        expect(messages.every((message) => message !== "")).toBe(true);
        expect(retryAfterMs ?? 0).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
