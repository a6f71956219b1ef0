import { beforeEach, describe, expect, it } from "vitest";
import { type ControllerBody, controllerSchema } from "../../../src/api/controller-schema.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { events, writeController } from "./rows.ts";
import { d1, footprint, NOW, openApi, problemOf, refusalOf, startEmpty, statusesOf, type TestApi, testConfig, TOKENS } from "./support.ts";

const PATH = "/v1/controller";
let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

async function bodyOf(response: Response): Promise<ControllerBody> {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return controllerSchema.strict().parse(await response.json());
}

const get = async (token: string = TOKENS.operator) => await bodyOf(await api.send("GET", PATH, { token }));
const put = (json: unknown, headers: Record<string, string> = {}) => api.send("PUT", PATH, { json, headers });

describe("GET /v1/controller", () => {
  it("shows what is configured before anybody has set or done anything", async () => {
    const response = await api.send("GET", PATH);
    expect(response.headers.get("ETag")).toBe('"settings-r0"');
    expect(await bodyOf(response)).toEqual({
      paused: false,
      gcMode: null,
      allowEmpty: false,
      laneWidth: null,
      brakeReleasedUntilTime: null,
      revision: 0,
      etag: '"settings-r0"',
      effective: { gcMode: "Enforce", laneWidth: 1 },
      lease: null,
      lastSweep: null,
      brake: { engaged: false, reason: null, eligible: 0, limit: 0, releasedUntilTime: null },
      startBrake: { engaged: false, untilTime: null, reason: null, message: null },
      backups: { mode: "local", lastSweep: null },
      conditions: [
        { type: "StartsAllowed", status: "True", reason: "LaneOpen", message: "" },
        { type: "InventoryTrusted", status: "Unknown", reason: "NoSweepYet", message: "" },
        { type: "GarbageCollectionAllowed", status: "True", reason: "Enforcing", message: "" },
      ],
    });
  });

  it("shows the lease, the last sweep and both brakes, to an operator of some namespaces too", async () => {
    await writeController({
      brakeUntilTime: NOW + 5000,
      brakeReason: "RateLimited",
      brakeMessage: "too many",
      inventory: { completeTime: null, message: "half of it", eligible: 7, limit: 6, brake: "TooManyOrphans" },
    });
    expect(await get(TOKENS.teamOperator)).toMatchObject({
      lease: { holder: "holder-1", epoch: 7, expiresTime: "2026-11-30T12:00:30.000Z" },
      lastSweep: {
        time: "2026-11-30T11:59:50.000Z",
        completeTime: null,
        outcome: "Complete",
        message: "half of it",
        running: 3,
        eligible: 7,
        limit: 6,
      },
      brake: { engaged: true, reason: "TooManyOrphans", eligible: 7, limit: 6, releasedUntilTime: null },
      startBrake: { engaged: true, untilTime: "2026-11-30T12:00:05.000Z", reason: "RateLimited", message: "too many" },
    });
  });

  it("shows how the last sweep of the bucket went, and that there is none to do without backups", async () => {
    await writeController({ backupSweep: { completeTime: NOW - 90_000, outcome: "Failed", message: "Partial", brake: "TooManyOrphans" } });
    expect((await get()).backups).toEqual({
      mode: "local",
      lastSweep: {
        time: "2026-11-30T11:59:40.000Z",
        completeTime: "2026-11-30T11:58:30.000Z",
        outcome: "Failed",
        message: "Partial",
        stored: 4,
        eligible: 1,
        limit: 5,
        brake: "TooManyOrphans",
      },
    });
    await writeController({ backupSweep: null });
    expect((await get()).backups).toEqual({ mode: "local", lastSweep: null });
    api = await openApi({ config: { ...(await testConfig()), backups: null } });
    expect((await get()).backups).toBeNull();
  });

  it("shows a lease that was given up, and no start brake whose time is over", async () => {
    await writeController({ expiresTime: 0, brakeUntilTime: NOW, brakeReason: "RateLimited", brakeMessage: "too many" });
    expect(await get()).toMatchObject({
      lease: { epoch: 7, expiresTime: null },
      startBrake: { engaged: false, untilTime: null, reason: null, message: null },
    });
  });

  it("survives an inventory record that does not read", async () => {
    await writeController();
    await d1.prepare("UPDATE controller SET inventory = '{'").run();
    expect((await get()).lastSweep).toBeNull();
  });
});

const SET = { paused: true, gcMode: "Report", allowEmpty: true, laneWidth: 4, brakeReleasedUntilTime: "2026-12-01T12:00:00.000Z" };

