import { beforeAll, describe, expect, it } from "vitest";
import { footprint, openApi, PATH, problemOf, refusalOf, startEmpty, type TestApi } from "./support.ts";

let api: TestApi;

beforeAll(async () => {
  await startEmpty();
  api = await openApi();
});

function entries(count: number, value = ""): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));
}

function nested(depth: number): unknown {
  return JSON.parse("[".repeat(depth) + "]".repeat(depth));
}

describe("an invalid workspace is 422 INVALID_SPEC and every mistake has its pointer", () => {
  it.each<[string, unknown, readonly string[]]>([
    ["a body that is an array", [], [""]],
    ["a body that is null", null, [""]],
    ["no spec", {}, ["/spec"]],
    ["a spec that is null", { spec: null }, ["/spec"]],
    ["an unknown field of the body", { spec: {}, kind: "Workspace" }, ["/kind"]],
    ["an unknown field of the spec", { spec: { image: "x" } }, ["/spec/image"]],
    ["a field of a later version", { spec: { backup: { gitignore: true } } }, ["/spec/backup/gitignore"]],
    ["a source that says both", { spec: { source: { backup: "x", workspace: "a" } } }, ["/spec/source"]],
    ["a source that is no backup's id", { spec: { source: { backup: "newest" } } }, ["/spec/source/backup"]],
    ["a source that is no workspace's name", { spec: { source: { workspace: "a/b" } } }, ["/spec/source/workspace"]],
    ["a command that is empty", { spec: { setup: ["npm ci", ""] } }, ["/spec/setup/1"]],
    ["a pattern from elsewhere", { spec: { backup: { excludes: ["../a"] } } }, ["/spec/backup/excludes/0"]],
    ["not even one backup kept", { spec: { backup: { retention: { keepLast: 0 } } } }, ["/spec/backup/retention/keepLast"]],
    ["a policy that is none", { spec: { deletion: { finalBackup: "Always" } } }, ["/spec/deletion/finalBackup"]],
    ["an idle time shorter than 10 seconds", { spec: { idle: { timeoutSeconds: 9 } } }, ["/spec/idle/timeoutSeconds"]],
    ["an idle time that is no whole number", { spec: { idle: { timeoutSeconds: 10.5 } } }, ["/spec/idle/timeoutSeconds"]],
    ["an unknown field of idle", { spec: { idle: { timeoutSeconds: 10, action: "x" } } }, ["/spec/idle/action"]],
    ["idle without a time", { spec: { idle: {} } }, ["/spec/idle/timeoutSeconds"]],
    ["a lifetime shorter than a minute", { spec: { maxLifetimeSeconds: 59 } }, ["/spec/maxLifetimeSeconds"]],
    ["a lifetime of more than a year", { spec: { maxLifetimeSeconds: 366 * 86_400 + 1 } }, ["/spec/maxLifetimeSeconds"]],
    ["an expiry that is a number", { spec: { expireTime: 1_800_000_000 } }, ["/spec/expireTime"]],
    ["an expiry without a time zone", { spec: { expireTime: "2026-12-24T00:00:00" } }, ["/spec/expireTime"]],
    ["an expiry on a day that no month has", { spec: { expireTime: "2027-02-30T00:00:00Z" } }, ["/spec/expireTime"]],
    ["an expiry in a leap second", { spec: { expireTime: "2026-12-31T23:59:60Z" } }, ["/spec/expireTime"]],
    ["several unknown fields", { spec: { a: 1, "b/c~d": 2 } }, ["/spec/a", "/spec/b~1c~0d"]],
    ["an unknown field of the metadata", { metadata: { finalizers: [] }, spec: {} }, ["/metadata/finalizers"]],
    ["a wrong enumeration value", { spec: { operatingMode: "running" } }, ["/spec/operatingMode"]],
    ["a field of the wrong type", { spec: { paused: "yes" } }, ["/spec/paused"]],
    ["a null field", { spec: { directory: null } }, ["/spec/directory"]],
    ["a directory that cannot be backed up", { spec: { directory: "/etc" } }, ["/spec/directory"]],
    ["a directory that climbs", { spec: { directory: "/workspace/../etc" } }, ["/spec/directory"]],
    ["an env name with a dash", { spec: { env: { "A-B": "x" } } }, ["/spec/env/A-B"]],
    ["an env value that is a number", { spec: { env: { A: 1 } } }, ["/spec/env/A"]],
    ["an env value with NUL", { spec: { env: { A: "\u0000" } } }, ["/spec/env/A"]],
    ["too many env entries", { spec: { env: entries(101) } }, ["/spec/env"]],
    ["a label key with a space", { metadata: { labels: { "a b": "x" } }, spec: {} }, ["/metadata/labels/a b"]],
    ["a label key of 64 characters", { metadata: { labels: { ["k".repeat(64)]: "" } }, spec: {} }, [`/metadata/labels/${"k".repeat(64)}`]],
    ["a label key with two slashes", { metadata: { labels: { "a/b/c": "" } }, spec: {} }, ["/metadata/labels/a~1b~1c"]],
    ["a label key with an empty prefix", { metadata: { labels: { "/a": "" } }, spec: {} }, ["/metadata/labels/~1a"]],
    ["a label key with an upper-case prefix", { metadata: { labels: { "A.com/a": "" } }, spec: {} }, ["/metadata/labels/A.com~1a"]],
    ["a label value of 64 characters", { metadata: { labels: { a: "v".repeat(64) } }, spec: {} }, ["/metadata/labels/a"]],
    ["a label value that ends in a dash", { metadata: { labels: { a: "v-" } }, spec: {} }, ["/metadata/labels/a"]],
    ["65 labels", { metadata: { labels: entries(65) }, spec: {} }, ["/metadata/labels"]],
    ["an annotation that is no text", { metadata: { annotations: { a: {} } }, spec: {} }, ["/metadata/annotations/a"]],
    ["an annotation key with a space", { metadata: { annotations: { "a b": "x" } }, spec: {} }, ["/metadata/annotations/a b"]],
    ["annotations of more than 32 KiB", { metadata: { annotations: { a: "x".repeat(32 * 1024) } }, spec: {} }, ["/metadata/annotations"]],
    [
      "annotations of more than 32 KiB in UTF-8",
      { metadata: { annotations: { a: "é".repeat(16 * 1024) } }, spec: {} },
      ["/metadata/annotations"],
    ],
    ["another name than the path's", { metadata: { name: "bob" }, spec: {} }, ["/metadata/name"]],
    ["another namespace than the path's", { metadata: { namespace: "other" }, spec: {} }, ["/metadata/namespace"]],
    ["a name that is no text", { metadata: { name: 1 }, spec: {} }, ["/metadata/name"]],
    ["mistakes in several places", { spec: { paused: 1, env: { "1": "" } }, x: 1 }, ["/spec/env/1", "/spec/paused", "/x"]],
  ])("%s", async (_sentence, json, pointers) => {
    const refusal = await refusalOf(await api.send("PUT", PATH, { json }));
    expect({ ...refusal, pointers: refusal.pointers.toSorted() }).toEqual({ status: 422, code: "INVALID_SPEC", pointers });
  });

  it.each([
    ["a field called __proto__ at the top", '{"spec":{},"__proto__":{"paused":true}}', "/__proto__"],
    ["a field called __proto__ in the spec", '{"spec":{"__proto__":{"paused":true}}}', "/spec/__proto__"],
    ["an env name __proto__", '{"spec":{"env":{"__proto__":"x"}}}', "/spec/env/__proto__"],
    ["a label __proto__", '{"metadata":{"labels":{"__proto__":"x"}},"spec":{}}', "/metadata/labels/__proto__"],
    ["a field called constructor", '{"spec":{"constructor":{"prototype":{}}}}', "/spec/constructor"],
    ["a text with an unpaired surrogate", '{"spec":{"env":{"A":"\\ud800"}}}', "/spec/env/A"],
    ["a name with an unpaired surrogate", '{"spec":{"env":{"A\\ud800":""}}}', "/spec/env"],
  ])("%s", async (_sentence, body, pointer) => {
    expect(await refusalOf(await api.send("PUT", PATH, { body }))).toEqual({ status: 422, code: "INVALID_SPEC", pointers: [pointer] });
    expect(({} as Record<string, unknown>)["paused"]).toBeUndefined();
  });

  it("names what is missing and what is unknown in words", async () => {
    const { errors } = await problemOf(await api.send("PUT", PATH, { json: { x: 1 } }));
    expect(errors).toEqual(
      expect.arrayContaining([
        { pointer: "/spec", detail: "is required" },
        { pointer: "/x", detail: "is not a known field" },
      ]),
    );
  });

  it("does not mirror a body made of mistakes: 50 errors at most, and no pointer above 1024 characters", async () => {
    const many = await problemOf(await api.send("PUT", PATH, { json: { spec: entries(5000) } }));
    expect(many.errors).toHaveLength(50);
    const long = await problemOf(await api.send("PUT", PATH, { json: { spec: { ["k".repeat(2000)]: 1 } } }));
    expect(long.errors).toEqual([{ pointer: "/spec", detail: "is not a known field" }]);
    const surrogates = await problemOf(await api.send("PUT", PATH, { body: `{"spec":[${Array(1000).fill('"\\ud800"').join()}]}` }));
    expect(surrogates.errors).toHaveLength(50);
  });
});

