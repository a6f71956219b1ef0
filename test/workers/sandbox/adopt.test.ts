/** Starts that vouch for a container that runs already. */
import { describe, expect, test } from "vitest";
import type { StartOrder } from "../../../src/sandbox/protocol.ts";
import { endContainer, FENCE, loseMemory, LONG_WAIT_MS, newSandbox, order, runningSandbox, TRANSPORTS, until } from "./support.ts";

const ADOPT = order({ startId: "start-2", specHash: "hash-2", adopt: true });

test.for(TRANSPORTS)("a container that nobody here started is verified and vouched for, over %s", async (transport) => {
  const { stub, machine } = newSandbox();
  await stub.setTransport(transport);
  machine.startUnseen();
  expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: true, admission: "None", startedTime: null });

  const before = Date.now();
  const { facts } = await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  expect(facts).toMatchObject({
    running: true,
    admission: "Admitted",
    operation: { startId: "start-2", state: "Succeeded", specHash: "hash-2" },
    exit: null,
    activityTime: null,
  });
  expect(facts.startedTime).toBeGreaterThanOrEqual(before);
  expect(machine.requests).toContain("connect ping");
  expect(machine.requests).toContain("/api/mkdir");
  expect([machine.starts, machine.destroys]).toEqual([0, 0]);
  expect((await stub.exec("true")).exitCode).toBe(0);
});

test("a repeated order does not move the container's start", async () => {
  const { stub, machine } = newSandbox();
  machine.startUnseen();
  const { facts } = await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  expect((await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS)).facts).toEqual(facts);
});

test("the end of an adopted container is seen", async () => {
  const subject = newSandbox();
  subject.machine.startUnseen();
  await subject.stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  await endContainer(subject, 3);
  const { facts } = await subject.stub.observeWorkspace(FENCE);
  expect(facts).toMatchObject({ running: false, exit: { code: 3 }, startedTime: null });
});

test("a reset in the middle of it leaves the container alone, and the repeated order goes on with it", async () => {
  const subject = newSandbox({ listensAfterMs: null });
  subject.machine.startUnseen();
  const begun = await subject.stub.startWorkspace(FENCE, ADOPT, 50);
  const stub = await loseMemory(subject);
  expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: true, operation: { state: "Interrupted" } });
  subject.machine.listensTime = 0;
  const { facts } = await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded" }, startedTime: begun.facts.startedTime });
  expect([subject.machine.starts, subject.machine.destroys]).toEqual([0, 0]);
});

test("a container that cannot be verified is removed, as after any start that failed", async () => {
  const { stub, machine } = newSandbox({ mkdir: "Fails" });
  machine.startUnseen();
  const { facts } = await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  expect(facts).toMatchObject({ running: false, admission: "Revoked", operation: { state: "Failed" } });
  expect(machine.starts).toBe(0);
});

test("one that is admitted while another start is under way ends that, with its container, and begins its own", async () => {
  const { stub, machine } = newSandbox({ listensAfterMs: null });
  const first = stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
  await until(() => machine.starts === 1);
  machine.script.listensAfterMs = 0;
  const { facts } = await stub.startWorkspace(FENCE, ADOPT, LONG_WAIT_MS);
  await first;
  expect(facts).toMatchObject({ running: true, operation: { startId: "start-2", state: "Succeeded" } });
  expect(machine.starts).toBe(2);
});

describe("an order that does not say so", () => {
  test.for<[string, StartOrder]>([
    ["explicitly", { ...ADOPT, adopt: false }],
    ["because it comes from an older version", withoutAdopt(ADOPT)],
  ])("%s replaces what runs", async ([, other]) => {
    const { stub, machine } = await runningSandbox();
    const { facts } = await stub.startWorkspace(FENCE, other, LONG_WAIT_MS);
    expect(facts.operation).toMatchObject({ startId: "start-2", state: "Succeeded" });
    expect([machine.starts, machine.destroys]).toEqual([2, 1]);
  });
});

function withoutAdopt({ adopt: _adopt, ...rest }: StartOrder): StartOrder {
  return rest as StartOrder;
}
