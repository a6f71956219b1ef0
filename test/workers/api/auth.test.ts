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

const REQUESTS = [
  ["GET", pathOf("team-a", "w")],
  ["GET", "/v1/namespaces/team-a/workspaces"],
  ["GET", "/v1/workspaces"],
  ["PUT", pathOf("team-a", "w")],
  ["DELETE", pathOf("team-a", "w")],
  ["GET", pathOf("team-c", "w")],
  ["GET", "/v1/namespaces/team-c/workspaces"],
  ["PUT", pathOf("team-c", "w")],
  ["DELETE", pathOf("team-c", "w")],
] as const;

describe("roles and namespaces", () => {
  it.each([
    ["viewer", [200, 200, 200, 403, 403, 200, 200, 403, 403]],
    ["editor", [200, 200, 200, 200, 202, 200, 200, 200, 202]],
    ["operator", [200, 200, 200, 200, 202, 200, 200, 200, 202]],
    ["teamEditor", [200, 200, 200, 200, 202, 403, 403, 403, 403]],
    ["teamViewer", [200, 200, 200, 403, 403, 403, 403, 403, 403]],
  ] as const)("%s", async (who, statuses) => {
    const answers: number[] = [];
    for (const [method, path] of REQUESTS) {
      const response = await api.send(method, path, { token: TOKENS[who], ...(method === "PUT" && { json: { spec: {} } }) });
      answers.push(response.status);
      if (response.status === 403) expect(await refusalOf(response)).toEqual({ status: 403, code: "FORBIDDEN", pointers: [] });
    }
    expect(answers).toEqual(statuses);
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
        ...(method === "PUT" && { json: { spec: { paused: true } } }),
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
