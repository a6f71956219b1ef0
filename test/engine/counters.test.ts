import { describe, expect, it } from "vitest";
import { bench, doId, until } from "./fixture.ts";

describe("the counters", () => {
  it("count a start as in flight until its delay is over, and remember how many were at once", async () => {
    const { engine, client } = await bench({ faults: { startDelay: { minMs: 250, maxMs: 250 } } });
    await Promise.all([client(1).start(), client(2).start()]);
    expect(engine.counters()).toMatchObject({ starts: 2, inFlightStarts: 2, maxConcurrentStarts: 2 });
    await until(() => engine.counters().inFlightStarts === 0);
    await client(3).start();
    expect(engine.counters()).toMatchObject({
      starts: 3,
      inFlightStarts: 1,
      maxConcurrentStarts: 2,
      startsByObject: { [doId(1)]: 1, [doId(2)]: 1, [doId(3)]: 1 },
    });
  });

  it("see one start at a time when they follow each other", async () => {
    const { engine, client } = await bench();
    for (const object of [1, 2, 3]) {
      await client(object).start();
      await until(() => engine.instance(doId(object))?.state === "Running");
    }
    expect(engine.counters()).toMatchObject({ starts: 3, maxConcurrentStarts: 1 });
  });

  it("begin anew after a reset, but do not forget a start in flight", async () => {
    const { engine, client } = await bench({ faults: { startDelay: { minMs: 60, maxMs: 60 } } });
    await client(1).start();
    engine.resetCounters();
    expect(engine.counters()).toMatchObject({ starts: 0, calls: 0, inFlightStarts: 1, maxConcurrentStarts: 1 });
    expect(engine.calls()).toEqual([]);
  });

  it("tell an exit in the start window as the end of that start", async () => {
    const { engine, client } = await bench({ faults: { startDelay: { minMs: 5000, maxMs: 5000 } } });
    await client(1).start();
    await engine.kill(doId(1), 137);
    expect(engine.counters().inFlightStarts).toBe(0);
  });
});

describe("the record", () => {
  it("has every event of a container in order", async () => {
    const { engine, events, client } = await bench();
    const object = client(1);
    await object.start();
    await object.untilListening();
    const monitor = object.monitor();
    await until(() => engine.calls().some(({ path }) => path.endsWith("/wait")));
    await object.destroy();
    await monitor.answer;
    expect(events.map(({ type, ordinal, exitCode }) => [type, ordinal, exitCode])).toEqual([
      ["StartAccepted", 1, undefined],
      ["Listening", 1, undefined],
      ["Destroyed", 1, undefined],
      ["Exited", 1, 137],
    ]);
  });

  it("has every call, with the object it names", async () => {
    const { engine, client } = await bench();
    const object = client(1);
    expect(await object.status()).toBe(false);
    expect(engine.calls()).toMatchObject([
      { surface: "Docker", method: "GET", path: `/containers/${object.name}/json`, status: 404, doId: doId(1) },
    ]);
  });

  it("is quiet once nothing has happened for the asked time", async () => {
    const { engine, events, client } = await bench({ faults: { objects: { "*": { exit: { afterMs: 120, code: 1 } } } } });
    await client(1).start();
    await engine.quiet(300);
    expect(events.at(-1)).toMatchObject({ type: "Exited", exitCode: 1 });
    expect(Date.now() - (events.at(-1)?.time ?? 0)).toBeGreaterThanOrEqual(299);
  });
});
