/** Ticks with a sweep of the inventory each, and what became of the instances. */
import type { InventoryRecord } from "../../../src/unclaimed.ts";
import { Controller, all } from "./support.ts";

/** One sweep in each tick of twenty seconds; two of them and the grace are a minute. */
export const GC = {
  TICK_BUDGET_SECONDS: "20",
  POLL_INTERVAL_MS: "10000",
  SWEEP_INTERVAL_SECONDS: "20",
  ORPHAN_GRACE_SECONDS: "40",
  RESYNC_INTERVAL_SECONDS: "60",
};
/** Ticks within which an orphan is gone that nothing protects: the grace, two complete sweeps, and the one that confirms it. */
export const GONE_AFTER = 5;
/** Long enough to destroy whatever would be destroyed at all. */
export const LONG = 6;

/** With the platform's list, which follows the world. */
export function withList(environment: Readonly<Record<string, string>> = {}): Controller {
  const controller = new Controller({ ...GC, ...environment });
  controller.inventory = controller.platform;
  controller.world.defaults.startMs = 500;
  return controller;
}

export async function ready(controller: Controller, ...names: readonly string[]): Promise<readonly string[]> {
  const workspaces = [];
  for (const name of names) workspaces.push(await controller.put(name));
  await controller.untilReady(names, names.length * 30_000);
  return workspaces.map(({ uid }) => uid);
}

/** `n` strangers that nobody can name. */
export function strangers(controller: Controller, count: number, first = "f"): readonly string[] {
  const doIds = Array.from({ length: count }, (_, index) => `${first}${String(index).padStart(4, "0")}`.padEnd(64, "0"));
  for (const doId of doIds) controller.world.startStranger({ doId });
  return doIds;
}

export function running(controller: Controller): readonly string[] {
  return controller.world.running.map(({ doId }) => doId).toSorted();
}

/** How often the controller told an instance to go that it took for an orphan. */
export function orphanDestroys(controller: Controller): number {
  return controller.world.calls.filter(({ kind }) => kind === "destroyOrphan").length;
}

export async function unclaimed(): Promise<readonly { doId: string; state: string; timesSeen: number; destroyAttempts: number }[]> {
  return await all(
    "SELECT do_id AS doId, state, times_seen AS timesSeen, destroy_attempts AS destroyAttempts FROM unclaimed ORDER BY do_id",
  );
}

export async function lastSweep(): Promise<InventoryRecord> {
  const [row] = await all<{ inventory: string }>("SELECT inventory FROM controller");
  return JSON.parse(row?.inventory ?? "null") as InventoryRecord;
}
