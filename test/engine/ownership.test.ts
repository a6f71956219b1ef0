import { describe, expect, it } from "vitest";
import { bench, doId, until } from "./fixture.ts";

describe("one container per object", () => {
  it("finds the same container again under another session's name", async () => {
    const { engine, client } = await bench();
    const before = client(1, { session: "one" });
    await before.start();
    await before.untilListening();
    const { pid } = engine.instances()[0] ?? {};
    const after = client(1, { session: "two" });
    expect(await after.status()).toBe(true);
    expect(JSON.parse((await after.fetch("/")).body)).toMatchObject({ pid });
    expect((await after.create()).status).toBe(409);
    expect(engine.counters().starts).toBe(1);
  });

  it("keeps classes and objects apart", async () => {
    const { engine, client } = await bench();
    await client(1).start();
    await client(2).start();
    expect(await client(1, { className: "Other" }).status()).toBe(false);
    expect(await client(3).status()).toBe(false);
    expect(engine.instances().map(({ id, className }) => [id, className])).toEqual([
      [doId(1), "Box"],
      [doId(2), "Box"],
    ]);
  });

  it("destroys at once when the object that asks for it still waits for the exit", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    const monitor = object.monitor();
    await until(() => engine.calls().some(({ path }) => path.endsWith("/wait")));
    await object.destroy();
    expect(engine.instances()).toEqual([]);
    expect(JSON.parse((await monitor.answer).body)).toEqual({ StatusCode: 137 });
    expect(engine.counters()).toMatchObject({ destroyed: 1, keptAfterEviction: 0 });
  });

  it("destroys for an object that never waited, and hides the container until then", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.destroy();
    expect((await object.monitor().answer).status).toBe(404);
    await until(() => engine.instances().length === 0);
    expect(engine.counters()).toMatchObject({ destroyed: 1, keptAfterEviction: 0 });
  });

  it("keeps the container of an object that comes back before its eviction is through", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.call("DELETE", `/containers/${object.name}?force=true`);
    expect(await client(1).status()).toBe(true);
    expect(engine.counters()).toMatchObject({ destroyed: 0, keptAfterEviction: 1 });
  });

  it("keeps a running container, and its sidecar, when workerd drops the object from memory", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    const monitor = object.monitor();
    await until(() => engine.calls().some(({ path }) => path.endsWith("/wait")));
    monitor.drop();
    await monitor.answer.catch(() => undefined);
    await object.evict();
    expect(engine.counters()).toMatchObject({ destroyed: 0, keptAfterEviction: 1 });
    expect(await object.status()).toBe(true);
    expect((await object.fetch("/")).status).toBe(200);
    await object.destroy();
    await until(() => engine.instances().length === 0);
  });

  it("keeps the container when both deletes of an eviction come at once, as older versions send them", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await Promise.all([object.call("DELETE", `/containers/${object.name}-proxy?force=true`), object.destroy()]);
    expect(await object.status()).toBe(true);
    expect(engine.counters()).toMatchObject({ destroyed: 0, keptAfterEviction: 1 });
  });

  it("destroys when an eviction follows a destroy", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.destroy();
    await object.evict();
    expect(engine.instances()).toEqual([]);
    expect(engine.counters()).toMatchObject({ destroyed: 1, keptAfterEviction: 0 });
  });

  it("replaces the container when a destroy is followed by a start", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await object.destroy();
    expect((await object.start()).status).toBe(204);
    expect(engine.instances().map(({ ordinal }) => ordinal)).toEqual([2]);
    expect(engine.counters()).toMatchObject({ destroyed: 1, starts: 2, startsByObject: { [doId(1)]: 2 } });
  });

  it("drops a stopped container and its sidecar on eviction", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    await object.start();
    await engine.kill(doId(1), 3);
    expect(engine.instance(doId(1))).toMatchObject({ state: "Exited", exitCode: 3 });
    await object.evict();
    expect(engine.instance(doId(1))).toBeUndefined();
    expect((await object.call("GET", `/containers/${object.name}-proxy/json`)).status).toBe(404);
  });
});
