/** The order to destroy a container that no record claims, given to an object that may know better. */
import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  bindings,
  FENCE,
  loseMemory,
  LONG_WAIT_MS,
  newSandbox,
  order,
  rejectionOf,
  runningSandbox,
  runScheduledVerification,
  type Subject,
  until,
  withBrokenD1,
} from "./support.ts";
import type { FencedSandbox } from "./worker.ts";

/** The object reads rows by `find` instead of from D1. */
async function withRows({ stub }: Subject, find: (uid: string, instance: FencedSandbox) => Promise<boolean>): Promise<void> {
  await runInDurableObject(stub, (instance) => {
    const prepare = () => ({ bind: (uid: string) => ({ first: async () => ((await find(uid, instance)) ? {} : null) }) });
    Object.defineProperty(instance, "env", { value: { DB: { prepare } } });
  });
}

async function insertRow(uid: string): Promise<void> {
  await bindings.DB.prepare("INSERT INTO workspaces (uid) VALUES (?)").bind(uid).run();
}

test("an object that was never used answers to any incarnation, and never runs", async () => {
  const { stub, machine } = newSandbox();
  expect(await stub.destroyOrphan(3)).toBe("Gone");
  expect(await stub.startWorkspace({ epoch: 3, incarnation: 4 }, order(), 0)).toMatchObject({ refusal: "Destroyed" });
  expect(await stub.observeWorkspace({ epoch: 3, incarnation: 4 })).toMatchObject({ accepted: true, facts: { admission: "Destroyed" } });
  // The first that names one fixes it.
  expect(await stub.observeWorkspace({ epoch: 3, incarnation: 1 })).toMatchObject({ refusal: "OtherIncarnation" });
  expect(machine.starts).toBe(0);
});

test("an object keeps the incarnation that it has, and learns the epoch", async () => {
  const { stub, machine } = await runningSandbox();
  expect(await stub.destroyOrphan(3)).toBe("Gone");
  expect(await stub.observeWorkspace({ epoch: 2, incarnation: 1 })).toMatchObject({ refusal: "StaleEpoch" });
  expect((await stub.observeWorkspace({ epoch: 3, incarnation: 1 })).facts).toMatchObject({
    running: false,
    admission: "Destroyed",
    exit: { code: 137 },
  });
  expect(machine.running).toBe(false);
});

test("a lower epoch is refused before D1 is asked, and changes nothing", async () => {
  const subject = await runningSandbox();
  await withBrokenD1(subject);
  const { facts } = await subject.stub.observeWorkspace({ epoch: 5, incarnation: 1 });
  expect(await subject.stub.destroyOrphan(4)).toBe("StaleEpoch");
  expect((await subject.stub.observeWorkspace({ epoch: 5, incarnation: 1 })).facts).toEqual(facts);
});

test("an object whose workspace has a row in D1 is wanted: nothing is done, and no epoch is learnt", async () => {
  const uid = crypto.randomUUID();
  await insertRow(uid);
  const { stub, machine } = newSandbox();
  await stub.startWorkspace(FENCE, order({ workspaceUid: uid }), LONG_WAIT_MS);
  const { facts } = await stub.observeWorkspace(FENCE);
  expect(await stub.destroyOrphan(9)).toBe("Wanted");
  expect(await stub.observeWorkspace(FENCE)).toEqual({ accepted: true, facts });
  expect([machine.running, machine.destroys]).toEqual([true, 0]);

  await bindings.DB.prepare("DELETE FROM workspaces WHERE uid = ?").bind(uid).run();
  expect(await stub.destroyOrphan(9)).toBe("Gone");
});

test("an object that was stopped is wanted by its row as much as one that runs", async () => {
  const uid = crypto.randomUUID();
  await insertRow(uid);
  const { stub, machine } = newSandbox();
  await stub.startWorkspace(FENCE, order({ workspaceUid: uid }), LONG_WAIT_MS);
  await stub.stopWorkspace(FENCE, LONG_WAIT_MS);
  machine.startUnseen();
  expect(await stub.destroyOrphan(9)).toBe("Wanted");
  expect((await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS)).accepted).toBe(true);
});

test("an object that D1 does not answer throws, and does nothing", async () => {
  const subject = await runningSandbox();
  await withBrokenD1(subject);
  expect(String(await rejectionOf(subject.stub.destroyOrphan(9)))).toContain("D1_ERROR");
  expect(await subject.stub.observeWorkspace(FENCE)).toMatchObject({ accepted: true, facts: { running: true, admission: "Admitted" } });
});

test("an object without a database has nobody to ask", async () => {
  const subject = await runningSandbox();
  await runInDurableObject(subject.stub, (instance) => {
    Object.defineProperty(instance, "env", { value: {} });
  });
  expect(await subject.stub.destroyOrphan(9)).toBe("Gone");
});

test("a controller that speaks up while D1 is asked is heard", async () => {
  const subject = await runningSandbox();
  await withRows(subject, async (_uid, instance) => {
    await instance.observeWorkspace({ epoch: 10, incarnation: 1 });
    return false;
  });
  expect(await subject.stub.destroyOrphan(9)).toBe("StaleEpoch");
  expect(subject.machine.running).toBe(true);
});

test("a workspace that is admitted while D1 is asked for another is asked for, too", async () => {
  const subject = await runningSandbox();
  const asked: string[] = [];
  await withRows(subject, async (uid, instance) => {
    asked.push(uid);
    if (uid === "uid-2") return true;
    await instance.startWorkspace(FENCE, order({ startId: "start-2", workspaceUid: "uid-2", adopt: true }), LONG_WAIT_MS);
    return false;
  });
  expect(await subject.stub.destroyOrphan(9)).toBe("Wanted");
  expect(asked).toEqual(["uid-1", "uid-2"]);
  expect(subject.machine.running).toBe(true);
});

test("a destroyed incarnation is nobody's, whatever rows there are", async () => {
  const subject = await runningSandbox({ destroy: "DoesNothing" });
  await subject.stub.destroyWorkspace(FENCE);
  subject.machine.script.destroy = "Works";
  await withRows(subject, async () => true);
  expect(await subject.stub.destroyOrphan(9)).toBe("Gone");
});

test.for(["Hangs", "DoesNothing", "Fails"] as const)("a destroy that %s leaves it running, and is repeated later", async (destroy) => {
  const subject = newSandbox({ destroy });
  subject.machine.startUnseen();
  expect(await subject.stub.destroyOrphan(1)).toBe("StillRuns");
  subject.machine.script.destroy = "Works";
  await runScheduledVerification(subject);
  await until(() => !subject.machine.running);
  expect(await subject.stub.destroyOrphan(1)).toBe("Gone");
});

test("it is final from its first moment, also for an object that loses its memory in the middle of it", async () => {
  const subject = await runningSandbox({ destroy: "Hangs" });
  const destroy = subject.stub.destroyOrphan(7).catch(() => {});
  await until(() => subject.machine.destroys > 0);
  const stub = await loseMemory(subject);
  await destroy;
  expect(await stub.observeWorkspace(FENCE)).toMatchObject({ refusal: "StaleEpoch", facts: { running: true, admission: "Destroyed" } });
});

test("a start under way is ended, and so is its loop", async () => {
  const { stub, machine } = newSandbox({ listensAfterMs: null });
  const start = stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
  await until(() => machine.running);
  expect(await stub.destroyOrphan(1)).toBe("Gone");
  expect((await start).facts).toMatchObject({ running: false, admission: "Destroyed", operation: { state: "Failed" } });
  expect(machine.starts).toBe(1);
});
