import { describe, expect, test } from "vitest";
import type { Answer, Fence } from "../../../src/sandbox/protocol.ts";
import { FENCE, loseMemory, LONG_WAIT_MS, newSandbox, order, runningSandbox, type Subject } from "./support.ts";

type Call = (stub: Subject["stub"], fence: Fence) => Promise<Answer>;

describe.each<[string, Call]>([
  ["observe", (stub, fence) => stub.observeWorkspace(fence)],
  ["start", (stub, fence) => stub.startWorkspace(fence, order({ startId: "start-2" }), LONG_WAIT_MS)],
  ["stop", (stub, fence) => stub.stopWorkspace(fence, 1_000)],
  ["destroy", (stub, fence) => stub.destroyWorkspace(fence)],
])("%s", (_name, call) => {
  test("with a lower epoch is refused and changes nothing", async () => {
    const { stub, machine } = await runningSandbox();
    await stub.observeWorkspace({ epoch: 5, incarnation: 1 });
    const { facts } = await stub.observeWorkspace({ epoch: 5, incarnation: 1 });
    expect(await call(stub, { epoch: 4, incarnation: 1 })).toEqual({ accepted: false, refusal: "StaleEpoch", facts });
    expect([machine.running, machine.starts, machine.destroys]).toEqual([true, 1, 0]);
  });

  test("about another incarnation is refused and changes nothing", async () => {
    const { stub, machine } = await runningSandbox();
    expect(await call(stub, { epoch: 9, incarnation: 2 })).toMatchObject({
      accepted: false,
      refusal: "OtherIncarnation",
      facts: { running: true },
    });
    expect([machine.running, machine.starts, machine.destroys]).toEqual([true, 1, 0]);
    expect((await stub.observeWorkspace({ epoch: 1, incarnation: 1 })).accepted).toBe(true);
  });

  test("with an equal or a higher epoch is accepted", async () => {
    const { stub } = newSandbox();
    await stub.observeWorkspace({ epoch: 5, incarnation: 1 });
    expect((await call(stub, { epoch: 5, incarnation: 1 })).accepted).toBe(true);
    expect((await stub.observeWorkspace({ epoch: 6, incarnation: 1 })).accepted).toBe(true);
  });
});

test("the highest epoch survives the object's memory", async () => {
  const subject = newSandbox();
  await subject.stub.observeWorkspace({ epoch: 5, incarnation: 1 });
  const stub = await loseMemory(subject);
  expect(await stub.observeWorkspace({ epoch: 4, incarnation: 1 })).toMatchObject({ accepted: false, refusal: "StaleEpoch" });
});

test("an order that arrives after its caller has given up admits nothing", async () => {
  const { stub, machine } = newSandbox();
  expect(await stub.startWorkspace(late(), order(), LONG_WAIT_MS)).toMatchObject({
    accepted: false,
    refusal: "Expired",
    facts: { admission: "None", running: false },
  });
  expect(machine.starts).toBe(0);
});

/** The retry of the stop was done, another start admitted; then the first one arrives. */
describe("an order to end the container that arrives after its caller has given up", () => {
  test.each(["stopWorkspace", "destroyWorkspace"] as const)("leaves it running: %s", async (end) => {
    const { stub, machine } = newSandbox();
    await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    const answer = end === "stopWorkspace" ? await stub.stopWorkspace(late(), 0) : await stub.destroyWorkspace(late());
    expect(answer).toMatchObject({ accepted: false, refusal: "Expired", facts: { admission: "Admitted", running: true } });
    expect(machine.running).toBe(true);
  });

  test("leaves an orphan running", async () => {
    const { stub, machine } = newSandbox();
    await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(await stub.destroyOrphan(FENCE.epoch, Date.now() - 1)).toBe("Expired");
    expect(machine.running).toBe(true);
  });
});

test("an order that arrives in time is done", async () => {
  const { stub, machine } = newSandbox();
  await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
  await stub.stopWorkspace({ ...FENCE, expiresTime: Date.now() + 60_000 }, 0);
  expect(machine.running).toBe(false);
});

function late() {
  return { ...FENCE, expiresTime: Date.now() - 1 };
}
