/** What a start restores, and what becomes of a claim: the whole loop over real D1 (design.md, invariant 6). */
import { beforeEach, describe, expect, it } from "vitest";
import { MINUTE, ask, backup, controller, crash, isPhase, ready, remove, renewController, states } from "./saving-controller.ts";
import { all, conditionOf } from "./support.ts";

describe("many at once", () => {
  const names = Array.from({ length: 24 }, (_, index) => `many-${index}`);

  /** How long a new workspace waits for its start, while each of the others is backed up for minutes. */
  async function delayMs(): Promise<number> {
    await controller.tick();
    const since = controller.clock.now();
    const { uid } = await controller.put("new", backup());
    await controller.tick();
    return (controller.world.launchesOf(uid)[0]?.time ?? Number.POSITIVE_INFINITY) - since;
  }

  beforeEach(async () => {
    renewController({ POLL_INTERVAL_MS: "1000", START_LANE_WIDTH: "24" });
    controller.world.defaults.backupMs = 5 * MINUTE;
    for (const name of names) await controller.put(name, backup());
    await controller.untilReady(names, 10 * MINUTE);
  });

  it("final backups keep no other workspace waiting (invariant 10)", async () => {
    for (const name of names) await remove(name, "Require");
    expect(await delayMs()).toBeLessThan(5000);
  });

  it("nor do those before a suspension", async () => {
    for (const name of names) await controller.put(name, { ...backup(), operatingMode: "Suspended" });
    expect(await delayMs()).toBeLessThan(5000);
  });
});

describe("a restore", () => {
  it("that fails never becomes Ready, nor a backup; for good it is stopped, not paid for", async () => {
    const uid = await ready("a", backup({ everySeconds: 60 }));
    controller.world.write(uid, "work");
    await ask("a");
    await controller.tick();
    const { length } = controller.world.backupsBegun;
    controller.world.script(uid).prepareError = () => "Container failed to restore backup archive";
    await crash(uid);
    await controller.until(isPhase("a", "Stalled"), 60 * MINUTE);
    expect(conditionOf(await controller.get("a"), "Stalled")).toEqual({ status: "True", reason: "RestoreFailed" });
    expect(controller.world.running).toEqual([]);
    expect(controller.world.backupsBegun).toHaveLength(length);
    controller.world.script(uid).prepareError = () => null;
    await controller.requestReconcile("a");
    await controller.untilReady(["a"], 5 * MINUTE);
    expect(controller.world.filesOf(uid)).toBe("work");
  });

  it("of what is not there starts nothing (field case 39)", async () => {
    await controller.put("a", { ...backup(), source: { workspace: "nobody" } });
    await controller.tick();
    expect(conditionOf(await controller.get("a"), "Stalled")).toEqual({ status: "True", reason: "SourceNotFound" });
    const uid = await ready("b");
    controller.world.write(uid, "work");
    await ask("b");
    await controller.tick();
    controller.world.bucket.stored.clear();
    const { length } = controller.world.launches;
    await crash(uid);
    await controller.until(isPhase("b", "Stalled"), 10 * MINUTE);
    expect(controller.world.launches).toHaveLength(length);
  });

  it("is not left out where the installation has lost its setting: nothing starts empty", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    await ask("a");
    await controller.tick();
    const settings = controller.config;
    Object.assign(controller, { config: { ...settings, backups: null } });
    const { length } = controller.world.launches;
    await crash(uid);
    await controller.ticks(2);
    expect(conditionOf(await controller.get("a"), "Ready")).toEqual({ status: "False", reason: "Misconfigured" });
    expect(controller.world.launches).toHaveLength(length);
    Object.assign(controller, { config: settings });
    await controller.untilReady(["a"], 5 * MINUTE);
    expect(controller.world.filesOf(uid)).toBe("work");
  });

  it("does not hold the lane: another starts meanwhile", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    await ask("a");
    await controller.tick();
    controller.world.script(uid).prepareMs = 8 * MINUTE;
    await crash(uid);
    await controller.until(isPhase("a", "Restoring"), 5 * MINUTE);
    await controller.put("b", backup());
    await controller.untilReady(["b"], 2 * MINUTE);
    expect((await controller.get("a")).status.phase).toBe("Restoring");
    await controller.untilReady(["a"], 10 * MINUTE);
  });

  it("clones another workspace's newest good backup, and keeps to it until there is one of its own", async () => {
    const uid = await ready("origin");
    controller.world.write(uid, "one");
    const first = await ask("origin");
    await controller.tick();
    const clone = await ready("clone", { ...backup({ onSuspend: "Skip" }), source: { workspace: "origin" } });
    expect(controller.world.filesOf(clone)).toBe("one");
    controller.world.write(uid, "two");
    await ask("origin");
    await controller.tick();
    await crash(clone);
    await controller.untilReady(["clone"], 10 * MINUTE);
    expect(controller.world.filesOf(clone)).toBe("one");
    const [pinned] = await all<{ id: string }>("SELECT source_backup_id AS id FROM workspaces WHERE name = 'clone'");
    expect(pinned?.id).toBe(first);
  });
});

describe("a claim", () => {
  it("whose call breaks is asked for again, and taken once", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    controller.world.script(uid).faults.push({ call: "backup", fault: "AnswerLost", times: 2 });
    await ask("a");
    await controller.tick();
    expect(await states()).toEqual(["Request Completed"]);
    expect(controller.world.backupsBegun).toHaveLength(1);
  });

  it("without an outcome at its deadline is abandoned, and the next works", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    controller.world.script(uid).faults.push({ call: "backup", fault: "Breaks", times: 1000 });
    await ask("a");
    await controller.ticks(12);
    expect(await states()).toEqual(["Request Abandoned DeadlineExceeded"]);
    controller.world.script(uid).faults.length = 0;
    await ask("a");
    await controller.tick();
    expect((await states()).at(-1)).toBe("Request Completed");
  });

  it("of a sandbox that was reset is a failure, and what it left is nobody's", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    controller.world.script(uid).faults.push({ call: "backup", fault: "ResetByDeploy", times: 1 });
    await ask("a");
    await controller.tick();
    expect(await states()).toEqual(["Request Failed Interrupted"]);
  });
});
