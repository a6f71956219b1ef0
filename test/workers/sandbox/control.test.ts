import { describe, expect, test } from "vitest";
import { isWorkspaceNotRunning } from "../../../src/sandbox/not-running.ts";
import { machineOf } from "./fake-container.ts";
import { archivedFiles, DIRECTORY, OPTIONS } from "./backup-support.ts";
import { bindings, endContainer, FENCE, newSandbox, order, pause, rejectionOf, SEVERAL_TRIES_MS, TRANSPORTS, until } from "./support.ts";

// The leak of sandbox-sdk #794: a start loop that goes on after its caller gave up and destroyed the sandbox.
describe.each(TRANSPORTS)("a caller that gives up on a start that gets no instance, over %s", (transport) => {
  test("leaks a container with the unmodified class", async () => {
    const name = crypto.randomUUID();
    const machine = machineOf(bindings.UNFENCED.idFromName(name));
    machine.script.refusals = 3;
    const stub = bindings.UNFENCED.getByName(name);
    await stub.setTransport(transport);
    const call = stub.exec("true").catch(() => {});
    await until(() => machine.starts > 0);

    await stub.destroy();
    expect(machine.containers).toBe(0);

    await until(() => machine.containers > 0);
    await call;
    expect(machine.running).toBe(true);
  });

  test("leaks nothing with WorkspaceSandbox", async () => {
    const { stub, machine } = newSandbox({ refusals: 3 });
    await stub.setTransport(transport);
    const call = stub.exec("true").catch((error: unknown) => error);
    const start = stub.startWorkspace(FENCE, order(), 10_000);
    await until(() => machine.starts > 0);

    await stub.destroyWorkspace(FENCE);
    const startsAtDestroy = machine.starts;
    await pause(SEVERAL_TRIES_MS);

    expect(isWorkspaceNotRunning(await call)).toBe(true);
    expect((await start).facts).toMatchObject({ running: false, admission: "Destroyed", operation: { state: "Failed" } });
    expect(machine.starts).toBe(startsAtDestroy);
    expect(machine.containers).toBe(0);
  });
});

// sandbox-sdk #825, and the SDK's own clean-up. `createBackupIfRunning` in the same places: no-wake-backup.test.ts.
describe.each(TRANSPORTS)("createBackup of the unmodified class over %s", (transport) => {
  async function running() {
    const name = crypto.randomUUID();
    const stub = bindings.UNFENCED.getByName(name);
    const machine = machineOf(bindings.UNFENCED.idFromName(name));
    await stub.setTransport(transport);
    await stub.exec("true");
    machine.disk.files.set(`${DIRECTORY}/a`, "1");
    return { stub, machine };
  }

  // Over rpc the first call after an end starts the container and fails; the clean-up then finds it running.
  test("starts a container that had stopped, and answers ok with an archive of an empty disk", async () => {
    const subject = await running();
    await endContainer(subject, 0);
    const backup = await subject.stub.createBackup(OPTIONS).catch(() => null);
    expect([subject.machine.starts, subject.machine.running]).toEqual([2, true]);
    if (transport !== "rpc") expect(await archivedFiles(backup?.id ?? "")).toEqual([]);
  });

  test("starts a container that died in the middle, to clean up in it", async () => {
    const { stub, machine } = await running();
    machine.script.diesOn = "/api/backup/create";
    expect(await rejectionOf(stub.createBackup(OPTIONS))).toBeInstanceOf(Error);
    expect([machine.starts, machine.running]).toEqual([2, true]);
  });
});

// sandbox-sdk #825: what a caller takes for a look, or for a backup, wakes the container.
test("a call after the container ended starts another one with the unmodified class", async () => {
  const name = crypto.randomUUID();
  const machine = machineOf(bindings.UNFENCED.idFromName(name));
  const stub = bindings.UNFENCED.getByName(name);
  await stub.exec("true");
  await endContainer({ machine, stub }, 0);
  await stub.listProcesses();
  expect([machine.starts, machine.running]).toEqual([2, true]);
});
