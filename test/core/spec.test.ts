/** What a spec may be, and that it comes out of the schema complete and in one form. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseStoredSpec } from "../../src/spec.ts";
import { spec } from "../support/builders.ts";

const DAYS_366 = 366 * 86_400;

type Row = readonly [situation: string, stored: unknown, expected: object | null];

// oxfmt-ignore
const table: readonly Row[] = [
  ["nothing: every default",                      {},                                          spec()],
  ["null is no limit",                            { idle: null, maxLifetimeSeconds: null, expireTime: null }, spec()],
  ["the shortest idleness",                       { idle: { timeoutSeconds: 10 } },            spec({ idle: { timeoutSeconds: 10 } })],
  ["the longest idleness",                        { idle: { timeoutSeconds: DAYS_366 } },      spec({ idle: { timeoutSeconds: DAYS_366 } })],
  ["idleness that is too short",                  { idle: { timeoutSeconds: 9 } },             null],
  ["idleness that is too long",                   { idle: { timeoutSeconds: DAYS_366 + 1 } },  null],
  ["idleness of half a second",                   { idle: { timeoutSeconds: 10.5 } },          null],
  ["idleness without its time",                   { idle: {} },                                null],
  ["idleness with something more",                { idle: { timeoutSeconds: 10, after: 1 } },  null],
  ["idleness as a number",                        { idle: 10 },                                null],
  ["the shortest life",                           { maxLifetimeSeconds: 60 },                  spec({ maxLifetimeSeconds: 60 })],
  ["a life that is too short",                    { maxLifetimeSeconds: 59 },                  null],
  ["a life that is too long",                     { maxLifetimeSeconds: DAYS_366 + 1 },        null],
  ["a life of no whole seconds",                  { maxLifetimeSeconds: 60.5 },                null],
  ["a time in UTC",                               { expireTime: "2026-11-30T12:00:00Z" },      spec({ expireTime: "2026-11-30T12:00:00.000Z" })],
  ["the same time elsewhere",                     { expireTime: "2026-11-30T13:00:00+01:00" }, spec({ expireTime: "2026-11-30T12:00:00.000Z" })],
  ["the same time the day before",                { expireTime: "2026-11-29T23:30:00-12:30" }, spec({ expireTime: "2026-11-30T12:00:00.000Z" })],
  ["a time to the millisecond",                   { expireTime: "2026-11-30T12:00:00.123Z" },  spec({ expireTime: "2026-11-30T12:00:00.123Z" })],
  ["a time to the microsecond",                   { expireTime: "2026-11-30T12:00:00.123456Z" }, spec({ expireTime: "2026-11-30T12:00:00.123Z" })],
  ["a time in the past: it is for the loop",      { expireTime: "2001-01-01T00:00:00Z" },      spec({ expireTime: "2001-01-01T00:00:00.000Z" })],
  ["a time of nowhere",                           { expireTime: "2026-11-30T12:00:00" },       null],
  ["a time whose year has five digits in UTC",    { expireTime: "9999-12-31T23:30:00-01:00" }, null],
  ["a date",                                      { expireTime: "2026-11-30" },                null],
  ["a day that does not exist",                   { expireTime: "2026-02-30T12:00:00Z" },      null],
  ["a number",                                    { expireTime: 1_796_040_000 },               null],
  ["a word",                                      { expireTime: "tomorrow" },                  null],
  ["a field that nobody knows",                   { ttl: 1 },                                  null],
];

test.for(table)("%s", ([, stored, expected]) => {
  expect(parseStoredSpec(stored)).toEqual(expected);
});

fc.configureGlobal({ seed: 794_825 });

test("a normalised spec is its own normal form: what is stored still parses, to the same wish", () => {
  const wishes = fc.record(
    {
      operatingMode: fc.constantFrom("Running", "Suspended"),
      env: fc.dictionary(
        fc.stringMatching(/^[A-Z]{1,8}$/),
        fc.string({ maxLength: 8 }).map((text) => text.replaceAll("\0", "")),
        { maxKeys: 3 },
      ),
      idle: fc.option(fc.record({ timeoutSeconds: fc.integer({ min: 10, max: DAYS_366 }) })),
      maxLifetimeSeconds: fc.option(fc.integer({ min: 60, max: DAYS_366 })),
      expireTime: fc.option(
        fc
          .record({
            at: fc.date({ min: new Date("0001-01-02"), max: new Date("9999-12-30"), noInvalidDate: true }),
            hours: fc.integer({ min: 0, max: 23 }),
          })
          .map(({ at, hours }) => at.toISOString().replace("Z", `+${String(hours).padStart(2, "0")}:00`)),
      ),
      paused: fc.boolean(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(wishes, (wish) => {
      const normal = parseStoredSpec(wish);
      expect(normal).not.toBeNull();
      expect(parseStoredSpec(JSON.parse(JSON.stringify(normal)))).toEqual(normal);
    }),
  );
});
