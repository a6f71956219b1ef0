/** Bodies of a PUT that are JSON and no valid workspace, each in one field. */
import fc from "fast-check";
import { NAME_PATTERN } from "../../../src/spec.ts";
import { CANARY, type Malformed, anyText, put } from "./malformed-parts.ts";

const KNOWN = new Set([
  "metadata",
  "spec",
  "status",
  "operatingMode",
  "directory",
  "env",
  "idle",
  "maxLifetimeSeconds",
  "expireTime",
  "source",
  "setup",
  "backup",
  "deletion",
  "paused",
]);

/** A valid workspace with one field that is unknown or of the wrong type, at any of its places. */
const badField = fc
  .tuple(
    fc
      .oneof(anyText, fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "Spec", ""))
      .filter((key) => !KNOWN.has(key)),
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom("body", "metadata", "spec"),
  )
  .map(([key, value, place]) => {
    const field = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
    const known = place === "metadata" && ["labels", "annotations", "name", "namespace", "uid", "etag"].includes(key);
    const text = `{${known ? '"x":1' : field}}`;
    if (place === "body") return put(`{"spec":{},${text.slice(1)}`);
    return put(place === "spec" ? `{"spec":${text}}` : `{"metadata":${text},"spec":{}}`);
  });

const badValue = fc
  .tuple(fc.constantFrom("operatingMode", "directory", "env", "paused", "labels", "annotations"), fc.jsonValue({ maxDepth: 4 }))
  .map(([field, value]) => {
    const wrong =
      value === null || Array.isArray(value) || typeof value === "number" || (typeof value === "string" && field !== "directory");
    const sent = wrong ? value : [value];
    const inMetadata = field === "labels" || field === "annotations";
    return put(JSON.stringify(inMetadata ? { metadata: { [field]: sent }, spec: {} } : { spec: { [field]: sent } }));
  });

/** The limits of a spec may be null, so each gets a value that is none of theirs. */
const badLimit = fc
  .oneof(
    fc.tuple(
      fc.constantFrom("idle", "maxLifetimeSeconds", "expireTime"),
      fc.jsonValue({ maxDepth: 3 }).map((value) => [value]),
    ),
    fc.tuple(
      fc.constant("expireTime"),
      anyText.filter((text) => Number.isNaN(Date.parse(text))),
    ),
    fc.tuple(
      fc.constant("expireTime"),
      fc.constantFrom("2026-11-30T11:59:59Z", "0001-01-01T00:00:00Z", "2026-11-30", "2027-02-30T00:00:00Z"),
    ),
    fc.tuple(
      fc.constant("maxLifetimeSeconds"),
      fc.oneof(fc.integer({ max: 59 }), fc.double({ noInteger: true, noNaN: true, noDefaultInfinity: true })),
    ),
    fc.tuple(
      fc.constant("idle"),
      fc.integer({ max: 9 }).map((timeoutSeconds) => ({ timeoutSeconds })),
    ),
  )
  .map(([field, value]) => put(JSON.stringify({ spec: { env: { SECRET: CANARY }, [field]: value } })));

/** Of what is wished for the files. */
const badFiles = fc
  .oneof(
    fc.tuple(
      fc.constantFrom("source", "backup", "deletion"),
      fc.oneof(
        fc.jsonValue({ maxDepth: 3 }).map((value) => [value]),
        fc.constantFrom<unknown>(CANARY, 1, true, { other: CANARY }),
        fc.record({ backup: fc.uuid(), workspace: fc.constant("a"), finalBackup: fc.constant("Skip"), onSuspend: fc.constant("Skip") }),
      ),
    ),
    fc.tuple(fc.constant("source"), fc.record({ backup: anyText })),
    fc.tuple(fc.constant("source"), fc.record({ workspace: anyText.filter((name) => !NAME_PATTERN.test(name)) })),
    fc.tuple(fc.constant("setup"), fc.constantFrom<unknown>(null, CANARY, [""], [" "], [`${CANARY}\u0000`], [1], Array(21).fill("x"))),
    fc.tuple(fc.constant("deletion"), fc.constant(null)),
    fc.tuple(fc.constant("deletion"), fc.record({ finalBackup: anyText })),
    fc.tuple(
      fc.constant("backup"),
      fc.oneof(
        fc.record({ everySeconds: fc.integer({ max: 59 }) }),
        fc.record({ onSuspend: anyText }),
        fc.record({ excludes: fc.constantFrom([`/${CANARY}`], [`../${CANARY}`], [`-${CANARY}`], [""], CANARY) }),
        fc.record({ retention: fc.record({ keepLast: fc.integer({ max: 0 }) }) }),
      ),
    ),
  )
  .map(([field, value]) => put(JSON.stringify({ spec: { env: { SECRET: CANARY }, [field]: value } })));

const badEntry = fc
  .tuple(
    fc.constantFrom("env", "labels", "annotations"),
    fc.oneof(
      anyText.filter((key) => !/^[A-Za-z0-9_]/.test(key)),
      fc.constant("__proto__"),
    ),
  )
  .map(([map, key]) => {
    const entries = `{${JSON.stringify(key)}:"${CANARY}"}`;
    return put(map === "env" ? `{"spec":{"env":${entries}}}` : `{"metadata":{"${map}":${entries}},"spec":{}}`);
  });

export const badSpec: fc.Arbitrary<Malformed> = fc.oneof(
  { weight: 4, arbitrary: badField },
  { weight: 4, arbitrary: badValue },
  { weight: 3, arbitrary: badEntry },
  { weight: 3, arbitrary: badLimit },
  { weight: 3, arbitrary: badFiles },
);
