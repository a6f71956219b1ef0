import { exports } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { problemSchema } from "../../../src/api/problem.ts";
import { openApi, PATH, refusalOf, startEmpty, type TestApi } from "./support.ts";

const BACKUP_ID = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
let api: TestApi;

beforeAll(async () => {
  await startEmpty();
  api = await openApi();
});

describe("every answer", () => {
  it.each([
    ["GET", "/healthz"],
    ["GET", "/readyz"],
    ["GET", "/openapi.json"],
    ["GET", "/nothing"],
    ["POST", "/healthz"],
    ["GET", "/v1/workspaces"],
    ["GET", "/v1/workspaces?limit=x"],
    ["GET", PATH],
    ["PATCH", PATH],
  ])("to %s %s has a request id of ours, is not to be stored, and a problem names the same id", async (method, path) => {
    const response = await api.send(method, path, { headers: { "X-Request-Id": "theirs" } });
    const id = response.headers.get("X-Request-Id");
    expect(id).toMatch(/^request-\d+$/);
    expect(response.headers.get("Cache-Control")).toBe("no-store");
    expect(response.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(response.headers.get("Access-Control-Allow-Origin")).toBeNull();
    if (response.ok) return;
    expect(response.headers.get("Content-Type")).toBe("application/problem+json");
    const problem = problemSchema.strict().parse(await response.json());
    expect(problem).toMatchObject({ requestId: id, status: response.status });
  });

  it("has another id", async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => (await api.send("GET", "/healthz")).headers.get("X-Request-Id")));
    expect(new Set(ids).size).toBe(3);
  });
});

describe("an unknown path is 404 ROUTE_NOT_FOUND", () => {
  it.each([
    "/",
    "/v1",
    "/v1/",
    "/v2/workspaces",
    "/v1/namespaces",
    "/v1/namespaces/a",
    "/v1/workspaces/",
    `${PATH}/`,
    `${PATH}/backups/`,
    `${PATH}/backups/a:restore`,
    `${PATH}:wake/backups`,
    `${PATH}/events/`,
    `${PATH}:`,
    `${PATH}:sleep`,
    `${PATH}:wake:wake`,
    `${PATH}:wake/events`,
    "/v1/namespaces/default/workspaces/:wake",
    `/v1/instances/${"a".repeat(64)}`,
    `/v1/instances/${"a".repeat(64)}:backup`,
    "/v1/instances/:destroy",
    "/v1/controllers",
    "/v1//workspaces",
  ])("%s", async (path) => {
    expect(await refusalOf(await api.send("GET", path))).toEqual({ status: 404, code: "ROUTE_NOT_FOUND", pointers: [] });
  });
});

describe("a method that a path does not have is 405 with Allow", () => {
  it.each([
    ["POST", PATH, "PUT, GET, HEAD, DELETE"],
    ["PATCH", PATH, "PUT, GET, HEAD, DELETE"],
    ["OPTIONS", PATH, "PUT, GET, HEAD, DELETE"],
    ["POST", "/v1/namespaces/a/workspaces", "GET, HEAD"],
    ["DELETE", "/v1/workspaces", "GET, HEAD"],
    ["PUT", "/healthz", "GET, HEAD"],
    ["GET", `${PATH}:wake`, "POST"],
    ["PUT", `${PATH}:wake`, "POST"],
    ["DELETE", `${PATH}:reconcile`, "POST"],
    ["POST", `${PATH}/events`, "GET, HEAD"],
    ["PUT", `${PATH}/backups`, "GET, HEAD, POST"],
    ["DELETE", `${PATH}/backups`, "GET, HEAD, POST"],
    ["POST", `${PATH}/backups/${BACKUP_ID}`, "GET, HEAD, DELETE"],
    ["GET", `/v1/instances/${"a".repeat(64)}:destroy`, "POST"],
    ["PUT", `/v1/instances/${"a".repeat(64)}:protect`, "POST"],
    ["DELETE", `/v1/instances/${"a".repeat(64)}:adopt`, "POST"],
    ["POST", "/v1/instances", "GET, HEAD"],
    ["POST", "/v1/drift", "GET, HEAD"],
    ["DELETE", "/v1/events", "GET, HEAD"],
    ["DELETE", "/v1/controller", "GET, HEAD, PUT"],
    ["DELETE", "/openapi.json", "GET, HEAD"],
  ])("%s %s", async (method, path, allow) => {
    const response = await api.send(method, path);
    expect(response.headers.get("Allow")).toBe(allow);
    expect(await refusalOf(response)).toEqual({ status: 405, code: "METHOD_NOT_ALLOWED", pointers: [] });
  });
});

