import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { interpret } from "../../../src/controller/observation.ts";
import type { StartOrder } from "../../../src/sandbox/protocol.ts";
import { backupOrder, DIRECTORY, emptyBucket, storeBackup, workspaceWithFile } from "./backup-support.ts";
import type { Script } from "./fake-container.ts";
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
  SEVERAL_TRIES_MS,
  type Subject,
  TRANSPORTS,
  until,
} from "./support.ts";
import { FencedSandbox } from "./worker.ts";

beforeEach(emptyBucket);

const UNPACKING = "/api/execute /usr/bin/unsquashfs";
const FILES = { a: "1", "deep/b": "2" };

async function restoring(change: Partial<StartOrder> = {}): Promise<StartOrder> {
  return order({ restore: { objectId: await storeBackup(FILES), localBucket: true }, ...change });
}

function filesOf({ machine }: Subject): object {
  return Object.fromEntries(machine.disk.below(DIRECTORY));
}

/** A start that is held up in the middle of its restore. */
async function heldRestore(script: Partial<Script> = {}, change: Partial<StartOrder> = {}) {
  const subject = newSandbox({ ...script, hangsOn: UNPACKING });
  const given = await restoring(change);
  await subject.stub.startWorkspace(FENCE, given, 0);
  await until(() => subject.machine.commands.length > 0 && subject.machine.requests.includes("/api/write"));
  return { ...subject, given };
}

describe.each(TRANSPORTS)("a start with a backup over %s", (transport) => {
  test("is verified with the backup's files and nothing of the image's in the directory", async () => {
    const subject = newSandbox({ image: { [`${DIRECTORY}/from-image`]: "0" } });
    await subject.stub.setTransport(transport);
    const { facts } = await subject.stub.startWorkspace(FENCE, await restoring(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded", step: "Restore" } });
    expect(filesOf(subject)).toEqual(FILES);
    expect(subject.machine.starts).toBe(1);
  });

  test("fails, and starts no other container, where its own dies under the restore", async () => {
    const { stub, machine } = newSandbox({ diesOn: UNPACKING });
    await stub.setTransport(transport);
    const { facts } = await stub.startWorkspace(FENCE, await restoring(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, admission: "Revoked", operation: { state: "Failed" }, exit: { code: 137 } });
    await pause(SEVERAL_TRIES_MS);
    expect([machine.starts, machine.running]).toEqual([1, false]);
  });
});

describe("a backup that cannot be restored", () => {
  test.for<[string, string, string, (id: string) => Promise<unknown>]>([
    ["has no metadata", "BACKUP_NOT_FOUND", "Permanent", (id) => bindings.BACKUP_BUCKET.delete(`backups/${id}/meta.json`)],
    ["has no archive", "BACKUP_NOT_FOUND", "Permanent", (id) => bindings.BACKUP_BUCKET.delete(`backups/${id}/data.sqsh`)],
  ])("fails the start before any container where it %s", async ([, code, failureClass, happen]) => {
    const { stub, machine } = newSandbox();
    const given = await restoring();
    await happen(given.restore?.objectId ?? "");
    const { facts } = await stub.startWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, operation: { state: "Failed", failure: { code } } });
    expect(interpret(facts)).toMatchObject({ failure: { class: failureClass } });
    expect(machine.starts).toBe(0);
  });

  test.for<[number, number, "Failed" | "Succeeded"]>([
    [0, 59, "Failed"],
    [100, 150, "Failed"],
    [100, 170, "Succeeded"],
  ])("is one that expires within a minute: %i s old of %i s", async ([age, ttl, state]) => {
    const { stub, machine } = newSandbox();
    const objectId = await storeBackup(FILES, { ttl, createdAt: new Date(Date.now() - age * 1000).toISOString() });
    const { facts } = await stub.startWorkspace(FENCE, order({ restore: { objectId, localBucket: true } }), LONG_WAIT_MS);
    expect(facts.operation).toMatchObject({ state, ...(state === "Failed" && { failure: { code: "BACKUP_EXPIRED" } }) });
    expect(machine.starts).toBe(state === "Failed" ? 0 : 1);
    if (state === "Failed") expect(interpret(facts)).toMatchObject({ failure: { class: "Permanent" } });
  });

  test("is one whose metadata does not say when it was made", async () => {
    const { stub, machine } = newSandbox();
    const objectId = await storeBackup(FILES, { createdAt: "yesterday" });
    const { facts } = await stub.startWorkspace(FENCE, order({ restore: { objectId, localBucket: true } }), LONG_WAIT_MS);
    expect(interpret(facts)).toMatchObject({ kind: "Failed", failure: { class: "Permanent" } });
    expect(machine.starts).toBe(0);
  });

  test.for<[string, object, string]>([
    ["there is no bucket", {}, "Misconfigured"],
    ["the bucket does not answer", { BACKUP_BUCKET: { get: () => Promise.reject(new Error("R2 internal error")) } }, "Transient"],
  ])("is any where %s", async ([, env, failureClass]) => {
    const { stub, machine } = newSandbox();
    const given = await restoring();
    const facts = await runInDurableObject(stub, async (_instance, state) => {
      const other = new FencedSandbox(state as DurableObjectState<{}>, env);
      return (await other.startWorkspace(FENCE, given, LONG_WAIT_MS)).facts;
    });
    expect(interpret(facts)).toMatchObject({ kind: "Failed", failure: { class: failureClass } });
    expect(machine.starts).toBe(0);
  });
});

