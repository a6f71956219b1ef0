/**
 * Random users, strangers, crashes, faults and ticks against a model of what was wished. Whatever happened: once the world is quiet, ticks bring
 * every workspace to its wish, and the promises of docs/architecture.md held all the time (invariants 1, 2, 5, 8, 9, 11, 13).
 */
import fc from "fast-check";
import { beforeEach, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import type { WorkspaceSpec } from "../../../src/workspace.ts";
import type { InventoryFault } from "../../support/fake-inventory.ts";
import { CONNECTION_REFUSED, type Fault, NO_CAPACITY, READY, type StartOutcome } from "../../support/fake-fleet.ts";
import { setSettings } from "./store-support.ts";
import { Controller, Process, SPEC, all, emptyTables } from "./support.ts";

beforeEach(emptyTables);

const SETTINGS = {
  TICK_BUDGET_SECONDS: "3",
  LEASE_SECONDS: "2",
  POLL_INTERVAL_MS: "1000",
  START_TIMEOUT_SECONDS: "20",
  RESYNC_INTERVAL_SECONDS: "30",
  SWEEP_INTERVAL_SECONDS: "5",
  ORPHAN_GRACE_SECONDS: "5",
};

interface Wish {
  readonly spec: WorkspaceSpec;
  readonly revision: number;
  readonly generation: number;
  readonly deleting: boolean;
}

class Model {
  readonly wishes = new Map<string, Wish>();
  /** Whether a container was started behind the controller's back: then two may run for one workspace, until one is destroyed. */
  hasStrangers = false;
}

type Command = fc.AsyncCommand<Model, Controller>;

const NAMES = ["a", "b", "c"] as const;

function command(text: string, run: (model: Model, controller: Controller) => Promise<void>): Command {
  return { check: () => true, run, toString: () => text };
}

async function put(model: Model, controller: Controller, name: string, change: Partial<WorkspaceSpec>): Promise<void> {
  const spec = { ...SPEC, ...change };
  const current = await controller.find(name);
  if (current === null) model.wishes.delete(name);
  const wish = model.wishes.get(name);
  if (wish?.deleting) return;
  const written = await controller.put(name, change);
  const changed = wish !== undefined && JSON.stringify(wish.spec) !== JSON.stringify(spec);
  const next = {
    spec,
    revision: (wish?.revision ?? 0) + 1,
    generation: wish === undefined ? 1 : wish.generation + (changed ? 1 : 0),
    deleting: false,
  };
  model.wishes.set(name, next);
  expect(written).toMatchObject({ revision: next.revision, generation: next.generation });
}

async function remove(model: Model, controller: Controller, name: string): Promise<void> {
  const wish = model.wishes.get(name);
  if (wish === undefined || wish.deleting) return;
  await controller.delete(name);
  model.wishes.set(name, { ...wish, revision: wish.revision + 1, deleting: true });
}

async function withUid(controller: Controller, name: string, act: (uid: string) => void): Promise<void> {
  const workspace = await controller.find(name);
  if (workspace !== null) act(workspace.uid);
}

/** An edit by a user, at rest or in the middle of a tick. */
type Edit = { readonly name: string; readonly change: Partial<WorkspaceSpec> | "Delete" };

const edits: fc.Arbitrary<Edit> = fc.record({
  name: fc.constantFrom(...NAMES),
  change: fc.constantFrom<Edit["change"]>(
    {},
    { env: { A: "1" } },
    { env: { A: "2" } },
    { operatingMode: "Suspended" },
    { operatingMode: "Suspended", env: { A: "1" } },
    "Delete",
  ),
});

async function apply(model: Model, controller: Controller, { name, change }: Edit): Promise<void> {
  if (change === "Delete") await remove(model, controller, name);
  else await put(model, controller, name, change);
}

const commands: readonly fc.Arbitrary<Command>[] = [
  edits.map((edit) => command(`edit ${JSON.stringify(edit)}`, (model, controller) => apply(model, controller, edit))),
  edits.map((edit) => command(`edit ${JSON.stringify(edit)}`, (model, controller) => apply(model, controller, edit))),
  fc.constant(command("tick", async (_model, controller) => void (await controller.tick()))),
  fc.constant(command("tick", async (_model, controller) => void (await controller.tick()))),
  fc.tuple(fc.integer({ min: 1, max: 30 }), edits).map(([nth, edit]) =>
    command(`tick with ${JSON.stringify(edit)} at ${nth}`, async (model, controller) => {
      const process = new Process();
      process.onPoint = async (_point, at) => {
        if (at === nth) await apply(model, controller, edit);
      };
      await controller.tick(process);
    }),
  ),
  fc.integer({ min: 1, max: 30 }).map((nth) =>
    command(`tick killed at ${nth}`, async (_model, controller) => {
      const process = new Process();
      let kill = (): void => {};
      const killed = new Promise<void>((resolve) => {
        kill = resolve;
      });
      process.onPoint = (_point, at) => {
        if (at < nth) return;
        kill();
        return new Promise(() => {});
      };
      await controller.clock.run(Promise.race([sweep(controller.deps(process)), killed]));
    }),
  ),
  fc.integer({ min: 1, max: 30 }).map((nth) =>
    command(`tick stalled at ${nth} while another takes over`, async (_model, controller) => {
      const process = new Process();
      let thaw = (): void => {};
      let reach = (): void => {};
      const thawed = new Promise<void>((resolve) => {
        thaw = resolve;
      });
      const reached = new Promise<void>((resolve) => {
        reach = resolve;
      });
      process.onPoint = (_point, at) => {
        if (at < nth) return;
        reach();
        return thawed;
      };
      const stale = sweep(controller.deps(process));
      await controller.clock.run(Promise.race([stale, reached]));
      await controller.clock.pass(2000);
      const fresh = sweep(controller.deps());
      await controller.clock.pass(700);
      thaw();
      await controller.clock.run(Promise.all([stale, fresh]));
    }),
  ),
  fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom(0, 1, 137, 143))
    .map(([name, code]) =>
      command(`${name} exits with ${code}`, (_model, controller) => withUid(controller, name, (uid) => controller.world.exit(uid, code))),
    ),
  fc
    .tuple(
      fc.constantFrom(...NAMES),
      fc.constantFrom("observe", "start", "stop", "destroy", "any"),
      fc.constantFrom<Extract<Fault, string>>("Hangs", "AnswerLost", "Breaks"),
    )
    .map(([name, call, fault]) =>
      command(`${call} of ${name}: ${fault}`, (_model, controller) =>
        withUid(controller, name, (uid) => controller.world.script(uid).faults.push({ call, fault, times: 1 })),
      ),
    ),
  fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom<StartOutcome>(CONNECTION_REFUSED, NO_CAPACITY, { kind: "NeverReady" }))
    .map(([name, outcome]) =>
      command(`next start of ${name}: ${outcome.kind}`, (_model, controller) =>
        withUid(controller, name, (uid) => {
          const next = controller.world.launchesOf(uid).length + 1;
          controller.world.script(uid).outcome = (nth) => (nth === next ? outcome : READY);
        }),
      ),
    ),
  fc.constantFrom(...NAMES).map((name) =>
    command(`${name} loses its memory`, (_model, controller) =>
      withUid(controller, name, (uid) => {
        for (const sandbox of controller.world.sandboxesOf(uid)) sandbox.loseMemory();
      }),
    ),
  ),
  fc.constantFrom(...NAMES).map((name) =>
    command(`:wake and :reconcile of ${name}`, async (model, controller) => {
      const wish = model.wishes.get(name);
      if (wish === undefined || wish.deleting || (await controller.find(name)) === null) return;
      await controller.wake(name);
      await controller.requestReconcile(name);
      model.wishes.set(name, { ...wish, revision: wish.revision + 2 });
    }),
  ),
  fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 })).map(([nth, life]) =>
    command(`a container of life ${life} of workspace ${nth} starts by itself`, async (model, controller) => {
      model.hasStrangers = true;
      // Only where one was admitted once: what a sandbox says that nobody ever admitted ends nothing of a workspace that lives.
      const lives = [...new Set(controller.world.launchesOf(controller.uids[nth] ?? "").map(({ sandboxId }) => sandboxId))];
      const sandboxId = lives[life];
      controller.world.startStranger(sandboxId === undefined ? { doId: String(nth).repeat(64) } : { sandboxId });
    }),
  ),
  fc
    .constantFrom<InventoryFault>({ kind: "Fails", reason: "Unavailable" }, { kind: "Hangs", ms: 4000 }, { kind: "Stale", instances: [] })
    .map((fault) => command(`the next list: ${fault.kind}`, async (_model, controller) => controller.platform.fault(fault))),
  fc.constantFrom(700, 4000, 40_000).map((ms) => command(`${ms} ms pass`, (_model, controller) => controller.clock.pass(ms))),
];

