import { describe, expect, test } from "vitest";
import { Ledger } from "../../../src/sandbox/ledger.ts";
import { StartGate } from "../../../src/sandbox/start-gate.ts";
import { type StartEffects, StartOperations } from "../../../src/sandbox/start-operations.ts";
import type { Teardown } from "../../../src/sandbox/teardown.ts";
import { ContainerWatch } from "../../../src/sandbox/container-watch.ts";
import { bindings, FENCE, loseMemory, LONG_WAIT_MS, newSandbox, order, pause, rejectionOf, runningSandbox, until } from "./support.ts";

describe("an object that lost its memory", () => {
  test("reports the start that was under way as interrupted and leaves its container alone", async () => {
    const subject = newSandbox({ listensAfterMs: null });
    await subject.stub.startWorkspace(FENCE, order(), 50);
    const stub = await loseMemory(subject);
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({
      running: true,
      admission: "Admitted",
      operation: { startId: "start-1", state: "Interrupted" },
    });
    expect(subject.machine.destroys).toBe(0);
  });

  test("resumes that start with the container that runs, by the same deadline", async () => {
    const subject = newSandbox({ listensAfterMs: null });
    const begun = await subject.stub.startWorkspace(FENCE, order(), 50);
    const stub = await loseMemory(subject);
    subject.machine.listensTime = 0;
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded", deadlineTime: begun.facts.operation?.deadlineTime } });
    expect(subject.machine.starts).toBe(1);
  });

  test("replaces the container of a start that is resumed with another spec", async () => {
    const subject = newSandbox({ listensAfterMs: null });
    await subject.stub.startWorkspace(FENCE, order(), 50);
    const stub = await loseMemory(subject);
    subject.machine.script.listensAfterMs = 0;
    const { facts } = await stub.startWorkspace(FENCE, order({ specHash: "hash-2", env: { NODE_ENV: "other" } }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded", specHash: "hash-2" } });
    expect(subject.machine.starts).toBe(2);
    expect(subject.machine.environments.at(-1)).toMatchObject({ NODE_ENV: "other" });
  });

  test("does not take the end of an older container for that of a start that has not got to its own", () => {
    const stored = { fence: null, operation: null, container: null, exit: { code: 137, time: 1 } };
    const ledger = new Ledger({ get: () => stored, put: () => {} } as unknown as SyncKvStorage);
    const effects = { keepAlive: () => {}, launch: () => new Promise<void>(() => {}) };
    const operations = new StartOperations(ledger, new StartGate(ledger), {} as Teardown, effects as unknown as StartEffects);
    void operations.begin(order(), Date.now());
    expect(ledger.record).toMatchObject({ operation: { state: "InProgress" }, exit: null });
  });

  test("does not take the end of the container that a start is replacing for its own", async () => {
    const stored = {
      fence: null,
      operation: { startId: "start-2", state: "InProgress", specHash: "h", startedTime: 1, deadlineTime: 9e15, failure: null },
      container: { startId: "start-1", startedTime: 1 },
      exit: null,
    };
    const ledger = new Ledger({ get: () => stored, put: () => {} } as unknown as SyncKvStorage);
    const watch = new ContainerWatch({ running: false } as Container, ledger, () => {});
    watch.reconcile();
    expect(ledger.record).toMatchObject({ container: null, exit: null });
  });

  test("takes an exit that an older version recorded for none that the platform wished for", () => {
    const recorded = (exit: object | null) =>
      new Ledger({ get: () => (exit === null ? undefined : { exit }), put: () => {} } as unknown as SyncKvStorage).record.exit;
    expect(recorded({ code: 137, time: 1 })).toEqual({ code: 137, time: 1, signalled: false });
    expect(recorded({ code: 143, time: 1, signalled: true })).toEqual({ code: 143, time: 1, signalled: true });
    expect(recorded(null)).toBeNull();
  });

  test("resumes a start whose container never came with one container", async () => {
    const subject = newSandbox({ refusals: 1 });
    const begun = subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS).catch(() => {});
    await until(() => subject.machine.starts === 1 && !subject.machine.running);
    const stub = await loseMemory(subject);
    await begun;
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded" } });
    expect(subject.machine.containers).toBe(1);
  });

  test("times out the start that was under way once its deadline has passed, and kills its container", async () => {
    const subject = newSandbox({ listensAfterMs: null });
    await subject.stub.startWorkspace(FENCE, order({ timeoutMs: 250 }), 20);
    const stub = await loseMemory(subject);
    await pause(250);
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({
      admission: "Revoked",
      operation: { state: "TimedOut", failure: { code: "START_DEADLINE" } },
    });
    await until(() => !subject.machine.running);
    expect((await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS)).facts.operation?.state).toBe("TimedOut");
    expect(subject.machine.starts).toBe(1);
  });

  test("still vouches for a container that it verified", async () => {
    const subject = await runningSandbox();
    const stub = await loseMemory(subject);
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({
      running: true,
      admission: "Admitted",
      operation: { state: "Succeeded" },
    });
    expect((await stub.exec("true")).exitCode).toBe(0);
    expect(subject.machine.starts).toBe(1);
  });

  test("knows that its container ended meanwhile, if not how", async () => {
    const subject = await runningSandbox();
    const lost = loseMemory(subject);
    await lost;
    subject.machine.running = false;
    const stub = await loseMemory(subject);
    expect((await stub.observeWorkspace(FENCE)).facts).toMatchObject({ running: false, exit: { code: null, signalled: false } });
  });

  test("sees the end of a container that it did not start", async () => {
    const subject = await runningSandbox();
    const stub = await loseMemory(subject);
    const { facts } = await stub.stopWorkspace(FENCE, 5_000);
    expect(facts).toMatchObject({ running: false, exit: { code: 143 } });
  });

  test("lets nothing start by itself in the middle of a start", async () => {
    const subject = newSandbox({ refusals: 3 });
    const begun = subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS).catch(() => {});
    await until(() => subject.machine.starts === 1);
    const stub = await loseMemory(subject);
    await begun;
    expect(String(await rejectionOf(stub.exec("true")))).toContain("WORKSPACE_NOT_READY");
    expect(subject.machine.starts).toBe(1);
  });
});

test("a reset by the SDK itself, when the network was lost to the last, leaves an interrupted start that can be resumed", async () => {
  const { stub, machine, name } = newSandbox({ network: "Lost" });
  expect(String(await rejectionOf(stub.startWorkspace(FENCE, order({ timeoutMs: 3_000 }), LONG_WAIT_MS)))).toContain("abort");
  const fresh = bindings.FENCED.getByName(name);
  machine.script.network = "Works";
  expect((await fresh.observeWorkspace(FENCE)).facts).toMatchObject({ running: true, operation: { state: "Interrupted" } });
  const { facts } = await fresh.startWorkspace(FENCE, order({ timeoutMs: 3_000 }), LONG_WAIT_MS);
  expect(facts.operation?.state).toBe("Succeeded");
  expect(machine.starts).toBe(1);
});
