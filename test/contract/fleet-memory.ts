/** Part of the Fleet's contract: sandboxes that lose their memory, at rest and in the middle of something. */
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../src/controller/fleet.ts";
import { CANCELLED, type ContractSubject, LONG_MS } from "./fleet-subject.ts";

export function memoryContract(begin: () => Promise<ContractSubject>): void {
  describe("a sandbox that lost its memory", () => {
    it("goes on with a verified container as if nothing had happened", async () => {
      const { start, observe, world, instance } = await begin();
      await start("s1");
      await world.loseMemory(instance);
      expect(await observe()).toMatchObject({ kind: "Running", startId: "s1" });
    });

    it("refuses lower epochs and further starts as before", async () => {
      const { start, destroy, observe, world, instance } = await begin();
      await start("s1", {}, LONG_MS, 5);
      await world.loseMemory(instance);
      await expect(observe(4)).rejects.toThrow(LeaseLostError);
      await destroy(5);
      await world.loseMemory(instance);
      expect((await start("s2", {}, LONG_MS, 5)).kind).toBe("Destroyed");
    });

    it("in the middle of a start never answers Running before the start is joined and verified", async () => {
      const { startInVain, observe, world, instance } = await begin();
      world.script(instance, "NeverReady");
      await startInVain("s1", 0);
      await world.loseMemory(instance);
      expect((await observe()).kind).not.toBe("Running");
      expect((await startInVain("s1")).kind).toBe("Failed");
      expect(world.runs(instance)).toBe(false);
    });

    it("in the middle of a start that nobody joins gives it up at its deadline, once somebody looks", async () => {
      const { startInVain, begun, after, world, instance, timeoutMs } = await begin();
      world.script(instance, "NeverReady");
      await startInVain("s1", 0);
      await begun();
      await world.loseMemory(instance);
      await world.pass(timeoutMs);
      const failure = { class: "Transient", reason: "StartTimeout" };
      expect(await after("Unverified")).toMatchObject({ kind: "Failed", startId: "s1", failure });
      expect(world.runs(instance)).toBe(false);
    });

    it("under a call leaves that call's outcome Unknown; the next look tells, and a stop ends the start", async () => {
      const { begun, observe, stop, orderOf, world, instance } = await begin();
      world.script(instance, "NeverReady");
      const call = world.fleet.start(instance, 1, orderOf("s1"), LONG_MS);
      await begun();
      await world.loseMemory(instance);
      expect(await world.run(call)).toMatchObject({ kind: "Unknown", failure: { class: "Uncertain" } });
      expect((await observe()).kind).toBe("Unverified");
      expect(await stop()).toMatchObject(CANCELLED);
      expect(world.runs(instance)).toBe(false);
    });
  });
}
