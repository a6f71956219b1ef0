import { describe, expect, test } from "vitest";
import { storeBackup } from "./backup-support.ts";
import { FENCE, loseMemory, LONG_WAIT_MS, newSandbox, order, pause, TRANSPORTS, until } from "./support.ts";

describe.each(TRANSPORTS)("setup commands over %s", (transport) => {
  test("run in the directory, in their order, after the restore and once", async () => {
    const { stub, machine } = newSandbox();
    await stub.setTransport(transport);
    const restore = { objectId: await storeBackup({ a: "1" }), localBucket: true };
    const given = order({ directory: "/workspace/app", restore, setup: ["npm ci", "npm run build"] });
    const { facts } = await stub.startWorkspace(FENCE, given, LONG_WAIT_MS);
    expect(facts.operation).toMatchObject({ state: "Succeeded", step: "Setup" });
    const isRestore = ({ command }: { command: string }) => command.startsWith("/usr/bin/unsquashfs");
    expect(machine.commands.findIndex(isRestore)).toBeGreaterThan(-1);
    expect(machine.commands.slice(-2)).toEqual([
      { command: "npm ci", cwd: "/workspace/app" },
      { command: "npm run build", cwd: "/workspace/app" },
    ]);
    expect((await stub.startWorkspace(FENCE, given, LONG_WAIT_MS)).facts).toEqual(facts);
    expect(machine.commands.filter(({ command }) => command === "npm ci")).toHaveLength(1);
  });

  test("that fail fail the start, with their number and the end of what they said", async () => {
    const { stub, machine } = newSandbox();
    await stub.setTransport(transport);
    const noise = "x".repeat(600);
    const setup = ["true", `echo ${noise} no such module; exit 7`, "never"];
    const { facts } = await stub.startWorkspace(FENCE, order({ setup }), LONG_WAIT_MS);
    expect(facts).toMatchObject({ running: false, admission: "Revoked", operation: { state: "Failed", step: "Setup" } });
    const { code, messages } = facts.operation?.failure ?? { code: "", messages: [] };
    const tail = `${"x".repeat(240 - " no such module".length)} no such module`;
    expect([code, messages[0]]).toEqual(["SETUP_FAILED", `setup command 2 failed with exit code 7: ${tail}`]);
    expect(machine.commands.map(({ command }) => command)).not.toContain("never");
    expect(machine.starts).toBe(1);
  });
});

test("what a setup command says is told without the values of the environment, also where it is cut", async () => {
  const { stub } = newSandbox();
  const secret = "correct-horse-battery-staple";
  const setup = [`echo ${secret}${"x".repeat(230)}; exit 1`];
  const { facts } = await stub.startWorkspace(FENCE, order({ env: { TOKEN: secret }, setup }), LONG_WAIT_MS);
  const message = facts.operation?.failure?.messages[0] ?? "";
  expect(message).toMatch(/redacted\]x+$/);
  expect(message).not.toContain("staple");
});

// Whoever reads the failure of a start takes its words for the platform's, unless they are known to be a command's.
test("what a setup command says once its time is up is no part of the failure", async () => {
  const { stub, machine } = newSandbox({ holdsCommands: true });
  const setup = ["echo you are requesting too many containers per second; exit 1"];
  const started = stub.startWorkspace(FENCE, order({ setup, prepareTimeoutMs: 300 }), LONG_WAIT_MS);
  await until(() => machine.commands.length > 0);
  await pause(500);
  machine.script.holdsCommands = false;
  const { operation } = (await started).facts;
  expect(operation).toMatchObject({ state: "TimedOut", step: "Setup", failure: { code: "START_DEADLINE" } });
  expect(operation?.failure?.messages).toEqual(["the start was not verified before its deadline"]);
});

test("nor is a command that could not even be run", async () => {
  const { stub } = newSandbox();
  const setup = ["true", "unrunnable you are requesting too many containers per second"];
  const { facts } = await stub.startWorkspace(FENCE, order({ setup }), LONG_WAIT_MS);
  expect(facts.operation).toMatchObject({ state: "Failed", step: "Setup", failure: { code: "SETUP_FAILED" } });
  expect(facts.operation?.failure?.messages).toEqual(["setup command 2 could not be run"]);
});

test("a setup that was interrupted is over; the next start begins it in a fresh container", async () => {
  const subject = newSandbox({ hangsOn: "/api/execute npm" });
  const given = order({ setup: ["echo first", "npm ci"] });
  await subject.stub.startWorkspace(FENCE, given, 0);
  await until(() => subject.machine.commands.length === 1 && subject.machine.requests.at(-1) === "/api/execute");
  const stub = await loseMemory(subject);
  subject.machine.script.hangsOn = null;
  expect((await stub.startWorkspace(FENCE, given, LONG_WAIT_MS)).facts.operation).toMatchObject({ state: "Failed", step: "Setup" });
  const { facts } = await stub.startWorkspace(FENCE, { ...given, startId: "start-2" }, LONG_WAIT_MS);
  expect(facts.operation?.state).toBe("Succeeded");
  expect(subject.machine.starts).toBe(2);
  expect(subject.machine.commands.map(({ command }) => command)).toEqual(["echo first", "echo first", "npm ci"]);
});
