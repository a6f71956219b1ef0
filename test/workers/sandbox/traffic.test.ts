import { runInDurableObject } from "cloudflare:test";
import { getSandbox, type Sandbox } from "@cloudflare/sandbox";
import { describe, expect, test } from "vitest";
import { isWorkspaceNotRunning, WORKSPACE_NOT_READY, WORKSPACE_NOT_RUNNING } from "../../../src/sandbox/not-running.ts";
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
  SEVERAL_TRIES_MS,
  TRANSPORTS,
  type Subject,
  type Transport,
} from "./support.ts";

/** A refusal needs none of the SDK's waits, of which the shortest is three seconds. */
const AT_ONCE_MS = 2_500;

/** The sandbox as a user's Worker gets it. */
function userSandbox(subject: Subject) {
  return getSandbox(bindings.FENCED as unknown as DurableObjectNamespace<Sandbox>, subject.name);
}

async function expectRefusal(call: Promise<unknown>): Promise<void> {
  const begun = Date.now();
  const error = await rejectionOf(call);
  expect(isWorkspaceNotRunning(error), String(error)).toBe(true);
  expect(Date.now() - begun).toBeLessThan(AT_ONCE_MS);
}

type Situation = [string, (transport: Transport) => Promise<Subject>];

const SITUATIONS: readonly Situation[] = [
  [
    "was never admitted",
    async (transport) => {
      const subject = newSandbox();
      await subject.stub.setTransport(transport);
      return subject;
    },
  ],
  [
    "was stopped",
    async (transport) => {
      const subject = await runningSandbox({}, transport);
      await subject.stub.stopWorkspace(FENCE, 1_000);
      return subject;
    },
  ],
  [
    "has a container that exited by itself",
    async (transport) => {
      const subject = await runningSandbox({}, transport);
      await endContainer(subject, 1);
      return subject;
    },
  ],
  [
    "was destroyed",
    async (transport) => {
      const subject = await runningSandbox({}, transport);
      await subject.stub.destroyWorkspace(FENCE);
      return subject;
    },
  ],
];

describe.each(TRANSPORTS)("over %s", (transport) => {
  test.for(SITUATIONS)("a call to a workspace that %s is refused at once and starts nothing", async ([, reach]) => {
    const subject = await reach(transport);
    const { starts } = subject.machine;
    const sandbox = userSandbox(subject);
    await expectRefusal(sandbox.exec("true"));
    await expectRefusal(sandbox.mkdir("/workspace/a"));
    await expectRefusal(sandbox.readFile("/workspace/a"));
    await expectRefusal(sandbox.startProcess("true"));
    expect(subject.machine.starts).toBe(starts);
  });

  test("a call to a running workspace goes through and starts nothing", async () => {
    const subject = await runningSandbox({}, transport);
    const result = await userSandbox(subject).exec("true");
    expect(result.stdout).toBe("done\n");
    expect(subject.machine.starts).toBe(1);
  });

  test("a call while the start is under way is refused as not ready", async () => {
    const subject = newSandbox({ listensAfterMs: null });
    await subject.stub.setTransport(transport);
    await subject.stub.startWorkspace(FENCE, order(), 50);
    const error = await rejectionOf(userSandbox(subject).exec("true"));
    expect(String(error)).toContain(WORKSPACE_NOT_READY);
    expect(isWorkspaceNotRunning(error)).toBe(true);
    await subject.stub.destroyWorkspace(FENCE);
  });

  test("a call to a workspace that is being stopped is refused at once, although its container lives on", async () => {
    const subject = await runningSandbox({ stopsAfterMs: null }, transport);
    await userSandbox(subject).exec("true");
    const stop = subject.stub.stopWorkspace(FENCE, LONG_WAIT_MS);
    await expectRefusal(userSandbox(subject).exec("true"));
    expect(subject.machine.running).toBe(true);
    await endContainer(subject, 143);
    await stop;
  });

  test("a call under which the container ends before it is connected is refused too, and starts nothing", async () => {
    const subject = await runningSandbox({}, transport);
    const begun = Date.now();
    const { code, recognised } = await runInDurableObject(subject.stub, async (instance) => {
      instance.client.disconnect();
      const call = rejectionOf(instance.client.commands.execute("true", "session"));
      subject.machine.end(137);
      const error = await call;
      return { code: (error as { code?: unknown }).code, recognised: isWorkspaceNotRunning(error) };
    });
    expect(recognised).toBe(true);
    // The websocket transport passes on a status line only.
    expect(code).toBe(transport === "websocket" ? undefined : WORKSPACE_NOT_RUNNING);
    expect(Date.now() - begun).toBeLessThan(AT_ONCE_MS);
    await pause(SEVERAL_TRIES_MS);
    expect(subject.machine.starts).toBe(1);
  });

  test("a call that was refused leaves no loop behind that starts a container later", async () => {
    const subject = newSandbox();
    await subject.stub.setTransport(transport);
    await expectRefusal(userSandbox(subject).exec("true"));
    await pause(SEVERAL_TRIES_MS);
    expect(subject.machine.starts).toBe(0);
  });

  test("the first call after a refused one reaches the workspace that was started in between", async () => {
    const subject = newSandbox();
    await subject.stub.setTransport(transport);
    await expectRefusal(userSandbox(subject).exec("true"));
    await subject.stub.startWorkspace(FENCE, order(), LONG_WAIT_MS);
    expect((await userSandbox(subject).exec("true")).exitCode).toBe(0);
  });
});

describe("requests to a workspace that does not run", () => {
  test("get a 409 problem with the code", async () => {
    const { stub, machine } = newSandbox();
    const response = await stub.fetch("http://sandbox/", { headers: { "cf-container-target-port": "8080" } });
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ code: WORKSPACE_NOT_RUNNING, status: 409 });
    expect(machine.starts).toBe(0);
  });

  test("get the same when they ask for a websocket or a preview", async () => {
    const { stub } = newSandbox();
    const upgrade = await stub.fetch("http://sandbox/", { headers: { Upgrade: "websocket", Connection: "Upgrade" } });
    const preview = await stub.fetch("http://sandbox/", { headers: { "X-Sandbox-Preview-Proxy": "1" } });
    expect([upgrade.status, preview.status]).toEqual([409, 409]);
  });
});

test("a start that is asked for directly is refused", async () => {
  const { stub, machine } = await runningSandbox();
  await stub.stopWorkspace(FENCE, 1_000);
  await expectRefusal(stub.start());
  await expectRefusal(stub.startAndWaitForPorts(3000));
  expect(machine.starts).toBe(1);
});

test("a start that is asked for directly does not join the one under way", async () => {
  const { stub, machine } = newSandbox({ listensAfterMs: null });
  await stub.startWorkspace(FENCE, order(), 50);
  await expectRefusal(stub.startAndWaitForPorts(3000));
  expect(machine.starts).toBe(1);
  await stub.destroyWorkspace(FENCE);
});
