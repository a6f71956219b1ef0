/** Requests that are wrong by construction, each in one way: whatever else fast-check puts into them, a 4xx is the only right answer. */
import fc from "fast-check";
import { NAME_PATTERN } from "../../../src/spec.ts";
import { VERBS, badOperation } from "./malformed-operations.ts";
import { type Malformed, anyText, put, request, validText } from "./malformed-parts.ts";
import { badSpec } from "./malformed-specs.ts";
import { PATH, TOKENS } from "./support.ts";

/** Texts that are no JSON, or JSON that is no workspace. */
const badBody = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 200 }).filter((text) => !text.includes('"spec"')),
    fc.json().filter((text) => !text.includes('"spec"')),
    fc.nat(validText.length - 1).map((end) => validText.slice(0, end)),
    fc.tuple(fc.nat(validText.length), fc.constantFrom("{", "}", '"', "\u0000", "\\", "]")).map(([at, piece]) => {
      const text = validText.slice(0, at) + piece + validText.slice(at);
      return isJson(text) ? "{" : text;
    }),
  )
  .map((text) => put(text));

const badBytes = fc
  .tuple(fc.nat(validText.length), fc.constantFrom([0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80]))
  .map(([at, bytes]) => {
    const text = new TextEncoder().encode(validText);
    return put(Uint8Array.from([...text.subarray(0, at), ...bytes, ...text.subarray(at)]));
  });

const tooDeep = fc
  .tuple(
    fc.oneof(fc.integer({ min: 33, max: 100 }), fc.integer({ min: 33, max: 100_000 })),
    fc.constantFrom(["[", "]"], ["[", ""], ['{"a":', "}"], ['{"a":', ""], ['[{"a":', "}]"], ['[{"a":', ""]),
  )
  .map(([depth, [open = "", close = ""]]) => {
    const levels = Math.min(depth, 200_000 / (open.length + close.length));
    return put(`{"spec":${open.repeat(levels)}1${close.repeat(levels)}}`);
  });

const tooLarge = fc
  .tuple(fc.integer({ min: 256 * 1024 + 1, max: 280 * 1024 }), fc.constantFrom(" ", "[", "a"))
  .map(([size, filling]) => put(filling.repeat(size)));

const badType = fc
  .constantFrom(
    "",
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/json, text/plain",
  )
  .map((type) => put(validText, { "Content-Type": type }));

const badToken = fc
  .tuple(fc.constantFrom("", "Bearer ", "bearer  ", "Basic ", "Bearer Bearer "), fc.string({ unit: "grapheme-ascii", maxLength: 60 }))
  .filter(([, token]) => !Object.values<string>(TOKENS).includes(token.trim()))
  .map(([scheme, token]) => put(validText, { Authorization: `${scheme}${token}` }));

const badName = fc
  .tuple(
    fc.oneof(anyText, fc.webSegment(), fc.constantFrom("%", "%zz", "a%2fb", "A", "..", "%2e%2e", ".", "a".repeat(64))),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([name, asName, encoded]) => {
    const segment = encoded && name.isWellFormed() ? encodeURIComponent(name) : name.replace(/[^A-Za-z0-9.%~_-]/g, "_");
    return NAME_PATTERN.test(segment) ? "-" : `${asName}${segment}`;
  })
  .map((choice) => {
    const segment = choice.replace(/^(true|false)/, "");
    const path = choice.startsWith("true") ? `/v1/namespaces/default/workspaces/${segment}` : `/v1/namespaces/${segment}/workspaces/w`;
    return request("PUT", path);
  });

const knownQueries: Readonly<Record<string, readonly string[]>> = {
  PUT: [],
  GET: ["waitFor", "timeoutSeconds"],
  DELETE: ["allowMissing", "finalBackup"],
};
const badQuery = fc
  .tuple(
    fc.constantFrom("PUT", "GET", "DELETE"),
    anyText.filter((name) => name !== "" && name.isWellFormed()),
    anyText.filter((text) => text.isWellFormed()),
  )
  .filter(([method, name]) => !knownQueries[method]?.includes(name))
  .map(([method, name, value]) => request(method, `${PATH}?${encodeURIComponent(name)}=${encodeURIComponent(value)}`));

const aList = fc.constantFrom("/v1/workspaces", "/v1/events", "/v1/drift", "/v1/instances", `${PATH}/events`, `${PATH}/backups`);

const badList = fc
  .tuple(
    fc.constantFrom("limit", "pageToken", "labelSelector", "watch", "namespace", "type", "claimed"),
    anyText.filter((text) => text.isWellFormed()),
  )
  // The equals sign makes a number, a token and a selector wrong whatever follows.
  .chain(([name, value]) => aList.map((path) => request("GET", `${path}?${name}=${encodeURIComponent(`=${value}`)}`)));

/** Right in its letters, and sometimes in its JSON, but never in its digest. */
const badPageToken = fc
  .oneof(
    fc.stringMatching(/^[A-Za-z0-9_-]{1,80}$/),
    fc.json({ maxDepth: 2 }).map((text) => btoa(encodeURIComponent(text)).replaceAll(/[+/=]/g, "")),
    fc
      .tuple(fc.string({ unit: "grapheme-ascii", maxLength: 12 }), fc.constantFrom("a", "A"))
      .map((parts) => btoa(JSON.stringify([...parts, "w"])).replaceAll(/[+/=]/g, "")),
  )
  .chain((token) => aList.map((path) => request("GET", `${path}?pageToken=${token}`)));

const badMethod = fc
  .tuple(
    fc.constantFrom("POST", "PATCH", "OPTIONS", "DELETE", "PUT"),
    fc.constantFrom(
      PATH,
      "/v1/workspaces",
      "/v1/namespaces/a/workspaces",
      "/healthz",
      "/openapi.json",
      "/v1/drift",
      "/v1/events",
      ...VERBS,
    ),
  )
  .filter(([method, path]) => path !== PATH || (method !== "PUT" && method !== "DELETE"))
  .filter(([method, path]) => method !== "POST" || !VERBS.includes(path))
  .map(([method, path]) => request(method, path));

const badPath = fc.webPath().map((path) => request("GET", `/v1/x${path}`));

const badPrecondition = fc
  .tuple(fc.string({ unit: "grapheme-ascii", maxLength: 30 }), fc.constantFrom("", '"', "W/"), fc.constantFrom("PUT", "DELETE"))
  .map(([value, quote, method]) => ({ value: quote === "" ? value : `${quote}"${value}"`.replace('""', '"'), method }))
  .filter(({ value }) => value.trim() !== "*")
  .map(({ value, method }) => request(method, PATH, { "If-Match": value }));

export const malformedRequest: fc.Arbitrary<Malformed> = fc.oneof(
  { weight: 4, arbitrary: badBody },
  { weight: 17, arbitrary: badSpec },
  { weight: 2, arbitrary: badBytes },
  { weight: 1, arbitrary: tooDeep },
  { weight: 1, arbitrary: tooLarge },
  { weight: 1, arbitrary: badType },
  { weight: 3, arbitrary: badToken },
  { weight: 4, arbitrary: badName },
  { weight: 3, arbitrary: badQuery },
  { weight: 3, arbitrary: badList },
  { weight: 2, arbitrary: badPageToken },
  { weight: 10, arbitrary: badOperation },
  { weight: 1, arbitrary: badMethod },
  { weight: 1, arbitrary: badPath },
  { weight: 3, arbitrary: badPrecondition },
);

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
