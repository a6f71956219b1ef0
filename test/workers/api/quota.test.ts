import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { reasons, writeInstance, writeUnclaimed } from "./rows.ts";
import {
  d1,
  d1BeforeWrites,
  openApi,
  pathOf,
  problemOf,
  refusalOf,
  startEmpty,
  statusesOf,
  type TestApi,
  testConfig,
  writeStatus,
} from "./support.ts";

let api: TestApi;

beforeEach(startEmpty);

async function open(
  quota: { maxWorkspaces?: number; maxRunning?: number },
  overrides: Parameters<typeof openApi>[0] = {},
): Promise<TestApi> {
  const full = { maxWorkspaces: null, maxRunning: null, ...quota };
  return await openApi({
    config: { ...(await testConfig()), quotas: { "team-a": full, "team-b": { maxWorkspaces: null, maxRunning: null } } },
    ...overrides,
  });
}

const put = (name: string, spec: unknown = {}, namespace = "team-a") => api.send("PUT", pathOf(namespace, name), { json: { spec } });
const count = () => d1.prepare("SELECT count(*) AS n FROM workspaces").first<number>("n");

const WORKSPACES_EXCEEDED = { status: 403, code: "QUOTA_EXCEEDED", pointers: ["path/namespace"] };
const RUNNING_EXCEEDED = { status: 403, code: "QUOTA_EXCEEDED", pointers: ["/spec/operatingMode"] };

describe("maxWorkspaces", () => {
  beforeEach(async () => {
    api = await open({ maxWorkspaces: 2 });
  });

  it("refuses one more, names the limit and its value, and writes nothing of it", async () => {
    await put("a");
    await put("b");
    const problem = await problemOf(await put("c"));
    expect(problem).toMatchObject({ status: 403, code: "QUOTA_EXCEEDED", detail: "The namespace has 2 workspaces." });
    expect(problem.errors).toEqual([{ pointer: "path/namespace", detail: "maxWorkspaces is 2" }]);
    expect([await count(), await reasons()]).toEqual([2, ["Created by operator", "Created by operator"]]);
  });

  it("counts those that are suspended or being deleted, and not another namespace's", async () => {
    await put("other", {}, "team-b");
    await put("a", { operatingMode: "Suspended" });
    await put("b");
    await api.send("DELETE", pathOf("team-a", "b"));
    expect(await refusalOf(await put("c"))).toEqual(WORKSPACES_EXCEEDED);
    expect((await put("c", {}, "team-b")).status).toBe(201);
    await d1.prepare("DELETE FROM workspaces WHERE name = 'b'").run();
    expect((await put("c")).status).toBe(201);
  });

  it("does not hold back what replaces, changes nothing, suspends or deletes", async () => {
    await put("a");
    await put("b");
    expect((await put("a", { directory: "/app" })).status).toBe(200);
    expect((await put("a", { directory: "/app" })).status).toBe(200);
    expect((await put("a", { operatingMode: "Suspended" })).status).toBe(200);
    expect((await put("a")).status).toBe(200);
    expect((await api.send("DELETE", pathOf("team-a", "a"))).status).toBe(202);
  });

  it("is not looked at before the body, the name and the precondition", async () => {
    await put("a");
    await put("b");
    expect((await problemOf(await put("c", { no: 1 }))).code).toBe("INVALID_SPEC");
    const conditional = await api.send("PUT", pathOf("team-a", "c"), { json: { spec: {} }, headers: { "If-Match": "*" } });
    expect((await problemOf(conditional)).code).toBe("PRECONDITION_FAILED");
  });

  it("of 20 creations at once with room for five lets exactly five through", async () => {
    api = await open({ maxWorkspaces: 5 });
    const names = Array.from({ length: 20 }, (_, index) => `w-${index}`);
    expect(statusesOf(await Promise.all(names.map((name) => put(name))))).toEqual([...Array(5).fill(201), ...Array(15).fill(403)]);
    expect(await count()).toBe(5);
  });

  it("holds in the statement that writes: room that was there at the read may be gone", async () => {
    await put("a");
    let done = false;
    const db = openDatabase(
      d1BeforeWrites(async () => {
        if (!done) await put("b");
        done = true;
      }),
    );
    const late = await open({ maxWorkspaces: 2 }, { db });
    expect(await refusalOf(await late.send("PUT", pathOf("team-a", "c"), { json: { spec: {} } }))).toEqual(WORKSPACES_EXCEEDED);
    expect(await count()).toBe(2);
  });

  it("may be 0", async () => {
    api = await open({ maxWorkspaces: 0 });
    expect(await refusalOf(await put("a"))).toEqual(WORKSPACES_EXCEEDED);
  });
});

