import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { activityOf } from "./activity-support.ts";
import { archivedFiles, backupOrder, DEATHS, emptyBucket, OPTIONS, storedKeys, workspaceWithFile } from "./backup-support.ts";
import {
  bindings,
  endContainer,
  FENCE,
  loseMemory,
  LONG_WAIT_MS,
  newSandbox,
  order,
  pause,
  rejectionOf,
  runningSandbox,
  type Subject,
  TRANSPORTS,
  until,
} from "./support.ts";

beforeEach(emptyBucket);

const NOT_RUNNING = { accepted: true, report: { state: "Skipped", reason: "NotRunning" } };
const NOT_RESTORED = { accepted: true, report: { state: "Skipped", reason: "NotRestored" } };

/** A backup that is held up in the middle. */
async function heldBackup({ stub, machine }: Subject, given = backupOrder()) {
  machine.script.hangsOn = "/api/backup/create";
  expect(await stub.backupWorkspace(FENCE, given, 0)).toEqual({ accepted: true, report: { state: "InProgress" } });
  await until(() => machine.requests.includes("/api/backup/create"));
  return given;
}

describe.each(TRANSPORTS)("a backup of a workspace over %s", (transport) => {
  test("is taken once, and answered again to whoever asks", async () => {
    const { stub, machine } = await workspaceWithFile(transport);
    const given = backupOrder();
    const answer = await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS);
    if (!answer.accepted || answer.report.state !== "Completed") throw new Error(JSON.stringify(answer));
    const { objectId, sizeBytes } = answer.report;
    expect(await archivedFiles(objectId)).toEqual([["a", "1"]]);
    expect(await (await bindings.BACKUP_BUCKET.get(`backups/${objectId}/meta.json`))?.json()).toMatchObject({
      name: `mooring:${given.backupId}`,
      sizeBytes,
      ttl: 315_360_000,
    });
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual(answer);
    expect(machine.requests.filter((path) => path === "/api/backup/create")).toHaveLength(1);
  });

  test.for(DEATHS)("starts nothing where the container dies %s", async ([, death, status]) => {
    const { stub, machine } = await workspaceWithFile(transport);
    Object.assign(machine.script, death);
    const answer = await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS);
    const tookMs = Date.now() - machine.endedTime;
    expect(answer).toMatchObject(status === "Completed" ? { report: { state: "Completed" } } : NOT_RUNNING);
    expect(tookMs).toBeLessThan(1_000);
    expect(await storedKeys()).toHaveLength(status === "Completed" ? 2 : 0);
    await pause(300);
    expect(machine.starts).toBe(1);
  });
});