describe("PUT /v1/controller", () => {
  it("replaces all settings, raises the revision, and shows what follows", async () => {
    const response = await put(SET);
    expect([response.status, response.headers.get("ETag")]).toEqual([200, '"settings-r1"']);
    const body = await bodyOf(response);
    expect(body).toMatchObject({ ...SET, revision: 1, effective: { gcMode: "Report", laneWidth: 4 } });
    expect(await get()).toEqual(body);
    expect(
      await d1
        .prepare("SELECT * FROM settings")
        .all()
        .then(({ results }) => results),
    ).toEqual([
      { id: 1, revision: 1, paused: 1, gc_mode: "Report", allow_empty: 1, lane_width: 4, brake_released_until_time: NOW + 86_400_000 },
    ]);
  });

  it("leaves as configured what it leaves out or has as null", async () => {
    await put(SET);
    const body = await bodyOf(await put({ gcMode: null }));
    expect(body).toMatchObject({
      paused: false,
      gcMode: null,
      allowEmpty: false,
      laneWidth: null,
      brakeReleasedUntilTime: null,
      revision: 2,
    });
    expect(body.effective).toEqual({ gcMode: "Enforce", laneWidth: 1 });
  });

  it("is in the history with who asked and what changed", async () => {
    await put({ paused: true });
    await put({ paused: true, laneWidth: 2, gcMode: "Off" });
    expect(await events()).toMatchObject([
      {
        reason: "ControllerSettingsChanged",
        actor: "operator",
        message: "paused: false to true.",
        namespace: null,
        do_id: null,
        workspace_uid: null,
      },
      { reason: "ControllerSettingsChanged", actor: "operator", message: "gcMode: null to Off; laneWidth: null to 2." },
    ]);
  });

  it("takes back what was read, in another spelling of the time too, and writes nothing where nothing changes", async () => {
    await put(SET);
    await writeController();
    const read = await get();
    const before = await footprint();
    expect(await bodyOf(await put(read))).toEqual(read);
    expect((await put({ ...SET, brakeReleasedUntilTime: "2026-12-01T13:00:00+01:00" })).headers.get("ETag")).toBe('"settings-r1"');
    expect(await footprint()).toEqual(before);
    expect(await events()).toHaveLength(1);
  });

  it.each<[string, unknown, string]>([
    ["an unknown field", { gcmode: "Off" }, "/gcmode"],
    ["an unknown mode", { gcMode: "Delete" }, "/gcMode"],
    ["no lane", { laneWidth: 0 }, "/laneWidth"],
    ["a lane that is too wide", { laneWidth: 101 }, "/laneWidth"],
    ["half a lane", { laneWidth: 1.5 }, "/laneWidth"],
    ["a pause that is no boolean", { paused: "yes" }, "/paused"],
    ["a release that is no time", { brakeReleasedUntilTime: "tomorrow" }, "/brakeReleasedUntilTime"],
    ["a release without a time zone", { brakeReleasedUntilTime: "2026-11-30T13:00:00" }, "/brakeReleasedUntilTime"],
    ["a release for more than 24 hours", { brakeReleasedUntilTime: "2026-12-01T12:00:00.001Z" }, "/brakeReleasedUntilTime"],
    ["a list", [], ""],
    ["nothing", null, ""],
  ])("refuses %s", async (_sentence, json, pointer) => {
    const before = await footprint();
    expect(await refusalOf(await put(json))).toEqual({ status: 422, code: "INVALID_BODY", pointers: [pointer] });
    expect(await footprint()).toEqual(before);
  });

  it("needs a body that is JSON", async () => {
    expect((await api.send("PUT", PATH)).status).toBe(415);
    expect((await problemOf(await api.send("PUT", PATH, { body: "" }))).code).toBe("MALFORMED_JSON");
  });

  it("is done under If-Match only where the tag is the current one, from the first on", async () => {
    expect((await put(SET, { "If-Match": '"settings-r1"' })).status).toBe(412);
    expect((await put(SET, { "If-Match": '"settings-r0"' })).status).toBe(200);
    const stale = await put({}, { "If-Match": '"settings-r0"' });
    expect(await refusalOf(stale)).toEqual({ status: 412, code: "PRECONDITION_FAILED", pointers: ["header/If-Match"] });
    expect((await put({}, { "If-Match": '"settings-r1"' })).status).toBe(200);
    expect((await put({}, { "If-Match": "settings" })).status).toBe(400);
  });

  it("of two with the same tag lets one through, and one event tells of it", async () => {
    const headers = { "If-Match": '"settings-r0"' };
    const responses = await Promise.all([put({ paused: true }, headers), put({ laneWidth: 2 }, headers)]);
    expect(statusesOf(responses)).toEqual([200, 412]);
    expect(await events()).toHaveLength(1);
  });

  it("that came too late is decided again, and neither wipes the other's event nor invents one", async () => {
    await put({ laneWidth: 2 });
    let batches = 0;
    const binding = {
      prepare: (query: string) => d1.prepare(query),
      batch: async (statements: D1PreparedStatement[]) => {
        batches += 1;
        if (batches === 2) await put({ laneWidth: 3 });
        return await d1.batch(statements);
      },
    } as unknown as D1Database;
    const late = await openApi({ db: openDatabase(binding) });
    expect(await bodyOf(await late.send("PUT", PATH, { json: { laneWidth: 4 } }))).toMatchObject({ revision: 3, laneWidth: 4 });
    expect((await events()).map(({ message }) => message)).toEqual(["laneWidth: null to 2.", "laneWidth: 2 to 3.", "laneWidth: 3 to 4."]);
  });
});
