import { beforeEach, describe, expect, it } from "vitest";
import type { BackupBody } from "../../../src/api/backup-schema.ts";
import { writeBackup } from "./rows.ts";
import { d1, NOW, openApi, PATH, pathOf, refusalOf, startEmpty, type TestApi, TOKENS, workspaceOf } from "./support.ts";

const OF_NOBODY = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
let api: TestApi;
let uid: string;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
  uid = (await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }))).metadata.uid;
});

interface BackupList {
  readonly items: readonly BackupBody[];
  readonly nextPageToken: string | null;
}

async function list(path: string): Promise<BackupList> {
  const response = await api.send("GET", path, { token: TOKENS.viewer });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return await response.json();
}

const idsOf = ({ items }: BackupList) => items.map(({ id }) => id);

describe("GET …/backups/{id}", () => {
  it("shows a good backup, in full", async () => {
    const id = await writeBackup();
    const response = await api.send("GET", `${PATH}/backups/${id}`, { token: TOKENS.viewer });
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        id,
        workspace: { namespace: "default", name: "alice-1", uid },
        state: "Completed",
        trigger: "Request",
        reason: "",
        message: "",
        directory: "/workspace",
        sizeBytes: 4096,
        requestedTime: "2026-11-30T11:59:00.000Z",
        startedTime: "2026-11-30T11:59:01.000Z",
        endedTime: "2026-11-30T11:59:02.000Z",
        lost: false,
      },
    ]);
  });

  it("shows one that nobody has taken up yet, and one whose objects are gone", async () => {
    const requested = await writeBackup({ state: "Requested" });
    const lost = await writeBackup({ lostTime: NOW });
    const get = async (id: string) => await (await api.send("GET", `${PATH}/backups/${id}`)).json();
    expect(await get(requested)).toMatchObject({ state: "Requested", startedTime: null, endedTime: null, sizeBytes: null, lost: false });
    expect(await get(lost)).toMatchObject({ state: "Completed", lost: true });
  });

  it("takes the id in capital letters too", async () => {
    const id = await writeBackup();
    expect((await api.send("GET", `${PATH}/backups/${id.toUpperCase()}`)).status).toBe(200);
  });

  it("shows one of a workspace that is gone", async () => {
    const id = await writeBackup();
    await d1.prepare("DELETE FROM workspaces").run();
    expect((await api.send("GET", `${PATH}/backups/${id}`)).status).toBe(200);
  });

  it.each(["GET", "DELETE"])("%s is 404 where there is none, and where it is of another workspace or namespace", async (method) => {
    await api.send("PUT", pathOf("default", "alice-2"), { json: { spec: {} } });
    await api.send("PUT", pathOf("team-a", "alice-1"), { json: { spec: {} } });
    const id = await writeBackup();
    const paths = [
      `${PATH}/backups/${OF_NOBODY}`,
      `${pathOf("default", "alice-2")}/backups/${id}`,
      `${pathOf("team-a", "alice-1")}/backups/${id}`,
    ];
    for (const path of paths) {
      expect(await refusalOf(await api.send(method, path))).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
    }
    expect(await list(`${PATH}/backups`)).toMatchObject({ items: [{ id, state: "Completed" }] });
  });
});

describe("GET …/backups", () => {
  it("is empty where none was taken, and 404 where there never was such a workspace", async () => {
    expect(await list(`${PATH}/backups`)).toEqual({ items: [], nextPageToken: null });
    const response = await api.send("GET", `${pathOf("default", "nobody")}/backups`);
    expect(await refusalOf(response)).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
  });

  it("shows every state, newest first, of all lives of the name and of no other", async () => {
    const first = await writeBackup({ uid: "first-life", requestedTime: NOW - 5000 });
    const states = ["Requested", "Skipped", "Failed", "Abandoned", "Deleting"] as const;
    const ids: string[] = [];
    for (const [index, state] of states.entries()) ids.push(await writeBackup({ state, requestedTime: NOW - 4000 + index }));
    await writeBackup({ uid: "other", name: "alice-2" });
    await writeBackup({ uid: "other", namespace: "team-a" });
    expect(idsOf(await list(`${PATH}/backups`))).toEqual([...ids.toReversed(), first]);
  });

  it("shows those of a workspace that is gone", async () => {
    const id = await writeBackup();
    await d1.prepare("DELETE FROM workspaces").run();
    expect(idsOf(await list(`${PATH}/backups`))).toEqual([id]);
  });

  it("comes in pages that neither skip nor repeat, also where several were asked for at once and more on the way", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push(await writeBackup({ requestedTime: NOW - (n < 3 ? 1000 : 2000) }));
    const pages = [await list(`${PATH}/backups?limit=2`)];
    await writeBackup({ requestedTime: NOW });
    for (let page = pages[0]; page?.nextPageToken; page = pages.at(-1)) {
      pages.push(await list(`${PATH}/backups?limit=2&pageToken=${page.nextPageToken}`));
    }
    const newest = ids.slice(0, 3).toSorted().toReversed();
    expect(pages.map(idsOf)).toEqual(chunk([...newest, ...ids.slice(3).toSorted().toReversed()]));
  });

  it("ends with an empty page where the rest has been removed since, and nothing is left of the workspace", async () => {
    const newest = await writeBackup({ requestedTime: NOW });
    const oldest = await writeBackup();
    const { nextPageToken } = await list(`${PATH}/backups?limit=1`);
    await d1.prepare("DELETE FROM backups WHERE id = ?").bind(oldest).run();
    await d1.prepare("DELETE FROM workspaces").run();
    expect(await list(`${PATH}/backups?limit=1&pageToken=${nextPageToken}`)).toEqual({ items: [], nextPageToken: null });
    expect(idsOf(await list(`${PATH}/backups`))).toEqual([newest]);
  });

  it("refuses the page token of another workspace, and of its events", async () => {
    await api.send("PUT", pathOf("default", "alice-2"), { json: { spec: {} } });
    for (let n = 0; n < 2; n += 1) await writeBackup();
    const { nextPageToken } = await list(`${PATH}/backups?limit=1`);
    for (const path of [`${pathOf("default", "alice-2")}/backups`, `${PATH}/events`]) {
      const response = await api.send("GET", `${path}?pageToken=${nextPageToken}`);
      expect(await refusalOf(response)).toEqual({ status: 400, code: "INVALID_PAGE_TOKEN", pointers: ["query/pageToken"] });
    }
  });

  it.each(["limit=0", "state=Completed", "labelSelector=a"])("?%s is 400", async (query) => {
    const pointers = [`query/${query.split("=")[0]}`];
    expect(await refusalOf(await api.send("GET", `${PATH}/backups?${query}`))).toEqual({ status: 400, code: "INVALID_QUERY", pointers });
  });
});

function chunk(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / 2) }, (_, page) => ids.slice(2 * page, 2 * page + 2));
}
