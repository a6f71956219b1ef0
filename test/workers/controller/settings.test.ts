import { beforeEach, expect, it } from "vitest";
import { DEFAULT_SETTINGS } from "../../../src/store/controller-settings.ts";
import { loadDue } from "../../../src/store/due.ts";
import { acquireLease } from "../../../src/store/lease.ts";
import type { ControllerSettings } from "../../../src/unclaimed.ts";
import { db, setSettings } from "./store-support.ts";
import { emptyTables, NOW } from "./support.ts";

beforeEach(emptyTables);

/** As a round reads them, and as whoever takes the lease does. */
async function settings(): Promise<ControllerSettings> {
  const query = { now: NOW, resync: null, resyncIntervalMs: 1, laneWidth: 1, runningLimits: {}, backups: false, limit: 1 };
  const { settings: read } = await loadDue(db, query);
  expect((await acquireLease(db, "a", NOW, 0))?.settings).toEqual(read);
  return read;
}

it("without a row everything is as configured", async () => {
  expect(await settings()).toEqual(DEFAULT_SETTINGS);
  expect(DEFAULT_SETTINGS).toEqual({ paused: false, gcMode: null, allowEmpty: false, laneWidth: null, brakeReleasedUntilTime: null });
});

it("a row is what the operator set", async () => {
  await setSettings({ paused: 1, gc_mode: "Off", allow_empty: 1, lane_width: 7, brake_released_until_time: NOW });
  expect(await settings()).toEqual({ paused: true, gcMode: "Off", allowEmpty: true, laneWidth: 7, brakeReleasedUntilTime: NOW });
});

it.each([
  ["Enforce", "Enforce"],
  ["Report", "Report"],
  ["Off", "Off"],
  [null, null],
  ["Obliterate", "Report"],
  ["enforce", "Report"],
  ["", "Report"],
])("the mode %j is read as %s: one of another version destroys nothing", async (stored, expected) => {
  await setSettings({ gc_mode: stored });
  expect(await settings()).toMatchObject({ gcMode: expected });
});
