/** A day as data: settings, and what happens at which second. A seed gives one day; any part of it can be left out and it still plays. */
import { Chance } from "./chance.ts";
import { FAULT_KINDS, type FaultKind } from "./faults.ts";
import type { ListTrouble } from "./listing.ts";
import type { Fortune } from "./process.ts";
import { type SpecSketch, planLives } from "./lives.ts";

/** What one slot of workspaces meets; a slot has one name, and one workspace of it at a time. */
export type WorkspaceEvent =
  | { readonly kind: "create"; readonly sketch: SpecSketch }
  | { readonly kind: "replace"; readonly sketch: SpecSketch }
  | {
      readonly kind:
        | "delete"
        | "wake"
        | "use"
        | "reconcile"
        | "requestDestroy"
        | "reset"
        | "ghost"
        | "cursed"
        | "requestBackup"
        | "deleteBackup"
        | "weaken";
    }
  | { readonly kind: "exit"; readonly code: number; readonly signalled: boolean };

export type CommonEvent =
  | { readonly kind: "deploy" | "stranger" | "protect" | "unprotect" | "requestOrphanDestroy" | "releaseBrake" }
  /** This share of all containers is told to go. */
  | { readonly kind: "rollout"; readonly share: number }
  /** This share of what lies in the bucket is not to be found. */
  | { readonly kind: "vanish"; readonly share: number; readonly ms: number }
  | { readonly kind: "noCapacity" | "rateLimited" | "storeDown" | "pause"; readonly ms: number }
  | { readonly kind: "gcMode"; readonly mode: "Off" | "Report"; readonly ms: number }
  | { readonly kind: "laneWidth"; readonly width: number | null }
  | { readonly kind: "list"; readonly trouble: ListTrouble; readonly ms: number };

/** A tick of cron's that is out of the ordinary. */
export type TickEvent =
  | { readonly kind: "missed"; readonly tick: number }
  | { readonly kind: "doubled"; readonly tick: number }
  | { readonly kind: "fortune"; readonly tick: number; readonly fortune: Fortune };

export type Happening =
  | { readonly ms: number; readonly slot: number; readonly event: WorkspaceEvent }
  | { readonly ms: number; readonly slot: null; readonly event: CommonEvent | TickEvent };

export interface Script {
  readonly seed: number;
  readonly ticks: number;
  readonly workspaces: number;
  readonly faultRate: number;
  readonly faultKinds: readonly FaultKind[];
  /** In the order of time. */
  readonly happenings: readonly Happening[];
}

export interface ScriptOptions {
  readonly workspaces: number;
  readonly ticks: number;
  /** Null: as the seed says, from 0 to 0.3. */
  readonly faultRate: number | null;
}

export const MINUTE_MS = 60_000;
const MAX_FAULT_RATE = 0.3;

export function writeScript(seed: number, { workspaces, ticks, faultRate }: ScriptOptions): Script {
  const chance = new Chance(seed);
  // Some days are quiet: then only what is written below happens.
  const drawn = chance.happens(0.1) ? 0 : chance.next() * MAX_FAULT_RATE;
  const dayMs = ticks * MINUTE_MS;
  const happenings = [
    ...planLives(chance.fork(), workspaces, dayMs),
    ...planMishaps(chance.fork(), workspaces, dayMs),
    ...planOperators(chance.fork(), dayMs),
    ...planPlatform(chance.fork(), dayMs),
    ...planTicks(chance.fork(), ticks),
  ];
  return {
    seed,
    ticks,
    workspaces,
    faultRate: faultRate ?? drawn,
    faultKinds: FAULT_KINDS,
    happenings: happenings.toSorted((one, other) => one.ms - other.ms),
  };
}

/** So many over the day, on average. */
function times(chance: Chance, dayMs: number, perDay: number): readonly number[] {
  const count = Math.floor((perDay * dayMs) / (1440 * MINUTE_MS) + chance.next());
  return Array.from({ length: count }, () => Math.floor(chance.next() * dayMs));
}

const EXITS = [
  { code: 0, signalled: false },
  { code: 1, signalled: false },
  { code: 137, signalled: false },
  { code: 143, signalled: false },
  { code: 143, signalled: true },
  { code: 137, signalled: true },
];

function planMishaps(chance: Chance, workspaces: number, dayMs: number): readonly Happening[] {
  const one = (perWorkspace: number, event: () => WorkspaceEvent): readonly Happening[] =>
    times(chance, dayMs, perWorkspace * workspaces).map((ms) => ({ ms, slot: chance.between(0, workspaces - 1), event: event() }));
  return [
    ...one(0.8, () => ({ kind: "exit", ...chance.pick(EXITS) })),
    ...one(0.3, () => ({ kind: "reset" })),
    ...one(0.15, () => ({ kind: "ghost" })),
    ...one(0.03, () => ({ kind: "cursed" })),
    ...one(0.05, () => ({ kind: "requestDestroy" })),
    ...one(0.05, () => ({ kind: "reconcile" })),
    ...times(chance, dayMs, workspaces / 50).flatMap((ms) => flapping(chance, ms, chance.between(0, workspaces - 1))),
  ];
}

