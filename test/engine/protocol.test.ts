import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { atEnd, bench, doId, isRunning, until } from "./fixture.ts";
import { untilPort } from "./workerd-client.ts";

describe("the protocol", () => {
  it("starts a container, relays to its ports, and hands it its environment", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    expect((await object.start("image", ["GREETING=a=b"])).status).toBe(204);
    await object.untilListening();
    const { env } = JSON.parse((await object.fetch("/")).body) as { env: Record<string, string> };
    expect(env).toMatchObject({
      GREETING: "a=b",
      ROLE: "test",
      MOORING_CONTAINER_ID: doId(1),
      MOORING_CONTAINER_ROOT: engine.instance(doId(1))?.root,
    });
    expect(Object.keys(env)).not.toContain("VITEST");
    await object.untilListening();
    expect((await object.fetch("/", 8080)).body).toBe("preview");
  });

  it("answers 400 on a port while nothing listens there", async () => {
    const { client } = await bench({ faults: { startDelay: { minMs: 100, maxMs: 100 } } });
    const object = client(1);
    await object.openSidecar();
    expect(await object.fetch("/")).toMatchObject({ status: 400 });
    await object.start();
    expect(await object.fetch("/")).toMatchObject({ status: 400 });
    await object.untilListening();
    expect(await object.fetch("/", 9999)).toMatchObject({ status: 400 });
  });

  it.each([
    ["the code the process chose", (object: { fetch(path: string): Promise<unknown> }) => object.fetch("/exit?code=42"), 42],
    ["0 when SIGTERM ends it in order", (object: { signal(name: string): Promise<unknown> }) => object.signal("SIGTERM"), 0],
    ["128 and the signal when a signal ends it", (object: { signal(name: string): Promise<unknown> }) => object.signal("SIGINT"), 130],
    ["137 when it is killed", (object: { signal(name: string): Promise<unknown> }) => object.signal("SIGKILL"), 137],
  ])("tells the waiting monitor %s", async (_name, end, code) => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    const monitor = object.monitor();
    await end(object).catch(() => undefined);
    expect(JSON.parse((await monitor.answer).body)).toEqual({ StatusCode: code });
    expect(await object.status()).toBe(false);
    expect(engine.instances()).toEqual([]);
    expect(JSON.parse((await object.monitor().answer).body)).toEqual({ StatusCode: code });
  });

  it("ends the whole process group with the main process", async () => {
    const { client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    const child = Number((await object.fetch("/child")).body);
    atEnd(() => void (isRunning(child) && process.kill(child, "SIGKILL")));
    expect(isRunning(child)).toBe(true);
    await object.fetch("/exit?code=0").catch(() => undefined);
    await until(() => !isRunning(child));
  });

  it("gives every start an empty disk", async () => {
    const { client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    expect(JSON.parse((await object.fetch("/mark")).body)).toMatchObject({ marked: true });
    await object.fetch("/exit?code=0").catch(() => undefined);
    await object.destroy();
    await object.start();
    await object.untilListening();
    expect(JSON.parse((await object.fetch("/")).body)).toMatchObject({ marked: false });
  });

  it("answers 404 to a create with an unknown image, 409 to a second create, 304 to a second start", async () => {
    const { client } = await bench();
    expect((await client(1).start("unknown")).status).toBe(404);
    const object = client(2);
    await object.start();
    expect((await object.create()).status).toBe(409);
    expect((await object.startCreated()).status).toBe(304);
  });

  it("reports exit code 127 for a command that cannot be run", async () => {
    const { client } = await bench({ image: () => ({ command: ["/nowhere"], env: {}, ports: { 3000: "PORT" } }) });
    const object = client(1);
    await object.start();
    expect(JSON.parse((await object.monitor().answer).body)).toEqual({ StatusCode: 127 });
  });

  it("answers 501 to what it does not implement, and counts it", async () => {
    const { engine, client } = await bench();
    expect((await client(1).call("POST", "/commit?container=x")).status).toBe(501);
    expect((await client(1).call("POST", "/volumes/create", {})).status).toBe(501);
    expect(engine.counters().unimplemented).toBe(2);
    expect(engine.calls().map(({ method, path, status }) => [method, path, status])).toEqual([
      ["POST", "/commit?container=x", 501],
      ["POST", "/volumes/create", 501],
    ]);
  });

  it("never lists containers for deletion by session", async () => {
    const { client } = await bench();
    await client(1, { session: "s1" }).start();
    const filters = encodeURIComponent(JSON.stringify({ label: ["dev.workerd.session=s1"] }));
    expect(await client(1).call("GET", `/containers/json?all=1&filters=${filters}`)).toEqual({ status: 200, body: "[]" });
  });

  it("freezes and thaws a container", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    engine.freeze(doId(1));
    const answer = object.fetch("/");
    expect(await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 60, "silence"))])).toBe("silence");
    expect(engine.instance(doId(1))).toMatchObject({ state: "Running", frozen: true });
    engine.thaw(doId(1));
    expect((await answer).status).toBe(200);
  });

  it("writes a docker CLI that succeeds at what wrangler asks for", async () => {
    const { engine } = await bench();
    const run = (...args: string[]) =>
      execFileSync(engine.dockerCli, args, { encoding: "utf8", ...(args[0] === "build" ? { input: "FROM scratch\n" } : {}) });
    expect(run("--host", "unix:///x", "info", "--format", "{{json .SecurityOptions}}")).toBe("[]\n");
    expect(run("build", "--load", "-t", "x", "-f", "-", ".")).toBe("");
    expect(run("image", "inspect", "x", "--format", "{{ len .Config.ExposedPorts }}")).toBe("1\n");
    expect(run("pull", "x")).toBe("");
  });

  it("leaves nothing behind when it is closed", async () => {
    const { engine, client } = await bench();
    await client(1).start();
    const object = client(2);
    await object.start();
    await object.untilListening();
    const pids = engine.instances().map((instance) => instance.pid ?? 0);
    expect(pids).toHaveLength(2);
    const inventoryPort = Number(new URL(engine.inventoryUrl).port);
    await engine.close();
    expect(pids.filter(isRunning)).toEqual([]);
    await untilPort(inventoryPort, false);
  });
});
