import { beforeEach, describe, expect, it } from "vitest";
import type { StoredEvent } from "../../../src/store/event-reading.ts";
import { events, reasons } from "./rows.ts";
import { d1, NOW, openApi, PATH, pathOf, problemOf, refusalOf, startEmpty, type TestApi, TOKENS, workspaceOf } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

interface EventList {
  readonly items: readonly (Omit<StoredEvent, "time"> & { readonly time: string })[];
  readonly nextPageToken: string | null;
}

async function list(path: string, token: string = TOKENS.operator): Promise<EventList> {
  const response = await api.send("GET", path, { token });
  if (!response.ok) throw new Error(await response.text());
  return await response.json();
}

async function write(namespace: string | null, name: string | null, reason: string, doId: string | null = null): Promise<void> {
  await d1
    .prepare(
      "INSERT INTO events (workspace_uid, namespace, name, do_id, time, type, reason, message) VALUES (?, ?, ?, ?, ?, 'Normal', ?, '')",
    )
    .bind(name === null ? null : `uid-of-${name}`, namespace, name, doId, NOW, reason)
    .run();
}

const put = (spec: unknown, metadata?: unknown) => api.send("PUT", PATH, { json: { spec, metadata }, token: TOKENS.editor });

describe("what the API writes of a workspace", () => {
  it("is its creation, each change of its spec by the fields' names, and the first request to delete it", async () => {
    const { metadata } = await workspaceOf(await put({}));
    await put({ env: { SECRET: "canary" }, directory: "/app" });
    await put({ env: { SECRET: "canary" }, directory: "/app" }, { labels: { team: "a" } });
    await put({ env: { SECRET: "canary" }, directory: "/app" }, { labels: { team: "a" } });
    await api.send("DELETE", PATH);
    await api.send("DELETE", PATH);
    const common = { type: "Normal", namespace: "default", name: "alice-1", workspace_uid: metadata.uid, do_id: null, time: NOW };
    expect(await events()).toEqual([
      { id: 1, ...common, reason: "Created", message: "", actor: "editor" },
      { id: 2, ...common, reason: "SpecChanged", message: "Changed: directory, env.", actor: "editor" },
      { id: 3, ...common, reason: "DeletionRequested", message: "", actor: "operator" },
    ]);
  });

  it("is nothing where a request is refused or came too late", async () => {
    await put({});
    await put({ no: 1 });
    await api.send("PUT", PATH, { json: { spec: { paused: true } }, headers: { "If-Match": '"x-r1"' } });
    await Promise.all(["/app", "/tmp"].map((directory) => put({ directory })));
    await Promise.all([1, 2, 3].map(() => api.send("DELETE", PATH)));
    await put({ paused: true });
    expect(await reasons()).toEqual([
      "Created by editor",
      "SpecChanged by editor",
      "SpecChanged by editor",
      "DeletionRequested by operator",
    ]);
  });

  it("is one creation where several create at once", async () => {
    await Promise.all([1, 2, 3].map(() => put({})));
    expect(await reasons()).toEqual(["Created by editor"]);
  });

  it("is kept to the newest hundred of one workspace", async () => {
    const { metadata } = await workspaceOf(await put({}));
    await d1
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
         INSERT INTO events (workspace_uid, namespace, name, time, type, reason, message) SELECT ?, 'default', 'alice-1', 0, 'Normal', 'Old', '' FROM n`,
      )
      .bind(metadata.uid)
      .run();
    await put({ directory: "/app" });
    const kept = await events();
    expect([kept.length, kept.at(-1)?.reason, kept[0]?.reason]).toEqual([100, "SpecChanged", "Old"]);
  });
});

describe("GET …/events", () => {
  it("shows the newest first, with every field", async () => {
    const { metadata } = await workspaceOf(await put({}));
    api.time = NOW + 1000;
    await put({ directory: "/app" });
    const { items, nextPageToken } = await list(`${PATH}/events`, TOKENS.viewer);
    expect(nextPageToken).toBeNull();
    const common = { type: "Normal", namespace: "default", name: "alice-1", uid: metadata.uid, doId: null, actor: "editor" };
    expect(items).toEqual([
      { id: 2, time: "2026-11-30T12:00:01.000Z", ...common, reason: "SpecChanged", message: "Changed: directory." },
      { id: 1, time: "2026-11-30T12:00:00.000Z", ...common, reason: "Created", message: "" },
    ]);
  });

  it("works after the workspace is gone, and tells its lives apart", async () => {
    const first = await workspaceOf(await put({}));
    await d1.prepare("DELETE FROM workspaces").run();
    expect((await list(`${PATH}/events`)).items.map(({ uid }) => uid)).toEqual([first.metadata.uid]);
    const second = await workspaceOf(await put({}));
    expect((await list(`${PATH}/events`)).items.map(({ uid }) => uid)).toEqual([second.metadata.uid, first.metadata.uid]);
  });

  it("shows nothing of another name or namespace", async () => {
    await put({});
    await write("default", "alice-2", "Other");
    await write("team-a", "alice-1", "Other");
    expect((await list(`${PATH}/events`)).items.map(({ reason }) => reason)).toEqual(["Created"]);
  });

  it("is empty for a workspace whose history is too old, and 404 where there is neither", async () => {
    await put({});
    await d1.prepare("DELETE FROM events").run();
    expect(await list(`${PATH}/events`)).toEqual({ items: [], nextPageToken: null });
    expect(await refusalOf(await api.send("GET", `${pathOf("default", "nobody")}/events`))).toEqual({
      status: 404,
      code: "NOT_FOUND",
      pointers: [],
    });
  });

  it("comes in pages that neither skip nor repeat, also when events are written on the way", async () => {
    for (let n = 1; n <= 5; n += 1) await write("default", "alice-1", `E${n}`);
    const first = await list(`${PATH}/events?limit=2`);
    await write("default", "alice-1", "E6");
    const second = await list(`${PATH}/events?limit=2&pageToken=${first.nextPageToken}`);
    const third = await list(`${PATH}/events?limit=2&pageToken=${second.nextPageToken}`);
    expect([first, second, third].map(({ items }) => items.map(({ reason }) => reason))).toEqual([["E5", "E4"], ["E3", "E2"], ["E1"]]);
    expect(third.nextPageToken).toBeNull();
  });

  it.each([
    ["of another workspace", `${pathOf("default", "alice-2")}/events?`],
    ["of everything", "/v1/events?"],
    ["of another list", "/v1/workspaces?"],
  ])("refuses the page token %s", async (_sentence, path) => {
    for (const name of ["alice-1", "alice-1", "alice-2"]) await write("default", name, "E");
    const { nextPageToken } = await list(`${PATH}/events?limit=1`);
    const response = await api.send("GET", `${path}pageToken=${nextPageToken}`);
    expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
  });
});

describe("GET /v1/events", () => {
  beforeEach(async () => {
    await write("team-a", "w", "OfTeamA");
    await write("team-c", "w", "OfTeamC");
    await write(null, null, "OfNobody", "d".repeat(64));
    await write("team-b", "w", "OfTeamB");
  });

  it.each([
    ["everything to an operator of every namespace", "operator", "", ["OfTeamB", "OfNobody", "OfTeamC", "OfTeamA"]],
    ["one namespace", "operator", "?namespace=team-c", ["OfTeamC"]],
    ["only their own to an operator of some namespaces", "teamOperator", "", ["OfTeamB", "OfTeamA"]],
    ["one of their own", "teamOperator", "?namespace=team-b", ["OfTeamB"]],
    ["nothing of a namespace without events", "operator", "?namespace=nobody", []],
  ] as const)("shows %s", async (_sentence, who, query, expected) => {
    expect((await list(`/v1/events${query}`, TOKENS[who])).items.map(({ reason }) => reason)).toEqual(expected);
  });

  it("says which instance an event is about", async () => {
    const { items } = await list("/v1/events");
    expect(items[1]).toMatchObject({ doId: "d".repeat(64), uid: null, namespace: null, name: null, actor: null });
  });

  it("does not show more to a token that continues with another's page token", async () => {
    const { nextPageToken } = await list("/v1/events?limit=1");
    const { items } = await list(`/v1/events?pageToken=${nextPageToken}`, TOKENS.teamOperator);
    expect(items.map(({ reason }) => reason)).toEqual(["OfTeamA"]);
  });

  it("is 403 in a namespace that is not the token's", async () => {
    const response = await api.send("GET", "/v1/events?namespace=team-c", { token: TOKENS.teamOperator });
    expect((await problemOf(response)).code).toBe("FORBIDDEN");
  });

  it.each([
    ["namespace=A", "query/namespace"],
    ["limit=0", "query/limit"],
    ["reason=x", "query/reason"],
  ])("?%s is 400", async (query, pointer) => {
    expect(await refusalOf(await api.send("GET", `/v1/events?${query}`))).toEqual({
      status: 400,
      code: "INVALID_QUERY",
      pointers: [pointer],
    });
  });
});
