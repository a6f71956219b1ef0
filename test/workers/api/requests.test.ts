import { beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/db.ts";
import { reasons, row } from "./rows.ts";
import {
  d1,
  d1BeforeWrites,
  footprint,
  NOW,
  openApi,
  PATH,
  problemOf,
  refusalOf,
  startEmpty,
  type TestApi,
  TOKENS,
  workspaceOf,
} from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

async function create(): Promise<string> {
  const { metadata } = await workspaceOf(await api.send("PUT", PATH, { json: { spec: {} } }));
  await d1.prepare("UPDATE workspaces SET next_reconcile_time = NULL").run();
  return metadata.etag;
}

describe.each([
  ["wake", "wake_time", "reconcile_request_time", "WakeRequested"],
  ["reconcile", "reconcile_request_time", "wake_time", "ReconcileRequested"],
])(":%s", (verb, column, otherColumn, reason) => {
  const send = (options: Parameters<TestApi["send"]>[2] = {}) => api.send("POST", `${PATH}:${verb}`, { token: TOKENS.editor, ...options });

  it("answers 202 with the workspace, records the request and asks the controller", async () => {
    const etag = await create();
    api.time = NOW + 1000;
    const response = await send();
    expect(response.status).toBe(202);
    const { metadata } = await workspaceOf(response);
    expect(metadata).toMatchObject({ name: "alice-1", generation: 1, revision: 2, resourceVersion: "2" });
    expect(response.headers.get("ETag")).toBe(etag.replace("-r1", "-r2"));
    expect(await row("workspaces", "alice-1")).toMatchObject({
      [column]: NOW + 1000,
      [otherColumn]: null,
      next_reconcile_time: NOW + 1000,
    });
  });

  it("is in the history with who asked", async () => {
    await create();
    await send();
    expect(await reasons()).toEqual(["Created by operator", `${reason} by editor`]);
  });

  it.each<[string, Parameters<TestApi["send"]>[2]]>([
    ["no body", {}],
    ["an empty object", { json: {} }],
    ["an empty text", { body: "" }],
  ])("takes %s", async (_sentence, options) => {
    await create();
    expect((await send(options)).status).toBe(202);
  });

  it.each<[string, Parameters<TestApi["send"]>[2], unknown]>([
    ["a field", { json: { force: true } }, { status: 422, code: "INVALID_BODY", pointers: ["/force"] }],
    ["__proto__", { body: '{"__proto__":{}}' }, { status: 422, code: "INVALID_BODY", pointers: ["/__proto__"] }],
    ["a list", { json: [] }, { status: 422, code: "INVALID_BODY", pointers: [""] }],
    ["null", { json: null }, { status: 422, code: "INVALID_BODY", pointers: [""] }],
    ["no JSON", { body: "now" }, { status: 400, code: "MALFORMED_JSON", pointers: [""] }],
    ["33 levels", { body: "[".repeat(33) }, { status: 400, code: "MALFORMED_JSON", pointers: [""] }],
    ["256 KiB and more", { body: " ".repeat(256 * 1024 + 1) }, { status: 413, code: "BODY_TOO_LARGE", pointers: [] }],
    [
      "another type",
      { body: "{}", headers: { "Content-Type": "text/plain" } },
      { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", pointers: ["header/Content-Type"] },
    ],
  ])("refuses a body with %s and writes nothing", async (_sentence, options, refusal) => {
    await create();
    const before = await footprint();
    expect(await refusalOf(await send(options))).toEqual(refusal);
    expect(await footprint()).toEqual(before);
  });

  it("is 404 where there is no such workspace", async () => {
    expect(await refusalOf(await send())).toEqual({ status: 404, code: "NOT_FOUND", pointers: [] });
    expect(await reasons()).toEqual([]);
  });

  it("is 409 for a workspace that is being deleted", async () => {
    await create();
    await api.send("DELETE", PATH);
    const before = await footprint();
    expect(await refusalOf(await send())).toEqual({ status: 409, code: "BEING_DELETED", pointers: [] });
    expect(await footprint()).toEqual(before);
  });

  it("is done under If-Match only where the tag is the current one", async () => {
    const etag = await create();
    const before = await footprint();
    expect(await refusalOf(await send({ headers: { "If-Match": etag.replace("-r1", "-r2") } }))).toEqual({
      status: 412,
      code: "PRECONDITION_FAILED",
      pointers: ["header/If-Match"],
    });
    expect(await footprint()).toEqual(before);
    expect((await send({ headers: { "If-Match": etag } })).status).toBe(202);
    expect((await send({ headers: { "If-Match": "x" } })).status).toBe(400);
  });

  it("is decided again where another writes at the same time", async () => {
    await create();
    let done = false;
    const binding = d1BeforeWrites(async () => {
      if (!done) await api.send("PUT", PATH, { json: { spec: { directory: "/app" } } });
      done = true;
    });
    const response = await (await openApi({ db: openDatabase(binding) })).send("POST", `${PATH}:${verb}`);
    expect((await workspaceOf(response)).metadata).toMatchObject({ generation: 2, revision: 3 });
    expect(await reasons()).toEqual(["Created by operator", "SpecChanged by operator", `${reason} by operator`]);
  });

  it("that loses to a deletion is 409, and not in the history", async () => {
    await create();
    const binding = d1BeforeWrites(async () => void (await api.send("DELETE", PATH)));
    const response = await (await openApi({ db: openDatabase(binding) })).send("POST", `${PATH}:${verb}`);
    expect((await problemOf(response)).code).toBe("BEING_DELETED");
    expect(await reasons()).toEqual(["Created by operator", "DeletionRequested by operator"]);
  });
});

it(":wake ends a suspension that was dated by a clock ahead of this one", async () => {
  await create();
  await d1
    .prepare("UPDATE workspaces SET idle_time = ?")
    .bind(NOW + 5000)
    .run();
  await api.send("POST", `${PATH}:wake`);
  expect(await row("workspaces", "alice-1")).toMatchObject({ wake_time: NOW + 5000, next_reconcile_time: NOW });
});

it("a status is not touched by a request", async () => {
  await create();
  await d1.prepare("UPDATE workspaces SET status = 'as it was', failures = 3, next_retry_time = 9, idle_time = 5").run();
  await api.send("POST", `${PATH}:wake`);
  await api.send("POST", `${PATH}:reconcile`);
  expect(await row("workspaces", "alice-1")).toMatchObject({ status: "as it was", failures: 3, next_retry_time: 9, idle_time: 5 });
});