describe("the limits of labels and annotations are those of Kubernetes", () => {
  it.each<[string, unknown]>([
    ["64 labels", { labels: entries(64) }],
    ["63 characters of key and value", { labels: { ["k".repeat(63)]: "v".repeat(63) } }],
    ["a prefix of 253 characters", { labels: { [`${"a.".repeat(126)}a/k`]: "" } }],
    ["dots, dashes, underscores and capitals", { labels: { "A_b.c-d": "0_X.y-Z" } }],
    ["annotations of exactly 32 KiB", { annotations: { a: "x".repeat(32 * 1024 - 1) } }],
  ])("%s is accepted", async (_sentence, metadata) => {
    expect((await api.send("PUT", PATH, { json: { metadata, spec: {} } })).ok).toBe(true);
  });
});

describe("a body that is no usable JSON", () => {
  it.each<[string, BodyInit]>([
    ["nothing at all", ""],
    ["truncated JSON", '{"spec":{'],
    ["two values", "{}{}"],
    ["a comment", '{"spec":{}} // x'],
    ["NaN", '{"spec":NaN}'],
    ["a control character in a text", '{"spec":"\u0001"}'],
    ["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])],
    ["an overlong encoding", new Uint8Array([0x22, 0xc0, 0x80, 0x22])],
    ["33 levels", JSON.stringify(nested(33))],
    ["33 levels of objects", '{"a":'.repeat(33) + "1" + "}".repeat(33)],
    ["100,000 open brackets", "[".repeat(100_000)],
    ["brackets behind an escaped quote", `["\\"",${"[".repeat(32)}`],
  ])("%s is 400 MALFORMED_JSON", async (_sentence, body) => {
    expect(await refusalOf(await api.send("PUT", PATH, { body }))).toEqual({ status: 400, code: "MALFORMED_JSON", pointers: [""] });
  });

  it("is not a body of 32 levels, nor one with brackets in a text", async () => {
    expect((await refusalOf(await api.send("PUT", PATH, { json: nested(32) }))).code).toBe("INVALID_SPEC");
    expect((await api.send("PUT", PATH, { json: { spec: { env: { A: `\\"${"[".repeat(100)}` } } } })).ok).toBe(true);
  });

  it("may begin with a byte order mark and repeat a field, whose last value counts", async () => {
    const response = await api.send("PUT", PATH, { body: '\ufeff{"spec":{"paused":true,"paused":false}}' });
    expect(await response.json()).toMatchObject({ spec: { paused: false } });
  });
});

const padding = (bytes: number) => `{"spec":{}${" ".repeat(bytes - 11)}}`;

describe("the size of a body", () => {
  it("may be 256 KiB", async () => {
    expect((await api.send("PUT", PATH, { body: padding(256 * 1024) })).ok).toBe(true);
  });

  it("is 413 BODY_TOO_LARGE above, whether announced or streamed", async () => {
    const announced = await api.send("PUT", PATH, { body: padding(256 * 1024 + 1) });
    expect(await refusalOf(announced)).toEqual({ status: 413, code: "BODY_TOO_LARGE", pointers: [] });
    const streamed = await api.send("PUT", PATH, { body: new Blob([padding(256 * 1024 + 1)]).stream() });
    expect((await problemOf(streamed)).code).toBe("BODY_TOO_LARGE");
  });

  it("is 400 MALFORMED_JSON where the body breaks off", async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"spec":'));
        controller.error(new Error("gone"));
      },
    });
    expect(await refusalOf(await api.send("PUT", PATH, { body }))).toEqual({ status: 400, code: "MALFORMED_JSON", pointers: [""] });
  });

  it("is believed when announced too large, before anything is read", async () => {
    const response = await api.send("PUT", PATH, { body: "{}", headers: { "Content-Length": "99999999" } });
    expect((await problemOf(response)).code).toBe("BODY_TOO_LARGE");
  });
});

