import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { BackupTurns } from "../../../src/sandbox/backup-turns.ts";
import { emptyBucket, OPTIONS, runningStandalone, type Standalone } from "./backup-support.ts";
import { pause, TRANSPORTS, until } from "./support.ts";

beforeEach(emptyBucket);

/** The SDK looks once a second for what is pending, and renews on its behalf. */
const A_TIMERS_TURN_MS = 1_300;

/** Since when the SDK takes the sandbox for idle counts. */
async function idleSince({ stub }: Standalone): Promise<number> {
  return runInDurableObject(stub, (instance) => (instance as unknown as { readonly sleepAfterMs: number }).sleepAfterMs);
}

describe("turns", () => {
  test("are taken one after the other by all who wait for the same one", async () => {
    const turns = new BackupTurns(() => true);
    let inside = 0;
    const seen: number[] = [];
    const work = async () => {
      inside += 1;
      seen.push(inside);
      await pause(5);
      inside -= 1;
      throw new Error("ends like any other");
    };
    await Promise.allSettled([turns.take(work), turns.take(work), turns.take(work)]);
    expect(seen).toEqual([1, 1, 1]);
    expect(turns.taken).toBe(false);
  });

  test("end with the container that they began with, and no later end of theirs is another's", async () => {
    let isRunning = false;
    const turns = new BackupTurns(() => isRunning);
    const order: string[] = [];
    const held = (name: string) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const turn = turns.take(() => (order.push(name), promise));
      return { turn, resolve };
    };
    const [first, second, third] = [held("first"), held("second"), held("third")];
    isRunning = true;
    turns.containerStarted();
    await pause(1);
    expect(order).toEqual(["first"]);
    turns.containerStarted();
    await pause(1);
    expect(order).toEqual(["first", "second"]);
    first.resolve();
    await first.turn;
    await pause(1);
    expect(order).toEqual(["first", "second"]);
    second.resolve();
    await second.turn;
    third.resolve();
    await third.turn;
    expect([order, turns.taken]).toEqual([["first", "second", "third"], false]);
  });

  // The SDK's own queue lets the second and the third proceed together.
  test("hold for the SDK's own backups and restores", async () => {
    const { stub, machine } = await runningStandalone();
    const first = await stub.createBackup(OPTIONS);
    const from = machine.requests.length;
    await Promise.all([stub.createBackup(OPTIONS), stub.restoreBackup(first), stub.createBackup(OPTIONS)]);
    const sessions = machine.requests.slice(from).filter((path) => path.startsWith("/api/session/"));
    expect(sessions).toEqual([1, 2, 3].flatMap(() => ["/api/session/create", "/api/session/delete"]));
  });

  test("are not waited for by a backup that must not wake anything", async () => {
    const { stub, machine } = await runningStandalone();
    machine.script.hangsOn = "/api/backup/create";
    const users = stub.createBackup(OPTIONS);
    await until(() => machine.requests.includes("/api/backup/create"));
    expect(await stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "Busy" });
    machine.script.hangsOn = null;
    const backup = await users;
    expect(await stub.createBackupIfRunning(OPTIONS)).toMatchObject({ status: "Completed" });

    machine.script.hangsOn = "/api/execute /usr/bin/unsquashfs";
    const restore = stub.restoreBackup(backup);
    await until(() => machine.requests.includes("/api/write"));
    expect(await stub.createBackupIfRunning(OPTIONS)).toEqual({ status: "Busy" });
    machine.script.hangsOn = null;
    await restore;
  });
});

test("the SDK's alarm is not called without a pause where the idle limit passes in the middle of a backup", async () => {
  const { stub, machine } = await runningStandalone();
  await stub.setSleepAfter("1s");
  const alarms = await runInDurableObject(stub, (instance) => {
    const seen: number[] = [];
    const alarm = instance.alarm.bind(instance);
    Object.assign(instance, { alarm: (...call: Parameters<typeof alarm>) => (seen.push(Date.now()), alarm(...call)) });
    return seen;
  });
  machine.script.hangsOn = "/api/backup/create";
  const backup = stub.createBackupIfRunning(OPTIONS);
  await pause(3_000);
  machine.script.hangsOn = null;
  expect(await backup).toMatchObject({ status: "Completed" });
  expect(alarms.length).toBeGreaterThan(0);
  expect(alarms.length).toBeLessThan(10);
});

describe.each(TRANSPORTS)("the SDK's idle limit over %s", (transport) => {
  test("is not renewed by a backup, however long it takes", async () => {
    const subject = await runningStandalone(transport);
    // Until then the SDK takes the user's call for pending, over rpc.
    await pause(A_TIMERS_TURN_MS);
    const before = await idleSince(subject);
    subject.machine.script.hangsOn = "/api/backup/create";
    const backup = subject.stub.createBackupIfRunning(OPTIONS);
    await pause(A_TIMERS_TURN_MS);
    subject.machine.script.hangsOn = null;
    expect(await backup).toMatchObject({ status: "Completed" });
    await pause(A_TIMERS_TURN_MS);
    expect(await idleSince(subject)).toBe(before);
  });

  test("is renewed by a user's call, also in the middle of a backup", async () => {
    const subject = await runningStandalone(transport);
    const { stub, machine } = subject;
    machine.script.hangsOn = "/api/backup/create";
    const backup = stub.createBackupIfRunning(OPTIONS);
    await until(() => machine.requests.includes("/api/backup/create"));
    const before = await idleSince(subject);
    await pause(20);
    await stub.exec("true");
    const renewed = await idleSince(subject);
    expect(renewed).toBeGreaterThan(before);
    machine.script.hangsOn = null;
    await backup;
    // Over a connection the SDK's timers go on for a second after the user's call.
    if (transport === "http") expect(await idleSince(subject)).toBe(renewed);
  });
});
