/** Part of the Fleet's contract: containers that no controller, or no record, knows of. */
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../src/controller/fleet.ts";
import { type ContractSubject, kinds, LONG_MS, LOOK_MS } from "./fleet-subject.ts";

export function orphanContract(begin: () => Promise<ContractSubject>): void {
  describe("start of a container that is to be adopted", () => {
    it("vouches for the one that runs, from now on", async () => {
      const { start, observe, use, times, world, instance } = await begin();
      await world.startStranger(instance);
      const containers = world.containers(instance);
      expect((await observe()).kind).toBe("Unverified");
      await use();
      expect(await start("s1", { adopt: true })).toMatchObject({ kind: "Running", startId: "s1", specHash: "v1:hash" });
      const { started, active } = await times();
      expect(active).toBeGreaterThanOrEqual(started);
      expect([world.runs(instance), world.containers(instance)]).toEqual([true, containers]);
    });

    it("vouches for one of an earlier start, too, whose activity is not its own", async () => {
      const { start, use, times, world, instance } = await begin();
      await start("s1");
      await use();
      const before = await times();
      await world.pass(LOOK_MS);
      expect(await start("s2", { adopt: true })).toMatchObject({ kind: "Running", startId: "s2" });
      const { started, active } = await times();
      expect(started).toBeGreaterThan(before.active);
      expect(active).toBeGreaterThanOrEqual(started);
      expect(world.containers(instance)).toBe(1);
    });

    it("verifies it: one that does not answer is not Running", async () => {
      const { world, instance, timeoutMs, start } = await begin();
      world.script(instance, "NeverReady");
      await world.startStranger(instance);
      const failure = { class: "Transient", reason: "StartTimeout" };
      expect(await start("s1", { adopt: true, timeoutMs })).toMatchObject({ kind: "Failed", startId: "s1", failure });
      expect(world.runs(instance)).toBe(false);
    });

    it("begins one where none runs", async () => {
      const { start, world, instance } = await begin();
      expect(await start("s1", { adopt: true })).toMatchObject({ kind: "Running", startId: "s1" });
      expect(world.containers(instance)).toBe(1);
    });
  });

  describe("destroyOrphan", () => {
    it("ends what runs in a sandbox that was never used, and nothing starts there any more", async () => {
      const { destroyOrphan, start, observe, world, instance } = await begin();
      await world.startStranger(instance);
      const containers = world.containers(instance);
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect(world.runs(instance)).toBe(false);
      // Nobody had named an incarnation, so it answers to whichever asks, and is over for good.
      expect((await observe()).kind).toBe("Destroyed");
      expect((await start("s1")).kind).toBe("Destroyed");
      expect(world.containers(instance)).toBe(containers);
    });

    it("ends a workspace's container whose row is gone, and its incarnation", async () => {
      const { destroyOrphan, start, observe, world, instance } = await begin();
      await start("s1");
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect(kinds(await observe(), await start("s2"))).toEqual(["Destroyed", "Destroyed"]);
      expect(world.runs(instance)).toBe(false);
    });

    it("ends a start under way", async () => {
      const { destroyOrphan, start, begun, observe, world, instance } = await begin();
      world.script(instance, "NeverReady");
      await start("s1", {}, 0);
      await begun();
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect((await observe()).kind).toBe("Destroyed");
      expect(world.runs(instance)).toBe(false);
    });

    it("is refused by a sandbox whose workspace has a row, and changes nothing", async () => {
      const { destroyOrphan, start, observe, world, instance } = await begin();
      await start("s1");
      await world.answerRow(instance, "Exists");
      expect(await destroyOrphan(5)).toEqual({ kind: "Wanted" });
      expect(await observe()).toMatchObject({ kind: "Running", startId: "s1" });
    });

    it("is Unknown where the sandbox cannot tell, and changes nothing", async () => {
      const { destroyOrphan, start, observe, world, instance } = await begin();
      await start("s1");
      await world.answerRow(instance, "Fails");
      expect(await destroyOrphan(5)).toMatchObject({ kind: "Unknown", failure: { class: "Uncertain" } });
      expect(await observe()).toMatchObject({ kind: "Running", startId: "s1" });
    });

    it("asks for no row where the incarnation has been destroyed already", async () => {
      const { destroy, destroyOrphan, start, world, instance } = await begin();
      await start("s1");
      world.script(instance, "DeafToDestroy");
      await destroy();
      await world.answerRow(instance, "Exists");
      world.script(instance, "Works");
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect(world.runs(instance)).toBe(false);
    });

    it("that had no effect is StillRuns until it has one", async () => {
      const { destroyOrphan, world, instance } = await begin();
      world.script(instance, "DeafToDestroy");
      await world.startStranger(instance);
      expect(await destroyOrphan()).toEqual({ kind: "StillRuns" });
      expect(world.runs(instance)).toBe(true);
      world.script(instance, "Works");
      expect(await destroyOrphan()).toEqual({ kind: "Gone" });
      expect(world.runs(instance)).toBe(false);
    });

    it("of a lower epoch is refused with LeaseLostError, and its own epoch counts", async () => {
      const { destroyOrphan, start, observe, world, instance } = await begin();
      await start("s1", {}, LONG_MS, 7);
      await expect(destroyOrphan(6)).rejects.toThrow(LeaseLostError);
      expect((await observe(7)).kind).toBe("Running");
      expect(await destroyOrphan(8)).toEqual({ kind: "Gone" });
      await expect(observe(7)).rejects.toThrow(LeaseLostError);
      expect(world.containers(instance)).toBe(1);
    });

    it("of something that is no id is Unknown", async () => {
      const { world } = await begin();
      const outcome = await world.run(world.fleet.destroyOrphan("no id", 1));
      expect(outcome.kind).toBe("Unknown");
    });
  });
}
