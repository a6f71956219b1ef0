/** What the platform does with one start, one preparation, one backup: as the day's troubles say, or else as chance does. */
import type { Instant } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import { BACKUP_FAULTS, type Faults, RESTORE_FAULTS, START_FAULTS } from "./faults.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Course, Fate } from "./surroundings.ts";

/** Of the whole platform, at a time. */
export interface Troubles {
  /** Workspaces whose image does not exist. */
  readonly cursed: ReadonlySet<string>;
  readonly noCapacityUntilTime: Instant;
  readonly rateLimitedUntilTime: Instant;
}

const NO_CAPACITY = "There is no container instance available at this time.";
const RATE_LIMITED = "You are requesting too many containers per second.";

export function fateOf({ uid }: Sandbox, troubles: Troubles, now: Instant, chance: Chance, faults: Faults): Fate {
  const ms = chance.lasting(500, 20_000);
  if (uid !== null && troubles.cursed.has(uid)) return refused("No such image available", ms);
  if (now < troubles.noCapacityUntilTime) return refused(NO_CAPACITY, ms);
  if (now < troubles.rateLimitedUntilTime) return refused(RATE_LIMITED, ms, chance.between(1000, 60_000));
  switch (faults.draw(START_FAULTS)) {
    case null:
      return { kind: "Ready", ms };
    case "startFails":
      return { kind: "Fails", ms, message: "connect ECONNREFUSED" };
    case "startExits":
      return { kind: "Exits", ms };
    case "startHangs":
      return { kind: "NeverReady", ms };
    case "startNoCapacity":
      return refused(NO_CAPACITY, ms);
    case "startRateLimited":
      return refused(RATE_LIMITED, ms, chance.happens(0.5) ? chance.between(1000, 60_000) : null);
  }
}

function refused(message: string, ms: number, retryAfterMs: number | null = null): Fate {
  return { kind: "Refused", ms, message, retryAfterMs };
}

const PREPARATION_MS = 40_000;
/** Some take longer than they may. */
const BACKUP_MS = 150_000;

export function restoreCourse(chance: Chance, faults: Faults): Course {
  const fault = faults.draw(RESTORE_FAULTS);
  return course(fault, "restoreHangs", chance.lasting(200, PREPARATION_MS));
}

export function setupCourse(chance: Chance, faults: Faults): Course {
  return course(faults.draw(["setupFails"]), null, chance.lasting(200, PREPARATION_MS));
}

export function backupCourse(chance: Chance, faults: Faults): Course {
  const fault = faults.draw(BACKUP_FAULTS);
  return course(fault, "backupHangs", chance.lasting(500, fault === null ? BACKUP_MS / 2 : BACKUP_MS));
}

function course<Fault>(fault: Fault | null, hanging: Fault | null, ms: number): Course {
  if (fault === null) return { kind: "Succeeds", ms };
  return { kind: fault === hanging ? "Hangs" : "Fails", ms };
}
