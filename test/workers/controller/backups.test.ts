/** Files survive: the whole loop over real D1, with sandboxes whose disks are a word (design.md, invariant 6). */
import { describe, expect, it } from "vitest";
import type { BackupPolicy } from "../../../src/workspace.ts";
import { MINUTE, ask, backup, controller, crash, isGone, isPhase, ready, remove, rows, states } from "./saving-controller.ts";
import { all, conditionOf, uidOf } from "./support.ts";

describe("what a user asks for", () => {
  it("is taken, shown, and restored at every later start", async () => {
    const uid = await ready();
    controller.world.write(uid, "first");
    const id = await ask("a");
    await controller.tick();
    expect(await states()).toEqual(["Request Completed"]);
    expect(await controller.get("a")).toMatchObject({ lastBackup: { id } });
    expect(conditionOf(await controller.get("a"), "BackupCurrent")).toEqual({ status: "True", reason: "BackupCompleted" });
    controller.world.write(uid, "second");
    await crash(uid);
    await controller.untilReady(["a"], 10 * MINUTE);
    expect(controller.world.filesOf(uid)).toBe("first");
  });

  it("is skipped where nothing runs, and wakes nothing", async () => {
    await controller.put("a", { ...backup(), operatingMode: "Suspended" });
    await controller.tick();
    await ask("a");
    await controller.tick();
    expect(await states()).toEqual(["Request Skipped NotRunning"]);
    expect(controller.world.launches).toEqual([]);
  });

  it("an empty disk is no backup", async () => {
    await ready();
    await ask("a");
    await controller.tick();
    expect(await states()).toEqual(["Request Skipped Empty"]);
    expect(conditionOf(await controller.get("a"), "BackupCurrent")).toEqual({ status: "False", reason: "NeverBackedUp" });
  });
});

describe("the schedule", () => {
  it("takes one in each window, and makes up for none that was missed", async () => {
    const uid = await ready("a", backup({ everySeconds: 300 }));
    controller.world.write(uid, "files");
    await controller.ticks(16);
    const begun = controller.world.backupsBegun.map(({ time }) => time);
    expect(begun).toHaveLength(3);
    expect(begun.slice(1).every((time, index) => time - (begun[index] ?? 0) >= 300_000)).toBe(true);
    await controller.clock.pass(20 * MINUTE);
    await controller.ticks(2);
    expect(controller.world.backupsBegun).toHaveLength(4);
  });

  it("tries again after a failure, soon at first", async () => {
    const uid = await ready("a", backup({ everySeconds: 600 }));
    controller.world.write(uid, "files");
    controller.world.script(uid).backupError = (nth) => (nth < 3 ? "mksquashfs failed" : null);
    await controller.until(async () => (await states()).at(-1) === "Schedule Completed", 15 * MINUTE);
    expect(await states()).toEqual(["Schedule Failed TakingFailed", "Schedule Failed TakingFailed", "Schedule Completed"]);
    const [first, second, third] = (await rows()).map(({ started_time: time }) => time);
    expect((second ?? 0) - (first ?? 0)).toBeLessThan(MINUTE);
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(MINUTE);
  });

  // acceptance: backups every minute with an idle limit of ten (field case 6)
  it("does not keep a workspace from idling, nor an idle one up", async () => {
    const uid = await ready("a", { ...backup({ everySeconds: 60 }), idle: { timeoutSeconds: 600 } });
    controller.world.write(uid, "files");
    const usedTime = controller.clock.now();
    await controller.until(isPhase("a", "Suspended"), 15 * MINUTE);
    const idleMs = controller.clock.now() - usedTime;
    expect(idleMs).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(idleMs).toBeLessThanOrEqual(12 * MINUTE);
    const { length } = controller.world.backupsBegun;
    await controller.ticks(5);
    expect(controller.world.backupsBegun).toHaveLength(length);
    expect(controller.world.launches).toHaveLength(1);
  });
});

it("somebody who comes back while an idle workspace is backed up is not put out", async () => {
  const uid = await ready("a", { ...backup(), idle: { timeoutSeconds: 600 } });
  controller.world.write(uid, "before");
  controller.world.script(uid).backupMs = 4 * MINUTE;
  await controller.until(async () => (await states()).includes("Suspend InProgress"), 15 * MINUTE);
  controller.world.write(uid, "after");
  await controller.ticks(6);
  expect(await isPhase("a", "Ready")()).toBe(true);
  expect([controller.world.filesOf(uid), controller.world.launches.length]).toEqual(["after", 1]);
  controller.world.script(uid).backupMs = 500;
  await controller.until(isPhase("a", "Suspended"), 15 * MINUTE);
  await controller.wake("a");
  await controller.untilReady(["a"], 5 * MINUTE);
  expect(controller.world.filesOf(uid)).toBe("after");
});

