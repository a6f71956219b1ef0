import { beforeEach, describe, expect, it } from "vitest";
import { footprint, NOW, openApi, PATH, refusalOf, startEmpty, type TestApi, workspaceOf } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

const put = (spec: unknown) => api.send("PUT", PATH, { json: { spec } });
const at = (ms: number) => new Date(NOW + ms).toISOString();
const REFUSED = { status: 422, code: "INVALID_SPEC", pointers: ["/spec/expireTime"] };

describe("spec.expireTime", () => {
  it.each([
    ["2026-12-24T01:00:00+01:00", "2026-12-24T00:00:00.000Z"],
    ["2026-12-24T00:00:00Z", "2026-12-24T00:00:00.000Z"],
    ["2026-12-24T00:00:00.1239Z", "2026-12-24T00:00:00.123Z"],
    ["2026-12-23T12:30:00-11:30", "2026-12-24T00:00:00.000Z"],
  ])("%s is kept in UTC", async (sent, kept) => {
    expect((await workspaceOf(await put({ expireTime: sent }))).spec).toMatchObject({ expireTime: kept });
  });

  it("in another spelling of the same time is no change", async () => {
    await put({ expireTime: "2026-12-24T00:00:00Z" });
    const before = await footprint();
    const again = await put({ expireTime: "2026-12-24T01:00:00.000+01:00" });
    expect([again.status, (await workspaceOf(again)).metadata.generation]).toEqual([200, 1]);
    expect(await footprint()).toEqual(before);
  });

  it.each([-1, 0])("that is over by %i ms is refused in a new workspace", async (ms) => {
    const before = await footprint();
    expect(await refusalOf(await put({ expireTime: at(ms) }))).toEqual(REFUSED);
    expect(await footprint()).toEqual(before);
  });

  it("may be a millisecond ahead", async () => {
    expect((await put({ expireTime: at(1) })).status).toBe(201);
  });

  it("that is over is refused where it changes, and accepted where it was wished before", async () => {
    await put({ expireTime: at(1000) });
    api.time = NOW + 5000;
    expect(await refusalOf(await put({ expireTime: at(2000) }))).toEqual(REFUSED);
    expect((await put({ expireTime: at(1000) })).status).toBe(200);
    const relocated = await workspaceOf(await put({ expireTime: at(1000), directory: "/app" }));
    expect(relocated).toMatchObject({ metadata: { generation: 2 }, spec: { directory: "/app" } });
  });

  it("that is over is refused before a precondition is looked at", async () => {
    const response = await api.send("PUT", PATH, { json: { spec: { expireTime: at(-1) } }, headers: { "If-Match": "*" } });
    expect(await refusalOf(response)).toEqual(REFUSED);
  });
});

it("idle, lifetime and expiry steer as one spec: removing them is a change, and null is as good as nothing", async () => {
  await put({ idle: { timeoutSeconds: 60 }, maxLifetimeSeconds: 3600, expireTime: at(60_000) });
  const removed = await workspaceOf(await put({ idle: null }));
  expect(removed.metadata.generation).toBe(2);
  expect(removed.spec).toMatchObject({ idle: null, maxLifetimeSeconds: null, expireTime: null });
  expect((await workspaceOf(await put({}))).metadata.revision).toBe(2);
});
