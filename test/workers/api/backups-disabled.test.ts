/** What a spec may not ask for where the installation takes no backups. */
import { beforeEach, expect, it } from "vitest";
import { writeUnclaimed } from "./rows.ts";
import { footprint, openApi, PATH, problemOf, startEmpty, type TestApi, testConfig } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi({ config: { ...(await testConfig()), backups: null } });
});

const put = (spec: object) => api.send("PUT", PATH, { json: { spec } });
const backup = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
const DETAIL = "this installation takes no backups (BACKUP_MODE)";

const IMPOSSIBLE: readonly (readonly [spec: object, pointer: string])[] = [
  [{ source: { workspace: "bob" } }, "/spec/source"],
  [{ source: { backup } }, "/spec/source"],
  [{ backup: { everySeconds: 3600 } }, "/spec/backup/everySeconds"],
  [{ backup: { onSuspend: "Require" } }, "/spec/backup/onSuspend"],
  [{ deletion: { finalBackup: "Require" } }, "/spec/deletion/finalBackup"],
];

it.each(IMPOSSIBLE)("%j is 422 at %s", async (spec, pointer) => {
  const before = await footprint();
  const { status, code, errors } = await problemOf(await put(spec));
  expect([status, code, errors]).toEqual([422, "INVALID_SPEC", [{ pointer, detail: DETAIL }]]);
  expect(await footprint()).toEqual(before);
});

it("all of it is named at once", async () => {
  const spec = { source: { backup }, backup: { everySeconds: 60, onSuspend: "Require" }, deletion: { finalBackup: "Require" } };
  expect((await problemOf(await put(spec))).errors).toHaveLength(4);
});

it.each<[object]>([
  [{}],
  [{ backup: null }],
  [{ source: null, backup: { onSuspend: "BestEffort", excludes: ["a"], retention: { keepLast: 1 } } }],
  [{ deletion: { finalBackup: "BestEffort" }, setup: ["npm ci"] }],
])("%j is accepted: it asks for nothing that cannot be", async (spec) => {
  expect((await put(spec)).status).toBe(201);
});

it.each(IMPOSSIBLE)(
  "%j stays as it was wished before the installation took none, and cannot be wished otherwise",
  async (spec, pointer) => {
    const withBackups = await openApi();
    await withBackups.send("PUT", PATH, { json: { spec } });
    expect((await put({ ...spec, env: { A: "b" } })).status).toBe(200);
    const changed = {
      source: { workspace: "carol" },
      backup: { everySeconds: 7200, onSuspend: "Require" },
      deletion: { finalBackup: "Require" },
    };
    const { errors = [] } = await problemOf(await put(changed));
    const mayStay = pointer === "/spec/backup/onSuspend" || pointer === "/spec/deletion/finalBackup";
    expect(errors.map((error) => error.pointer).includes(pointer)).toBe(!mayStay);
    expect((await put({})).status).toBe(200);
  },
);

it("an adoption is refused in the same way", async () => {
  const doId = await writeUnclaimed("of-old");
  const json = { namespace: "default", name: "a", spec: { backup: { everySeconds: 60 } } };
  const { code, errors } = await problemOf(await api.send("POST", `/v1/instances/${doId}:adopt`, { json }));
  expect([code, errors]).toEqual(["INVALID_SPEC", [{ pointer: "/spec/backup/everySeconds", detail: DETAIL }]]);
});
