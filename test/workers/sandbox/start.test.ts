import { describe, expect, test } from "vitest";
import { interpret } from "../../../src/controller/observation.ts";
import type { Script } from "./fake-container.ts";
import { FENCE, LONG_WAIT_MS, newSandbox, order, pause, runningSandbox, SEVERAL_TRIES_MS, TRANSPORTS, until } from "./support.ts";

describe("a start", () => {
  test.for(TRANSPORTS)("is verified once the container listens and the directory exists, over %s", async (transport) => {
    const { stub, machine } = newSandbox({ listensAfterMs: 100 });
    await stub.setTransport(transport);
    const answer = await stub.startWorkspace(FENCE, order({ env: { GREETING: "hello" } }), LONG_WAIT_MS);
    expect(answer).toMatchObject({
      accepted: true,
      facts: {
        running: true,
        admission: "Admitted",
        exit: null,
        operation: { startId: "start-1", state: "Succeeded", specHash: "hash-1", directory: "/workspace", failure: null },
      },
    });
    expect(machine.starts).toBe(1);
    expect(machine.environments[0]).toMatchObject({ GREETING: "hello" });
    expect(machine.requests).toContain("/api/mkdir");
  });

  test("goes on after its caller stopped waiting", async () => {
    const { stub } = newSandbox({ listensAfterMs: 400 });
    const begun = await stub.startWorkspace(FENCE, order(), 20);
    expect(begun.facts).toMatchObject({ admission: "Admitted", operation: { state: "InProgress", failure: null } });
    await until(async () => (await stub.observeWorkspace(FENCE)).facts.operation?.state !== "InProgress");
    expect((await stub.observeWorkspace(FENCE)).facts.operation?.state).toBe("Succeeded");
  });

  test("takes an instance as soon as there is one", async () => {
    const { stub, machine } = newSandbox({ refusals: 2 });
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts.operation?.state).toBe("Succeeded");
    expect([machine.starts, machine.containers]).toEqual([3, 1]);
  });

  test("fails with the platform's words where there is no instance in half of its time", async () => {
    const { stub, machine } = newSandbox({ refusals: Infinity });
    const { facts } = await stub.startWorkspace(FENCE, order({ timeoutMs: 1_200 }), LONG_WAIT_MS);
    expect(facts).toMatchObject({
      running: false,
      admission: "Revoked",
      exit: null,
      operation: { state: "Failed", failure: { exitCode: null } },
    });
    expect(facts.operation?.failure?.messages.join()).toContain("no container instance");
    const { starts } = machine;
    await pause(SEVERAL_TRIES_MS);
    expect(machine.starts).toBe(starts);
  });

  test.for([
    ["you are requesting too many containers per second", "RateLimited"],
    ["Maximum number of running container instances exceeded. Try again later", "Capacity"],
    ["LOCATION_SURPASSED_BASE_LIMITS", "Capacity"],
    ["no container application assigned", "Misconfigured"],
    ["No such image available named app", "Permanent"],
  ] as const)("fails as what the platform says: %s", async ([refusalText, expected]) => {
    const { stub, machine } = newSandbox({ refusals: Infinity, refusalText });
    const { facts } = await stub.startWorkspace(FENCE, order({ timeoutMs: 3_000 }), LONG_WAIT_MS);
    expect(interpret(facts)).toMatchObject({ kind: "Failed", failure: { class: expected } });
    expect([machine.containers, machine.running]).toEqual([0, false]);
  });

  test.for([0, 3])("fails with the exit code where the container exits with %i before it listens", async (code) => {
    const { stub, machine } = newSandbox({ listensAfterMs: null, exits: { afterMs: 50, code } });
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({
      running: false,
      admission: "Revoked",
      exit: { code },
      operation: { state: "Failed", failure: { exitCode: code } },
    });
    expect(facts.operation?.failure?.messages[0]).toBe(`the container ended before it was verified (exit code ${code})`);
    expect(facts.operation?.failure?.messages.join()).not.toContain("consider calling start()");
    expect(machine.starts).toBe(1);
  });

  test("that found no instance before its deadline failed for want of capacity", async () => {
    const { stub } = newSandbox({ refusals: Infinity });
    const { facts } = await stub.startWorkspace(FENCE, order({ timeoutMs: 100 }), LONG_WAIT_MS);
    expect(interpret(facts)).toMatchObject({ kind: "Failed", failure: { class: "Capacity" } });
  });

  test("fails and leaves no container where the directory cannot be created", async () => {
    const { stub, machine } = newSandbox({ mkdir: "Fails" });
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({
      running: false,
      admission: "Revoked",
      operation: { state: "Failed", failure: { messages: ["the working directory could not be created"] } },
    });
    expect(machine.running).toBe(false);
  });

  test.for<[string, Partial<Script>]>([
    ["as soon as it was verified", { diesOncePinged: true }],
    ["under the directory", { diesOn: "/api/mkdir" }],
  ])("fails and starts no second container where the container dies %s", async ([, script]) => {
    const { stub, machine } = newSandbox(script);
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, exit: { code: 137 }, operation: { state: "Failed", failure: { exitCode: 137 } } });
    expect(machine.starts).toBe(1);
  });

  test.for(["never listens", "hangs on the directory"])("times out and leaves no container where it %s", async (situation) => {
    const { stub, machine } = newSandbox(situation === "never listens" ? { listensAfterMs: null } : { mkdir: "Hangs" });
    const { facts } = await stub.startWorkspace(FENCE, order({ timeoutMs: 700 }), LONG_WAIT_MS);
    expect(facts).toMatchObject({
      running: false,
      admission: "Revoked",
      operation: { state: "TimedOut", failure: { code: "START_DEADLINE" } },
    });
    expect(machine.running).toBe(false);
    expect(machine.starts).toBe(1);
  });

  test("says what it was waiting for when its time was up", async () => {
    const { stub } = newSandbox({ listensAfterMs: null });
    const { facts } = await stub.startWorkspace(FENCE, order({ timeoutMs: 400 }), LONG_WAIT_MS);
    expect(facts.operation?.failure?.messages.join()).toContain("not listening");
  });
});

