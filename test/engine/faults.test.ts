import { describe, expect, it } from "vitest";
import { drawFor, startVerdict } from "../../dev/engine/faults.ts";
import type { Faults, StartSituation } from "../../dev/engine/faults.ts";
import { bench, doId, until } from "./fixture.ts";

const situation = (ordinal: number, overlapping: boolean): StartSituation => ({
  seed: 7,
  ordinal,
  startingSince: overlapping ? [900] : [],
  now: 1000,
});
const ordinals = Array.from({ length: 4000 }, (_, index) => index + 1);

describe("the draws", () => {
  it("are a function of seed, ordinal and purpose", () => {
    expect(drawFor(7, 1, "kill")).toBe(drawFor(7, 1, "kill"));
    expect(new Set([drawFor(7, 1, "kill"), drawFor(8, 1, "kill"), drawFor(7, 2, "kill"), drawFor(7, 1, "delay")]).size).toBe(4);
  });

  it("kill an overlapping start about as often as asked, inside its window, and no other start", () => {
    const faults: Faults = { overlapKill: { probability: 0.4, windowMs: 800 } };
    const verdicts = ordinals.map((ordinal) => startVerdict(faults, {}, situation(ordinal, true)).killAfterMs);
    const kills = verdicts.filter((verdict) => verdict !== null);
    expect(kills.length / ordinals.length).toBeCloseTo(0.4, 1);
    expect(Math.min(...kills)).toBeGreaterThanOrEqual(160);
    expect(Math.max(...kills)).toBeLessThanOrEqual(760);
    expect(ordinals.map((ordinal) => startVerdict(faults, {}, situation(ordinal, false)).killAfterMs)).toEqual(ordinals.map(() => null));
  });

  it("do not count a start as overlapping when the other began before the window", () => {
    const faults: Faults = { overlapKill: { probability: 1, windowMs: 800 } };
    expect(startVerdict(faults, {}, { seed: 7, ordinal: 1, startingSince: [200], now: 1000 }).killAfterMs).toBeNull();
    expect(startVerdict(faults, {}, { seed: 7, ordinal: 1, startingSince: [201], now: 1000 }).killAfterMs).not.toBeNull();
  });

  it("make a ghost of every start only when forced", () => {
    const ghostStart = { probability: 1, windowMs: 800, upAfterMs: 3000 };
    expect(startVerdict({ ghostStart }, {}, situation(1, false)).ghost).toBeNull();
    expect(startVerdict({ ghostStart }, {}, situation(1, true)).ghost).toMatchObject({ upAfterMs: 3000 });
    expect(startVerdict({ ghostStart: { ...ghostStart, forced: true } }, {}, situation(1, false)).ghost).toMatchObject({ upAfterMs: 3000 });
  });

  it("spread the start delay over its range, unless the object has its own", () => {
    const faults: Faults = { startDelay: { minMs: 300, maxMs: 900 } };
    const delays = ordinals.map((ordinal) => startVerdict(faults, {}, situation(ordinal, false)).delayMs);
    expect(Math.min(...delays)).toBeLessThan(320);
    expect(Math.max(...delays)).toBeGreaterThan(880);
    expect(startVerdict(faults, { startDelay: { minMs: 5, maxMs: 5 } }, situation(1, false)).delayMs).toBe(5);
  });
});

describe("two engines with the same seed", () => {
  it("kill the same ones of the same overlapping starts", async () => {
    const [first, second] = await Promise.all([fates(), fates()]);
    expect(first.killed).toBeGreaterThan(0);
    expect(second).toEqual(first);
  });
});

describe("refused admission", () => {
  it("accepts the start and tells of the refusal in the wait call and on the ports, then lets the object in", async () => {
    const { engine, client } = await bench({ faults: { refuseAdmission: { whileRunning: 1, times: 2 } } });
    await client(1).start();
    const object = client(2);
    for (const _ of [1, 2]) {
      expect((await object.start()).status).toBe(204);
      expect(await object.monitor().answer).toMatchObject({
        status: 503,
        body: expect.stringContaining("there is no container instance that can be provided to this durable object"),
      });
      expect(await object.fetch("/")).toMatchObject({ status: 503 });
      expect(await object.status()).toBe(false);
      await object.destroy();
    }
    expect(engine.counters()).toMatchObject({ starts: 1, refused: 2 });
    await object.start();
    await object.untilListening();
    expect(engine.counters()).toMatchObject({ starts: 2, refused: 2 });
  });
});

