import { describe, expect, test } from "vitest";
import {
  FENCE,
  loseMemory,
  LONG_WAIT_MS,
  newSandbox,
  order,
  pause,
  runningSandbox,
  runScheduledVerification,
  SEVERAL_TRIES_MS,
  until,
} from "./support.ts";

describe("stop", () => {
  test("gives the container its grace and records its exit", async () => {
    const { stub, machine } = await runningSandbox({ stopsAfterMs: 50 });
    const { facts } = await stub.stopWorkspace(FENCE, 5_000);
    expect(facts).toMatchObject({ running: false, admission: "Revoked", exit: { code: 143 }, operation: { state: "Succeeded" } });
    expect(machine.destroys).toBe(0);
  });

  test("kills a container that ignores the signal", async () => {
    const { stub } = await runningSandbox({ stopsAfterMs: null });
    const { facts } = await stub.stopWorkspace(FENCE, 100);
    expect(facts).toMatchObject({ running: false, admission: "Revoked", exit: { code: 137 } });
  });

  test("in the middle of a start loop lets it try no more", async () => {
    const { stub, machine } = newSandbox({ refusals: 3 });
    const start = stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    await until(() => machine.starts > 0);
    const { facts } = await stub.stopWorkspace(FENCE, 1_000);
    const { starts } = machine;
    await pause(SEVERAL_TRIES_MS);
    expect(facts).toMatchObject({
      running: false,
      admission: "Revoked",
      operation: { state: "Failed", failure: { code: "START_CANCELLED" } },
    });
    expect((await start).facts.operation?.state).toBe("Failed");
    expect([machine.starts, machine.containers]).toEqual([starts, 0]);
  });

  test("of a workspace that never ran changes nothing", async () => {
    const { stub } = newSandbox();
    const { facts } = await stub.stopWorkspace(FENCE, 1_000);
    expect(facts).toEqual({ running: false, admission: "None", operation: null, exit: null, startedTime: null, activityTime: null });
  });

  test("says so where the container lives on", async () => {
    const { stub } = await runningSandbox({ stopsAfterMs: null, destroy: "Fails" });
    const { facts } = await stub.stopWorkspace(FENCE, 10);
    expect(facts).toMatchObject({ running: true, admission: "Revoked", exit: null });
  });
});

describe("destroy", () => {
  test("ends the container and the incarnation", async () => {
    const { stub, machine } = await runningSandbox();
    const { facts } = await stub.destroyWorkspace(FENCE);
    expect(facts).toMatchObject({ running: false, admission: "Destroyed", exit: { code: 137 } });
    const later = await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
    expect(later).toMatchObject({ accepted: false, refusal: "Destroyed", facts: { running: false, admission: "Destroyed" } });
    expect(machine.starts).toBe(1);
  });

  test("of a workspace that never ran starts nothing and is final", async () => {
    const { stub, machine } = newSandbox();
    const { facts } = await stub.destroyWorkspace(FENCE);
    expect(facts).toEqual({ running: false, admission: "Destroyed", operation: null, exit: null, startedTime: null, activityTime: null });
    expect(machine.starts).toBe(0);
  });

  test("may be repeated, also after the object lost its memory", async () => {
    const subject = await runningSandbox();
    const first = await subject.stub.destroyWorkspace(FENCE);
    expect(await subject.stub.destroyWorkspace(FENCE)).toEqual(first);
    const stub = await loseMemory(subject);
    expect(await stub.destroyWorkspace(FENCE)).toEqual(first);
    expect((await stub.startWorkspace(FENCE, order(), 0)).accepted).toBe(false);
  });

  test("is repeated by both of two callers at once", async () => {
    const { stub } = await runningSandbox();
    const answers = await Promise.all([stub.destroyWorkspace(FENCE), stub.destroyWorkspace(FENCE)]);
    for (const { facts } of answers) expect(facts).toMatchObject({ running: false, admission: "Destroyed" });
  });

  test.for(["Hangs", "DoesNothing"] as const)("says so where the platform's destroy %s, and is repeated later", async (destroy) => {
    const subject = await runningSandbox({ destroy });
    const { stub, machine } = subject;
    const { facts } = await stub.destroyWorkspace(FENCE);
    expect(facts).toMatchObject({ running: true, admission: "Destroyed" });
    machine.script.destroy = "Works";
    await runScheduledVerification(subject);
    await until(() => !machine.running);
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: false, exit: { code: 137 } });
  });

  test("is final from its first moment, also for an object that loses its memory in the middle of it", async () => {
    const subject = await runningSandbox({ destroy: "Hangs" });
    const destroy = subject.stub.destroyWorkspace(FENCE).catch(() => {});
    await until(() => subject.machine.destroys > 0);
    expect(await subject.stub.startWorkspace(FENCE, order({ startId: "start-2" }), 0)).toMatchObject({ refusal: "Destroyed" });
    const stub = await loseMemory(subject);
    await destroy;
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: true, admission: "Destroyed" });
    subject.machine.script.destroy = "Works";
    expect((await stub.destroyWorkspace(FENCE)).facts).toMatchObject({ running: false, admission: "Destroyed" });
    expect(subject.machine.starts).toBe(1);
  });

  test("in the middle of a start ends both", async () => {
    const { stub, machine } = newSandbox({ listensAfterMs: null });
    const start = stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    await until(() => machine.running);
    const { facts } = await stub.destroyWorkspace(FENCE);
    expect(facts).toMatchObject({
      running: false,
      admission: "Destroyed",
      operation: { state: "Failed", failure: { code: "START_CANCELLED" } },
    });
    expect((await start).facts.admission).toBe("Destroyed");
    expect(machine.starts).toBe(1);
  });
});

test("the SDK's own destroy, called by a user, ends the container but not the workspace", async () => {
  const { stub, machine } = await runningSandbox();
  await stub.destroy();
  expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({
    running: false,
    admission: "Admitted",
    operation: { state: "Succeeded" },
    exit: { code: 137 },
  });
  const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
  expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded" } });
  expect(machine.starts).toBe(2);
});
