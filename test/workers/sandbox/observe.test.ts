import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  bindings,
  endContainer,
  FENCE,
  LONG_WAIT_MS,
  newSandbox,
  order,
  pause,
  rejectionOf,
  runningSandbox,
  TRANSPORTS,
  until,
  type Subject,
} from "./support.ts";
import { isWorkspaceNotRunning } from "../../../src/sandbox/not-running.ts";
import { poke } from "../../../src/sandbox/poke.ts";

/** When the SDK would put the container to sleep; moved by whatever counts as activity. */
async function sleepTime({ stub }: Subject): Promise<number> {
  return runInDurableObject(stub, (instance) => (instance as unknown as { sleepAfterMs: number }).sleepAfterMs);
}

async function dueTime(uid: string): Promise<number | null> {
  const row = await bindings.DB.prepare("SELECT next_reconcile_time FROM workspaces WHERE uid = ?")
    .bind(uid)
    .first<{ next_reconcile_time: number | null }>();
  return row?.next_reconcile_time ?? null;
}

async function isDue(uid: string): Promise<boolean> {
  return ((await dueTime(uid)) ?? Infinity) <= Date.now();
}

async function insertRow(next: number | null): Promise<string> {
  const uid = crypto.randomUUID();
  await bindings.DB.prepare("INSERT INTO workspaces (uid, next_reconcile_time) VALUES (?, ?)").bind(uid, next).run();
  return uid;
}

test("observing asks the container nothing and is no activity, which a user's call is", async () => {
  const subject = await runningSandbox();
  await pause(20);
  const [requests, sleep] = [subject.machine.requests.length, await sleepTime(subject)];
  await subject.stub.observeWorkspace(FENCE);
  await subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
  expect([subject.machine.requests.length, await sleepTime(subject)]).toEqual([requests, sleep]);
  await subject.stub.exec("true");
  expect(await sleepTime(subject)).toBeGreaterThan(sleep);
});

test("observing an object that was never used reports that nothing was admitted, and starts nothing", async () => {
  const { stub, machine } = newSandbox();
  expect(await stub.observeWorkspace(FENCE)).toEqual({
    accepted: true,
    facts: { running: false, admission: "None", operation: null, exit: null, startedTime: null, activityTime: null },
  });
  expect([machine.starts, machine.requests.length]).toEqual([0, 0]);
});

test.for([0, 1, 137])("an exit with code %i is recorded until the next start", async (code) => {
  const subject = await runningSandbox();
  const before = Date.now();
  await endContainer(subject, code);
  const { facts } = await subject.stub.observeWorkspace(FENCE);
  expect(facts).toMatchObject({ running: false, admission: "Admitted", operation: { state: "Succeeded" }, exit: { code } });
  expect(facts.exit?.time).toBeGreaterThanOrEqual(before);
  const next = await subject.stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
  expect(next.facts).toMatchObject({ running: true, exit: null });
});

test.for<[string, { readonly code: number | null; readonly signalled: boolean }]>([
  ["Container exited with unexpected exit code: 143", { code: 143, signalled: false }],
  ["Runtime signalled the container to exit: 143", { code: 143, signalled: true }],
  ["Runtime signalled the container to exit due to a new version rollout: 0", { code: 0, signalled: true }],
  ["Network connection lost.", { code: null, signalled: false }],
])("an end by itself and one that the platform wished for are told apart: %s", async ([message, exit]) => {
  const subject = await runningSandbox();
  await endContainer(subject, null, message);
  const { facts } = await subject.stub.observeWorkspace(FENCE);
  expect(facts).toMatchObject({ running: false, exit });
});

test.for(TRANSPORTS)("a container that dies under a call is not started again by what the SDK does next, over %s", async (transport) => {
  const { stub, machine } = await runningSandbox({}, transport);
  machine.script.diesOn = "/api/execute";
  expect(String(await rejectionOf(stub.exec("true")))).not.toContain("went through");
  expect(isWorkspaceNotRunning(await rejectionOf(stub.exec("true")))).toBe(true);
  expect(machine.starts).toBe(1);
});

test.for<[string, number | null]>([
  ["has no due time", null],
  ["is due later", Date.now() + 3_600_000],
])("a row that %s is made due when its container starts, and when it ends", async ([, next]) => {
  const uid = await insertRow(next);
  const subject = newSandbox();
  const before = Date.now();
  await subject.stub.startWorkspace(FENCE, order({ workspaceUid: uid }), LONG_WAIT_MS);
  await until(() => isDue(uid));
  expect(await dueTime(uid)).toBeGreaterThanOrEqual(before);

  await bindings.DB.prepare("UPDATE workspaces SET next_reconcile_time = ? WHERE uid = ?").bind(next, uid).run();
  await endContainer(subject, 1);
  await until(() => isDue(uid));
  expect(await dueTime(uid)).toBeGreaterThanOrEqual(before);
});

test("a row is made due when its start fails", async () => {
  const uid = await insertRow(null);
  const { stub } = newSandbox({ mkdir: "Fails" });
  await stub.startWorkspace(FENCE, order({ workspaceUid: uid }), LONG_WAIT_MS);
  await until(() => isDue(uid));
  expect(await dueTime(uid)).toBeGreaterThan(0);
});

test("a row that is due already keeps its place, and still shows that it was poked", async () => {
  const uid = await insertRow(1);
  await poke(bindings.DB, uid, 1_000);
  expect(await dueTime(uid)).toBe(2);
});

test("a poke that fails is dropped", async () => {
  const broken = {
    prepare: () => {
      throw new Error("D1_ERROR: no such table");
    },
  };
  await expect(poke(broken as unknown as D1Database, "uid", 1)).resolves.toBeUndefined();
  await expect(poke(undefined, "uid", 1)).resolves.toBeUndefined();
});
