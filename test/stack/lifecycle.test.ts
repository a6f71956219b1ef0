import { expect, test } from "vitest";
import { ticking } from "../../dev/comparison.ts";
import { TRANSPORTS } from "../../dev/worker/transport.ts";
import { call, get, put, remove, useStack, waitFor, waitUntilGone } from "./support.ts";

const held = useStack();

test("a declared workspace becomes Ready, files and commands work in it on every transport, and DELETE makes it gone", async () => {
  const { stack } = held;
  await ticking(stack, async () => {
    await put(stack, "alice-1", { env: { GREETING: "hello" } });
    const { status } = await waitFor(stack, "alice-1", "Ready");

    for (const transport of TRANSPORTS) {
      const path = `/workspace/${transport}.txt`;
      const access = `/dev/workspaces/${status.sandboxId}`;
      const url = `${stack.url}${access}/files?path=${path}&transport=${transport}`;
      const headers = { authorization: "Bearer dev-editor" };
      const written = await fetch(url, { method: "PUT", headers, body: "written through the SDK" });
      expect(written.status).toBe(204);
      expect(await (await fetch(url, { headers })).text()).toBe("written through the SDK");
      const ran = await call(stack, "POST", `${access}/exec?transport=${transport}`, { command: `echo $GREETING; cat ${path}` });
      expect(await ran.json()).toMatchObject({ exitCode: 0, stdout: "hello\nwritten through the SDK" });
    }

    await remove(stack, "alice-1");
    await waitUntilGone(stack, "alice-1");
  });
  expect(stack.engine.instances()).toEqual([]);
  expect(stack.engine.counters()).toMatchObject({ starts: 1, maxConcurrentStarts: 1, unimplemented: 0 });
});

test("a call to a workspace that does not run is refused on every transport and starts nothing", async () => {
  const { stack } = held;
  const { sandboxId, startsBefore } = await ticking(stack, async () => {
    await put(stack, "sleepy", {});
    const ready = await waitFor(stack, "sleepy", "Ready");
    await put(stack, "sleepy", { operatingMode: "Suspended" });
    await waitFor(stack, "sleepy", "Suspended");
    return { sandboxId: ready.status.sandboxId, startsBefore: stack.engine.counters().starts };
  });
  expect(stack.engine.instances()).toEqual([]);

  for (const transport of TRANSPORTS) {
    const ran = await call(stack, "POST", `/dev/workspaces/${sandboxId}/exec?transport=${transport}`, { command: "true" });
    expect(ran.status).toBe(409);
    expect(await ran.json()).toMatchObject({ notRunning: true });
  }
  expect(stack.engine.counters().starts).toBe(startsBefore);

  await ticking(stack, async () => {
    await put(stack, "sleepy", { operatingMode: "Running" });
    const woken = await waitFor(stack, "sleepy", "Ready");
    expect(woken.status.sandboxId).toBe(sandboxId);
    await remove(stack, "sleepy");
    await waitUntilGone(stack, "sleepy");
  });
});

test("a changed environment replaces the sandbox by another one, and a name used again is another workspace", async () => {
  const { stack } = held;
  await ticking(stack, async () => {
    await put(stack, "bob", { env: { COLOUR: "red" } });
    const red = await waitFor(stack, "bob", "Ready");
    await put(stack, "bob", { env: { COLOUR: "blue" } });
    const blue = await waitFor(stack, "bob", "Ready");
    expect(blue.status).toMatchObject({ incarnation: 2 });
    expect(blue.status.sandboxId).not.toBe(red.status.sandboxId);
    const ran = await call(stack, "POST", `/dev/workspaces/${blue.status.sandboxId}/exec`, { command: "echo $COLOUR" });
    expect(await ran.json()).toMatchObject({ stdout: "blue" });
    expect(stack.engine.instances()).toHaveLength(1);

    await remove(stack, "bob");
    await waitUntilGone(stack, "bob");
    const again = await put(stack, "bob", {});
    expect(again.metadata.uid).not.toBe(red.metadata.uid);
    await waitFor(stack, "bob", "Ready");
    await remove(stack, "bob");
    await waitUntilGone(stack, "bob");
  });
  expect(await get(stack, "bob")).toBeNull();
  expect(stack.engine.instances()).toEqual([]);
});

test("a container that dies is started again, on the same sandbox", async () => {
  const { stack } = held;
  await ticking(stack, async () => {
    await put(stack, "phoenix", {});
    const before = await waitFor(stack, "phoenix", "Ready");
    const [instance] = stack.engine.instances();
    await stack.engine.kill(instance?.id ?? "", 137);
    await expect.poll(async () => (await get(stack, "phoenix"))?.status.phase, { timeout: 20_000, interval: 20 }).not.toBe("Ready");
    const after = await waitFor(stack, "phoenix", "Ready");
    expect(after.status.sandboxId).toBe(before.status.sandboxId);
    expect(stack.engine.instances()).toHaveLength(1);
    await remove(stack, "phoenix");
    await waitUntilGone(stack, "phoenix");
  });
  expect(stack.engine.counters().maxConcurrentStarts).toBe(1);
});
