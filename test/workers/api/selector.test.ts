import { describe, expect, it } from "vitest";
import { Problem } from "../../../src/api/problem.ts";
import { canonicalSelector, parseLabelSelector } from "../../../src/api/selector.ts";

describe("a label selector is read as Kubernetes reads it", () => {
  it.each<[string, readonly unknown[]]>([
    ["", []],
    ["   ", []],
    ["a", [["a", "Exists"]]],
    ["!a", [["a", "DoesNotExist"]]],
    ["! a", [["a", "DoesNotExist"]]],
    ["a=b", [["a", "In", "b"]]],
    [" a  ==  b ", [["a", "In", "b"]]],
    ["a!=b", [["a", "NotIn", "b"]]],
    ["a=", [["a", "In", ""]]],
    ["a==", [["a", "In", ""]]],
    [
      "a=,b",
      [
        ["a", "In", ""],
        ["b", "Exists"],
      ],
    ],
    ["a in (x)", [["a", "In", "x"]]],
    ["a in(x,y)", [["a", "In", "x", "y"]]],
    ["a in ( x , y )", [["a", "In", "x", "y"]]],
    ["a in ()", [["a", "In", ""]]],
    ["a in (x,)", [["a", "In", "x", ""]]],
    [
      "a notin (x,y),b",
      [
        ["a", "NotIn", "x", "y"],
        ["b", "Exists"],
      ],
    ],
    ["example.com/a=b", [["example.com/a", "In", "b"]]],
    ["in in (in,notin)", [["in", "In", "in", "notin"]]],
    ["notin", [["notin", "Exists"]]],
    ["in=notin", [["in", "In", "notin"]]],
    [
      "a=b,a!=c,!d,e",
      [
        ["a", "In", "b"],
        ["a", "NotIn", "c"],
        ["d", "DoesNotExist"],
        ["e", "Exists"],
      ],
    ],
  ])("%s", (text, requirements) => {
    expect(parseLabelSelector(text).map(({ key, operator, values }) => [key, operator as string].concat(values))).toEqual(requirements);
  });

  it.each(
    [
      ",",
      "a,",
      ",a",
      "a,,b",
      "!",
      "!!a",
      "!a=b",
      "=a",
      "a===b",
      "a=b=c",
      "a=b c",
      "a b",
      "a in",
      "a in x",
      "a in (x",
      "a in x)",
      "a in (x y)",
      "a in ((x))",
      "a notin",
      "a>1",
      "a<1",
      "a gt 1",
      "a=b;c",
      "a={}",
      "A.com/x",
      "a/b/c",
      "/a",
      "-a",
      "a=-b",
      "a='b'",
      'a="b"',
      "a\u0000",
      "é",
      "k".repeat(64),
      `a=${"v".repeat(64)}`,
      "a".repeat(5000),
      Array.from({ length: 21 }, (_, i) => `k${i}`).join(),
    ].map((text) => [text]),
  )("%s is refused", (text) => {
    expect(() => parseLabelSelector(text)).toThrow(Problem);
  });
});

const canonical = (text: string) => canonicalSelector(parseLabelSelector(text));

it("the canonical form forgets spelling and order and nothing else", () => {
  expect(canonical("b in (y,x), a==1")).toBe(canonical("a=1,b in (x, y)"));
  expect(canonical("a=1")).not.toBe(canonical("a!=1"));
  expect(canonical("a")).not.toBe(canonical("!a"));
  expect(canonical("a in (x,y)")).not.toBe(canonical("a in (x),a in (y)"));
});
