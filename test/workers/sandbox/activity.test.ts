/** What counts as a user's traffic, on every way to the container, with the SDK in between. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { getSandbox, type Sandbox } from "@cloudflare/sandbox";
import { describe, expect, test } from "vitest";
import { A_WHILE_MS, activityOf, moves } from "./activity-support.ts";
import {
  bindings,
  FENCE,
  loseMemory,
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

/** Longer than the rpc transport keeps an idle connection. */
const IDLE_DISCONNECT_MS = 2_500;
const KEY = "mooring:activity";

async function stored({ stub }: Subject): Promise<unknown> {
  return runInDurableObject(stub, (_instance, { storage }) => storage.kv.get(KEY));
}

describe.each(TRANSPORTS)("over %s", (transport) => {
  test("a start is no activity, its directory, its checks and what the SDK asks after it included", async () => {
    const subject = await runningSandbox({}, transport);
    expect(subject.machine.requests).toContain("/api/mkdir");
    await until(() => subject.machine.requests.includes("/api/version"));
    await pause(A_WHILE_MS);
    expect(await activityOf(subject)).toBeNull();
    expect(await stored(subject)).toBeUndefined();
  });

  test("a call is, also on a connection that is open, and nothing the controller does renews it or stores it", async () => {
    const subject = await runningSandbox({}, transport);
    const { stub } = subject;
    const begun = Date.now();
    await stub.exec("true");
    const first = await activityOf(subject);
    expect(first).toBeGreaterThanOrEqual(begun);

    await pause(A_WHILE_MS);
    const record = await stored(subject);
    await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(await activityOf(subject)).toBe(first);

    await stub.exec("true");
    const second = await activityOf(subject);
    expect(second).toBeGreaterThan(first ?? Infinity);
    await stub.stopWorkspace(FENCE, LONG_WAIT_MS);
    expect(await stored(subject)).toEqual(record);
  });

  test("a call that takes its time is activity until it ends, and not afterwards", async () => {
    const subject = await runningSandbox({}, transport);
    subject.machine.script.holdsCommands = true;
    const call = subject.stub.exec("true");
    await until(async () => (await activityOf(subject)) !== null);
    await pause(A_WHILE_MS);
    expect(await moves(subject)).toBe(true);
    subject.machine.script.holdsCommands = false;
    await call;
    expect(await moves(subject)).toBe(false);
  });

  test("what a command streams is activity until its last chunk, and arrives as it was", async () => {
    const subject = await runningSandbox({}, transport);
    subject.machine.script.holdsCommands = true;
    const reader = (await subject.stub.execStream("true")).getReader();
    const text = new TextDecoder();
    const first = text.decode((await reader.read()).value);
    await pause(A_WHILE_MS);
    expect(await moves(subject)).toBe(true);
    subject.machine.script.holdsCommands = false;
    let rest = "";
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) rest += text.decode(chunk.value);
    expect([first, rest]).toEqual(["data: 1\n\n", "data: 2\n\n"]);
    expect(await moves(subject)).toBe(false);
  });

  // A reader on the far side of an RPC call is seen to have gone when the next chunk comes: that is what the limit is for.
  test("a stream whose reader goes away is over", async () => {
    const subject = await runningSandbox({}, transport);
    subject.machine.script.holdsCommands = true;
    await runInDurableObject(subject.stub, async (instance) => {
      const reader = (await instance.execStream("true")).getReader();
      await reader.read();
      await pause(A_WHILE_MS);
      await reader.cancel();
    });
    expect(await activityOf(subject)).not.toBeNull();
    expect(await moves(subject)).toBe(false);
  });

  test("a call that fails is over", async () => {
    const subject = await runningSandbox({}, transport);
    await runInDurableObject(subject.stub, async (instance) => {
      subject.machine.script.mkdir = "Fails";
      await rejectionOf(instance.mkdir("/workspace/a"));
    });
    expect(await activityOf(subject)).not.toBeNull();
    expect(await moves(subject)).toBe(false);
  });

  test("a call that is refused is none", async () => {
    const subject = newSandbox({ mkdir: "Hangs" });
    await subject.stub.setTransport(transport);
    const start = subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    await until(() => subject.machine.requests.includes("/api/mkdir"));
    expect(String(await rejectionOf(subject.stub.exec("true")))).toContain("WORKSPACE_NOT_READY");
    await subject.stub.fetch("http://sandbox/", { headers: { "cf-container-target-port": "8080" } });
    expect(await activityOf(subject)).toBeNull();
    expect(await stored(subject)).toBeUndefined();
    await subject.stub.stopWorkspace(FENCE, 0);
    await start;
  });

  test("a connection that stays open is none", async () => {
    const subject = await runningSandbox({}, transport);
    await subject.stub.exec("true");
    const before = await activityOf(subject);
    await pause(IDLE_DISCONNECT_MS);
    expect(await activityOf(subject)).toBe(before);
  });

  test("a reset forgets no call that was stored, and the next container knows nothing of it", async () => {
    const subject = await runningSandbox({}, transport);
    const begun = Date.now();
    await subject.stub.exec("true");
    const before = await activityOf(subject);
    const stub = await loseMemory(subject);
    const after = await activityOf(subject);
    expect(after).toBeGreaterThanOrEqual(begun);
    expect(after).toBeLessThanOrEqual(before ?? 0);
    const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, activityTime: null });
  });
});

test("a file that is read as it is, over rpc, is activity until its last chunk", async () => {
  const subject = await runningSandbox({ holdsCommands: true }, "rpc");
  const { content } = await userSandbox(subject).readFile("/workspace/a", { encoding: "none" });
  expect(await moves(subject)).toBe(true);
  subject.machine.script.holdsCommands = false;
  expect(await new Response(content).text()).toBe("data: 1\n\ndata: 2\n\n");
  expect(await moves(subject)).toBe(false);
});

test("a container that the platform denies for a moment has no times then, and the same ones afterwards", async () => {
  const { stub, machine } = await runningSandbox();
  await stub.exec("true");
  const { facts } = await stub.observeWorkspace(FENCE);
  machine.running = false;
  expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: false, startedTime: null, activityTime: null });
  machine.running = true;
  expect((await stub.observeWorkspace(FENCE)).facts).toEqual(facts);
});

test("neither a call that asks the container nothing nor an observation is activity", async () => {
  const subject = await runningSandbox();
  const requests = subject.machine.requests.length;
  await subject.stub.getState();
  await subject.stub.setSleepAfter("1h");
  await subject.stub.setKeepAlive(true);
  await subject.stub.observeWorkspace(FENCE);
  const preview = await subject.stub.fetch("http://sandbox/", { headers: { "X-Sandbox-Preview-Proxy": "1" } });
  expect(preview.ok).toBe(false);
  expect(subject.machine.requests.length).toBe(requests);
  expect(await activityOf(subject)).toBeNull();
});

test("what the object's alarm does is no activity, even where it calls the container", async () => {
  const subject = await runningSandbox();
  await runInDurableObject(subject.stub, async (instance) => {
    await instance.schedule(0, "listProcesses");
    // So that the SDK's alarm does not wait for minutes.
    Object.assign(instance, { sleepAfter: 0 });
  });
  await runDurableObjectAlarm(subject.stub);
  expect(subject.machine.requests).toContain("/api/process/list");
  expect(await activityOf(subject)).toBeNull();
  expect(subject.machine.running).toBe(true);
});

function userSandbox({ name }: Subject) {
  return getSandbox(bindings.FENCED as unknown as DurableObjectNamespace<Sandbox>, name);
}