describe("the media type of a body", () => {
  it.each([
    ["application/json", true],
    ["application/json; charset=utf-8", true],
    ['Application/JSON;charset="UTF-8"', true],
    ["application/json; charset=latin1", false],
    ["application/merge-patch+json", false],
    ["application/jsonx", false],
    ["text/plain", false],
    ["application/x-www-form-urlencoded", false],
    ["", false],
  ])("%s is accepted: %s", async (type, accepted) => {
    const response = await api.send("PUT", PATH, { json: { spec: {} }, headers: { "Content-Type": type } });
    if (accepted) expect(response.ok).toBe(true);
    else expect(await refusalOf(response)).toEqual({ status: 415, code: "UNSUPPORTED_MEDIA_TYPE", pointers: ["header/Content-Type"] });
  });

  it("may not be compressed", async () => {
    const response = await api.send("PUT", PATH, { json: { spec: {} }, headers: { "Content-Encoding": "gzip" } });
    expect(await refusalOf(response)).toEqual({ status: 415, code: "UNSUPPORTED_MEDIA_TYPE", pointers: ["header/Content-Encoding"] });
  });
});

it("leaves nothing behind when it refuses", async () => {
  const before = await footprint();
  await api.send("PUT", "/v1/namespaces/default/workspaces/never", { json: { spec: { no: 1 } } });
  expect(await footprint()).toEqual(before);
});
