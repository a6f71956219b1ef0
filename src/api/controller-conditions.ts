/** What holds of the controller as a whole, from its row and the settings alone. */
import type { Config } from "../config.ts";
import type { ControllerView } from "../store/controller-reading.ts";
import type { ControllerSettings, GcMode, InventoryRecord } from "../unclaimed.ts";
import type { ConditionStatus, Instant } from "../workspace.ts";
import { brakeReason, isStale, startBrakeOf } from "./brake.ts";
import { toTimestamp } from "./wire.ts";

export interface ControllerCondition {
  readonly type: "StartsAllowed" | "InventoryTrusted" | "GarbageCollectionAllowed";
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

type Finding = Omit<ControllerCondition, "type">;

export function controllerConditions(view: ControllerView, config: Config, now: Instant): readonly ControllerCondition[] {
  const { settings, state } = view;
  const inventory = state?.inventory ?? null;
  return [
    { type: "StartsAllowed", ...startsAllowed(view, now) },
    { type: "InventoryTrusted", ...inventoryTrusted(inventory, config, now) },
    { type: "GarbageCollectionAllowed", ...collectionAllowed(inventory, settings, settings.gcMode ?? config.gcMode, now) },
  ];
}

const PAUSED: Finding = { status: "False", reason: "Paused", message: "An operator has paused the controller." };

function startsAllowed({ settings, state }: ControllerView, now: Instant): Finding {
  if (settings.paused) return PAUSED;
  const brake = startBrakeOf(state, now);
  if (brake === null) return { status: "True", reason: "LaneOpen", message: "" };
  return { status: "False", reason: brake.reason ?? "CapacityUnavailable", message: brake.message ?? "" };
}

/** The reason that stands at the front of a failed listing's message. */
const LISTING_REASON = /^([A-Z][A-Za-z]*): /;

function inventoryTrusted(inventory: InventoryRecord | null, config: Config, now: Instant): Finding {
  if (inventory === null) return { status: "Unknown", reason: "NoSweepYet", message: "" };
  const { outcome, message, time } = inventory;
  if (isStale(inventory, config, now))
    return { status: "False", reason: "Stale", message: `The last sweep ended at ${toTimestamp(time)}.` };
  if (outcome !== "Failed") return { status: "True", reason: outcome, message };
  return { status: "False", reason: LISTING_REASON.exec(message)?.[1] ?? "Failed", message: message.replace(LISTING_REASON, "") };
}

function collectionAllowed(inventory: InventoryRecord | null, settings: ControllerSettings, mode: GcMode, now: Instant): Finding {
  if (settings.paused) return PAUSED;
  if (mode === "Off") return { status: "False", reason: "Off", message: "Nothing is listed, and no orphan is destroyed." };
  if (mode === "Report") return { status: "False", reason: "ReportOnly", message: "Orphans are reported and not destroyed." };
  const reason = brakeReason(inventory, settings, now);
  if (inventory === null || reason === null) return { status: "True", reason: "Enforcing", message: "" };
  const because = reason === "EmptyDesired" ? "and not one workspace is wished" : `more than the ${inventory.limit} of one sweep`;
  return { status: "False", reason, message: `${inventory.eligible} orphans are to be destroyed, ${because}.` };
}