describe("a repeated start", () => {
  test("joins the one under way", async () => {
    const { stub, machine } = newSandbox({ listensAfterMs: 200 });
    const answers = await Promise.all([1, 2, 3].map(() => stub.startWorkspace(FENCE, order(), LONG_WAIT_MS)));
    expect(answers.map(({ facts }) => facts.operation?.state)).toEqual(["Succeeded", "Succeeded", "Succeeded"]);
    expect(machine.starts).toBe(1);
  });

  test("is answered at once where the first has succeeded", async () => {
    const { stub, machine } = await runningSandbox();
    const requests = machine.requests.length;
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { state: "Succeeded" } });
    expect([machine.starts, machine.requests.length]).toEqual([1, requests]);
  });

  test("starts no second container where the first has ended", async () => {
    const { stub, machine } = await runningSandbox();
    await stub.stopWorkspace(FENCE, 1_000);
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, admission: "Revoked", exit: { code: 143 } });
    expect(machine.starts).toBe(1);
  });

  test("does not retry a start that has failed", async () => {
    const { stub, machine } = newSandbox({ mkdir: "Fails" });
    await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    machine.script.mkdir = "Works";
    const { facts } = await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect(facts.operation?.state).toBe("Failed");
    expect(machine.starts).toBe(1);
  });
});

describe("another start", () => {
  test("ends the one under way, with its container, before it begins", async () => {
    const { stub, machine } = newSandbox({ listensAfterMs: null });
    const first = stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    await until(() => machine.starts === 1);
    machine.script.listensAfterMs = 0;
    const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2", specHash: "hash-2" }), LONG_WAIT_MS);
    await first;
    expect(facts).toMatchObject({ running: true, operation: { startId: "start-2", state: "Succeeded", specHash: "hash-2" } });
    expect([machine.starts, machine.destroys]).toEqual([2, 1]);
  });

  test("replaces a running container, since that has another environment", async () => {
    const { stub, machine } = await runningSandbox();
    const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2", env: { NODE_ENV: "two" } }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, operation: { startId: "start-2", state: "Succeeded" } });
    expect(machine.environments.at(-1)).toMatchObject({ NODE_ENV: "two" });
  });

  test("fails where the running container cannot be removed", async () => {
    const { stub, machine } = await runningSandbox({ destroy: "DoesNothing" });
    const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, admission: "Revoked", operation: { startId: "start-2", state: "Failed" } });
    expect(machine.starts).toBe(1);
  });

  test("succeeds after one that failed", async () => {
    const { stub, machine } = newSandbox({ mkdir: "Fails" });
    await stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    machine.script.mkdir = "Works";
    const { facts } = await stub.startWorkspace(FENCE, order({ startId: "start-2" }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: true, admission: "Admitted", operation: { state: "Succeeded", failure: null } });
  });
});
