import { describe, expect, test } from "vitest";
import { compileExclusions } from "../../dev/sandbox-server/exclusions.ts";

const excludes = (pattern: string, path: string) => compileExclusions([pattern])(path.split("/"));

describe("a pattern", () => {
  // oxfmt-ignore
  test.for<[pattern: string, path: string, excluded: boolean]>([
    ["node_modules",      "node_modules",        true],
    ["node_modules",      "app/node_modules",    false],
    ["... node_modules",  "app/node_modules",    true],
    ["... node_modules",  "node_modules",        true],
    ["app/node_modules",  "app/node_modules",    true],
    ["app/*",             "app/x",               true],
    ["app/*",             "app/x/y",             false],
    ["*",                 "a/b",                 false],
    ["*.log",             "today.log",           true],
    ["*.log",             "today.logs",          false],
    ["*.log",             ".log",                false],
    [".*",                ".git",                true],
    ["?",                 "ü",                   true],
    ["?",                 ".",                   false],
    ["[a-c]x",            "bx",                  true],
    ["[!a-c]x",           "bx",                  false],
    ["[]]",               "]",                   true],
    ["[",                 "[",                   true],
    ["\\*",               "*",                   true],
    ["\\*",               "a",                   false],
    ["a.b",               "axb",                 false],
    ["@(a|b*)",           "bcd",                 true],
    ["@(a|b)",            "ab",                  false],
    ["+(ab)",             "abab",                true],
    ["!(keep|*.md)",      "drop",                true],
    ["!(keep|*.md)",      "keep",                false],
    ["!(keep|*.md)",      "x.md",                false],
    ["!(keep|*.md)",      "keeper",              true],
    ["@(a\\|b|c)",        "a|b",                 true],
  ])("%s and the entry %s", ([pattern, path, excluded]) => {
    expect(excludes(pattern, path)).toBe(excluded);
  });

  test.for(["/abs", "./here", "../there", "... /abs"])("that begins like %s is refused", (pattern) => {
    expect(() => compileExclusions([pattern])).toThrow(RangeError);
  });
});
