/** What a spec may be, and that it comes out of the schema complete and in one form. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseStoredSpec, workspaceSpecSchema } from "../../src/spec.ts";
import type { BackupSpec, WorkspaceSpec } from "../../src/workspace.ts";
import { spec as withoutBackups } from "../support/builders.ts";

const DAYS_366 = 366 * 86_400;
const BACKUP_ID = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";

const BACKUP: BackupSpec = {
  everySeconds: null,
  onSuspend: "BestEffort",
  excludes: [],
  retention: { keepLast: 5, keepForSeconds: 7 * 86_400 },
};

function spec(overrides: Partial<WorkspaceSpec> = {}): WorkspaceSpec {
  return withoutBackups({ backup: BACKUP, ...overrides });
}

function backup(overrides: Partial<BackupSpec> = {}): WorkspaceSpec {
  return spec({ backup: { ...BACKUP, ...overrides } });
}

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
  ["a backup as source",                          { source: { backup: BACKUP_ID } },           spec({ source: { backup: BACKUP_ID } })],
  ["the same backup in capital letters",          { source: { backup: BACKUP_ID.toUpperCase() } }, spec({ source: { backup: BACKUP_ID } })],
  ["a workspace as source",                       { source: { workspace: "alice-1" } },        spec({ source: { workspace: "alice-1" } })],
  ["no source",                                   { source: null },                            spec()],
  ["a source that says nothing",                  { source: {} },                              null],
  ["a source that says both",                     { source: { backup: BACKUP_ID, workspace: "a" } }, null],
  ["a source as a word",                          { source: "alice-1" },                       null],
  ["a source in another namespace",               { source: { workspace: "team-a/w" } },       null],
  ["a source that is no backup's id",             { source: { backup: "newest" } },            null],
  ["set up by commands, some of several lines",   { setup: ["npm ci", "cd a\nmake"] },         spec({ setup: ["npm ci", "cd a\nmake"] })],
  ["set up by as many commands as may be",        { setup: Array(20).fill("x".repeat(4096)) }, spec({ setup: Array<string>(20).fill("x".repeat(4096)) })],
  ["set up by too many",                          { setup: Array(21).fill("x") },              null],
  ["a command that is too long",                  { setup: ["x".repeat(4097)] },               null],
  ["a command that is none",                      { setup: [" \n"] },                          null],
  ["a command with a NUL",                        { setup: ["a\0b"] },                         null],
  ["set up by one command that is no list",       { setup: "npm ci" },                         null],
  ["no backup of its own accord",                 { backup: null },                            spec({ backup: null })],
  ["a schedule: the rest of backup by default",   { backup: { everySeconds: 60 } },            backup({ everySeconds: 60 })],
  ["a schedule that is too dense",                { backup: { everySeconds: 59 } },            null],
  ["a policy at the end of a container",          { backup: { onSuspend: "Require" } },        backup({ onSuspend: "Require" })],
  ["a policy that is none",                       { backup: { onSuspend: "Always" } },         null],
  ["how many are kept: how long by default",      { backup: { retention: { keepLast: 1 } } },  backup({ retention: { keepLast: 1, keepForSeconds: 604_800 } })],
  ["kept only by number",                         { backup: { retention: { keepForSeconds: null } } }, backup({ retention: { keepLast: 5, keepForSeconds: null } })],
  ["kept for no time",                            { backup: { retention: { keepForSeconds: 0 } } }, backup({ retention: { keepLast: 5, keepForSeconds: 0 } })],
  ["not even one kept",                           { backup: { retention: { keepLast: 0 } } },  null],
  ["kept for too long",                           { backup: { retention: { keepForSeconds: 10 * DAYS_366 + 1 } } }, null],
  ["backups with something more",                 { backup: { gitignore: true } },             null],
  ["a final backup: its deadline by default",     { deletion: { finalBackup: "Require" } },    spec({ deletion: { finalBackup: "Require", deadlineSeconds: 600 } })],
  ["the shortest deadline",                       { deletion: { deadlineSeconds: 10 } },       spec({ deletion: { finalBackup: "Skip", deadlineSeconds: 10 } })],
  ["a deadline that is too short",                { deletion: { deadlineSeconds: 9 } },        null],
  ["a deadline that is too long",                 { deletion: { deadlineSeconds: 86_401 } },   null],
  ["no deletion",                                 { deletion: null },                          null],
];

test.for(table)("%s", ([, stored, expected]) => {
  expect(parseStoredSpec(stored)).toEqual(expected);
});

test.for(["node_modules", "*.log", "**/.cache", "... *.o", "a/b", "...", ".git", "a-b", "ü"])("what is left out may be %s", (pattern) => {
  expect(parseStoredSpec({ backup: { excludes: [pattern] } })).toEqual(backup({ excludes: [pattern] }));
});

test.for(["", "/etc", "./a", "../a", "a/..", "a/../b", ".", "a/./b", "-wildcards", "a\nb", "a\0", "x".repeat(1025)])(
  "what is left out may not be %j",
  (pattern) => {
    expect(parseStoredSpec({ backup: { excludes: ["node_modules", pattern] } })).toBeNull();
  },
);

type Mistake = readonly [situation: string, stored: unknown, place: string, message: RegExp];

// oxfmt-ignore
const mistakes: readonly Mistake[] = [
  ["a source that says nothing",      { source: {} },                              "source",            /^must be \{backup: <id>\}, \{workspace: <name>\} or null$/],
  ["a source that says both",         { source: { backup: BACKUP_ID, workspace: "a" } }, "source",      /^must be \{backup/],
  ["a source that is no backup's id", { source: { backup: "hunter2" } },           "source/backup",     /^must be the id of a backup, a UUID$/],
  ["a source that is no name",        { source: { workspace: "Hunter2" } },        "source/workspace",  /^must be the name of a workspace in the same namespace$/],
  ["the second of two commands",      { setup: ["npm ci", ""] },                   "setup/1",           /^must not be empty$/],
  ["the second of two patterns",      { backup: { excludes: ["a", "/b"] } },       "backup/excludes/1", /^must be a pattern relative to the directory/],
];

test.for(mistakes)("is told where and what is wrong: %s", ([, stored, place, message]) => {
  const issues = workspaceSpecSchema.safeParse(stored).error?.issues ?? [];
  expect(issues.map(({ path }) => path.join("/"))).toEqual([place]);
  expect(issues[0]?.message).toMatch(message);
});

fc.configureGlobal({ seed: 794_825 });

test("a normalised spec is its own normal form: what is stored still parses, to the same wish", () => {
  const policies = fc.constantFrom("Require", "BestEffort", "Skip");
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
      source: fc.option(
        fc.oneof(fc.record({ backup: fc.uuid() }), fc.record({ workspace: fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?$/) })),
      ),
      setup: fc.array(fc.stringMatching(/^[a-z ]{1,8}!$/), { maxLength: 3 }),
      backup: fc.option(
        fc.record(
          {
            everySeconds: fc.option(fc.integer({ min: 60, max: DAYS_366 })),
            onSuspend: policies,
            excludes: fc.array(fc.stringMatching(/^[a-z*]{1,8}$/), { maxLength: 3 }),
            retention: fc.record(
              { keepLast: fc.integer({ min: 1, max: 1000 }), keepForSeconds: fc.option(fc.nat({ max: DAYS_366 })) },
              { requiredKeys: [] },
            ),
          },
          { requiredKeys: [] },
        ),
      ),
      deletion: fc.record({ finalBackup: policies, deadlineSeconds: fc.integer({ min: 10, max: 86_400 }) }, { requiredKeys: [] }),
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
