import { beforeAll, describe, expect, it } from "vitest";
import { workspaceListSchema, type WorkspaceListBody } from "../../../src/api/schema.ts";
import { d1, openApi, problemOf, refusalOf, startEmpty, type TestApi, TOKENS } from "./support.ts";

/** 1,200 workspaces over three namespaces; every second one is of team a, every third in the web tier. */
const COUNT = 1200;
let api: TestApi;

beforeAll(async () => {
  await startEmpty();
  api = await openApi();
  const status = JSON.stringify({ observedGeneration: 0, phase: "Pending", conditions: [] });
  await d1
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${COUNT - 1})
       INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version, status, resync_phase)
       SELECT printf('%08x-0000-4000-8000-000000000000', i), 'team-' || substr('abc', 1 + i % 3, 1), printf('w-%04d', i), '{}',
         CASE WHEN i % 2 = 0 THEN CASE WHEN i % 3 = 0 THEN '{"team":"a","example.com/tier":"web"}' ELSE '{"team":"a"}' END
              ELSE CASE WHEN i % 3 = 0 THEN '{"team":"b","example.com/tier":"web"}' ELSE '{}' END END,
         '{}', 1, 1, 0, i + 1, ?, i FROM n`,
    )
    .bind(status)
    .run();
  await d1.prepare(`INSERT INTO sequence (id, value) VALUES (1, ${COUNT})`).run();
});

async function page(path: string, query: Record<string, string> = {}, token: string = TOKENS.operator): Promise<WorkspaceListBody> {
  const response = await api.send("GET", `${path}?${new URLSearchParams(query).toString()}`, { token });
  if (!response.ok) throw new Error(await response.text());
  return await response.json();
}

/** Follows nextPageToken to the end. */
async function all(path: string, query: Record<string, string> = {}, token: string = TOKENS.operator) {
  const names: string[] = [];
  const sizes: number[] = [];
  for (let pageToken: string | null = ""; pageToken !== null;) {
    const { items, nextPageToken } = await page(path, { ...query, ...(pageToken !== "" && { pageToken }) }, token);
    names.push(...items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
    sizes.push(items.length);
    pageToken = nextPageToken;
  }
  return { names, sizes };
}

function expected(matches: (index: number) => boolean): readonly string[] {
  return Array.from({ length: COUNT }, (_, index) => index)
    .filter(matches)
    .map((index) => `team-${"abc"[index % 3]}/w-${String(index).padStart(4, "0")}`)
    .toSorted();
}

describe("pages", () => {
  it("have 100 items by default, in the order of namespace and name, and the newest resource version", async () => {
    const first = await page("/v1/workspaces");
    expect(workspaceListSchema.parse(first)).toEqual(first);
    expect(first.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual(expected(() => true).slice(0, 100));
    expect(first.resourceVersion).toBe(String(COUNT));
  });

  it("together hold every workspace once", async () => {
    expect((await all("/v1/workspaces")).names).toEqual(expected(() => true));
  });

  it.each([
    ["more than 500 is taken as 500", "100000", [500, 500, 200]],
    ["a limit that divides the number leaves no empty page", "400", [400, 400, 400]],
    ["leading zeros do not matter", "0500", [500, 500, 200]],
  ])("%s", async (_sentence, limit, sizes) => {
    expect((await all("/v1/workspaces", { limit })).sizes).toEqual(sizes);
  });

  it("of one namespace hold that namespace only", async () => {
    expect((await all("/v1/namespaces/team-b/workspaces", { limit: "150" })).names).toEqual(expected((index) => index % 3 === 1));
  });

  it("of an unknown namespace are empty", async () => {
    expect(await page("/v1/namespaces/nobody/workspaces")).toEqual({ items: [], nextPageToken: null, resourceVersion: String(COUNT) });
  });

  it("may change their limit on the way", async () => {
    const first = await page("/v1/workspaces", { limit: "1" });
    const second = await page("/v1/workspaces", { limit: "2", pageToken: first.nextPageToken ?? "" });
    expect(second.items.map(({ metadata }) => metadata.name)).toEqual(["w-0003", "w-0006"]);
  });

  it("neither skip nor repeat when an item before the position goes away", async () => {
    const first = await page("/v1/namespaces/team-c/workspaces", { limit: "2" });
    await d1.prepare("DELETE FROM workspaces WHERE name = 'w-0002'").run();
    const second = await page("/v1/namespaces/team-c/workspaces", { limit: "1", pageToken: first.nextPageToken ?? "" });
    expect(second.items.map(({ metadata }) => metadata.name)).toEqual(["w-0008"]);
    await d1
      .prepare(
        `INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version, status, resync_phase)
         SELECT '00000002-0000-4000-8000-000000000000', namespace, 'w-0002', spec, '{"team":"a"}', annotations, 1, 1, 0, 3, status, 2
         FROM workspaces WHERE name = 'w-0005'`,
      )
      .run();
  });
});

const isTeamA = (index: number) => index % 2 === 0;
const isWeb = (index: number) => index % 3 === 0;

describe("label selectors", () => {
  it.each<[string, (index: number) => boolean]>([
    ["team=a", isTeamA],
    ["team==a", isTeamA],
    ["team!=a", (index) => !isTeamA(index)],
    ["team", (index) => isTeamA(index) || isWeb(index)],
    ["!team", (index) => !isTeamA(index) && !isWeb(index)],
    ["team in (a, b)", (index) => isTeamA(index) || isWeb(index)],
    ["team notin (b)", (index) => isTeamA(index) || !isWeb(index)],
    ["example.com/tier=web,team=b", (index) => isWeb(index) && !isTeamA(index)],
    ["team=a,team=b", () => false],
    ["team=", () => false],
    ["", () => true],
  ])("%s selects as in Kubernetes, over all pages", async (labelSelector, matches) => {
    expect((await all("/v1/workspaces", { labelSelector, limit: "500" })).names).toEqual(expected(matches));
  });
});

describe("what a token may list", () => {
  it("is only its namespaces, over all", async () => {
    const { names } = await all("/v1/workspaces", { limit: "500" }, TOKENS.teamEditor);
    expect(names).toEqual(expected((index) => index % 3 !== 2));
  });

  it("is 403 in another namespace", async () => {
    const response = await api.send("GET", "/v1/namespaces/team-c/workspaces", { token: TOKENS.teamEditor });
    expect((await problemOf(response)).code).toBe("FORBIDDEN");
  });

  it("does not grow by another token's page token", async () => {
    const { nextPageToken } = await page("/v1/workspaces", { limit: "399" });
    const { items } = await page("/v1/workspaces", { limit: "500", pageToken: nextPageToken ?? "" }, TOKENS.teamViewer);
    expect(items.map(({ metadata }) => metadata.namespace)).toEqual(["team-a"]);
  });
});

const encode = (content: unknown) => btoa(JSON.stringify(content)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

describe("a page token that does not belong to the query is 400 INVALID_PAGE_TOKEN", () => {
  it.each([
    ["of another selector", "/v1/workspaces?labelSelector=team"],
    ["of the same selector in another namespace", "/v1/namespaces/team-a/workspaces?labelSelector=team%3Da"],
    ["without the selector", "/v1/workspaces?"],
  ])("%s", async (_sentence, path) => {
    const { nextPageToken } = await page("/v1/workspaces", { labelSelector: "team=a" });
    const response = await api.send("GET", `${path}&pageToken=${nextPageToken}`);
    expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
  });

  it("but another spelling of the same selector is the same query", async () => {
    const { nextPageToken } = await page("/v1/workspaces", { labelSelector: "team in (b,a),example.com/tier", limit: "1" });
    const next = await page("/v1/workspaces", { labelSelector: "example.com/tier, team in (a, b)", pageToken: nextPageToken ?? "" });
    expect(next.items[0]?.metadata.name).toBe("w-0003");
  });

  it.each([
    ["empty", ""],
    ["not base64url", "a+b/"],
    ["not JSON", btoa("nonsense").replaceAll("=", "")],
    ["of another shape", encode({ after: 1 })],
    ["with names that are none", encode(["x", "Team A", "w"])],
    ["with a filter of its own", encode(["AAAA", "team-a", "w-0000"])],
    ["very long", "A".repeat(10_000)],
    ["nested deeply", btoa("[".repeat(300)).replaceAll("=", "")],
  ])("%s", async (_sentence, pageToken) => {
    const response = await api.send("GET", `/v1/workspaces?pageToken=${encodeURIComponent(pageToken)}`);
    expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
  });
});

describe("a list query that is not valid is 400 INVALID_QUERY", () => {
  it.each([
    ["limit=0", "query/limit"],
    ["limit=-1", "query/limit"],
    ["limit=ten", "query/limit"],
    ["limit=1e2", "query/limit"],
    ["limit=", "query/limit"],
    ["limit=1&limit=2", "query/limit"],
    ["labelSelector=a%3E1", "query/labelSelector"],
    ["labelSelector=a%2C", "query/labelSelector"],
    ["watch=true", "query/watch"],
    ["fieldSelector=x", "query/fieldSelector"],
  ])("?%s", async (query, pointer) => {
    for (const path of ["/v1/workspaces", "/v1/namespaces/team-a/workspaces"]) {
      expect(await refusalOf(await api.send("GET", `${path}?${query}`))).toEqual({
        status: 400,
        code: "INVALID_QUERY",
        pointers: [pointer],
      });
    }
  });
});
