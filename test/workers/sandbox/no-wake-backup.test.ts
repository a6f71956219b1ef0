import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import {
  archivedFiles,
  DEATHS,
  DIRECTORY,
  emptyBucket,
  OPTIONS,
  runningStandalone,
  type Standalone,
  storedKeys,
} from "./backup-support.ts";
import { endContainer, pause, SEVERAL_TRIES_MS, TRANSPORTS, until } from "./support.ts";

beforeEach(emptyBucket);

/** The container dies, and somebody else's start is sooner than anybody notices. */
async function replaceContainer({ stub, machine }: Standalone): Promise<void> {
  await runInDurableObject(stub, async (instance) => {
    machine.end(137);
    await instance.start();
  });
}

describe.each(TRANSPORTS)("createBackupIfRunning over %s", (transport) => {
  test("takes a backup of a container that runs", async () => {
    const { stub, machine } = await runningStandalone(transport);
    const result = await stub.createBackupIfRunning(OPTIONS);
    if (result.status !== "Completed") throw new Error(JSON.stringify(result));
    expect(result.backup).toEqual({ id: expect.any(String), dir: DIRECTORY, localBucket: true });
    expect(await archivedFiles(result.backup.id)).toEqual([["a", "1"]]);
    expect(result.sizeBytes).toBe(machine.disk.pack(DIRECTORY).length);
  });

  test("answers at once where the container has stopped, and does not start it", async () => {
    const subject = await runningStandalone(transport);
    await endContainer(subject, 0);
    expect(await subject.stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "NotRunning" });
    await pause(SEVERAL_TRIES_MS);
    expect([subject.machine.starts, subject.machine.running]).toEqual([1, false]);
    expect(await storedKeys()).toEqual([]);
  });

  test.for(DEATHS)("starts nothing where the container dies %s", async ([, death, status]) => {
    const { stub, machine } = await runningStandalone(transport);
    Object.assign(machine.script, death);

    const result = await stub.createBackupIfRunning(OPTIONS);
    const tookMs = Date.now() - machine.endedTime;

    expect(result).toMatchObject({ status });
    expect(tookMs).toBeLessThan(1_000);
    await pause(300);
    expect([machine.starts, machine.running]).toEqual([1, false]);
    expect(await storedKeys()).toHaveLength(status === "Completed" ? 2 : 0);

    Object.assign(machine.script, { diesOn: null, diesInStream: null });
    await stub.start();
    machine.disk.files.set(`${DIRECTORY}/b`, "2");
    expect(await stub.createBackupIfRunning(OPTIONS)).toMatchObject({ status: "Completed" });
    expect(machine.starts).toBe(2);
  });

  test("leaves a user's call what it was: it starts the container", async () => {
    const subject = await runningStandalone(transport);
    await endContainer(subject, 0);
    await subject.stub.createBackupIfRunning(OPTIONS);
    // The SDK's rpc transport starts the container and then fails the first call after an end.
    await subject.stub.exec("true").catch(() => {});
    expect([subject.machine.starts, subject.machine.running]).toEqual([2, true]);
  });

  test("archives no directory that is empty or missing", async () => {
    const { stub, machine } = await runningStandalone(transport);
    machine.disk.clear(DIRECTORY);
    expect(await stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "Empty" });
    expect(machine.requests).not.toContain("/api/backup/create");
  });

  test("keeps no archive that has nothing in it", async () => {
    const { stub } = await runningStandalone(transport);
    expect(await stub.createBackupIfRunning({ ...OPTIONS, excludes: ["a"] })).toEqual({ status: "Empty" });
    expect(await storedKeys()).toEqual([]);
  });

  test("answers for a container that was replaced in the middle, and lets another caller replace it", async () => {
    const subject = await runningStandalone(transport);
    const { stub, machine } = subject;
    machine.script.hangsOn = "/api/backup/create";
    const backup = stub.createBackupIfRunning(OPTIONS);
    await until(() => machine.requests.includes("/api/backup/create"));
    await replaceContainer(subject);
    machine.disk.files.set(`${DIRECTORY}/other`, "2");

    expect(await backup).toEqual({ status: "RuntimeReplaced" });
    machine.script.hangsOn = null;
    await until(async () => (await stub.createBackupIfRunning(OPTIONS)).status === "Completed");
    expect(machine.requests.filter((path) => path === "/api/read/stream")).toHaveLength(1);
    expect([machine.starts, (await storedKeys()).length]).toEqual([2, 2]);
  });
});

