import { beforeEach, describe, expect, it } from "vitest";
import type { InstanceBody } from "../../../src/api/instance-schema.ts";
import { writeInstance, writeUnclaimed } from "./rows.ts";
import { d1, NOW, openApi, pathOf, refusalOf, startEmpty, type TestApi } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const put = (namespace: string, name: string) => api.send("PUT", pathOf(namespace, name), { json: { spec: {} } });
const idOf = (digit: string) => digit.repeat(64);
const OWNER = { uid: "gone-1", namespace: "team-a", name: "gone", incarnation: 2 };

async function list(query = ""): Promise<{ items: InstanceBody[]; nextPageToken: string | null }> {
  const response = await api.send("GET", `/v1/instances${query}`);
  if (!response.ok) throw new Error(await response.text());
  return await response.json();
}

describe("GET /v1/instances", () => {
  it("shows a workspace's instance with what its last pass saw", async () => {
    const { metadata } = await (await put("default", "a")).json<{ metadata: { uid: string } }>();
    const doId = await writeInstance("default", "a", { observed: { kind: "Running", startedTime: NOW - 60_000 } });
    expect((await list()).items).toEqual([
      {
        doId,
        sandboxId: `${metadata.uid}-1`,
        claimed: true,
        state: "Running",
        workspace: { namespace: "default", name: "a", uid: metadata.uid },
        incarnation: 1,
        firstSeenTime: null,
        lastSeenTime: null,
        timesSeen: 0,
        startedTime: "2026-11-30T11:59:00.000Z",
        protected: false,
        destroyRequested: false,
        destroyAttempts: 0,
        lastDestroyTime: null,
        adopted: false,
      },
    ]);
  });

  it("shows one that no record claims with what the sweeps saw", async () => {
    const doId = await writeUnclaimed("orphan", {
      owner: OWNER,
      startedTime: NOW - 700_000,
      destroyAttempts: 2,
      lastDestroyTime: NOW - 5000,
      protected: true,
    });
    expect((await list()).items).toEqual([
      {
        doId,
        sandboxId: "orphan",
        claimed: false,
        state: "Running",
        workspace: { namespace: "team-a", name: "gone", uid: "gone-1" },
        incarnation: 2,
        firstSeenTime: "2026-11-30T11:50:00.000Z",
        lastSeenTime: "2026-11-30T11:59:50.000Z",
        timesSeen: 20,
        startedTime: "2026-11-30T11:48:20.000Z",
        protected: true,
        destroyRequested: false,
        destroyAttempts: 2,
        lastDestroyTime: "2026-11-30T11:59:55.000Z",
        adopted: false,
      },
    ]);
  });

  it("shows one whose workspace no pass has looked at, or whose record is gone, as Unknown", async () => {
    await put("default", "a");
    await writeInstance("default", "a");
    expect((await list()).items.map(({ state }) => state)).toEqual(["Unknown"]);
    await d1.prepare("DELETE FROM workspaces").run();
    expect((await list()).items).toMatchObject([{ claimed: true, state: "Unknown", workspace: { name: "a" } }]);
  });

  describe("of both kinds", () => {
    beforeEach(async () => {
      for (const [namespace, name, digit] of [
        ["team-a", "x", "2"],
        ["team-b", "y", "4"],
      ] as const) {
        await put(namespace, name);
        await writeInstance(namespace, name, { doId: idOf(digit) });
      }
      await writeUnclaimed("", { doId: idOf("1"), sandboxId: null });
      await writeUnclaimed("", { doId: idOf("3"), owner: OWNER });
      await writeUnclaimed("", { doId: idOf("5") });
      // Remembered by a sweep before a record claimed it.
      await writeUnclaimed("", { doId: idOf("4") });
    });

    it.each([
      ["", "1 2c 3 4c 5"],
      ["?claimed=true", "2c 4c"],
      ["?claimed=false", "1 3 5"],
      ["?namespace=team-a", "2c 3"],
      ["?namespace=team-a&claimed=false", "3"],
      ["?namespace=nobody", ""],
    ])("%s lists in the order of DO ids, each once", async (query, expected) => {
      const { items, nextPageToken } = await list(query);
      expect(items.map(({ doId, claimed }) => `${doId[0]}${claimed ? "c" : ""}`).join(" ")).toBe(expected);
      expect(nextPageToken).toBeNull();
    });

    it.each([1, 2, 3, 4])("comes in pages of %i", async (limit) => {
      const shown: string[] = [];
      for (let token: string | null = ""; token !== null;) {
        const page: Awaited<ReturnType<typeof list>> = await list(`?limit=${limit}${token === "" ? "" : `&pageToken=${token}`}`);
        shown.push(page.items.map(({ doId }) => doId[0]).join(""));
        token = page.nextPageToken;
      }
      expect(shown.join("")).toBe("12345");
      expect(shown[0]).toHaveLength(limit);
    });

    it("refuses a page token of another filter, and queries that are not valid", async () => {
      const { nextPageToken } = await list("?limit=1");
      const other = await api.send("GET", `/v1/instances?claimed=true&pageToken=${nextPageToken}`);
      expect(await refusalOf(other)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
      for (const [query, pointer] of [
        ["claimed=yes", "query/claimed"],
        ["namespace=A", "query/namespace"],
        ["limit=0", "query/limit"],
      ]) {
        expect(await refusalOf(await api.send("GET", `/v1/instances?${query}`))).toMatchObject({
          code: "INVALID_QUERY",
          pointers: [pointer],
        });
      }
    });
  });
});
