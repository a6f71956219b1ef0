/** Files survive: the whole loop over real D1, with sandboxes whose disks are a word (design.md, invariant 6). */
import { beforeEach, describe, expect, it } from "vitest";
import { requestBackup } from "../../../src/store/backup-intent.ts";
import { requestDeletion } from "../../../src/store/intent.ts";
import type { BackupPolicy, WorkspaceSpec } from "../../../src/workspace.ts";
import { all, conditionOf, Controller, emptyTables, SPEC, uidOf } from "./support.ts";

const MINUTE = 60_000;

const BACKUP = { everySeconds: null, onSuspend: "Require", excludes: [], retention: { keepLast: 2, keepForSeconds: 600 } } as const;

function backup(change: Partial<NonNullable<WorkspaceSpec["backup"]>> = {}): Partial<WorkspaceSpec> {
  return { backup: { ...BACKUP, ...change } };
}

interface Row {
  readonly id: string;
  readonly trigger: string;
  readonly state: string;
  readonly reason: string;
  readonly started_time: number;
  readonly object_id: string | null;
}

const rows = () => all<Row>("SELECT id, trigger, state, reason, started_time, object_id FROM backups ORDER BY requested_time, id");
const states = async () => (await rows()).map(({ trigger, state, reason }) => [trigger, state, reason].join(" ").trim());

let controller: Controller;

beforeEach(async () => {
  await emptyTables();
  controller = new Controller({ BACKUP_MODE: "local", BACKUP_BUCKET: {}, POLL_INTERVAL_MS: "5000" });
});

async function ready(name = "a", spec: Partial<WorkspaceSpec> = backup()): Promise<string> {
  const { uid } = await controller.put(name, spec);
  await controller.untilReady([name], 10 * MINUTE);
  return uid;
}

async function ask(name: string): Promise<string> {
  const asked = await requestBackup(controller.db, await controller.get(name), {
    id: crypto.randomUUID(),
    directory: SPEC.directory,
    now: controller.clock.now(),
  });
  if (asked === null) throw new Error("no request");
  return asked.backup.id;
}

async function remove(name: string, policy: BackupPolicy, deadlineMs = 10 * MINUTE): Promise<void> {
  const now = controller.clock.now();
  await requestDeletion(controller.db, await controller.get(name), now, { finalBackup: { policy, deadlineTime: now + deadlineMs } });
}

/** And the loop has seen it. */
async function crash(uid: string): Promise<void> {
  controller.world.exit(uid, 137);
  await controller.tick();
}

const isPhase = (name: string, phase: string) => async () => (await controller.get(name)).status.phase === phase;
const isGone = (name: string) => async () => (await controller.find(name)) === null;

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
    controller = new Controller({ BACKUP_MODE: "local", BACKUP_BUCKET: {}, START_LANE_WIDTH: "24" });
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