it("nor is somebody who comes back just before an operator replaces the container", async () => {
  const uid = await ready("a", { idle: { timeoutSeconds: 600 }, backup: null });
  await all("UPDATE workspaces SET idle_time = ?", controller.clock.now());
  await controller.clock.pass(1000);
  controller.world.use(uid);
  await all("UPDATE instances SET destroy_request_time = ?", controller.clock.now());
  await all("UPDATE workspaces SET next_reconcile_time = ?", controller.clock.now());
  await controller.ticks(1);
  expect(controller.world.launches).toHaveLength(2);
  expect(await isPhase("a", "Ready")()).toBe(true);
});

describe("before a container is ended by wish", () => {
  it("its files are saved, and the next one has them", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    await controller.put("a", { ...backup(), operatingMode: "Suspended" });
    await controller.until(isPhase("a", "Suspended"), 5 * MINUTE);
    expect(await states()).toEqual(["Suspend Completed"]);
    await controller.put("a", backup());
    await controller.untilReady(["a"], 5 * MINUTE);
    expect(controller.world.filesOf(uid)).toBe("work");
  });

  it("a changed environment costs no files either", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    await controller.put("a", { ...backup(), env: { MODE: "new" } });
    await controller.until(async () => (await controller.isReady("a")) && controller.world.launches.length === 2, 5 * MINUTE);
    expect(controller.world.filesOf(uid)).toBe("work");
  });

  it("another directory gets the files of the one before", async () => {
    const uid = await ready();
    controller.world.write(uid, "files");
    await controller.put("a", { ...backup(), directory: "/home/alice" });
    await controller.untilReady(["a"], 10 * MINUTE);
    expect(await all("SELECT state, directory FROM backups")).toEqual([{ state: "Completed", directory: "/workspace" }]);
    expect(controller.world.filesOf(uid)).toBe("files");
  });

  it("Require does not stop without one; BestEffort tries once; Skip does not try", async () => {
    const uids = await Promise.all(["Require", "BestEffort", "Skip"].map(async (policy, index) => [policy, uidOf(index + 1)] as const));
    for (const [policy] of uids) await controller.put(policy.toLowerCase(), backup({ onSuspend: policy as BackupPolicy }));
    await controller.untilReady(["require", "besteffort", "skip"], 10 * MINUTE);
    for (const [, uid] of uids) {
      controller.world.write(uid, "work");
      controller.world.script(uid).backupError = () => "mksquashfs failed";
    }
    for (const [policy] of uids)
      await controller.put(policy.toLowerCase(), { ...backup({ onSuspend: policy as BackupPolicy }), operatingMode: "Suspended" });
    await controller.ticks(10);
    const phases = await Promise.all(uids.map(async ([policy]) => (await controller.get(policy.toLowerCase())).status.phase));
    expect(phases).toEqual(["Suspending", "Suspended", "Suspended"]);
    const byUid = await all<{ uid: string; n: number }>("SELECT workspace_uid AS uid, count(*) AS n FROM backups GROUP BY 1");
    expect(byUid.find(({ uid }) => uid === uids[1]?.[1])?.n).toBe(1);
    expect(byUid.find(({ uid }) => uid === uids[2]?.[1])).toBeUndefined();
    controller.world.script(uids[0]?.[1] ?? "").backupError = () => null;
    await controller.until(isPhase("require", "Suspended"), 20 * MINUTE);
  });
});

describe("deletion", () => {
  it.each(["Require", "BestEffort"] as const)("%s: saves the files first, and a new workspace has them", async (policy) => {
    const uid = await ready();
    controller.world.write(uid, "heirloom");
    await remove("a", policy);
    await controller.until(isGone("a"), 5 * MINUTE);
    const [final] = await rows();
    expect(final).toMatchObject({ trigger: "Final", state: "Completed" });
    const heir = await ready("b", { ...backup(), source: { backup: final?.id ?? "" } });
    expect(controller.world.filesOf(heir)).toBe("heirloom");
  });

  it("never waits beyond its deadline, whatever fails (field case 20)", async () => {
    const uid = await ready();
    controller.world.write(uid, "work");
    controller.world.script(uid).backupError = () => "mksquashfs failed";
    await remove("a", "Require", 4 * MINUTE);
    await controller.ticks(3);
    expect(await isGone("a")()).toBe(false);
    await controller.until(isGone("a"), 4 * MINUTE);
    const [event] = await all<{ message: string }>(
      "SELECT message FROM events WHERE reason = 'BackupFailed' AND message LIKE '%deadline%'",
    );
    expect(event).toBeDefined();
  });

  it("wakes nothing that sleeps or never ran", async () => {
    await controller.put("a", { ...backup(), operatingMode: "Suspended" });
    await controller.tick();
    await remove("a", "Require");
    await controller.until(isGone("a"), 2 * MINUTE);
    expect(controller.world.launches).toEqual([]);
    expect(await states()).toEqual([]);
  });
});
