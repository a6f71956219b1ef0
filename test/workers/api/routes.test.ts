import { exports } from "cloudflare:workers";
import { beforeAll, describe, expect, it } from "vitest";
import { problemSchema } from "../../../src/api/problem.ts";
import { openApi, PATH, refusalOf, startEmpty, type TestApi } from "./support.ts";

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
    `${PATH}/events`,
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
    ["DELETE", "/openapi.json", "GET, HEAD"],
  ])("%s %s", async (method, path, allow) => {
    const response = await api.send(method, path);
    expect(response.headers.get("Allow")).toBe(allow);
    expect(await refusalOf(response)).toEqual({ status: 405, code: "METHOD_NOT_ALLOWED", pointers: [] });
  });
});

describe("a name that is none is 400 INVALID_NAME", () => {
  it.each(["A", "a_b", "-a", "a-", "a.b", "%20", "a%2Fb", "%E0%A4%A", "a%00", "é", "a".repeat(64), "a:wake", "%0a"])("%s", async (name) => {
    for (const method of ["PUT", "GET", "DELETE"]) {
      const asName = await api.send(method, `/v1/namespaces/default/workspaces/${name}`);
      expect(await refusalOf(asName)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/name"] });
      const asNamespace = await api.send(method, `/v1/namespaces/${name}/workspaces/a`);
      expect(await refusalOf(asNamespace)).toEqual({ status: 400, code: "INVALID_NAME", pointers: ["path/namespace"] });
    }
  });

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
