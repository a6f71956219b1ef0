/** What users do in a day: each slot's workspaces come, change, are used, and go. */
import type { Chance } from "./chance.ts";
import type { Happening, WorkspaceEvent } from "./script.ts";

/** A spec in short. Instants are offsets from the time at which it is written. */
export interface SpecSketch {
  readonly mode: "Running" | "Suspended";
  readonly env: number;
  readonly idleSeconds: number | null;
  readonly lifetimeSeconds: number | null;
  readonly expiresInMs: number | null;
  readonly paused: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export function planLives(chance: Chance, workspaces: number, dayMs: number): readonly Happening[] {
  return Array.from({ length: workspaces }, (_, slot) => planSlot(chance, slot, dayMs)).flat();
}

function planSlot(chance: Chance, slot: number, dayMs: number): readonly Happening[] {
  const happenings: Happening[] = [];
  const add = (ms: number, event: WorkspaceEvent) => {
    if (ms < dayMs) happenings.push({ ms: Math.floor(ms), slot, event });
  };
  // A third is there from the first hour on, the others come all day.
  let ms = chance.happens(0.3) ? chance.next() * Math.min(HOUR_MS, dayMs / 8) : chance.next() * dayMs;
  do {
    const endMs = ms + chance.lasting(5 * MINUTE_MS, 10 * HOUR_MS);
    planLife(chance, ms, endMs, add);
    // Most names are used once; some at once again.
    ms = endMs + chance.lasting(1000, 2 * HOUR_MS);
  } while (chance.happens(0.25) && ms < dayMs);
  return happenings;
}

function planLife(chance: Chance, startMs: number, endMs: number, add: (ms: number, event: WorkspaceEvent) => void): void {
  let sketch = firstSketch(chance);
  add(startMs, { kind: "create", sketch });
  const edits = chance.happens(0.4) ? 0 : chance.between(1, 4);
  const times = Array.from({ length: edits }, () => startMs + chance.next() * (endMs - startMs)).toSorted((one, other) => one - other);
  for (const ms of times) {
    sketch = edited(chance, sketch);
    add(ms, { kind: "replace", sketch });
    // Second thoughts, while the first are being acted on.
    if (chance.happens(0.3)) add(ms + chance.lasting(100, 60_000), { kind: "replace", sketch: (sketch = edited(chance, sketch)) });
  }
  if (sketch.idleSeconds !== null) planUse(chance, startMs, endMs, sketch.idleSeconds * 1000, add);
  if (chance.happens(0.85)) add(endMs, { kind: "delete" });
}

function planUse(chance: Chance, startMs: number, endMs: number, idleMs: number, add: (ms: number, event: WorkspaceEvent) => void): void {
  const visits = chance.between(0, 4);
  for (let visit = 0; visit < visits; visit += 1) {
    const ms = startMs + chance.next() * (endMs - startMs);
    if (chance.happens(0.5)) add(ms, { kind: "wake" });
    // Some uses come just as the time is up.
    for (let use = 0; use < 3; use += 1) add(ms + 20_000 + use * idleMs * chance.pick([0.3, 0.9, 1]), { kind: "use" });
  }
}

function firstSketch(chance: Chance): SpecSketch {
  return {
    mode: chance.happens(0.9) ? "Running" : "Suspended",
    env: chance.between(1, 3),
    idleSeconds: chance.happens(0.3) ? chance.lasting(60, 3600) : null,
    lifetimeSeconds: chance.happens(0.1) ? chance.lasting(600, 6 * 3600) : null,
    expiresInMs: chance.happens(0.1) ? chance.lasting(MINUTE_MS, 8 * HOUR_MS) : null,
    paused: false,
  };
}

function edited(chance: Chance, sketch: SpecSketch): SpecSketch {
  switch (chance.pick(["mode", "mode", "env", "env", "paused", "idle", "all"] as const)) {
    case "mode":
      return { ...sketch, mode: sketch.mode === "Running" ? "Suspended" : "Running" };
    case "env":
      return { ...sketch, env: sketch.env + 1 };
    case "paused":
      return { ...sketch, paused: !sketch.paused };
    case "idle":
      return { ...sketch, idleSeconds: sketch.idleSeconds === null ? chance.lasting(60, 3600) : null };
    case "all":
      return firstSketch(chance);
  }
}
