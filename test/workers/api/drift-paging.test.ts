import { beforeEach, describe, expect, it } from "vitest";
import { type DriftBody, type DriftItemBody, driftSchema } from "../../../src/api/drift-schema.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { writeController, writeUnclaimed } from "./rows.ts";
import { d1, NOW, openApi, pathOf, problemOf, refusalOf, startEmpty, type TestApi, TOKENS, writeStatus } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const put = (namespace: string, name: string, spec: unknown = {}) => api.send("PUT", pathOf(namespace, name), { json: { spec } });

async function drift(query = "", token: string = TOKENS.operator): Promise<DriftBody> {
  const response = await api.send("GET", `/v1/drift${query}`, { token });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return driftSchema.parse(await response.json());
}

const shortly = ({ type, workspace, instance }: DriftItemBody) =>
  `${type} ${workspace === undefined ? "-" : `${workspace.namespace}/${workspace.name}`} ${instance?.sandboxId ?? "-"}`;

describe("filters and pages", () => {
  beforeEach(async () => {
    await writeController();
    for (const [namespace, name] of [
      ["team-c", "w"],
      ["team-a", "y"],
      ["team-a", "x"],
      ["team-b", "w"],
    ] as const)
      await put(namespace, name);
    await writeStatus("x", 1, [{ type: "Stalled", reason: "Misconfigured" }], "Stalled");
    await writeUnclaimed("younger", { firstSeenTime: NOW - 300_000 });
    await writeUnclaimed("older");
    await writeUnclaimed("of-team-a", {
      owner: { uid: "gone", namespace: "team-a", name: "gone", incarnation: 1 },
      firstSeenTime: NOW - 400_000,
    });
    await d1.prepare("UPDATE workspaces SET unreachable_time = ? WHERE name = 'w'").bind(NOW).run();
  });

  const ALL = [
    "Orphaned - older",
    "Orphaned team-a/gone of-team-a",
    "Orphaned - younger",
    "Missing team-a/x -",
    "Stalled team-a/x -",
    "Missing team-a/y -",
    "Missing team-b/w -",
    "Unreachable team-b/w -",
    "Missing team-c/w -",
    "Unreachable team-c/w -",
  ];

  it("orders unclaimed instances by age, then workspaces by namespace, name and type", async () => {
    const { items, summary } = await drift();
    expect(items.map(shortly)).toEqual(ALL);
    expect(summary).toEqual({ Orphaned: 3, Missing: 4, Stalled: 1, Unreachable: 2 });
  });

  it.each([1, 2, 3, 4, 10])("pages of %i hold each item once, and each has the whole summary", async (limit) => {
    const shown: string[] = [];
    for (let token: string | null = ""; token !== null;) {
      const page: DriftBody = await drift(`?limit=${limit}${token === "" ? "" : `&pageToken=${token}`}`);
      expect(page.items.length).toBeLessThanOrEqual(limit);
      expect(page.summary).toEqual({ Orphaned: 3, Missing: 4, Stalled: 1, Unreachable: 2 });
      shown.push(...page.items.map(shortly));
      token = page.nextPageToken;
    }
    expect(shown).toEqual(ALL);
  });

  it.each([
    ["?type=Missing", ALL.filter((text) => text.startsWith("Missing")), { Missing: 4 }],
    ["?namespace=team-a", ALL.filter((text) => text.includes("team-a")), { Orphaned: 1, Missing: 2, Stalled: 1 }],
    ["?namespace=team-a&type=Orphaned", ["Orphaned team-a/gone of-team-a"], { Orphaned: 1 }],
    ["?namespace=nobody", [], {}],
  ])("%s shows and counts those alone", async (query, expected, counts) => {
    const { items, summary } = await drift(query);
    expect(items.map(shortly)).toEqual(expected);
    expect(summary).toEqual(counts);
  });

  it("shows an operator of some namespaces those alone, and no instance of nobody", async () => {
    const report = await drift("", TOKENS.teamOperator);
    expect(report.items.map(shortly)).toEqual(ALL.filter((text) => /team-[ab]/.test(text)));
    expect(report.unreachable).toEqual([{ namespace: "team-b", name: "w" }]);
    expect(await problemOf(await api.send("GET", "/v1/drift?namespace=team-c", { token: TOKENS.teamOperator }))).toMatchObject({
      status: 403,
    });
  });

  it("refuses a page token of another filter", async () => {
    const { nextPageToken } = await drift("?limit=1");
    const response = await api.send("GET", `/v1/drift?type=Missing&pageToken=${nextPageToken}`);
    expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
  });

  it.each([
    ["type=BackupMissing", "query/type"],
    ["type=missing", "query/type"],
    ["namespace=A", "query/namespace"],
    ["limit=0", "query/limit"],
  ])("?%s is 400", async (query, pointer) => {
    expect(await refusalOf(await api.send("GET", `/v1/drift?${query}`))).toEqual({
      status: 400,
      code: "INVALID_QUERY",
      pointers: [pointer],
    });
  });
});

it("of thousands of rows is read in a few statements", async () => {
  await writeController();
  await d1
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2499)
       INSERT INTO workspaces (uid, namespace, name, spec, labels, annotations, generation, revision, creation_time, resource_version, status, resync_phase)
       SELECT printf('%08x-0000-4000-8000-000000000000', i), 'default', printf('w-%04d', i), '{}', '{}', '{}', 1, 1, 0, i + 1, '{}', i FROM n`,
    )
    .run();
  await d1
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)
       INSERT INTO unclaimed (do_id, state, first_seen_time, last_seen_time, times_seen) SELECT printf('%064x', i), 'Running', ${NOW - 600_000}, ${NOW}, 9 FROM n`,
    )
    .run();
  let statements = 0;
  const counted = {
    prepare: (query: string) => {
      statements += 1;
      return d1.prepare(query);
    },
    batch: (batch: D1PreparedStatement[]) => d1.batch(batch),
  } as unknown as D1Database;
  api = await openApi({ db: openDatabase(counted) });
  expect((await drift("?limit=1")).summary).toEqual({ Missing: 2500, Orphaned: 2000 });
  expect(statements).toBeLessThanOrEqual(14);
});