describe("cloudflare/sandbox-sdk#213: a name that is none is 400 INVALID_NAME", () => {
  it.each(["A", "a_b", "-a", "a-", "a.b", "%20", "a%2Fb", "%E0%A4%A", "a%00", "é", "a".repeat(64), "a%3Awake", "%0a"])(
    "%s",
    async (name) => {
      for (const [method, suffix] of [
        ["PUT", ""],
        ["GET", ""],
        ["DELETE", ""],
        ["GET", "/events"],
        ["GET", "/backups"],
        ["POST", "/backups"],
        ["GET", `/backups/${BACKUP_ID}`],
        ["DELETE", `/backups/${BACKUP_ID}`],
        ["POST", ":wake"],
        ["POST", ":reconcile"],
      ] as const) {
        const asName = await api.send(method, `/v1/namespaces/default/workspaces/${name}${suffix}`);
        expect(await refusalOf(asName)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/name"] });
        const asNamespace = await api.send(method, `/v1/namespaces/${name}/workspaces/a${suffix}`);
        expect(await refusalOf(asNamespace)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/namespace"] });
      }
    },
  );

  it("names both where both are wrong", async () => {
    const { pointers } = await refusalOf(await api.send("GET", "/v1/namespaces/A/workspaces/B"));
    expect(pointers).toEqual(["path/namespace", "path/name"]);
  });

  it("and 63 characters, one character, digits and inner dashes are a name", async () => {
    for (const name of ["a".repeat(63), "a", "0", "a--b", "1-2"]) {
      expect((await api.send("PUT", `/v1/namespaces/${name}/workspaces/${name}`, { json: { spec: {} } })).status).toBe(201);
    }
  });
});

it.each(["a".repeat(63), "a".repeat(65), "A".repeat(64), "g".repeat(64), "x"])(
  "a DO id that is none is 400 INVALID_NAME: %s",
  async (doId) => {
    for (const verb of ["destroy", "protect", "adopt"]) {
      const response = await api.send("POST", `/v1/instances/${doId}:${verb}`);
      expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/doId"] });
    }
  },
);

it.each(["a", "newest", BACKUP_ID.slice(1), `${BACKUP_ID}0`, BACKUP_ID.replaceAll("-", ""), "a%2Fb"])(
  "a backup's id that is none is 400 INVALID_NAME: %s",
  async (id) => {
    for (const method of ["GET", "DELETE"]) {
      const response = await api.send(method, `${PATH}/backups/${id}`);
      expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/id"] });
    }
  },
);

it.each([
  ["POST", `${PATH}:wake`],
  ["POST", `${PATH}:reconcile`],
  ["GET", `${PATH}/events`],
  ["GET", `${PATH}/backups`],
  ["POST", `${PATH}/backups`],
  ["GET", `${PATH}/backups/${BACKUP_ID}`],
  ["DELETE", `${PATH}/backups/${BACKUP_ID}`],
  ["GET", "/v1/events"],
  ["GET", "/v1/drift"],
  ["GET", "/v1/instances"],
  ["POST", `/v1/instances/${"a".repeat(64)}:destroy`],
  ["POST", `/v1/instances/${"a".repeat(64)}:protect`],
  ["POST", `/v1/instances/${"a".repeat(64)}:adopt`],
  ["GET", "/v1/controller"],
  ["PUT", "/v1/controller"],
])("%s %s refuses query parameters that it does not know", async (method, path) => {
  const response = await api.send(method, `${path}?watch=true`);
  expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_QUERY", pointers: ["query/watch"] });
});

it("an unknown query parameter is 400 for a PUT too, so that a dry run of a later version is never a write", async () => {
  const response = await api.send("PUT", `${PATH}?dryRun=true`, { json: { spec: {} } });
  expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_QUERY", pointers: ["query/dryRun"] });
  expect((await api.send("GET", PATH)).status).toBe(404);
});

it("the Worker's entry serves the same API with the real clock", async () => {
  const worker = (exports as unknown as { default: Fetcher }).default;
  const response = await worker.fetch("https://mooring.test/healthz");
  expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
  expect(response.headers.get("X-Request-Id")).toMatch(/^[0-9a-f-]{36}$/);
  expect((await worker.fetch("https://mooring.test/v1/workspaces")).status).toBe(401);
});