// Only here a request goes on for nobody once its container is gone.
test("removes what was written where the container was replaced after it, as soon as the SDK has ended", async () => {
  const subject = await runningStandalone();
  const { stub, machine } = subject;
  machine.script.hangsOn = "/api/execute rm -f";
  const backup = stub.createBackupIfRunning(OPTIONS);
  await until(async () => (await storedKeys()).length === 2 && machine.commands.length > 0);
  await replaceContainer(subject);
  expect(await backup).toEqual({ status: "RuntimeReplaced" });

  machine.script.hangsOn = null;
  await until(async () => (await storedKeys()).length === 0);
});

test("waits a short while for the SDK's own outcome where the container dies after all was written", async () => {
  const subject = await runningStandalone();
  const { stub, machine } = subject;
  machine.script.hangsOn = "/api/execute rm -f";
  const backup = stub.createBackupIfRunning(OPTIONS);
  await until(async () => (await storedKeys()).length === 2);
  await endContainer(subject, 137);
  await pause(100);
  machine.script.hangsOn = null;
  expect(await backup).toMatchObject({ status: "Completed" });
  expect(await storedKeys()).toHaveLength(2);
});

test("gives up at the limit, and removes what is ready only after it", async () => {
  const { stub, machine } = await runningStandalone();
  machine.script.hangsOn = "/api/execute rm -f";
  const result = await stub.createBackupIfRunning(OPTIONS, 300);
  expect(result).toMatchObject({ status: "Failed", failure: { code: "BACKUP_DEADLINE" } });
  expect(await storedKeys()).toHaveLength(2);
  expect(await stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "Busy" });

  machine.script.hangsOn = null;
  await until(async () => (await storedKeys()).length === 0);
  expect(await stub.createBackupIfRunning(OPTIONS)).toMatchObject({ status: "Completed" });
});

test("asks the container nothing where the time is up already", async () => {
  const { stub, machine } = await runningStandalone();
  const from = machine.requests.length;
  expect(await stub.createBackupIfRunning(OPTIONS, 0)).toMatchObject({ status: "Failed", failure: { code: "BACKUP_DEADLINE" } });
  await pause(50);
  expect(machine.requests.length).toBe(from);
});

test("answers soon after the container's death though the SDK waits for it in vain, and keeps the turn until another container is started", async () => {
  const subject = await runningStandalone();
  const { stub, machine } = subject;
  machine.script.hangsOn = "/api/backup/create";
  const backup = stub.createBackupIfRunning(OPTIONS);
  await until(() => machine.requests.includes("/api/backup/create"));
  await endContainer(subject, 137);
  expect(await backup).toEqual({ status: "NotRunning" });
  expect(Date.now() - machine.endedTime).toBeLessThan(1_000);

  await stub.exec("true");
  expect(await stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "Empty" });
  machine.script.hangsOn = null;
});

test("fails with the SDK's words, and without the values of the environment", async () => {
  const { stub, machine } = await runningStandalone();
  await stub.setEnvVars({ TOKEN: "/data/a-secret-value" });
  machine.disk.files.set("/data/a-secret-value/a", "1");
  const outside = await stub.createBackupIfRunning({ dir: "/data/a-secret-value", localBucket: true });
  expect(outside).toMatchObject({ status: "Failed", failure: { code: "INVALID_BACKUP_CONFIG" } });

  machine.script.failsArchive = "mksquashfs failed: /data/a-secret-value: Permission denied";
  const failed = await stub.createBackupIfRunning(OPTIONS);
  expect(JSON.stringify(failed)).toContain("mksquashfs failed: [redacted]: Permission denied");
});
