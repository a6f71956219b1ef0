/**
 * The process ends at every await of a tick, and every await of a tick fails once (invariant 13). After each, ticks go on as cron begins
 * them, and must come to the same place as if nothing had happened.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { sweep } from "../../../src/controller/sweep.ts";
import { requestBackup } from "../../../src/store/backup-intent.ts";
import { requestDeletion } from "../../../src/store/intent.ts";
import { all, Controller, emptyTables, Process, SPEC } from "./support.ts";

beforeEach(emptyTables);

const SETTINGS = {
  TICK_BUDGET_SECONDS: "3",
  LEASE_SECONDS: "2",
  POLL_INTERVAL_MS: "1000",
  START_TIMEOUT_SECONDS: "20",
  SWEEP_INTERVAL_SECONDS: "3600",
};

interface Scenario {
  readonly name: string;
  /** Leaves the wish that the tick under test is to fulfil. */
  readonly prepare: (controller: Controller) => Promise<void>;
  /** What the end looks like, uid left out. */
  readonly phase: string | null;
  readonly running: number;
  /** Container starts in all. */
  readonly launches: number;
  /** Good backups in the end, where any are taken; none is active then. */
  readonly saved?: number;
}

async function ready(controller: Controller): Promise<void> {
  await controller.put("a");
  await controller.tick();
}

const SAVING = {
  backup: { everySeconds: null, onSuspend: "Require", excludes: [], retention: { keepLast: 5, keepForSeconds: null } },
} as const;

/** With files that no backup has. */
async function readyWithFiles(controller: Controller): Promise<string> {
  const { uid } = await controller.put("a", SAVING);
  await controller.tick();
  controller.world.write(uid, "work");
  return uid;
}

async function ask(controller: Controller): Promise<void> {
  const request = { id: crypto.randomUUID(), directory: SPEC.directory, now: controller.clock.now() };
  await requestBackup(controller.db, await controller.get("a"), request);
}

const scenarios: readonly Scenario[] = [
  {
    name: "create",
    prepare: async (controller) => void (await controller.put("a")),
    phase: "Ready #1 !0",
    running: 1,
    launches: 1,
  },
  {
    name: "delete",
    prepare: async (controller) => {
      await ready(controller);
      await controller.delete("a");
    },
    phase: null,
    running: 0,
    launches: 1,
  },
  {
    name: "replace",
    prepare: async (controller) => {
      await ready(controller);
      await controller.put("a", { env: { A: "2" } });
    },
    phase: "Ready #2 !0",
    running: 1,
    launches: 2,
  },
  {
    name: "suspend",
    prepare: async (controller) => {
      await ready(controller);
      await controller.put("a", { operatingMode: "Suspended" });
    },
    phase: "Suspended #1 !0",
    running: 0,
    launches: 1,
  },
  {
    name: "back up",
    prepare: async (controller) => {
      await readyWithFiles(controller);
      await ask(controller);
    },
    phase: "Ready #1 !0",
    running: 1,
    launches: 1,
    saved: 1,
  },
  {
    name: "restore",
    prepare: async (controller) => {
      const uid = await readyWithFiles(controller);
      await ask(controller);
      await controller.tick();
      // As the platform ends it in a rollout.
      controller.world.exit(uid, 143);
    },
    // It ended soon after it was Ready, which counts once.
    phase: "Ready #1 !1",
    running: 1,
    launches: 2,
    saved: 1,
  },
  {
    name: "suspend, saved first",
    prepare: async (controller) => {
      await readyWithFiles(controller);
      await controller.put("a", { ...SAVING, operatingMode: "Suspended" });
    },
    phase: "Suspended #1 !0",
    running: 0,
    launches: 1,
    saved: 1,
  },
  {
    name: "delete, saved last",
    prepare: async (controller) => {
      await readyWithFiles(controller);
      const now = controller.clock.now();
      const finalBackup = { policy: "Require", deadlineTime: now + 600_000 } as const;
      await requestDeletion(controller.db, await controller.get("a"), now, { finalBackup });
    },
    phase: null,
    running: 0,
    launches: 1,
    saved: 1,
  },
];

async function begin(scenario: Scenario): Promise<Controller> {
  await emptyTables();
  const controller = new Controller({ ...SETTINGS, ...(scenario.saved !== undefined && { BACKUP_MODE: "local", BACKUP_BUCKET: {} }) });
  controller.world.defaults.startMs = 300;
  await scenario.prepare(controller);
  return controller;
}

