/** The controller as JSON, from its row and the settings. */
import type { Config } from "../config.ts";
import type { ControllerView } from "../store/controller-reading.ts";
import type { Instant } from "../workspace.ts";
import { startBrakeOf, toBrake } from "./brake.ts";
import { controllerConditions } from "./controller-conditions.ts";
import type { ControllerBody } from "./controller-schema.ts";
import { toOptionalTimestamp, toTimestamp } from "./wire.ts";

/** The settings' tag: the controller's own work breaks no read-modify-write. */
export function toSettingsEtag({ revision }: Pick<ControllerView, "revision">): string {
  return `"settings-r${revision}"`;
}

export function toControllerBody(view: ControllerView, config: Config, now: Instant): ControllerBody {
  const { settings, state, revision } = view;
  const inventory = state?.inventory ?? null;
  return {
    paused: settings.paused,
    gcMode: settings.gcMode,
    allowEmpty: settings.allowEmpty,
    laneWidth: settings.laneWidth,
    brakeReleasedUntilTime: toOptionalTimestamp(settings.brakeReleasedUntilTime),
    revision,
    etag: toSettingsEtag(view),
    effective: { gcMode: settings.gcMode ?? config.gcMode, laneWidth: settings.laneWidth ?? config.startLaneWidth },
    lease: toLease(view),
    lastSweep: toLastSweep(view),
    brake: toBrake(inventory, settings, now),
    startBrake: toStartBrake(view, now),
    backups: config.backups && { mode: config.backups.mode, lastSweep: toLastBackupSweep(view) },
    conditions: [...controllerConditions(view, config, now)],
  };
}

function toLease({ state }: ControllerView): ControllerBody["lease"] {
  if (state === null) return null;
  const { holder, epoch, expiresTime } = state.lease;
  return { holder, epoch, expiresTime: expiresTime === GIVEN_UP ? null : toTimestamp(expiresTime) };
}

/** What a lease that was given up expires at. */
const GIVEN_UP = 0;

function toLastSweep({ state }: ControllerView): ControllerBody["lastSweep"] {
  if (state === null || state.inventory === null) return null;
  const { time, completeTime, outcome, message, running, eligible, limit } = state.inventory;
  return { time: toTimestamp(time), completeTime: toOptionalTimestamp(completeTime), outcome, message, running, eligible, limit };
}

function toLastBackupSweep({ state }: ControllerView): NonNullable<ControllerBody["backups"]>["lastSweep"] {
  const sweep = state?.backupSweep ?? null;
  if (sweep === null) return null;
  const { time, completeTime, outcome, message, stored, eligible, limit, brake } = sweep;
  return { time: toTimestamp(time), completeTime: toOptionalTimestamp(completeTime), outcome, message, stored, eligible, limit, brake };
}

function toStartBrake({ state }: ControllerView, now: Instant): ControllerBody["startBrake"] {
  const brake = startBrakeOf(state, now);
  if (brake === null) return { engaged: false, untilTime: null, reason: null, message: null };
  return { engaged: true, untilTime: toTimestamp(brake.untilTime), reason: brake.reason, message: brake.message };
}
