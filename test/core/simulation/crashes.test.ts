/**
 * Invariant 13, for all that has to do with files: a workspace is backed up, suspended, woken, deleted and cloned, and the controller dies
 * in the midst of it, once at each call that it makes.
 */
import { expect, test } from "vitest";
import type { BackupSketch, SpecSketch } from "../../simulation/lives.ts";
import { PLAIN } from "../../simulation/plain.ts";
import { type Happening, MINUTE_MS, type Script, type WorkspaceEvent } from "../../simulation/script.ts";
import { play } from "../../simulation/simulate.ts";

const EVERY_MINUTE: BackupSketch = { everySeconds: 60, onSuspend: "Require", keepLast: 1, keepForSeconds: null };
const SKETCH: SpecSketch = { ...PLAIN, backup: EVERY_MINUTE, finalBackup: "Require", deadlineSeconds: 300 };

/** In minutes. */
const LIFE: readonly (readonly [minute: number, event: WorkspaceEvent])[] = [
  [0, { kind: "create", sketch: SKETCH }],
  [0.9, { kind: "use" }],
  [3.2, { kind: "replace", sketch: { ...SKETCH, mode: "Suspended" } }],
  [5.1, { kind: "replace", sketch: SKETCH }],
  [7.3, { kind: "replace", sketch: { ...SKETCH, env: 2 } }],
  [9.4, { kind: "requestBackup" }],
  [10.1, { kind: "delete" }],
  [12.2, { kind: "create", sketch: { ...SKETCH, source: { slot: 1, isById: false } } }],
  [13.5, { kind: "use" }],
  [15.3, { kind: "delete" }],
];
const TICKS = 18;
/** More than any tick has. */
const MOST_CALLS = 300;

function dayWith(tick: number, diesAt: number): Script {
  const happenings: readonly Happening[] = [
    { ms: tick * MINUTE_MS, slot: null, event: { kind: "fortune", tick, fortune: { diesAt, stall: null } } },
    ...LIFE.map(([minute, event]): Happening => ({ ms: minute * MINUTE_MS, slot: 1, event })),
  ];
  return { seed: 1000 * tick + diesAt, ticks: TICKS, workspaces: 2, faultRate: 0, faultKinds: [], happenings };
}

const happened: Record<string, number> = {};

test.for(Array.from({ length: TICKS }, (_, tick) => tick))("minute %i", { timeout: 120_000 }, async (tick, { expect }) => {
  let deaths = 0;
  for (let diesAt = 1; diesAt < MOST_CALLS; diesAt += 1) {
    const { violations, counts } = await play(dayWith(tick, diesAt));
    expect(violations, `call ${diesAt}`).toEqual([]);
    for (const [what, times] of Object.entries(counts)) happened[what] = (happened[what] ?? 0) + times;
    if (counts["deaths"] === 0) break;
    deaths += 1;
  }
  expect(deaths).toBeLessThan(MOST_CALLS - 2);
});

test("files were saved, restored and removed on the way", () => {
  const least = ["deaths", "backups", "restored", "RemoveBackup", "Forget", "ended by stop"].filter(
    (what) => (happened[what] ?? 0) < TICKS,
  );
  expect(least).toEqual([]);
});