/** Null where the end is the right one; otherwise what is wrong. */
async function verdict(controller: Controller, scenario: Scenario, point: string): Promise<string | null> {
  const { workspaces, ledger, lane, running } = await controller.look();
  const { world } = controller;
  const uid = controller.uids[0] ?? "";
  const end = { phase: workspaces["a"] ?? null, running: running.length, ledger: ledger.length, lane: lane.length };
  const expected = { phase: scenario.phase, running: scenario.running, ledger: scenario.phase === null ? 0 : 1, lane: 0 };
  const safety = { inFlight: world.maxStartsInFlight, containers: world.maxContainersOf(uid), launches: world.launches.length };
  const { saved = 0 } = scenario;
  const rows = await all<{ state: string }>("SELECT state FROM backups");
  const backups = { good: rows.filter(({ state }) => state === "Completed").length, all: rows.length, stored: world.bucket.stored.size };
  const isSaved = JSON.stringify(backups) === JSON.stringify({ good: saved, all: saved, stored: saved });
  const hasFiles = scenario.saved === undefined || running.length === 0 || world.filesOf(uid) === "work";
  const isRight = isSaved && hasFiles && JSON.stringify(end) === JSON.stringify(expected);
  const isSafe = safety.inFlight <= 1 && safety.containers <= 1 && safety.launches === scenario.launches;
  return isRight && isSafe ? null : `${point}: ${JSON.stringify({ ...end, ...safety, ...backups })}`;
}

/** Until nothing is left to do, or for long enough to see that it never ends. */
async function recover(controller: Controller, scenario: Scenario): Promise<void> {
  for (let n = 0; n < 8; n += 1) {
    await controller.cron();
    const { workspaces, lane } = await controller.look();
    const active = await all("SELECT id FROM backups WHERE state IN ('Requested', 'InProgress')");
    if ((workspaces["a"] ?? null) === scenario.phase && lane.length === 0 && active.length === 0) return;
  }
}

describe.each(scenarios)("$name", (scenario) => {
  it("comes to the same end wherever the process is killed", async () => {
    const wrong: (string | null)[] = [];
    let points = Number.POSITIVE_INFINITY;
    for (let nth = 1; nth <= points; nth += 1) {
      const controller = await begin(scenario);
      const process = new Process();
      let killed = "";
      let kill = (): void => {};
      const end = new Promise<void>((resolve) => {
        kill = resolve;
      });
      let calls = 0;
      // Between the end of one call and the next nothing lasts: to die before each call is to die everywhere.
      process.onPoint = (point) => {
        if (point.endsWith("before")) calls += 1;
        if (calls < nth) return;
        if (killed === "") killed = `killed at ${nth}, ${point}`;
        kill();
        return new Promise(() => {});
      };
      const tick = sweep(controller.deps(process)).then(() => {
        points = 0;
      });
      await controller.clock.run(Promise.race([tick, end]));
      if (points === 0) break;
      await recover(controller, scenario);
      wrong.push(await verdict(controller, scenario, killed));
    }
    expect(wrong.filter((one) => one !== null)).toEqual([]);
    expect(wrong.length).toBeGreaterThan(7);
  });

  it("comes to the same end whichever call to the database fails once, done or not", async () => {
    const wrong: (string | null)[] = [];
    for (let nth = 1, isLast = false; !isLast; nth += 1) {
      const controller = await begin(scenario);
      const process = new Process();
      let failed = "";
      let calls = 0;
      process.onPoint = (point) => {
        // A read that fails after it was done is as one that was never done.
        if (!/^(lease|save|admit|forget|record|claim)|(load|view) before/.test(point)) return;
        calls += 1;
        if (calls !== nth) return;
        failed = `failed at ${nth}, ${point}`;
        throw new Error("D1_ERROR: Network connection lost.");
      };
      const outcome = await controller.clock.run(sweep(controller.deps(process)).catch(() => null));
      isLast = failed === "" && outcome !== null;
      await recover(controller, scenario);
      wrong.push(await verdict(controller, scenario, failed));
    }
    expect(wrong.filter((one) => one !== null)).toEqual([]);
    expect(wrong.length).toBeGreaterThan(8);
  });

  it("comes to the same end whichever call to the sandbox is lost, on its way there or back", async () => {
    const wrong: (string | null)[] = [];
    for (const fault of ["Hangs", "AnswerLost", "Breaks"] as const) {
      for (let nth = 1, isLast = false; !isLast; nth += 1) {
        const controller = await begin(scenario);
        const process = new Process();
        let calls = 0;
        process.onPoint = (point) => {
          if (!/^(observe|start|backup|stop|destroy) before/.test(point)) return;
          calls += 1;
          if (calls === nth) controller.world.script(controller.uids[0] ?? "").faults.push({ call: "any", fault, times: 1 });
        };
        await controller.tick(process);
        isLast = calls < nth;
        await recover(controller, scenario);
        wrong.push(await verdict(controller, scenario, `${fault} at ${nth}`));
      }
    }
    expect(wrong.filter((one) => one !== null)).toEqual([]);
    expect(wrong.length).toBeGreaterThanOrEqual(6);
  });
});
