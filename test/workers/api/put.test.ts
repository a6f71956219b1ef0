import { beforeEach, describe, expect, it } from "vitest";
import {
  d1,
  footprint,
  NOW,
  openApi,
  PATH,
  pathOf,
  problemOf,
  refusalOf,
  startEmpty,
  type TestApi,
  workspaceOf,
  writeStatus,
} from "./support.ts";

const DEFAULTS = {
  operatingMode: "Running",
  directory: "/workspace",
  source: null,
  env: {},
  setup: [],
  idle: null,
  maxLifetimeSeconds: null,
  expireTime: null,
  backup: { everySeconds: null, onSuspend: "BestEffort", excludes: [], retention: { keepLast: 5, keepForSeconds: 604_800 } },
  deletion: { finalBackup: "Skip", deadlineSeconds: 600 },
  paused: false,
};

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

async function counters() {
  const { metadata } = await workspaceOf(await api.send("GET", PATH));
  return { generation: metadata.generation, revision: metadata.revision, resourceVersion: Number(metadata.resourceVersion) };
}

describe("PUT of a new name", () => {
  it("creates the workspace with every default and answers 201 with Location and ETag", async () => {
    const response = await api.send("PUT", PATH, { json: { spec: {} } });
    expect(response.status).toBe(201);
    expect(response.headers.get("Location")).toBe(PATH);
    expect(response.headers.get("Content-Location")).toBe(PATH);
    const workspace = await workspaceOf(response);
    expect(workspace).toEqual({
      metadata: {
        namespace: "default",
        name: "alice-1",
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        generation: 1,
        revision: 1,
        resourceVersion: "1",
        etag: `"${workspace.metadata.uid.slice(0, 8)}-r1"`,
        creationTime: new Date(NOW).toISOString(),
        deletionTime: null,
        labels: {},
        annotations: {},
      },
      spec: DEFAULTS,
      status: {
        observedGeneration: 0,
        phase: "Pending",
        sandboxId: null,
        incarnation: 0,
        failures: 0,
        nextRetryTime: null,
        lastBackup: null,
        conditions: [],
      },
    });
    expect(response.headers.get("ETag")).toBe(workspace.metadata.etag);
  });

  it("asks the controller to look at it at once", async () => {
    await api.send("PUT", PATH, { json: { spec: {} } });
    expect(await d1.prepare("SELECT next_reconcile_time AS t FROM workspaces").first("t")).toBe(NOW);
  });

  it("takes labels, annotations and every field of the spec", async () => {
    const sent = {
      metadata: { labels: { team: "a", "example.com/tier": "" }, annotations: { note: "any text, 100 %" } },
      spec: {
        operatingMode: "Suspended",
        directory: "/home/alice",
        source: { workspace: "bob" },
        setup: ["npm ci"],
        backup: { everySeconds: 3600, onSuspend: "Require", excludes: ["*.log"], retention: { keepLast: 1, keepForSeconds: null } },
        deletion: { finalBackup: "Require", deadlineSeconds: 60 },
        env: { NODE_ENV: "development", constructor: "x" },
        idle: { timeoutSeconds: 600 },
        maxLifetimeSeconds: 86_400,
        expireTime: "2026-12-24T00:00:00.000Z",
        paused: true,
      },
    };
    const { metadata, spec } = await workspaceOf(await api.send("PUT", PATH, { json: sent }));
    expect(metadata).toMatchObject(sent.metadata);
    expect(spec).toEqual(sent.spec);
  });

  it("keeps the same name of two namespaces apart", async () => {
    expect((await api.send("PUT", pathOf("a", "x"), { json: { spec: {} } })).status).toBe(201);
    expect((await api.send("PUT", pathOf("b", "x"), { json: { spec: {} } })).status).toBe(201);
  });
});

