/** What users do in a day: each slot's workspaces come, change, are used, and go. */
import type { BackupPolicy } from "../../src/workspace.ts";
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
  /** Null: none is taken unless somebody asks. */
  readonly backup: BackupSketch | null;
  readonly finalBackup: BackupPolicy;
  /** For the final backup. */
  readonly deadlineSeconds: number;
  readonly setup: boolean;
  /** The slot whose workspace it is a clone of; by the id of its newest backup, or by its name. */
  readonly source: { readonly slot: number; readonly isById: boolean } | null;
}

export interface BackupSketch {
  readonly everySeconds: number | null;
  readonly onSuspend: BackupPolicy;
  readonly keepLast: number;
  readonly keepForSeconds: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export function planLives(chance: Chance, workspaces: number, dayMs: number): readonly Happening[] {
  return Array.from({ length: workspaces }, (_, slot) => planSlot(chance, { slot, slots: workspaces }, dayMs)).flat();
}

interface Place {
  readonly slot: number;
  readonly slots: number;
}

function planSlot(chance: Chance, place: Place, dayMs: number): readonly Happening[] {
  const happenings: Happening[] = [];
  const add = (ms: number, event: WorkspaceEvent) => {
    if (ms < dayMs) happenings.push({ ms: Math.floor(ms), slot: place.slot, event });
  };
  // A third is there from the first hour on, the others come all day.
  let ms = chance.happens(0.3) ? chance.next() * Math.min(HOUR_MS, dayMs / 8) : chance.next() * dayMs;
  let isAgain = false;
  do {
    const endMs = ms + chance.lasting(5 * MINUTE_MS, 10 * HOUR_MS);
    planLife(chance, place, ms, endMs, isAgain, add);
    // Most names are used once; some at once again, for what their last workspace left.
    ms = endMs + chance.lasting(1000, 2 * HOUR_MS);
    isAgain = true;
  } while (chance.happens(0.25) && ms < dayMs);
  return happenings;
}

function planLife(
  chance: Chance,
  place: Place,
  startMs: number,
  endMs: number,
  isAgain: boolean,
  add: (ms: number, event: WorkspaceEvent) => void,
): void {
  let sketch = firstSketch(chance, place);
  if (isAgain && chance.happens(0.6)) sketch = { ...sketch, source: { slot: place.slot, isById: chance.happens(0.5) } };
  add(startMs, { kind: "create", sketch });
  const edits = chance.happens(0.4) ? 0 : chance.between(1, 4);
  const times = Array.from({ length: edits }, () => startMs + chance.next() * (endMs - startMs)).toSorted((one, other) => one - other);
  for (const ms of times) {
    sketch = edited(chance, place, sketch);
    add(ms, { kind: "replace", sketch });
    // Second thoughts, while the first are being acted on.
    if (chance.happens(0.3)) add(ms + chance.lasting(100, 60_000), { kind: "replace", sketch: (sketch = edited(chance, place, sketch)) });
  }
  planBackups(chance, startMs, endMs, add);
  if (sketch.idleSeconds !== null) planUse(chance, startMs, endMs, sketch.idleSeconds * 1000, add);
  if (!chance.happens(0.85)) return;
  add(endMs, { kind: "delete" });
  // Who will not wait any longer.
  if (chance.happens(0.1)) add(endMs + chance.lasting(1000, 5 * MINUTE_MS), { kind: "weaken" });
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

/** Asked for, and thrown away, now and then. */
function planBackups(chance: Chance, startMs: number, endMs: number, add: (ms: number, event: WorkspaceEvent) => void): void {
  const some = (most: number, event: WorkspaceEvent) => {
    for (let left = chance.between(-most, most); left > 0; left -= 1) add(startMs + chance.next() * (endMs - startMs), event);
  };
  some(3, { kind: "requestBackup" });
  some(1, { kind: "deleteBackup" });
}

function firstSketch(chance: Chance, { slots }: Place): SpecSketch {
  return {
    mode: chance.happens(0.9) ? "Running" : "Suspended",
    env: chance.between(1, 3),
    idleSeconds: chance.happens(0.3) ? chance.lasting(60, 3600) : null,
    lifetimeSeconds: chance.happens(0.1) ? chance.lasting(600, 6 * 3600) : null,
    expiresInMs: chance.happens(0.1) ? chance.lasting(MINUTE_MS, 8 * HOUR_MS) : null,
    paused: false,
    backup: chance.happens(0.7) ? backupSketch(chance) : null,
    finalBackup: chance.pick(POLICIES),
    deadlineSeconds: chance.lasting(30, 1200),
    setup: chance.happens(0.2),
    source: chance.happens(0.15) ? { slot: chance.between(0, slots - 1), isById: chance.happens(0.5) } : null,
  };
}

const POLICIES = ["Require", "BestEffort", "Skip"] as const;

function backupSketch(chance: Chance): BackupSketch {
  return {
    everySeconds: chance.happens(0.4) ? chance.lasting(60, 4 * 3600) : null,
    onSuspend: chance.pick(POLICIES),
    keepLast: chance.between(1, 3),
    keepForSeconds: chance.happens(0.5) ? chance.lasting(60, 2 * 3600) : null,
  };
}

function edited(chance: Chance, place: Place, sketch: SpecSketch): SpecSketch {
  switch (chance.pick(["mode", "mode", "env", "env", "paused", "idle", "backup", "all"] as const)) {
    case "mode":
      return { ...sketch, mode: sketch.mode === "Running" ? "Suspended" : "Running" };
    case "env":
      return { ...sketch, env: sketch.env + 1 };
    case "paused":
      return { ...sketch, paused: !sketch.paused };
    case "idle":
      return { ...sketch, idleSeconds: sketch.idleSeconds === null ? chance.lasting(60, 3600) : null };
    case "backup":
      return { ...sketch, backup: chance.happens(0.8) ? backupSketch(chance) : null };
    case "all":
      return { ...firstSketch(chance, place), source: sketch.source };
  }
}
