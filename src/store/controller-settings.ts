/** The operator's settings as stored; without a row, everything is as configured. */
import type { ControllerSettings, GcMode } from "../unclaimed.ts";
import type { Database } from "./db.ts";
import { settings } from "./schema.ts";

type SettingsRow = typeof settings.$inferSelect;

export const DEFAULT_SETTINGS: ControllerSettings = {
  paused: false,
  gcMode: null,
  allowEmpty: false,
  laneWidth: null,
  brakeReleasedUntilTime: null,
};

const GC_MODES: readonly string[] = ["Off", "Report", "Enforce"] satisfies GcMode[];

/** The statement whose rows `toSettings` reads. */
export function selectSettings(db: Database) {
  return db.select().from(settings);
}

/** A mode of another version destroys nothing. */
export function toSettings([row]: readonly SettingsRow[]): ControllerSettings {
  if (row === undefined) return DEFAULT_SETTINGS;
  const { paused, gcMode, allowEmpty, laneWidth, brakeReleasedUntilTime } = row;
  const mode = gcMode === null || GC_MODES.includes(gcMode) ? (gcMode as GcMode | null) : "Report";
  return { paused, gcMode: mode, allowEmpty, laneWidth, brakeReleasedUntilTime };
}
