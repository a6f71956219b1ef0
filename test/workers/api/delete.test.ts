import { beforeEach, describe, expect, it } from "vitest";
import { d1, footprint, NOW, openApi, PATH, refusalOf, startEmpty, type TestApi, workspaceOf, writeStatus } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

async function create(): Promise<string> {
  return (await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }))).metadata.etag;
}

describe("DELETE", () => {
  it("answers 202 with the deletion's time, raises revision and resourceVersion, and asks the controller", async () => {
    const etag = await create();
    api.time = NOW + 1000;
    const response = await api.send("DELETE", PATH);
    expect(response.status).toBe(202);
    const { metadata } = await workspaceOf(response);
    expect(metadata).toMatchObject({ deletionTime: "2026-11-30T12:00:01.000Z", generation: 1, revision: 2, resourceVersion: "2" });
    expect(response.headers.get("ETag")).toBe(etag.replace("-r1", "-r2"));
    expect(await d1.prepare("SELECT next_reconcile_time AS t FROM workspaces").first("t")).toBe(NOW + 1000);
  });

  it("answers 202 with the first deletion's time each time and writes nothing more", async () => {
    await create();
    const first = await (await api.send("DELETE", PATH)).json();
    const before = await footprint();
    api.time = NOW + 60_000;
    const again = await api.send("DELETE", PATH);
    expect([again.status, await again.json()]).toEqual([202, first]);
    expect(await footprint()).toEqual(before);
  });

  it.each(["Pending", "Queued", "Starting", "Ready", "Suspending", "Suspended", "Stalled", "Unknown"])(
    "is accepted in phase %s",
    async (phase) => {
      await create();
      await writeStatus("alice-1", 1, [], phase);
      expect((await api.send("DELETE", PATH)).status).toBe(202);
    },
  );

  it("is accepted where the stored spec no longer parses", async () => {
    await create();
    await d1.prepare("UPDATE workspaces SET spec = 'not even JSON'").run();
    expect((await api.send("DELETE", PATH)).status).toBe(202);
  });

  it("of what is not there is 404, or 204 with allowMissing=true", async () => {
    expect(await refusalOf(await api.send("DELETE", PATH))).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
    expect((await refusalOf(await api.send("DELETE", `${PATH}?allowMissing=false`))).status).toBe(404);
    const missing = await api.send("DELETE", `${PATH}?allowMissing=true`);
    expect([missing.status, await missing.text()]).toEqual([204, ""]);
    expect(missing.headers.get("X-Request-Id")).not.toBeNull();
  });

  it("of what is there is 202 with allowMissing=true too", async () => {
    await create();
    expect((await api.send("DELETE", `${PATH}?allowMissing=true`)).status).toBe(202);
  });

  it.each([
    ["allowMissing=yes", "query/allowMissing"],
    ["allowMissing", "query/allowMissing"],
    ["finalBackup=Always", "query/finalBackup"],
    ["finalBackup=require", "query/finalBackup"],
    ["finalBackup=", "query/finalBackup"],
    ["finalBackup=Skip&finalBackup=Require", "query/finalBackup"],
    ["dryRun=true", "query/dryRun"],
  ])("?%s is 400 and deletes nothing", async (query, pointer) => {
    await create();
    const before = await footprint();
    expect(await refusalOf(await api.send("DELETE", `${PATH}?${query}`))).toEqual({
      status: 400,
      code: "INVALID_QUERY",
      pointers: [pointer],
    });
    expect(await footprint()).toEqual(before);
  });
});

describe("DELETE with If-Match", () => {
  it("deletes what the tag names and nothing else", async () => {
    const etag = await create();
    const before = await footprint();
    const stale = await api.send("DELETE", PATH, { headers: { "If-Match": '"00000000-r1"' } });
    expect(await refusalOf(stale)).toEqual({ status: 412, code: "PRECONDITION_FAILED", pointers: ["header/If-Match"] });
    expect(await footprint()).toEqual(before);
    expect((await api.send("DELETE", PATH, { headers: { "If-Match": etag } })).status).toBe(202);
  });

  it("may be repeated with the same tag, as a client does that lost the answer, but not with an older one", async () => {
    const created = await create();
    const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: { paused: true } } }));
    for (const tag of [metadata.etag, metadata.etag, metadata.etag.replace("-r2", "-r3")]) {
      expect((await api.send("DELETE", PATH, { headers: { "If-Match": tag } })).status).toBe(202);
    }
    expect((await api.send("DELETE", PATH, { headers: { "If-Match": created } })).status).toBe(412);
  });

  it("is 404 where there is nothing, and 204 with allowMissing=true: the wish is fulfilled", async () => {
    const headers = { "If-Match": '"00000000-r1"' };
    expect((await api.send("DELETE", PATH, { headers })).status).toBe(404);
    expect((await api.send("DELETE", `${PATH}?allowMissing=true`, { headers })).status).toBe(204);
  });

  it("that cannot be read is 400 and deletes nothing", async () => {
    await create();
    expect((await api.send("DELETE", PATH, { headers: { "If-Match": "abc" } })).status).toBe(400);
    expect((await workspaceOf(await api.send("GET", PATH))).metadata.deletionTime).toBeNull();
  });
});