describe("a ghost", () => {
  const faults: Faults = { ghostStart: { probability: 1, windowMs: 100, upAfterMs: 150, forced: true } };

  it("is lost to its object, comes up later, and is listed", async () => {
    const { engine, client } = await bench({ faults });
    const object = client(1);
    expect((await object.start()).status).toBe(204);
    await expect(object.monitor().answer).rejects.toThrow(/socket hang up|ECONNRESET/);
    await expect(object.fetch("/")).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(await object.status()).toBe(false);
    await until(() => engine.instances()[0]?.state === "Running");
    expect(engine.instances()).toMatchObject([{ id: doId(1), ghost: true }]);
    expect(engine.counters()).toMatchObject({ ghosts: 1, inFlightStarts: 0 });
    await expect(object.fetch("/")).rejects.toThrow(/socket hang up|ECONNRESET/);
  });

  it("is found again by an object that comes back to life, and can then be destroyed", async () => {
    const { engine, client } = await bench({ faults });
    await client(1).start();
    await until(() => engine.instances()[0]?.state === "Running");
    const reborn = client(1, { session: "later" });
    expect(await reborn.status()).toBe(true);
    expect((await reborn.fetch("/")).status).toBe(200);
    expect(engine.instances()).toMatchObject([{ ghost: false }]);
    await reborn.destroy();
    await until(() => engine.instances().length === 0);
  });

  it("is replaced by the next start of its object, so that there are never two", async () => {
    const { engine, client } = await bench({ faults });
    const object = client(1);
    await object.start();
    await expect(object.monitor().answer).rejects.toThrow(/socket hang up|ECONNRESET/);
    engine.setFaults({});
    expect((await object.start()).status).toBe(409);
    await object.destroy();
    expect((await object.start()).status).toBe(204);
    await object.untilListening();
    expect(engine.instances().map(({ ordinal, ghost }) => [ordinal, ghost])).toEqual([[2, false]]);
  });
});

describe("faults of one object", () => {
  it("end its container after a while with the given code", async () => {
    const { client } = await bench({ faults: { objects: { [doId(1)]: { exit: { afterMs: 30, code: 9 } } } } });
    await client(1).start();
    expect(JSON.parse((await client(1).monitor().answer).body)).toEqual({ StatusCode: 9 });
  });

  it("keep it from ever listening, and its start in flight until it ends", async () => {
    const { engine, client } = await bench({ faults: { objects: { [doId(1)]: { hangStart: true } } } });
    await client(1).start();
    await client(2).start();
    await client(2).status();
    await until(() => engine.instance(doId(2))?.state === "Running");
    expect(engine.instance(doId(1))?.state).toBe("Starting");
    expect(engine.counters().inFlightStarts).toBe(1);
    await engine.kill(doId(1));
    expect(engine.counters().inFlightStarts).toBe(0);
  });

  it("refuse its image, or its start", async () => {
    const { engine, client } = await bench({
      faults: { objects: { [doId(1)]: { failStart: "NoSuchImage" }, [doId(2)]: { failStart: { message: "no such device" } } } },
    });
    expect((await client(1).start()).status).toBe(404);
    expect(await client(2).start()).toMatchObject({ status: 500, body: expect.stringContaining("no such device") });
    expect(engine.counters()).toMatchObject({ starts: 0, failedStarts: 2 });
  });

  it("make it deaf to SIGTERM, for every object when named by a star", async () => {
    const { engine, client } = await bench({ faults: { objects: { "*": { ignoreSigterm: true } } } });
    const object = client(1);
    await object.start();
    await object.untilListening();
    expect((await object.signal("SIGTERM")).status).toBe(204);
    expect((await object.fetch("/")).status).toBe(200);
    await object.signal("SIGKILL");
    await until(() => engine.instances().length === 0);
  });
});

describe("death in mid-operation", () => {
  it("comes with the request, before any answer, as often as asked", async () => {
    const { engine, client } = await bench({ faults: { dieMidOp: { path: "/archive", exitCode: 137, times: 1 } } });
    const object = client(1);
    await object.start();
    await object.untilListening();
    const monitor = object.monitor();
    await expect(object.fetch("/archive/create")).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(JSON.parse((await monitor.answer).body)).toEqual({ StatusCode: 137 });
    expect(engine.counters().diedMidOperation).toBe(1);
    await object.destroy();
    await object.start();
    await object.untilListening();
    expect((await object.fetch("/archive/create")).status).toBe(200);
  });
});

async function fates(): Promise<{ running: readonly string[]; killed: number }> {
  const { engine, client } = await bench({
    seed: 3,
    faults: { startDelay: { minMs: 1200, maxMs: 1200 }, overlapKill: { probability: 0.5, windowMs: 1000 } },
  });
  for (let object = 1; object <= 6; object += 1) await client(object).start();
  await until(() => engine.counters().inFlightStarts === 0);
  await until(() => engine.instances().length === 6 - engine.counters().killed);
  return { running: engine.instances().map(({ id }) => id), killed: engine.counters().killed };
}
