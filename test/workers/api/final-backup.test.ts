import { beforeEach, describe, expect, it } from "vitest";
import { events, reasons } from "./rows.ts";
import { d1, footprint, NOW, openApi, PATH, refusalOf, startEmpty, type TestApi, testConfig, workspaceOf } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const put = async (deletion: object) => await workspaceOf(await api.send("PUT", PATH, { json: { spec: { deletion } } }));
const remove = (finalBackup?: string) => api.send("DELETE", `${PATH}${finalBackup === undefined ? "" : `?finalBackup=${finalBackup}`}`);

/** What stands in the row. */
async function standing(): Promise<string> {
  const row = await d1.prepare("SELECT * FROM workspaces").first();
  return `${String(row?.["final_backup"])} ${(Number(row?.["final_backup_deadline_time"]) - NOW) / 1000} s`;
}

describe("the final backup of a deletion", () => {
  it.each<[string, object, string | undefined, string]>([
    ["is none by default", {}, undefined, "Skip 600 s"],
    ["is as the spec has it", { finalBackup: "Require", deadlineSeconds: 60 }, undefined, "Require 60 s"],
    ["is as the request has it", {}, "BestEffort", "BestEffort 600 s"],
    ["is as the request has it where that is less", { finalBackup: "Require", deadlineSeconds: 60 }, "Skip", "Skip 60 s"],
    ["is as the request has it where that is more", { finalBackup: "Skip", deadlineSeconds: 60 }, "Require", "Require 60 s"],
  ])("%s", async (_sentence, deletion, query, expected) => {
    await put(deletion);
    expect((await remove(query)).status).toBe(202);
    expect(await standing()).toBe(expected);
  });

  it.each([
    [undefined, "Skip 600 s"],
    ["Require", "Require 600 s"],
  ])("of a spec that no longer parses is by default none (?finalBackup=%s)", async (query, expected) => {
    await put({ finalBackup: "Require", deadlineSeconds: 60 });
    await d1.prepare("UPDATE workspaces SET spec = 'garbage'").run();
    expect((await remove(query)).status).toBe(202);
    expect(await standing()).toBe(expected);
  });

  it.each([
    ["Require", "Skip", "Skip"],
    ["Require", "BestEffort", "BestEffort"],
    ["BestEffort", "Skip", "Skip"],
  ])("that hangs is released by a later request: %s to %s", async (first, second, expected) => {
    await put({});
    const deleting = await workspaceOf(await remove(first));
    await d1.prepare("UPDATE workspaces SET next_reconcile_time = 0").run();
    api.time = NOW + 30_000;
    const response = await remove(second);
    expect(response.status).toBe(202);
    expect(await standing()).toBe(`${expected} 600 s`);
    const { metadata } = await workspaceOf(response);
    expect(metadata).toEqual({ ...deleting.metadata, resourceVersion: metadata.resourceVersion });
    expect(Number(metadata.resourceVersion)).toBeGreaterThan(Number(deleting.metadata.resourceVersion));
    expect(await d1.prepare("SELECT next_reconcile_time AS t FROM workspaces").first("t")).toBe(NOW + 30_000);
    expect((await events()).at(-1)).toMatchObject({ reason: "FinalBackupWeakened", message: `To ${expected}.`, actor: "operator" });
  });

  it.each([
    ["Require", "Require"],
    ["BestEffort", "Require"],
    ["Skip", "Require"],
    ["BestEffort", "BestEffort"],
    ["Skip", "BestEffort"],
    ["Skip", "Skip"],
    ["Require", undefined],
  ])("is not strengthened later, nor by a request that says nothing of it: %s, %s", async (first, second) => {
    await put({});
    const body = await workspaceOf(await remove(first));
    api.time = NOW + 30_000;
    const again = await remove(second);
    expect([again.status, await again.json()]).toEqual([202, body]);
    expect(await standing()).toBe(`${first} 600 s`);
    expect(await reasons()).toEqual(["Created by operator", "DeletionRequested by operator"]);
  });

  it("is weakened under the same conditions as the deletion was asked for", async () => {
    const { metadata } = await put({});
    const headers = { "If-Match": metadata.etag };
    expect((await api.send("DELETE", `${PATH}?finalBackup=Require`, { headers })).status).toBe(202);
    const other = await api.send("DELETE", `${PATH}?finalBackup=Skip`, { headers: { "If-Match": '"00000000-r1"' } });
    expect([other.status, await standing()]).toEqual([412, "Require 600 s"]);
    for (let n = 0; n < 2; n += 1) expect((await api.send("DELETE", `${PATH}?finalBackup=Skip`, { headers })).status).toBe(202);
    expect(await standing()).toBe("Skip 600 s");
  });
});

describe("where the installation takes no backups", () => {
  beforeEach(async () => {
    await put({ finalBackup: "Require" });
    api = await openApi({ config: { ...(await testConfig()), backups: null } });
  });

  it("one that must not fail is refused, and nothing is deleted", async () => {
    const before = await footprint();
    expect(await refusalOf(await remove("Require"))).toEqual({ status: 409, code: "BACKUPS_DISABLED", pointers: [] });
    expect(await footprint()).toEqual(before);
  });

  it.each([undefined, "BestEffort", "Skip"])("the deletion is accepted otherwise: %s", async (query) => {
    expect((await remove(query)).status).toBe(202);
  });
});
