/** Days on which a mistake shows that an ordinary one seldom has: see `mistakes.ts`. */
import { Chance } from "./chance.ts";
import type { BackupSketch } from "./lives.ts";
import { PLAIN } from "./plain.ts";
import { type Happening, MINUTE_MS, type Script } from "./script.ts";

const OFTEN: BackupSketch = { everySeconds: 60, onSuspend: "Skip", keepLast: 2, keepForSeconds: null };

/** Users who change their minds all the time, through calls that take theirs. */
export function secondThoughts(seed: number): Script {
  const chance = new Chance(seed);
  const ticks = 120;
  const happenings = Array.from({ length: 8 }, (_, slot): readonly Happening[] => [
    { ms: 0, slot, event: { kind: "create", sketch: PLAIN } },
    ...Array.from({ length: 200 }, (): Happening => {
      const sketch = { ...PLAIN, mode: chance.pick(["Running", "Suspended"] as const) };
      return { ms: Math.floor(chance.next() * ticks * MINUTE_MS), slot, event: { kind: "replace", sketch } };
    }),
  ]).flat();
  const inOrder = happenings.toSorted((one, other) => one.ms - other.ms);
  return { seed, ticks, workspaces: 8, faultRate: 0.25, faultKinds: ["callLate"], happenings: inOrder };
}

/** Containers that are replaced every few minutes, through calls that take their time. */
export function shortLives(seed: number): Script {
  const sketch = { ...PLAIN, lifetimeSeconds: 200 };
  const happenings = Array.from({ length: 8 }, (_, slot): Happening => ({ ms: slot * 5000, slot, event: { kind: "create", sketch } }));
  return { seed, ticks: 1440, workspaces: happenings.length, faultRate: 0.25, faultKinds: ["callLate"], happenings };
}

/** Users who come back just as their workspace is put out. */
export function returns(seed: number): Script {
  const chance = new Chance(seed);
  const sketch = {
    ...PLAIN,
    idleSeconds: 300,
    backup: { everySeconds: null, onSuspend: "Require", keepLast: 2, keepForSeconds: null },
  } as const;
  const happenings = Array.from({ length: 8 }, (_, slot): readonly Happening[] => [
    { ms: slot * 5000, slot, event: { kind: "create", sketch } },
    ...Array.from({ length: 12 }, (__, n): readonly Happening[] => {
      const ms = (n + 1) * 15 * MINUTE_MS;
      return [
        { ms, slot, event: { kind: "wake" } },
        { ms: ms + MINUTE_MS, slot, event: { kind: "use" } },
        { ms: ms + 6 * MINUTE_MS + Math.floor(chance.next() * MINUTE_MS), slot, event: { kind: "use" } },
      ];
    }).flat(),
  ]).flat();
  const inOrder = happenings.toSorted((one, other) => one.ms - other.ms);
  return { seed, ticks: 200, workspaces: 8, faultRate: 0, faultKinds: [], happenings: inOrder };
}

/** Workspaces that are backed up every minute, and idle after some. */
export function idlers(seed: number): Script {
  const sketch = { ...PLAIN, idleSeconds: 600, backup: OFTEN };
  const happenings = Array.from({ length: 8 }, (_, slot): Happening => ({ ms: slot * 5000, slot, event: { kind: "create", sketch } }));
  return { seed, ticks: 120, workspaces: happenings.length, faultRate: 0, faultKinds: [], happenings };
}

/** Containers that end every few minutes, and objects that lose their memory in the midst of a restore. */
export function interruptions(seed: number): Script {
  const ticks = 200;
  const happenings = Array.from({ length: 8 }, (_, slot): readonly Happening[] => [
    { ms: slot * 1000, slot, event: { kind: "create", sketch: { ...PLAIN, backup: OFTEN } } },
    { ms: MINUTE_MS, slot, event: { kind: "use" } },
    ...Array.from({ length: ticks / 4 }, (_, n): Happening => {
      return { ms: (6 + 4 * n) * MINUTE_MS + slot * 7000, slot, event: { kind: "exit", code: 143, signalled: true } };
    }),
  ]).flat();
  const inOrder = happenings.toSorted((one, other) => one.ms - other.ms);
  return {
    seed,
    ticks,
    workspaces: 8,
    faultRate: 0.3,
    faultKinds: ["callReset", "callAnswerLost", "callHangs", "startHangs"],
    happenings: inOrder,
  };
}

/** Clones that have to begin anew before they have a backup of their own, of what is backed up every minute. */
export function clones(seed: number): Script {
  const ticks = 60;
  const pairs = Array.from({ length: 4 }, (_, pair) => ({ origin: 2 * pair + 1, slot: 2 * pair + 2 }));
  const happenings = pairs.flatMap(({ origin, slot }): readonly Happening[] => [
    { ms: origin * 1000, slot: origin, event: { kind: "create", sketch: { ...PLAIN, backup: OFTEN } } },
    { ms: 2 * MINUTE_MS, slot: origin, event: { kind: "use" } },
    { ms: 10 * MINUTE_MS, slot, event: { kind: "create", sketch: { ...PLAIN, source: { slot: origin, isById: false } } } },
    ...[20, 30, 40, 50].map((minute): Happening => {
      return { ms: minute * MINUTE_MS, slot, event: { kind: "exit", code: 143, signalled: true } };
    }),
  ]);
  const inOrder = happenings.toSorted((one, other) => one.ms - other.ms);
  return { seed, ticks, workspaces: 9, faultRate: 0, faultKinds: [], happenings: inOrder };
}

/** Ticks that are missed while a backup is under way. */
export function outages(seed: number): Script {
  const sketch = { ...PLAIN, backup: { ...OFTEN, everySeconds: 120 } };
  const ticks = 240;
  const created = Array.from({ length: 8 }, (_, slot): Happening => ({ ms: slot * 5000, slot, event: { kind: "create", sketch } }));
  const deaths = Array.from({ length: ticks }, (_, tick): Happening => {
    const diesAt = 5 + ((tick + seed) % 40);
    return { ms: tick * MINUTE_MS, slot: null, event: { kind: "fortune", tick, fortune: { diesAt, stall: null } } };
  });
  return { seed, ticks, workspaces: created.length, faultRate: 0.02, faultKinds: ["callHangs"], happenings: [...created, ...deaths] };
}
