/** Which specs are the same to a container that runs. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { isSameSpec, specHash } from "../../src/controller/spec-hash.ts";
import { parseStoredSpec } from "../../src/spec.ts";
import type { WorkspaceSpec } from "../../src/workspace.ts";
import { spec } from "../support/builders.ts";

type Row = readonly [situation: string, one: WorkspaceSpec, other: WorkspaceSpec, same: boolean];

// oxfmt-ignore
const table: readonly Row[] = [
  ["the same spec",                              spec(),                                spec(),                                    true],
  ["the order of the environment",               spec({ env: { A: "1", B: "2" } }),     spec({ env: { B: "2", A: "1" } }),         true],
  ["the operating mode, which only steers",      spec(),                                spec({ operatingMode: "Suspended" }),      true],
  ["the operator's hold, which only steers",     spec(),                                spec({ paused: true }),                    true],
  ["idleness, which only steers",                spec(),                                spec({ idle: { timeoutSeconds: 60 } }),    true],
  ["the length of a life, which only steers",    spec(),                                spec({ maxLifetimeSeconds: 60 }),          true],
  ["the last day, which only steers",            spec(),                                spec({ expireTime: "2026-11-30T12:00:00.000Z" }), true],
  ["the directory",                              spec(),                                spec({ directory: "/workspace/a" }),       false],
  ["one more variable",                          spec(),                                spec({ env: { A: "" } }),                  false],
  ["another value",                              spec({ env: { A: "1" } }),             spec({ env: { A: "2" } }),                 false],
  ["another name",                               spec({ env: { A: "1" } }),             spec({ env: { B: "1" } }),                 false],
  ["values that changed places",                 spec({ env: { A: "1", B: "2" } }),     spec({ env: { A: "2", B: "1" } }),         false],
  ["a value that looks like the next variable",  spec({ env: { A: '1","B","2' } }),     spec({ env: { A: "1", B: "2" } }),         false],
  ["upper and lower case",                       spec({ env: { A: "1" } }),             spec({ env: { a: "1" } }),                 false],
];

test.for(table)("%s", ([, one, other, same]) => {
  expect(isSameSpec(specHash(one), specHash(other))).toBe(same);
});

type VersionRow = readonly [situation: string, desired: string, observed: string, same: boolean];

// oxfmt-ignore
const versions: readonly VersionRow[] = [
  ["equal hashes",                                           "v1:aa", "v1:aa", true],
  ["different hashes of one version",                        "v1:aa", "v1:ab", false],
  ["hashes of different versions are not comparable",        "v2:aa", "v1:ab", true],
  ["an older controller after a newer one",                  "v1:aa", "v2:ab", true],
  ["versions of different length",                           "v1:aa", "v11:aa", true],
  ["a hash without a version is not comparable",             "v1:aa", "ab", true],
  ["no hash at all is not comparable",                       "v1:aa", "", true],
];

test.for(versions)("%s", ([, desired, observed, same]) => {
  expect(isSameSpec(desired, observed)).toBe(same);
});

fc.configureGlobal({ seed: 794_825 });

const environment = fc.dictionary(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/), fc.string({ maxLength: 8 }), { maxKeys: 6 });

test("the order in which an environment was written does not change the hash", () => {
  fc.assert(
    fc.property(environment, fc.infiniteStream(fc.nat()), (env, keys) => {
      const ranked = Object.entries(env).map((entry) => ({ entry, rank: keys.next().value ?? 0 }));
      const shuffled = Object.fromEntries(ranked.toSorted((a, b) => a.rank - b.rank).map(({ entry }) => entry));
      expect(specHash(spec({ env: shuffled }))).toBe(specHash(spec({ env })));
    }),
  );
});

test("two environments hash alike only if they are equal", () => {
  fc.assert(
    fc.property(environment, environment, (one, other) => {
      const sorted = (env: Record<string, string>) => JSON.stringify(Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1)));
      expect(specHash(spec({ env: one })) === specHash(spec({ env: other }))).toBe(sorted(one) === sorted(other));
    }),
  );
});

test("defaults that are spelled out do not change the hash", () => {
  const bare = parseStoredSpec({});
  const spelledOut = parseStoredSpec({ operatingMode: "Running", directory: "/workspace", env: {}, paused: false });
  expect(bare && specHash(bare)).toBe(spelledOut && specHash(spelledOut));
});

test("the hash is part of what running sandboxes remember: changing it needs a new version", () => {
  expect(specHash(spec())).toMatchInlineSnapshot(`"v1:84e28e7b501505d801db6d38a4f259e9"`);
  expect(specHash(spec({ directory: "/home/alice", env: { B: "2", A: "1" } }))).toMatchInlineSnapshot(
    `"v1:ea24d5aa0cd13ade96506ddd45fcb394"`,
  );
});

test("no value of the environment can be read from the hash", () => {
  expect(specHash(spec({ env: { TOKEN: "hunter2" } }))).toMatch(/^v1:[0-9a-f]{32}$/);
});
