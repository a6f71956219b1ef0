import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createApi } from "../../../src/api/app.ts";
import type { Api } from "../../../src/api/context.ts";
import { type ProblemCode, problemSchema } from "../../../src/api/problem.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { testDoIdOf } from "./do-id.ts";
import { CANARY, type Malformed } from "./malformed-parts.ts";
import { malformedRequest } from "./malformed.ts";
import { d1, footprint, NOW, PATH, startEmpty, testConfig, TOKENS } from "./support.ts";

const BATCH = 100;
const BATCHES = 100;
/** Refusals of a part of the request say which part. */
const POINTED = /^INVALID_|^MALFORMED_JSON$|^PRECONDITION_FAILED$|^UNSUPPORTED_MEDIA_TYPE$/;

/** Every way to refuse a malformed request; a run that met fewer would have tested little. */
const CODES: readonly ProblemCode[] = [
  "BODY_TOO_LARGE",
  "INVALID_BODY",
  "INVALID_HEADER",
  "INVALID_NAME",
  "INVALID_PAGE_TOKEN",
  "INVALID_QUERY",
  "INVALID_SPEC",
  "MALFORMED_JSON",
  "METHOD_NOT_ALLOWED",
  "NOT_FOUND",
  "PRECONDITION_FAILED",
  "ROUTE_NOT_FOUND",
  "UNAUTHENTICATED",
  "UNSUPPORTED_MEDIA_TYPE",
];

let app: Api;
let printed: string[];
let met: Set<ProblemCode>;

beforeEach(async () => {
  await startEmpty();
  app = createApi({
    db: openDatabase(d1),
    config: await testConfig(),
    now: () => NOW,
    sleep: async () => {},
    newUid: () => crypto.randomUUID(),
    newRequestId: () => crypto.randomUUID(),
    doIdOf: testDoIdOf,
  });
  printed = [];
  met = new Set();
  for (const level of ["debug", "log", "info", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((...values: unknown[]) => void printed.push(values.map(String).join(" ")));
  }
});

afterEach(() => {
  vi.restoreAllMocks();
});

async function send({ method, path, headers, body }: Malformed): Promise<Response> {
  return await app.fetch(new Request(`https://mooring.test${path}`, { method, headers, ...(body !== null && { body }) }));
}

/** What is wrong with an answer to a malformed request; null for nothing. */
async function complaint(request: Malformed): Promise<string | null> {
  const response = await send(request);
  const text = await response.text();
  const about = `${request.method} ${request.path.slice(0, 100)} → ${response.status} ${text.slice(0, 300)}`;
  if (response.status < 400 || response.status > 499) return `not a 4xx: ${about}`;
  if (response.headers.get("Content-Type") !== "application/problem+json") return `not a problem: ${about}`;
  const problem = problemSchema.strict().safeParse(JSON.parse(text));
  if (!problem.success) return `not this API's problem: ${about}`;
  const { code, status, requestId, errors = [] } = problem.data;
  met.add(code);
  if (status !== response.status || requestId !== response.headers.get("X-Request-Id")) return `another status or request id: ${about}`;
  if (POINTED.test(code) && errors.length === 0) return `no pointer: ${about}`;
  if (text.includes(CANARY)) return `a secret: ${about}`;
  if (text.length > 100_000) return `too long: ${about}`;
  return null;
}

it("10,000 malformed requests are each refused with a problem of this API, and nothing is written or printed", async () => {
  const before = await footprint();
  await fc.assert(
    fc.asyncProperty(fc.array(malformedRequest, { minLength: BATCH, maxLength: BATCH }), async (batch) => {
      const complaints = (await Promise.all(batch.map(complaint))).filter((text) => text !== null);
      expect(complaints).toEqual([]);
      expect(await footprint()).toEqual(before);
    }),
    { numRuns: BATCHES },
  );
  expect([...met].toSorted()).toEqual(CODES);
  expect(printed).toEqual([]);
}, 60_000);

it("what exists is the same after 1,000 malformed requests", async () => {
  const json = { spec: { env: { SECRET: CANARY } } };
  const headers = { Authorization: `Bearer ${TOKENS.operator}`, "Content-Type": "application/json" };
  await send({ method: "PUT", path: PATH, headers, body: JSON.stringify(json) });
  const read = async () => await (await send({ method: "GET", path: PATH, headers, body: null })).json();
  const before = [await read(), await footprint()];
  await fc.assert(
    fc.asyncProperty(fc.array(malformedRequest, { minLength: BATCH, maxLength: BATCH }), async (batch) => {
      const complaints = (await Promise.all(batch.map(complaint))).filter((text) => text !== null);
      expect(complaints).toEqual([]);
    }),
    { numRuns: 10 },
  );
  expect([await read(), await footprint()]).toEqual(before);
  expect(printed).toEqual([]);
});