function expected(model: Model): Readonly<Record<string, string>> {
  const wishes = [...model.wishes].filter(([, { deleting }]) => !deleting);
  return Object.fromEntries(wishes.map(([name, { spec, generation }]) => [name, `${spec.operatingMode} at ${generation}`]));
}

/** The same, as status and world have it. */
async function actual(controller: Controller): Promise<Readonly<Record<string, string>>> {
  const rows = await all<{ name: string; uid: string; status: string; spec: string }>(
    "SELECT name, uid, status, spec FROM workspaces ORDER BY name",
  );
  const entries = rows.map(({ name, uid, status, spec }) => {
    const { phase, observedGeneration } = JSON.parse(status) as { phase: string; observedGeneration: number };
    const { env } = JSON.parse(spec) as WorkspaceSpec;
    const containers = controller.world.running.filter((container) => container.uid === uid);
    const isRunning = phase === "Ready" && containers.length === 1 && JSON.stringify(containers[0]?.env) === JSON.stringify(env);
    const isSuspended = phase === "Suspended" && containers.length === 0;
    const state = isRunning ? "Running" : isSuspended ? "Suspended" : `${phase} with ${containers.length}`;
    return [name, `${state} at ${observedGeneration}`];
  });
  return Object.fromEntries(entries);
}