describe("a backup of a workspace", () => {
  test("goes on after its caller stopped waiting, and makes the row due at its end", async () => {
    const subject = await workspaceWithFile();
    const { stub, machine } = subject;
    const given = await heldBackup(subject);
    await bindings.DB.prepare("INSERT OR REPLACE INTO workspaces (uid, next_reconcile_time) VALUES ('uid-1', 9e15)").run();
    machine.script.hangsOn = null;
    const due = () => bindings.DB.prepare("SELECT next_reconcile_time AS time FROM workspaces WHERE uid = 'uid-1'").first<number>("time");
    await until(async () => ((await due()) ?? 0) < 9e15);
    expect(await stub.backupWorkspace(FENCE, given, 0)).toMatchObject({ report: { state: "Completed" } });
  });

  test("is refused while another is under way, which it leaves alone", async () => {
    const subject = await workspaceWithFile();
    const given = await heldBackup(subject);
    const other = await subject.stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS);
    expect(other).toMatchObject({ report: { state: "Failed", failure: { messages: ["another backup is under way"] } } });
    subject.machine.script.hangsOn = null;
    expect(await subject.stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toMatchObject({ report: { state: "Completed" } });
    expect(await storedKeys()).toHaveLength(2);
  });

  test("fails while a user's own is under way", async () => {
    const { stub, machine } = await workspaceWithFile();
    machine.script.hangsOn = "/api/backup/create";
    const users = stub.createBackup(OPTIONS);
    await until(() => machine.requests.includes("/api/backup/create"));
    const { report } = (await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)) as { report: unknown };
    expect(report).toMatchObject({ state: "Failed", failure: { messages: ["another backup or restore of this sandbox is under way"] } });
    machine.script.hangsOn = null;
    await users;
  });

  test("is not taken of what does not run", async () => {
    const subject = await workspaceWithFile();
    await endContainer(subject, 0);
    expect(await subject.stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RUNNING);
    const { stub, machine } = newSandbox();
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RUNNING);
    expect([subject.machine.starts, machine.starts]).toEqual([1, 0]);
  });

  test("is not taken of a container that its start has not verified, nor of another start's", async () => {
    const { stub } = newSandbox({ mkdir: "Hangs" });
    await stub.startWorkspace(FENCE, order(), 0);
    await until(async () => (await stub.observeWorkspace(FENCE)).facts.running);
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RESTORED);
    await stub.destroyWorkspace(FENCE);

    const other = await workspaceWithFile();
    expect(await other.stub.backupWorkspace(FENCE, backupOrder({ startId: "start-2" }), LONG_WAIT_MS)).toEqual(NOT_RESTORED);

    await endContainer(other, 137);
    other.machine.startUnseen();
    expect(await other.stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RESTORED);
  });

  test("is not taken of a container that was told to go and has not gone", async () => {
    const { stub } = await runningSandbox({ stopsAfterMs: null, destroy: "DoesNothing" });
    await stub.stopWorkspace(FENCE, 0);
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RESTORED);
  });

  test("is not taken of a directory without files", async () => {
    const { stub } = await runningSandbox();
    const answer = await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS);
    expect(answer).toEqual({ accepted: true, report: { state: "Skipped", reason: "Empty" } });
  });

  test("of a container that another start replaced meanwhile is none", async () => {
    const subject = await workspaceWithFile();
    const { stub, machine } = subject;
    const given = await heldBackup(subject);
    await runInDurableObject(stub, async (instance) => {
      machine.end(137);
      await instance.startWorkspace(FENCE, order({ startId: "start-2" }), 100);
    });
    machine.script.hangsOn = null;
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual({ accepted: true, report: { state: "RuntimeReplaced" } });
    expect([machine.starts, machine.running]).toEqual([2, true]);
    expect(await storedKeys()).toEqual([]);
  });

  test("is interrupted, and not begun again, where the object loses its memory", async () => {
    const subject = await workspaceWithFile();
    const given = await heldBackup(subject);
    const stub = await loseMemory(subject);
    const interrupted = { accepted: true, report: { state: "Interrupted" } };
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual(interrupted);
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual(interrupted);
    subject.machine.script.hangsOn = null;
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toMatchObject({ report: { state: "Completed" } });
  });

  test("is given up at its deadline", async () => {
    const subject = await workspaceWithFile();
    const given = await heldBackup(subject, backupOrder({ timeoutMs: 200 }));
    const answer = await subject.stub.backupWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(answer).toMatchObject({ report: { state: "Failed", failure: { code: "BACKUP_DEADLINE" } } });
    subject.machine.script.hangsOn = null;
    await until(async () => (await subject.stub.createBackupIfRunning(OPTIONS)).status === "Completed");
    expect(await storedKeys()).toHaveLength(2);
  });

  test.for(["stop", "destroy"] as const)("is not waited for by a %s, and ends with the container", async (ending) => {
    const subject = await workspaceWithFile();
    const { stub, machine } = subject;
    const given = await heldBackup(subject);
    const begun = Date.now();
    const { facts } = await (ending === "stop" ? stub.stopWorkspace(FENCE, 1_000) : stub.destroyWorkspace(FENCE));
    expect(facts.running).toBe(false);
    expect(Date.now() - begun).toBeLessThan(5_000);
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual(NOT_RUNNING);
    machine.script.hangsOn = null;
    await pause(100);
    expect([machine.starts, await storedKeys()]).toEqual([1, []]);
  });

  test("ends as if nothing had run where a stop refuses it during the grace", async () => {
    const subject = await workspaceWithFile();
    const { stub, machine } = subject;
    machine.script.stopsAfterMs = 1_000;
    const given = await heldBackup(subject);
    const stop = stub.stopWorkspace(FENCE, 2_000);
    await until(async () => (await stub.observeWorkspace(FENCE)).facts.admission === "Revoked");
    machine.script.hangsOn = null;
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toEqual(NOT_RUNNING);
    await stop;
  });

  test.for([
    [{ epoch: 1, incarnation: 1 }, "StaleEpoch"],
    [{ epoch: 2, incarnation: 2 }, "OtherIncarnation"],
    [{ epoch: 2, incarnation: 1, expiresTime: 1 }, "Expired"],
  ] as const)("is refused to %o", async ([fence, refusal]) => {
    const { stub, machine } = await workspaceWithFile();
    await stub.observeWorkspace({ epoch: 2, incarnation: 1 });
    expect(await stub.backupWorkspace(fence, backupOrder(), LONG_WAIT_MS)).toEqual({ accepted: false, refusal });
    expect(machine.requests).not.toContain("/api/backup/create");
  });

  test("is no activity, whether the controller or a user asked for it", async () => {
    const subject = await workspaceWithFile();
    const before = await activityOf(subject);
    await pause(20);
    await subject.stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS);
    expect(await subject.stub.createBackupIfRunning(OPTIONS)).toMatchObject({ status: "Completed" });
    expect(await activityOf(subject)).toBe(before);
  });

  test("fails without the values of the workspace's environment", async () => {
    const { stub, machine } = newSandbox({ failsArchive: "mksquashfs failed: /home/a-secret-value: Permission denied" });
    await stub.startWorkspace(FENCE, order({ env: { HOME: "/home/a-secret-value" } }), LONG_WAIT_MS);
    machine.disk.files.set("/workspace/a", "1");
    const answer = await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS);
    expect(JSON.stringify(answer)).toContain("mksquashfs failed: [redacted]: Permission denied");
  });
});

