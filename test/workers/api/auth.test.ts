import { beforeEach, describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config.ts";
import { footprint, openApi, pathOf, problemOf, refusalOf, startEmpty, type TestApi, TOKENS } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
  await api.send("PUT", pathOf("team-a", "w"), { json: { spec: {} } });
  await api.send("PUT", pathOf("team-c", "w"), { json: { spec: {} } });
});

const READERS = "viewer editor operator";
const WRITERS = "editor operator";
const TEAM_READERS = `${READERS} teamEditor teamViewer teamOperator`;
const TEAM_WRITERS = `${WRITERS} teamEditor teamOperator`;
const BACKUP_ID = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
const INSTANCE = `/v1/instances/${"a".repeat(64)}`;

/** What each request comes to for those who may send it: 503 before the first sweep, 404 where there is nothing, 422 for an empty adoption. */
const REQUESTS = [
  ["GET", pathOf("team-a", "w"), 200, TEAM_READERS],
  ["GET", "/v1/namespaces/team-a/workspaces", 200, TEAM_READERS],
  ["GET", "/v1/workspaces", 200, TEAM_READERS],
  ["GET", `${pathOf("team-a", "w")}/events`, 200, TEAM_READERS],
  ["GET", `${pathOf("team-a", "w")}/backups`, 200, TEAM_READERS],
  ["GET", `${pathOf("team-a", "w")}/backups/${BACKUP_ID}`, 404, TEAM_READERS],
  ["POST", `${pathOf("team-a", "w")}/backups`, 202, TEAM_WRITERS],
  ["DELETE", `${pathOf("team-a", "w")}/backups/${BACKUP_ID}`, 404, TEAM_WRITERS],
  ["PUT", pathOf("team-a", "w"), 200, TEAM_WRITERS],
  ["POST", `${pathOf("team-a", "w")}:wake`, 202, TEAM_WRITERS],
  ["POST", `${pathOf("team-a", "w")}:reconcile`, 202, TEAM_WRITERS],
  ["DELETE", pathOf("team-a", "w"), 202, TEAM_WRITERS],
  ["GET", pathOf("team-c", "w"), 200, READERS],
  ["GET", "/v1/namespaces/team-c/workspaces", 200, READERS],
  ["GET", `${pathOf("team-c", "w")}/events`, 200, READERS],
  ["GET", `${pathOf("team-c", "w")}/backups`, 200, READERS],
  ["GET", `${pathOf("team-c", "w")}/backups/${BACKUP_ID}`, 404, READERS],
  ["POST", `${pathOf("team-c", "w")}/backups`, 202, WRITERS],
  ["DELETE", `${pathOf("team-c", "w")}/backups/${BACKUP_ID}`, 404, WRITERS],
  ["PUT", pathOf("team-c", "w"), 200, WRITERS],
  ["POST", `${pathOf("team-c", "w")}:wake`, 202, WRITERS],
  ["POST", `${pathOf("team-c", "w")}:reconcile`, 202, WRITERS],
  ["DELETE", pathOf("team-c", "w"), 202, WRITERS],
  ["GET", "/v1/events", 200, "operator teamOperator"],
  ["GET", "/v1/events?namespace=team-a", 200, "operator teamOperator"],
  ["GET", "/v1/events?namespace=team-c", 200, "operator"],
  ["GET", "/v1/drift", 503, "operator teamOperator"],
  ["GET", "/v1/drift?namespace=team-a", 503, "operator teamOperator"],
  ["GET", "/v1/drift?namespace=team-c", 503, "operator"],
  ["GET", "/v1/instances", 200, "operator"],
  ["GET", "/v1/instances?namespace=team-a", 200, "operator"],
  ["POST", `${INSTANCE}:destroy`, 404, "operator"],
  ["POST", `${INSTANCE}:protect`, 404, "operator"],
  ["POST", `${INSTANCE}:adopt`, 422, "operator"],
  ["GET", "/v1/controller", 200, "operator teamOperator"],
  ["PUT", "/v1/controller", 200, "operator"],
] as const;

function bodyOf(method: string, path: string): { json?: unknown } {
  if (path === "/v1/controller") return method === "PUT" ? { json: {} } : {};
  if (path.endsWith(":adopt")) return { json: {} };
  return method === "PUT" ? { json: { spec: { paused: true } } } : {};
}

describe("roles and namespaces", () => {
  it.each(["viewer", "editor", "operator", "teamEditor", "teamViewer", "teamOperator"] as const)("%s", async (who) => {
    for (const [method, path, status, allowed] of REQUESTS) {
      const response = await api.send(method, path, { token: TOKENS[who], ...bodyOf(method, path) });
      expect(`${method} ${path} ${response.status}`).toBe(`${method} ${path} ${allowed.split(" ").includes(who) ? status : 403}`);
      if (response.status === 403) expect(await refusalOf(response)).toEqual({ status: 403, code: "FORBIDDEN", pointers: [] });
    }
  });

  it("are checked before the body is looked at and before anything is looked up", async () => {
    const body = await api.send("PUT", pathOf("team-c", "new"), { token: TOKENS.teamEditor, body: "not JSON" });
    expect(body.status).toBe(403);
    const missing = await api.send("GET", pathOf("team-c", "missing"), { token: TOKENS.teamEditor });
    expect(missing.status).toBe(403);
  });
});

describe("a request without a known token is 401 with a challenge", () => {
  it.each<[string, string | null, string]>([
    ["no header", null, 'Bearer realm="mooring"'],
    ["an empty header", "", 'Bearer realm="mooring"'],
    ["another scheme", "Basic dXNlcjpwYXNz", 'Bearer realm="mooring"'],
    ["no token", "Bearer ", 'Bearer realm="mooring"'],
    ["two tokens", `Bearer ${TOKENS.operator} x`, 'Bearer realm="mooring"'],
    ["an unknown token", "Bearer nobody", 'Bearer realm="mooring", error="invalid_token"'],
    ["a prefix of a token", `Bearer ${TOKENS.operator.slice(0, -1)}`, 'Bearer realm="mooring", error="invalid_token"'],
    ["a token and more", `Bearer ${TOKENS.operator}0`, 'Bearer realm="mooring", error="invalid_token"'],
    ["another case of a token", `Bearer ${TOKENS.operator.toUpperCase()}`, 'Bearer realm="mooring", error="invalid_token"'],
  ])("%s", async (_sentence, authorization, challenge) => {
    const before = await footprint();
    for (const [method, path] of [...REQUESTS, ["GET", "/v1/nothing"] as const]) {
      const response = await api.send(method, path, {
        token: null,
        ...(authorization !== null && { headers: { Authorization: authorization } }),
        ...bodyOf(method, path),
      });
      expect(response.headers.get("WWW-Authenticate")).toBe(challenge);
      expect(await refusalOf(response)).toEqual({ status: 401, code: "UNAUTHENTICATED", pointers: [] });
    }
    expect(await footprint()).toEqual(before);
  });

  it("also when presented with a configured digest instead of the token", async () => {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(TOKENS.operator));
    const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    expect((await api.send("GET", "/v1/workspaces", { token: hex })).status).toBe(401);
  });

  it("also when no token is configured at all", async () => {
    const closed = await openApi({ config: parseConfig({}) });
    expect((await problemOf(await closed.send("GET", "/v1/workspaces"))).code).toBe("UNAUTHENTICATED");
  });
});

it("the scheme's name is case-insensitive", async () => {
  const response = await api.send("GET", "/v1/workspaces", { token: null, headers: { Authorization: `bEARER  ${TOKENS.viewer}` } });
  expect(response.status).toBe(200);
});