describe("maxRunning", () => {
  beforeEach(async () => {
    api = await open({ maxRunning: 1 });
    await put("running");
  });

  it("refuses a new workspace that is to run while as many instances run, and takes a suspended one", async () => {
    expect((await put("queued")).status).toBe(201);
    await writeInstance("team-a", "running");
    const problem = await problemOf(await put("c"));
    expect(problem).toMatchObject({
      status: 403,
      code: "QUOTA_EXCEEDED",
      errors: [{ pointer: "/spec/operatingMode", detail: "maxRunning is 1" }],
    });
    expect((await put("c", { operatingMode: "Suspended" })).status).toBe(201);
    expect((await put("c", {}, "team-b")).status).toBe(201);
  });

  it.each([
    ["an instance that does not run", () => writeInstance("team-a", "running", { running: false }), 201],
    ["an orphan of the namespace that runs", () => writeUnclaimed("x", { owner: ownerIn("team-a") }), 403],
    ["an orphan that is stopped", () => writeUnclaimed("x", { owner: ownerIn("team-a"), state: "Stopped" }), 201],
    ["an orphan of another namespace", () => writeUnclaimed("x", { owner: ownerIn("team-b") }), 201],
    ["an orphan of nobody", () => writeUnclaimed("x"), 201],
  ] as const)("counts what was observed: %s", async (_sentence, write, status) => {
    await write();
    expect((await put("c")).status).toBe(status);
  });

  it("refuses to wish Running again what is suspended, and lets through whatever does not", async () => {
    await put("s", { operatingMode: "Suspended" });
    await writeInstance("team-a", "running");
    expect(await refusalOf(await put("s"))).toEqual(RUNNING_EXCEEDED);
    expect((await put("s", { operatingMode: "Suspended", directory: "/app" })).status).toBe(200);
    expect((await put("running", { directory: "/app" })).status).toBe(200);
    expect((await put("running", { directory: "/app" })).status).toBe(200);
    expect((await put("running", { operatingMode: "Suspended" })).status).toBe(200);
  });

  it("does not count the workspace's own instance against it: it may change its mind while its container still runs", async () => {
    await put("running", { operatingMode: "Suspended" });
    await writeInstance("team-a", "running");
    expect((await put("running")).status).toBe(200);
  });

  it("lets one that waits for its start already change its spec", async () => {
    await put("queued");
    await writeInstance("team-a", "running");
    expect((await put("queued", { directory: "/app" })).status).toBe(200);
  });

  it("refuses to wake one that is suspended for idleness, by :wake and by another spec, and not one that runs", async () => {
    await put("idle", { idle: { timeoutSeconds: 60 } });
    await writeStatus("idle", 1, [{ type: "Suspended", status: "True", reason: "IdleTimeout" }], "Suspended");
    await writeInstance("team-a", "running");
    const wake = (name: string) => api.send("POST", `${pathOf("team-a", name)}:wake`);
    expect(await refusalOf(await wake("idle"))).toEqual(RUNNING_EXCEEDED);
    expect(await refusalOf(await put("idle", { idle: { timeoutSeconds: 90 } }))).toEqual(RUNNING_EXCEEDED);
    expect((await wake("running")).status).toBe(202);
    const relabel = { metadata: { labels: { team: "a" } }, spec: { idle: { timeoutSeconds: 60 } } };
    expect((await api.send("PUT", pathOf("team-a", "idle"), { json: relabel })).status).toBe(200);
    expect((await api.send("POST", `${pathOf("team-a", "idle")}:reconcile`)).status).toBe(202);
    await d1.prepare("UPDATE instances SET running = 0").run();
    expect((await wake("idle")).status).toBe(202);
  });

  it("does not refuse to wake what the user suspended: it stays down", async () => {
    await put("s", { operatingMode: "Suspended" });
    await writeStatus("s", 1, [{ type: "Suspended", status: "True", reason: "SuspendedByUser" }], "Suspended");
    await writeInstance("team-a", "running");
    expect((await api.send("POST", `${pathOf("team-a", "s")}:wake`)).status).toBe(202);
  });

  it.each([
    ["a PUT", (late: TestApi) => late.send("PUT", pathOf("team-a", "s"), { json: { spec: {} } })],
    ["a creation", (late: TestApi) => late.send("PUT", pathOf("team-a", "new"), { json: { spec: {} } })],
  ])("holds in the statement that writes: %s finds the room gone", async (_sentence, send) => {
    await put("s", { operatingMode: "Suspended" });
    let done = false;
    const db = openDatabase(
      d1BeforeWrites(async () => {
        if (!done) await writeInstance("team-a", "running");
        done = true;
      }),
    );
    expect(await refusalOf(await send(await open({ maxRunning: 1 }, { db })))).toEqual(RUNNING_EXCEEDED);
  });
});

it("a namespace without an entry has that of *, and its own entry goes before", async () => {
  const config = await testConfig();
  const quotas = { "*": { maxWorkspaces: 1, maxRunning: null }, "team-b": { maxWorkspaces: 2, maxRunning: null } };
  api = await openApi({ config: { ...config, quotas } });
  expect([await put("a"), await put("b")].map(({ status }) => status)).toEqual([201, 403]);
  const inB = [await put("a", {}, "team-b"), await put("b", {}, "team-b"), await put("c", {}, "team-b")];
  expect(inB.map(({ status }) => status)).toEqual([201, 201, 403]);
});

function ownerIn(namespace: string) {
  return { uid: `gone-${namespace}`, namespace, name: "gone", incarnation: 1 };
}