describe("a restore", () => {
  test("shows as a step with a time of its own, and lets nobody in", async () => {
    const { stub, machine, given } = await heldRestore({}, { timeoutMs: 1_500, prepareTimeoutMs: 30_000 });
    const { facts } = await stub.observeWorkspace(FENCE);
    expect(facts).toMatchObject({ running: true, operation: { state: "InProgress", step: "Restore" } });
    expect((facts.operation?.deadlineTime ?? 0) - Date.now()).toBeGreaterThan(20_000);
    expect(String(await rejectionOf(stub.exec("true")))).toContain("WORKSPACE_NOT_READY");
    await pause(1_600);
    machine.script.hangsOn = null;
    expect((await stub.startWorkspace(FENCE, given, LONG_WAIT_MS)).facts.operation?.state).toBe("Succeeded");
  });

  test("that takes longer than its time is given up with its container", async () => {
    const { stub, machine, given } = await heldRestore({}, { prepareTimeoutMs: 200 });
    const { facts } = await stub.startWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, operation: { state: "TimedOut", failure: { code: "START_DEADLINE" } } });
    machine.script.hangsOn = null;
    await pause(300);
    expect(machine.starts).toBe(1);
  });

  test.for(["stop", "destroy"] as const)("is cancelled by a %s, and nothing runs then", async (ending) => {
    const { stub, machine, given } = await heldRestore();
    const { facts } = await (ending === "stop" ? stub.stopWorkspace(FENCE, 1_000) : stub.destroyWorkspace(FENCE));
    expect(facts).toMatchObject({ running: false, operation: { state: "Failed", failure: { code: "START_CANCELLED" } } });
    machine.script.hangsOn = null;
    await pause(300);
    expect([machine.starts, machine.running]).toEqual([1, false]);
    expect((await stub.startWorkspace(FENCE, given, 0)).facts.operation?.state).toBe("Failed");
  });

  test("that was interrupted is over, container and all; the next start makes it in a fresh one", async () => {
    const subject = await heldRestore();
    subject.machine.disk.files.set(`${DIRECTORY}/half`, "?");
    const stub = await loseMemory(subject);
    subject.machine.script.hangsOn = null;
    const over = { state: "Failed", step: "Restore", failure: { code: null } };
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ admission: "Revoked", operation: over });
    await until(() => !subject.machine.running);
    expect((await stub.startWorkspace(FENCE, subject.given, LONG_WAIT_MS)).facts.operation).toMatchObject(over);
    expect(subject.machine.starts).toBe(1);
    const { facts } = await stub.startWorkspace(FENCE, { ...subject.given, startId: "start-2" }, LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded" } });
    expect([subject.machine.starts, subject.machine.destroys]).toEqual([2, 1]);
    expect(filesOf(subject)).toEqual(FILES);
  });

  test("that the container cannot make fails the start, kills the container and is never a backup", async () => {
    const { stub, machine } = newSandbox();
    const given = await restoring();
    await bindings.BACKUP_BUCKET.put(`backups/${given.restore?.objectId}/data.sqsh`, "hsqs, not really");
    const { facts } = await stub.startWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, operation: { state: "Failed", failure: { code: "BACKUP_RESTORE_FAILED" } } });
    expect(await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)).toMatchObject({
      report: { state: "Skipped", reason: "NotRunning" },
    });
    expect(machine.starts).toBe(1);
  });

  test("that leaves the directory empty fails the start, unless the archive was", async () => {
    const { stub } = newSandbox();
    const given = await restoring();
    const archive = await bindings.BACKUP_BUCKET.get(`backups/${given.restore?.objectId}/data.sqsh`);
    const header = (await archive?.arrayBuffer())?.slice(0, 8) ?? new ArrayBuffer(0);
    await bindings.BACKUP_BUCKET.put(`backups/${given.restore?.objectId}/data.sqsh`, await new Blob([header, "[]"]).arrayBuffer());
    const failed = await stub.startWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(failed.facts).toMatchObject({ running: false, operation: { state: "Failed" } });

    const objectId = await storeBackup({});
    const ok = await stub.startWorkspace(FENCE, order({ startId: "start-2", restore: { objectId, localBucket: true } }), LONG_WAIT_MS);
    expect(ok.facts.operation?.state).toBe("Succeeded");
  });

  // A change of the transport drops what is pending on a websocket: the SDK waits for it for ever.
  test("does not wait for a backup of an earlier container that never ends", async () => {
    const subject = await workspaceWithFile("websocket");
    const { stub, machine } = subject;
    machine.script.hangsOn = "/api/backup/create";
    const given = backupOrder();
    await stub.backupWorkspace(FENCE, given, 0);
    await until(() => machine.requests.includes("/api/backup/create"));
    await stub.setTransport("http");
    await endContainer(subject, 137);
    machine.script.hangsOn = null;
    expect(await stub.backupWorkspace(FENCE, given, LONG_WAIT_MS)).toMatchObject({ report: { state: "Skipped" } });

    const { facts } = await stub.startWorkspace(FENCE, await restoring({ startId: "start-2", prepareTimeoutMs: 5_000 }), LONG_WAIT_MS);
    expect(facts.operation).toMatchObject({ startId: "start-2", state: "Succeeded" });
    expect(filesOf(subject)).toEqual(FILES);
    const next = await stub.backupWorkspace(FENCE, backupOrder({ startId: "start-2" }), LONG_WAIT_MS);
    expect(next).toMatchObject({ report: { state: "Completed" } });
  });

  test("is left out for a container that is adopted, whose files are its user's", async () => {
    const subject = newSandbox();
    subject.machine.startUnseen();
    subject.machine.disk.files.set(`${DIRECTORY}/theirs`, "1");
    const { facts } = await subject.stub.startWorkspace(FENCE, await restoring({ adopt: true, setup: ["true"] }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded", step: "Container" } });
    expect(filesOf(subject)).toEqual({ theirs: "1" });
    expect(subject.machine.commands).toEqual([]);
  });

  test("of the next start has the files of the last backup", async () => {
    const subject = await runningSandbox();
    const { stub, machine } = subject;
    machine.disk.files.set(`${DIRECTORY}/mine`, "3");
    const { report } = (await stub.backupWorkspace(FENCE, backupOrder(), LONG_WAIT_MS)) as { report: { objectId?: string } };
    await endContainer(subject, 137);
    const restore = { objectId: report.objectId ?? "", localBucket: true };
    await stub.startWorkspace(FENCE, order({ startId: "start-2", restore }), LONG_WAIT_MS);
    expect(filesOf(subject)).toEqual({ mine: "3" });
    const next = await stub.backupWorkspace(FENCE, backupOrder({ startId: "start-2" }), LONG_WAIT_MS);
    expect(next).toMatchObject({ report: { state: "Completed" } });
  });
});