/** Equal for equal maps, whatever their order. */
function keyOf(shown: Readonly<Record<string, string>>): string {
  return Object.entries(shown)
    .map(([name, state]) => `${name}: ${state}`)
    .toSorted()
    .join("\n");
}

async function settle(model: Model, controller: Controller): Promise<void> {
  for (const uid of controller.uids) controller.world.script(uid).faults.length = 0;
  // Whoever died holds the lease no longer.
  await controller.clock.pass(2000);
  const wished = keyOf(expected(model));
  for (let n = 0; n < 40; n += 1) {
    await controller.tick();
    const isClean = controller.world.unclaimedRunning.length === 0 && (await all("SELECT do_id FROM unclaimed")).length === 0;
    if (isClean && keyOf(await actual(controller)) === wished) break;
    await controller.clock.pass(n < 3 ? 2000 : 20_000);
  }
}

async function verify(model: Model, controller: Controller): Promise<void> {
  const { world } = controller;
  expect(await actual(controller)).toEqual(expected(model));
  if (!model.hasStrangers) {
    expect(world.maxStartsInFlight).toBeLessThanOrEqual(1);
    for (const uid of controller.uids) expect(world.maxContainersOf(uid)).toBeLessThanOrEqual(1);
  }
  const { ledger, lane, running, workspaces } = await controller.look();
  expect(lane).toEqual([]);
  expect(await all("SELECT do_id FROM unclaimed")).toEqual([]);
  expect(running.length).toBe(Object.values(expected(model)).filter((text) => text.startsWith("Running")).length);
  for (const sandboxId of running) expect(ledger).toContain(sandboxId);
  expect(ledger.length).toBeLessThanOrEqual(Object.keys(workspaces).length);
  for (const name of Object.keys(workspaces)) {
    const { revision, generation, status } = await controller.get(name);
    expect({ revision, generation }).toMatchObject({
      revision: model.wishes.get(name)?.revision,
      generation: model.wishes.get(name)?.generation,
    });
    expect(status.observedGeneration).toBe(generation);
  }
  // What somebody was poked for before is looked at once more.
  await controller.tick();
  const before = await all("SELECT uid, resource_version FROM workspaces ORDER BY uid");
  await controller.clock.pass(31_000);
  const process = new Process();
  await controller.tick(process);
  expect(await all("SELECT uid, resource_version FROM workspaces ORDER BY uid")).toEqual(before);
  expect(process.statements.filter(({ isWrite, sql }) => isWrite && !sql.includes('"controller"'))).toEqual([]);
}

it("whatever happens, a quiet world comes to what was wished", async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands([...commands], { maxCommands: 14, size: "max" }), async (sequence) => {
      await emptyTables();
      const model = new Model();
      const controller = new Controller(SETTINGS);
      controller.world.defaults.startMs = 600;
      controller.inventory = controller.platform;
      await setSettings({ allow_empty: 1 });
      await fc.asyncModelRun(() => ({ model, real: controller }), sequence);
      await settle(model, controller);
      await verify(model, controller);
    }),
    { numRuns: 20 },
  );
}, 120_000);
