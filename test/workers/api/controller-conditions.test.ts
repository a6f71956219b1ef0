import { describe, expect, it } from "vitest";
import { type ControllerCondition, controllerConditions } from "../../../src/api/controller-conditions.ts";
import { parseConfig } from "../../../src/config.ts";
import { DEFAULT_SETTINGS } from "../../../src/store/controller-settings.ts";
import type { ControllerState } from "../../../src/store/controller-reading.ts";
import type { ControllerSettings, GcMode, InventoryRecord } from "../../../src/unclaimed.ts";
import { INVENTORY } from "./rows.ts";
import { NOW } from "./support.ts";

interface Situation {
  readonly settings?: Partial<ControllerSettings>;
  readonly inventory?: Partial<InventoryRecord> | null;
  readonly startBrake?: Partial<ControllerState["startBrake"]>;
  readonly configured?: GcMode;
}

function find(type: ControllerCondition["type"], { settings, inventory, startBrake, configured = "Enforce" }: Situation): string {
  const state: ControllerState = {
    lease: { holder: "h", epoch: 1, expiresTime: NOW },
    startBrake: { untilTime: null, reason: null, message: null, ...startBrake },
    inventory: inventory === null ? null : { ...INVENTORY, ...inventory },
    backupSweep: null,
  };
  const view = { state, settings: { ...DEFAULT_SETTINGS, ...settings }, revision: 1 };
  const found = controllerConditions(view, { ...parseConfig({}), gcMode: configured }, NOW).find((condition) => condition.type === type);
  return `${found?.status}/${found?.reason} ${found?.message}`.trim();
}

const PAUSED = "False/Paused An operator has paused the controller.";

describe("StartsAllowed", () => {
  it.each<[string, Situation, string]>([
    ["nothing holds it back", {}, "True/LaneOpen"],
    ["the brake is on", { startBrake: { untilTime: NOW + 1, reason: "RateLimited", message: "too many" } }, "False/RateLimited too many"],
    ["the brake's time is over", { startBrake: { untilTime: NOW, reason: "RateLimited", message: "too many" } }, "True/LaneOpen"],
    ["the brake is on for a reason that was not kept", { startBrake: { untilTime: NOW + 1 } }, "False/CapacityUnavailable"],
    [
      "it is paused, whatever the brake",
      { settings: { paused: true }, startBrake: { untilTime: NOW + 1, reason: "Misconfigured" } },
      PAUSED,
    ],
  ])("where %s", (_sentence, situation, expected) => {
    expect(find("StartsAllowed", situation)).toBe(expected);
  });
});

describe("InventoryTrusted", () => {
  it.each<[string, Situation, string]>([
    ["the list was complete", {}, "True/Complete"],
    ["there is only the ledger", { inventory: { outcome: "LedgerOnly", message: "Not enabled." } }, "True/LedgerOnly Not enabled."],
    ["the list failed", { inventory: { outcome: "Failed", message: "Unauthorized: code 10000: x" } }, "False/Unauthorized code 10000: x"],
    ["the list failed without a reason", { inventory: { outcome: "Failed", message: "no words: x" } }, "False/Failed no words: x"],
    ["there was no sweep yet", { inventory: null }, "Unknown/NoSweepYet"],
    ["three intervals have passed", { inventory: { time: NOW - 90_000 } }, "True/Complete"],
    ["more than three have passed", { inventory: { time: NOW - 90_001 } }, "False/Stale The last sweep ended at 2026-11-30T11:58:29.999Z."],
    [
      "it failed and is old",
      { inventory: { time: NOW - 90_001, outcome: "Failed" } },
      "False/Stale The last sweep ended at 2026-11-30T11:58:29.999Z.",
    ],
  ])("where %s", (_sentence, situation, expected) => {
    expect(find("InventoryTrusted", situation)).toBe(expected);
  });
});

describe("GarbageCollectionAllowed", () => {
  const tooMany = { eligible: 9, limit: 5, brake: "TooManyOrphans" } as const;
  const empty = { eligible: 2, limit: 5, brake: "EmptyDesired" } as const;
  const TOO_MANY = "False/TooManyOrphans 9 orphans are to be destroyed, more than the 5 of one sweep.";
  const EMPTY = "False/EmptyDesired 2 orphans are to be destroyed, and not one workspace is wished.";
  const OFF = "False/Off Nothing is listed, and no orphan is destroyed.";
  const REPORT = "False/ReportOnly Orphans are reported and not destroyed.";
  it.each<[string, Situation, string]>([
    ["nothing holds it back", {}, "True/Enforcing"],
    ["there was no sweep yet", { inventory: null }, "True/Enforcing"],
    ["there are too many", { inventory: tooMany }, TOO_MANY],
    [
      "there are too many and the brake is released",
      { inventory: tooMany, settings: { brakeReleasedUntilTime: NOW + 1 } },
      "True/Enforcing",
    ],
    ["there are too many and the release is over", { inventory: tooMany, settings: { brakeReleasedUntilTime: NOW } }, TOO_MANY],
    ["nothing is wished", { inventory: empty }, EMPTY],
    ["nothing is wished and the brake is released", { inventory: empty, settings: { brakeReleasedUntilTime: NOW + 1 } }, EMPTY],
    ["nothing is wished and that is allowed", { inventory: empty, settings: { allowEmpty: true } }, "True/Enforcing"],
    ["there are too many and emptiness is allowed", { inventory: tooMany, settings: { allowEmpty: true } }, TOO_MANY],
    ["an operator wants reports", { settings: { gcMode: "Report" }, inventory: tooMany }, REPORT],
    ["reports are configured", { configured: "Report" }, REPORT],
    ["reports are configured and an operator enforces", { configured: "Report", settings: { gcMode: "Enforce" } }, "True/Enforcing"],
    ["it is off", { settings: { gcMode: "Off" } }, OFF],
    ["it is paused, whatever the mode", { settings: { paused: true, gcMode: "Off" } }, PAUSED],
  ])("where %s", (_sentence, situation, expected) => {
    expect(find("GarbageCollectionAllowed", situation)).toBe(expected);
  });
});