describe("PUT of an existing name", () => {
  beforeEach(async () => {
    await api.send("PUT", PATH, { json: { metadata: { labels: { team: "a" } }, spec: { env: { A: "1", B: "2" } } } });
  });

  it("replaces the whole spec: what is left out gets its default, and generation and revision rise", async () => {
    const before = await counters();
    const response = await api.send("PUT", PATH, { json: { metadata: { labels: { team: "a" } }, spec: { directory: "/app" } } });
    expect(response.status).toBe(200);
    expect(response.headers.get("Location")).toBeNull();
    expect((await workspaceOf(response)).spec).toEqual({ ...DEFAULTS, directory: "/app" });
    const after = await counters();
    expect(after).toMatchObject({ generation: 2, revision: 2 });
    expect(after.resourceVersion).toBeGreaterThan(before.resourceVersion);
  });

  it("raises revision and resourceVersion but not generation for labels or annotations alone", async () => {
    const before = await counters();
    const json = { metadata: { labels: { team: "b" }, annotations: { n: "1" } }, spec: { env: { A: "1", B: "2" } } };
    const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json }));
    expect(metadata).toMatchObject({ generation: 1, revision: 2, labels: { team: "b" }, annotations: { n: "1" } });
    expect(Number(metadata.resourceVersion)).toBeGreaterThan(before.resourceVersion);
    const annotated = await workspaceOf(await api.send("PUT", PATH, { json: { ...json, metadata: { labels: { team: "b" } } } }));
    expect(annotated.metadata).toMatchObject({ generation: 1, revision: 3, annotations: {} });
  });

  it("changes no counter and writes nothing when it wishes the same in another spelling", async () => {
    const [before, written] = [await counters(), await footprint()];
    const spelled = `{"spec":{"paused":false,"env":{"B":"2","A":"1"},"directory":"/workspace"},"metadata":{"labels":{"team":"a"}}}`;
    const response = await api.send("PUT", PATH, { body: spelled });
    expect(response.status).toBe(200);
    expect(await counters()).toEqual(before);
    expect(await footprint()).toEqual(written);
  });

  it("takes what GET answered and changes nothing, status or not", async () => {
    await writeStatus("alice-1", 1, [{}]);
    const before = await counters();
    const read = await (await api.send("GET", PATH)).json();
    const response = await api.send("PUT", PATH, { json: read });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(read);
    expect(await counters()).toEqual(before);
  });

  it("ignores a status and the fields that the server owns", async () => {
    const json = {
      metadata: { labels: { team: "a" }, uid: "other", generation: 99, revision: "x", etag: null, creationTime: 0, deletionTime: [] },
      spec: { env: { A: "1", B: "2" } },
      status: { phase: "Ready", anything: true },
    };
    const { metadata, status } = await workspaceOf(await api.send("PUT", PATH, { json }));
    expect(metadata).toMatchObject({ generation: 1, revision: 1, deletionTime: null });
    expect(status.phase).toBe("Pending");
  });

  it("does not touch the status that the controller wrote", async () => {
    await writeStatus("alice-1", 1, [{}]);
    const { status } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: { directory: "/app" } } }));
    expect(status).toMatchObject({ observedGeneration: 1, phase: "Ready", conditions: [{ type: "Ready", status: "True" }] });
  });

  it("takes a stored spec that no longer parses for another wish", async () => {
    await d1.prepare(`UPDATE workspaces SET spec = '{"operatingMode":"Running","gone":1}'`).run();
    const { metadata, spec } = await workspaceOf(await api.send("PUT", PATH, { json: { metadata: { labels: { team: "a" } }, spec: {} } }));
    expect(metadata).toMatchObject({ generation: 2, revision: 2 });
    expect(spec).toMatchObject({ operatingMode: "Running" });
  });

  it("takes a stored spec that lacks a later default for the same wish", async () => {
    await d1.prepare(`UPDATE workspaces SET spec = '{"env":{"A":"1","B":"2"}}'`).run();
    const json = { metadata: { labels: { team: "a" } }, spec: { env: { A: "1", B: "2" } } };
    expect((await workspaceOf(await api.send("PUT", PATH, { json }))).metadata).toMatchObject({ generation: 1, revision: 1 });
  });

  it("is refused with 409 BEING_DELETED once deletion was asked for, whatever the preconditions", async () => {
    await api.send("DELETE", PATH);
    const before = await footprint();
    for (const headers of [{}, { "If-Match": '"stale-r1"' }, { "If-None-Match": "*" }]) {
      const response = await api.send("PUT", PATH, { json: { spec: {} }, headers });
      expect(await refusalOf(response)).toEqual({ status: 409, code: "BEING_DELETED", pointers: [] });
    }
    expect(await footprint()).toEqual(before);
  });
});

describe("PUT with preconditions", () => {
  const other = { spec: { directory: "/app" } };

  it.each([
    ["If-None-Match: * on a free name creates", false, { "If-None-Match": "*" }, 201],
    ["If-None-Match: * on a taken name fails", true, { "If-None-Match": "*" }, 412],
    ["If-Match: * on a free name fails", false, { "If-Match": "*" }, 412],
    ["If-Match: * on a taken name replaces", true, { "If-Match": "*" }, 200],
    ["If-Match with the current tag replaces", true, { "If-Match": "current" }, 200],
    ["If-Match with the current tag among others replaces", true, { "If-Match": `"x-r1", current , "y-r2"` }, 200],
    ["If-Match with another revision fails", true, { "If-Match": "other revision" }, 412],
    ["If-Match with another life's tag fails", true, { "If-Match": '"00000000-r1"' }, 412],
    ["If-Match with a weak tag fails", true, { "If-Match": "W/current" }, 412],
    ["If-None-Match with the current tag fails", true, { "If-None-Match": "current" }, 412],
    ["If-None-Match with the weak current tag fails", true, { "If-None-Match": "W/current" }, 412],
    ["If-None-Match with another tag replaces", true, { "If-None-Match": '"x-r1"' }, 200],
    ["If-Match without quotes is refused", true, { "If-Match": "7f2c91aa-r5" }, 400],
    ["an empty If-Match is refused", true, { "If-Match": "" }, 400],
    ["If-None-Match that is no tag is refused", true, { "If-None-Match": "**" }, 400],
  ])("%s", async (_sentence, exists, headers: Record<string, string>, status) => {
    let etag = "";
    if (exists) etag = (await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }))).metadata.etag;
    const before = await footprint();
    const filled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        value.replace("current", etag).replace("other revision", etag.replace("r1", "r2")),
      ]),
    );
    const response = await api.send("PUT", PATH, { json: other, headers: filled });
    expect(response.status).toBe(status);
    if (status >= 400) {
      expect(await refusalOf(response)).toEqual({
        status,
        code: status === 412 ? "PRECONDITION_FAILED" : "INVALID_HEADER",
        pointers: [`header/${Object.keys(headers)[0]}`],
      });
      expect(await footprint()).toEqual(before);
    }
  });

  it("keeps its tag while the controller writes status", async () => {
    const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }));
    await writeStatus("alice-1", 1, [{}]);
    expect((await api.send("PUT", PATH, { json: other, headers: { "If-Match": metadata.etag } })).status).toBe(200);
  });

  it("reports an invalid spec before a failed precondition", async () => {
    const response = await api.send("PUT", PATH, { json: { spec: { no: 1 } }, headers: { "If-Match": "*" } });
    expect((await problemOf(response)).code).toBe("INVALID_SPEC");
  });
});
