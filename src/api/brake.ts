/** What holds the controller back as a whole: the brake of the garbage collector, and that of the start lane. */
import { z } from "@hono/zod-openapi";
import type { Config } from "../config.ts";
import type { ControllerState } from "../store/controller-reading.ts";
import type { ControllerSettings, InventoryRecord } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { instant } from "./schema.ts";
import { toOptionalTimestamp } from "./wire.ts";

export const brakeSchema = z
  .object({
    engaged: z.boolean().meta({ description: "Whether orphans past every other guard are kept." }),
    reason: z.enum(["TooManyOrphans", "EmptyDesired"]).nullable(),
    eligible: z.int().meta({ description: "Orphans past every other guard, as of the last sweep." }),
    limit: z.int().meta({ description: "How many of them one sweep may destroy." }),
    releasedUntilTime: instant.nullable(),
  })
  .openapi("Brake");

/** So many intervals without a sweep, and what the last one saw is no longer to be relied on. */
const FRESH_INTERVALS = 3;

/** Why orphans are kept: as the last sweep found it, unless an operator has decided otherwise since. `sweep` null: there was none. */
export function brakeReason(
  sweep: Pick<InventoryRecord, "brake"> | null,
  settings: ControllerSettings,
  now: Instant,
): InventoryRecord["brake"] {
  const brake = sweep?.brake ?? null;
  if (brake === "TooManyOrphans" && isReleased(settings, now)) return null;
  return brake === "EmptyDesired" && settings.allowEmpty ? null : brake;
}

export function toBrake(inventory: InventoryRecord | null, settings: ControllerSettings, now: Instant): z.infer<typeof brakeSchema> {
  const reason = brakeReason(inventory, settings, now);
  return {
    engaged: reason !== null,
    reason,
    eligible: inventory?.eligible ?? 0,
    limit: inventory?.limit ?? 0,
    releasedUntilTime: isReleased(settings, now) ? toOptionalTimestamp(settings.brakeReleasedUntilTime) : null,
  };
}

export function isStale({ time, retryTime }: InventoryRecord, { sweepIntervalMs }: Config, now: Instant): boolean {
  return now - Math.max(time, retryTime ?? 0) > FRESH_INTERVALS * sweepIntervalMs;
}

/** Null where starts are admitted. */
export function startBrakeOf(
  state: ControllerState | null,
  now: Instant,
): (ControllerState["startBrake"] & { readonly untilTime: Instant }) | null {
  const untilTime = state?.startBrake.untilTime ?? null;
  return state === null || untilTime === null || untilTime <= now ? null : { ...state.startBrake, untilTime };
}

function isReleased({ brakeReleasedUntilTime }: ControllerSettings, now: Instant): boolean {
  return brakeReleasedUntilTime !== null && now < brakeReleasedUntilTime;
}