describe("a user's own restore that fails", () => {
  const restoring = { id: crypto.randomUUID(), dir: OPTIONS.dir, localBucket: true } as const;

  async function put(archive: string): Promise<void> {
    const meta = { id: restoring.id, dir: OPTIONS.dir, ttl: 1000, sizeBytes: archive.length, createdAt: new Date().toISOString() };
    await bindings.BACKUP_BUCKET.put(`backups/${restoring.id}/data.sqsh`, archive);
    await bindings.BACKUP_BUCKET.put(`backups/${restoring.id}/meta.json`, JSON.stringify(meta));
  }

  test("in the middle leaves nothing that would be backed up, until one succeeds", async () => {
    const subject = await workspaceWithFile("http");
    await put("hsqs, not really");
    await rejectionOf(subject.stub.restoreBackup(restoring));
    const stub = await loseMemory(subject);
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toEqual(NOT_RESTORED);
    const elsewhere = backupOrder({ directory: `${OPTIONS.dir}-2` });
    expect(await stub.backupWorkspace(FENCE, elsewhere, LONG_WAIT_MS)).not.toEqual(NOT_RESTORED);
    const good = await stub.createBackupIfRunning(OPTIONS);
    if (good.status !== "Completed") throw new Error(good.status);
    await stub.restoreBackup(good.backup);
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toMatchObject({ report: { state: "Completed" } });
  });

  test("before it has begun changes nothing", async () => {
    const { stub } = await workspaceWithFile("http");
    await rejectionOf(stub.restoreBackup(restoring));
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toMatchObject({ report: { state: "Completed" } });
  });
});
