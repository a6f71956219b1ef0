import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { toProblem } from "../../../src/api/failure.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { openApi, PATH, problemOf, startEmpty, type TestApi, TOKENS } from "./support.ts";

const CANARY = "canary-7d1f0c";
const BODY = { metadata: { labels: { l: CANARY }, annotations: { a: CANARY } }, spec: { env: { SECRET: CANARY } } };

const DO_ID = "a".repeat(64);

let printed: string[];

beforeEach(async () => {
  await startEmpty();
  printed = [];
  for (const level of ["debug", "log", "info", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((...values: unknown[]) => void printed.push(values.map(String).join(" ")));
  }
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** A D1 whose every statement fails as D1 fails: the words in `message`, behind whatever drizzle wraps around them. */
async function apiOverBrokenStore(message: string): Promise<TestApi> {
  const fail = async () => {
    throw new Error(message, { cause: new Error(message.replace(/^D1_ERROR: /, "")) });
  };
  const statement = { bind: () => statement, all: fail, raw: fail, run: fail, first: fail };
  return await openApi({ db: openDatabase({ prepare: () => statement, batch: fail } as unknown as D1Database) });
}

const REQUESTS = [
  ["GET", PATH, undefined],
  ["GET", `${PATH}?waitFor=Ready`, undefined],
  ["PUT", PATH, BODY],
  ["DELETE", PATH, undefined],
  ["GET", "/v1/workspaces?labelSelector=l%3Dcanary-7d1f0c", undefined],
  ["POST", `${PATH}:wake`, undefined],
  ["POST", `${PATH}:reconcile`, {}],
  ["GET", `${PATH}/events`, undefined],
  ["GET", "/v1/events", undefined],
  ["GET", "/v1/drift", undefined],
  ["GET", "/v1/instances", undefined],
  ["POST", `/v1/instances/${DO_ID}:destroy`, undefined],
  ["POST", `/v1/instances/${DO_ID}:protect`, undefined],
  ["POST", `/v1/instances/${DO_ID}:adopt`, { namespace: "default", name: "a", sandboxId: CANARY }],
  ["GET", "/v1/controller", undefined],
  ["PUT", "/v1/controller", {}],
  ["GET", "/readyz", undefined],
] as const;

describe("while D1 cannot be reached", () => {
  it.each([
    "D1_ERROR: Network connection lost.",
    "Network connection lost.",
    "D1_ERROR: D1 DB is overloaded. Requests queued for too long.",
    "D1_ERROR: D1 DB is overloaded. Too many requests queued.",
    "D1_ERROR: D1 DB reset because its code was updated.",
    "D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",
    "D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",
    "D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",
  ])("every request is 503 STORE_UNAVAILABLE with Retry-After: %s", async (message) => {
    const api = await apiOverBrokenStore(message);
    for (const [method, path, json] of REQUESTS) {
      const response = await api.send(method, path, { json });
      expect(response.headers.get("Retry-After")).toBe("2");
      expect(await problemOf(response)).toMatchObject({ status: 503, code: "STORE_UNAVAILABLE", retryAfterSeconds: 2 });
    }
    expect(printed).toHaveLength(REQUESTS.length);
    expect(printed.join()).toContain(message);
    expect(printed.join()).not.toContain(CANARY);
  });
});

describe("when D1 refuses a statement", () => {
  it.each([
    ["D1_ERROR: no such table: workspaces: SQLITE_ERROR", "no such table"],
    [`D1_TYPE_ERROR: Type 'object' not supported for value '${CANARY}'`, "D1_TYPE_ERROR: Type 'object' not supported"],
    [`something with ${CANARY}`, '"name":"Error"'],
  ])("the answer is 500 INTERNAL without any detail and the log has D1's words only: %s", async (message, logged) => {
    const api = await apiOverBrokenStore(message);
    for (const [method, path, json] of REQUESTS) {
      const response = await api.send(method, path, { json });
      const text = await response.text();
      expect(text).not.toMatch(/D1|SQL|table|canary|something/);
      expect(JSON.parse(text)).toEqual({
        type: "about:blank",
        title: "Internal Server Error",
        status: 500,
        detail: "The request failed for a reason on the server's side.",
        code: "INTERNAL",
        requestId: response.headers.get("X-Request-Id"),
      });
    }
    expect(printed).toHaveLength(REQUESTS.length);
    for (const [index, line] of printed.entries()) {
      expect(JSON.parse(line)).toMatchObject({ message: "request failed", requestId: `request-${index + 1}`, code: "INTERNAL" });
    }
    expect(printed.join()).toContain(logged);
    expect(printed.join()).not.toContain(CANARY);
  });

  it("a caller's text among drizzle's bound values neither makes it a passing failure nor reaches the log", () => {
    const error = new Error(`Failed query: update x\nparams: ${CANARY} Network connection lost`, {
      cause: new Error("D1_ERROR: no such column: x: SQLITE_ERROR"),
    });
    expect(toProblem(error, "request-1").code).toBe("INTERNAL");
    expect(printed).toEqual([
      JSON.stringify({
        message: "request failed",
        requestId: "request-1",
        code: "INTERNAL",
        cause: "D1_ERROR: no such column: x: SQLITE_ERROR",
      }),
    ]);
  });
});

it("an error in a dependency is 500 INTERNAL, and what it says is in neither the answer nor the log", async () => {
  const api = await openApi({
    newUid: () => {
      throw new TypeError(CANARY);
    },
  });
  const response = await api.send("PUT", PATH, { json: { spec: {} } });
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ status: 500, code: "INTERNAL" });
  expect(text).not.toContain(CANARY);
  expect(JSON.parse(printed[0] ?? "")).toMatchObject({
    cause: { name: "TypeError", at: [expect.stringMatching(/^at /), ...Array(4).fill(expect.any(String))] },
  });
  expect(printed.join()).not.toContain(CANARY);
});

describe("secrets", () => {
  it.each<[string, unknown]>([
    ["beside an unknown field", { ...BODY, x: 1 }],
    ["under a bad name", { spec: { env: { "1A": CANARY } } }],
    ["too long", { spec: { env: { A: CANARY.repeat(1000) } } }],
    ["with NUL", { spec: { env: { A: `${CANARY}\u0000` } } }],
    ["in place of the env", { spec: { env: CANARY } }],
    ["in a list", { spec: { env: [CANARY] } }],
    ["in an enumeration", { spec: { operatingMode: CANARY } }],
    ["in the directory", { spec: { directory: `/etc/${CANARY}` } }],
    ["in a label", { metadata: { labels: { a: `${CANARY} ` } }, spec: {} }],
    ["in an annotation of the wrong key", { metadata: { annotations: { "a b": CANARY } }, spec: {} }],
    ["in the name", { metadata: { name: CANARY }, spec: {} }],
    ["as the whole body", CANARY],
  ])("of a refused body are not in the problem: %s", async (_sentence, json) => {
    const api = await openApi();
    const response = await api.send("PUT", PATH, { json });
    const text = await response.text();
    expect(response.status).toBe(422);
    expect(text).not.toContain(CANARY);
    expect(printed).toEqual([]);
  });

  it.each([`{"spec":{"env":{"A":"${CANARY}"}}`, CANARY, `{"spec":{"env":{"A":${CANARY}}}}`])(
    "of a body that is no JSON are not in the problem: %s",
    async (body) => {
      const api = await openApi();
      const text = await (await api.send("PUT", PATH, { body })).text();
      expect(JSON.parse(text)).toMatchObject({ code: "MALFORMED_JSON" });
      expect(text).not.toContain(CANARY);
      expect(printed).toEqual([]);
    },
  );

  it("the token that was presented is in no answer and no log", async () => {
    const api = await openApi();
    for (const token of [CANARY, TOKENS.viewer, TOKENS.operator]) {
      for (const [method, path, json] of REQUESTS) {
        const response = await api.send(method, path.replace("canary-7d1f0c", "x"), {
          token,
          json: json && (method === "POST" ? {} : { spec: {} }),
        });
        expect(await response.text()).not.toContain(token);
        expect(JSON.stringify([...response.headers])).not.toContain(token);
      }
    }
    expect(printed).toEqual([]);
  });
});