/** Exits again and again, soon after each start. */
function flapping(chance: Chance, ms: number, slot: number): readonly Happening[] {
  return Array.from({ length: chance.between(3, 8) }, (_, n) => ({
    ms: ms + n * chance.between(5000, 60_000),
    slot,
    event: { kind: "exit", code: 1, signalled: false },
  }));
}

function planOperators(chance: Chance, dayMs: number): readonly Happening[] {
  const some = (perDay: number, event: () => CommonEvent): readonly Happening[] =>
    times(chance, dayMs, perDay).map((ms) => ({ ms, slot: null, event: event() }));
  return [
    ...some(2, () => ({ kind: "pause", ms: chance.lasting(MINUTE_MS, 30 * MINUTE_MS) })),
    ...some(2, () => ({ kind: "gcMode", mode: chance.pick(["Off", "Report"]), ms: chance.lasting(2 * MINUTE_MS, 60 * MINUTE_MS) })),
    ...some(2, () => ({ kind: "laneWidth", width: chance.pick([null, 1, 2, 3]) })),
    ...some(2, () => ({ kind: "releaseBrake" })),
    ...some(6, () => ({ kind: "protect" })),
    ...some(6, () => ({ kind: "unprotect" })),
    ...some(3, () => ({ kind: "requestOrphanDestroy" })),
  ];
}

const TROUBLES: readonly ((chance: Chance) => ListTrouble)[] = [
  (chance) => ({ kind: "Stale", lagMs: chance.lasting(5000, 10 * MINUTE_MS) }),
  (chance) => ({ kind: "Stale", lagMs: chance.lasting(5000, 10 * MINUTE_MS) }),
  (chance) => ({ kind: "Failing", reason: chance.pick(["Unauthorised", "RateLimited", "Unavailable", "Timeout", "Changed"]) }),
  () => ({ kind: "NotEnabled" }),
  () => ({ kind: "Wordless" }),
  () => ({ kind: "Nameless" }),
];

function planPlatform(chance: Chance, dayMs: number): readonly Happening[] {
  const some = (perDay: number, event: () => CommonEvent): readonly Happening[] =>
    times(chance, dayMs, perDay).map((ms) => ({ ms, slot: null, event: event() }));
  const burst = chance.happens(0.3) ? Math.floor(chance.next() * dayMs) : null;
  return [
    ...some(3, () => ({ kind: "rollout", share: chance.next() * 0.6 })),
    ...some(1, () => ({ kind: "vanish", share: chance.next() * 0.3, ms: chance.lasting(MINUTE_MS, 60 * MINUTE_MS) })),
    ...some(3, () => ({ kind: "deploy" })),
    ...some(3, () => ({ kind: "noCapacity", ms: chance.lasting(10_000, 20 * MINUTE_MS) })),
    ...some(3, () => ({ kind: "rateLimited", ms: chance.lasting(10_000, 5 * MINUTE_MS) })),
    ...some(2, () => ({ kind: "storeDown", ms: chance.lasting(1000, 5 * MINUTE_MS) })),
    ...some(8, () => ({ kind: "list", trouble: chance.pick(TROUBLES)(chance), ms: chance.lasting(MINUTE_MS, 60 * MINUTE_MS) })),
    ...some(12, () => ({ kind: "stranger" })),
    // More than the brake lets go at once.
    ...(burst === null ? [] : Array.from({ length: 20 }, (): Happening => ({ ms: burst, slot: null, event: { kind: "stranger" } }))),
  ];
}

function planTicks(chance: Chance, ticks: number): readonly Happening[] {
  const outage = chance.happens(0.5) ? { from: chance.between(0, ticks), length: chance.between(3, 30) } : { from: ticks, length: 0 };
  return Array.from({ length: ticks }, (_, tick): readonly Happening[] => {
    const happens = (event: TickEvent): readonly Happening[] => [{ ms: tick * MINUTE_MS, slot: null, event }];
    if (tick >= outage.from && tick < outage.from + outage.length) return happens({ kind: "missed", tick });
    const draw = chance.next();
    if (draw < 0.02) return happens({ kind: "missed", tick });
    if (draw < 0.04) return happens({ kind: "doubled", tick });
    if (draw < 0.08) return happens({ kind: "fortune", tick, fortune: { diesAt: chance.lasting(1, 60), stall: null } });
    if (draw >= 0.1) return [];
    const stall = { at: chance.lasting(1, 60), ms: chance.lasting(5000, 200_000) };
    return happens({ kind: "fortune", tick, fortune: { diesAt: null, stall } });
  }).flat();
}
