/**
 * What every Fleet must do, whatever is behind it. A world gives the suite a fleet and a hand on what happens behind the port; times are
 * the world's own, so that a real one may be slower than a fake.
 */
import { describe, expect, it } from "vitest";
import { LeaseLostError } from "../../src/controller/fleet.ts";
import { activityContract } from "./fleet-activity.ts";
import { memoryContract } from "./fleet-memory.ts";
import { orphanContract } from "./fleet-orphans.ts";
import { CANCELLED, kinds, LONG_MS, type MakeWorld, newSubject } from "./fleet-subject.ts";

export function fleetContract(name: string, makeWorld: MakeWorld): void {
  describe(`a fleet: ${name}`, () => {
    const begin = () => newSubject(makeWorld);

    describe("identify", () => {
      it("is pure, and gives other ids for another uid or incarnation", async () => {
        const { fleet, uid, instance } = await begin();
        expect(fleet.identify(uid, 1)).toEqual(instance);
        const ids = [instance, fleet.identify(uid, 2), fleet.identify(`${uid}x`, 1)];
        expect(new Set(ids.map(({ doId }) => doId)).size).toBe(3);
        expect(new Set(ids.map(({ sandboxId }) => sandboxId)).size).toBe(3);
        expect(instance.doId).toMatch(/^[0-9a-f]{64}$/);
      });
    });

    describe("a sandbox that nobody used", () => {
      it("is Absent, and looking at it starts nothing", async () => {
        const { observe, world, instance } = await begin();
        expect(kinds(await observe(), await observe())).toEqual(["Absent", "Absent"]);
        expect(world.containers(instance)).toBe(0);
      });

      it("is Absent after a stop, too", async () => {
        const { stop, observe, world, instance } = await begin();
        expect(kinds(await stop(), await observe())).toEqual(["Absent", "Absent"]);
        expect(world.containers(instance)).toBe(0);
      });

      it("can be destroyed, and never starts after that", async () => {
        const { destroy, start, observe, world, instance } = await begin();
        expect(kinds(await destroy(), await destroy(), await start("s1"), await observe())).toEqual(Array(4).fill("Destroyed"));
        expect(world.containers(instance)).toBe(0);
      });
    });

    describe("start", () => {
      it("answers Running with the order's start id and hash once it is verified", async () => {
        const { start, observe, world, instance } = await begin();
        const running = await start("s1");
        expect(running).toMatchObject({ kind: "Running", startId: "s1", specHash: "v1:hash" });
        expect(await observe()).toEqual(running);
        expect([world.runs(instance), world.containers(instance)]).toEqual([true, 1]);
      });

      it("repeated with the same id joins: under way or failed, it begins nothing new", async () => {
        const { startInVain, world, instance, observe } = await begin();
        world.script(instance, "NeverReady");
        expect(await startInVain("s1", 0)).toEqual({ kind: "Starting", startId: "s1" });
        expect(await observe()).toEqual({ kind: "Starting", startId: "s1" });
        expect(kinds(await startInVain("s1"), await startInVain("s1"))).toEqual(["Failed", "Failed"]);
        expect(world.containers(instance)).toBe(1);
        expect(world.runs(instance)).toBe(false);
      });

      it("repeated with the same id joins: under way, done or stopped, it begins nothing new", async () => {
        const { start, stop, world, instance } = await begin();
        expect(kinds(await start("s1", {}, 0), await start("s1"), await start("s1"))).toEqual(["Starting", "Running", "Running"]);
        expect(kinds(await stop(), await start("s1"))).toEqual(["Stopped", "Stopped"]);
        expect(world.containers(instance)).toBe(1);
      });

      it("goes on when nobody waits for it any more", async () => {
        const { start, after } = await begin();
        expect(await start("s1", {}, 0)).toEqual({ kind: "Starting", startId: "s1" });
        expect(await after("Starting")).toMatchObject({ kind: "Running", startId: "s1", specHash: "v1:hash" });
      });

      it("that never becomes ready is given up at its deadline: a transient failure, and nothing runs", async () => {
        const { startInVain, world, instance, observe } = await begin();
        world.script(instance, "NeverReady");
        const failed = await startInVain("s1");
        expect(failed).toMatchObject({ kind: "Failed", startId: "s1", failure: { class: "Transient", reason: "StartTimeout" } });
        expect((await observe()).kind).toBe("Failed");
        expect(world.runs(instance)).toBe(false);
      });

      it("that gets no instance fails as Capacity", async () => {
        const { startInVain, world, instance } = await begin();
        world.script(instance, "NoCapacity");
        expect(await startInVain("s1")).toMatchObject({ kind: "Failed", startId: "s1", failure: { class: "Capacity" } });
        expect(world.runs(instance)).toBe(false);
      });

      it("whose container ends before it is ready has failed by that, and begins no other", async () => {
        const { start, begun, exit, world, instance } = await begin();
        world.script(instance, "NeverReady");
        await start("s1", {}, 0);
        await begun();
        await exit(instance, 3);
        const failure = { class: "Transient", reason: "StartFailed" };
        expect(await start("s1")).toMatchObject({ kind: "Failed", startId: "s1", failure });
        expect(world.containers(instance)).toBe(1);
      });

      it("with another id ends the start that is under way, and the container that runs, and begins its own", async () => {
        const { start, begun, world, instance } = await begin();
        world.script(instance, "NeverReady");
        await start("s1", {}, 0);
        await begun();
        world.script(instance, "Works");
        expect(await start("s2")).toMatchObject({ kind: "Running", startId: "s2", specHash: "v1:hash" });
        expect(await start("s3", { specHash: "v1:other" })).toMatchObject({ kind: "Running", startId: "s3", specHash: "v1:other" });
        expect(world.containers(instance)).toBe(3);
      });

      it("with another id is another start, after a stop as after a crash", async () => {
        const { start, stop, exit, world, instance } = await begin();
        await start("s1");
        await stop();
        expect(await start("s2", { specHash: "v1:other" })).toMatchObject({ kind: "Running", startId: "s2", specHash: "v1:other" });
        await exit(instance, 1);
        expect((await start("s3")).kind).toBe("Running");
        expect(world.containers(instance)).toBe(3);
      });
    });

    describe("an end", () => {
      it.each([0, 1, 137, 143])("with code %i is Stopped and says so", async (code) => {
        const { start, observe, exit, instance } = await begin();
        await start("s1");
        await exit(instance, code);
        expect(await observe()).toMatchObject({ kind: "Stopped", exit: { code } });
      });

      it("is of no interest once another container runs", async () => {
        const { start, observe, exit, instance } = await begin();
        await start("s1");
        await exit(instance, 137);
        await start("s2");
        expect(await observe()).toMatchObject({ kind: "Running", startId: "s2", specHash: "v1:hash" });
      });
    });

    describe("stop", () => {
      it("ends the container and leaves the incarnation usable; again it does nothing", async () => {
        const { start, stop, world, instance } = await begin();
        await start("s1");
        expect(kinds(await stop(), await stop())).toEqual(["Stopped", "Stopped"]);
        expect(world.runs(instance)).toBe(false);
        expect((await start("s2")).kind).toBe("Running");
      });

      it("ends a start under way, which then has failed, and not by the workspace's fault", async () => {
        const { start, stop, world, instance } = await begin();
        world.script(instance, "NeverReady");
        await start("s1", {}, 0);
        expect(await stop()).toMatchObject(CANCELLED);
        expect(world.runs(instance)).toBe(false);
      });
    });

    describe("destroy", () => {
      it("ends the container and the incarnation for good", async () => {
        const { start, destroy, observe, world, instance } = await begin();
        await start("s1");
        expect(kinds(await destroy(), await start("s2"), await observe())).toEqual(["Destroyed", "Destroyed", "Destroyed"]);
        expect(world.runs(instance)).toBe(false);
        expect(world.containers(instance)).toBe(1);
      });

      it("ends a start under way", async () => {
        const { start, destroy, world, instance } = await begin();
        world.script(instance, "NeverReady");
        await start("s1", {}, 0);
        expect((await destroy()).kind).toBe("Destroyed");
        expect(world.runs(instance)).toBe(false);
      });

      it("that had no effect is Destroying, never Destroyed, until it has one", async () => {
        const { start, destroy, observe, world, instance } = await begin();
        await start("s1");
        world.script(instance, "DeafToDestroy");
        expect(kinds(await destroy(), await observe())).toEqual(["Destroying", "Destroying"]);
        expect(world.runs(instance)).toBe(true);
        world.script(instance, "Works");
        expect(kinds(await destroy(), await observe())).toEqual(["Destroyed", "Destroyed"]);
        expect(world.runs(instance)).toBe(false);
      });
    });

    activityContract(begin);
    orphanContract(begin);
    memoryContract(begin);

    describe("the fence", () => {
      it("refuses every call of a lower epoch with LeaseLostError, and it changes nothing", async () => {
        const { start, stop, destroy, observe, world, instance } = await begin();
        await start("s1", {}, LONG_MS, 7);
        await expect(observe(6)).rejects.toThrow(LeaseLostError);
        await expect(stop(6)).rejects.toThrow(LeaseLostError);
        await expect(destroy(6)).rejects.toThrow(LeaseLostError);
        await expect(start("s2", {}, LONG_MS, 6)).rejects.toThrow(LeaseLostError);
        expect(await observe(7)).toMatchObject({ kind: "Running", startId: "s1" });
        expect(world.containers(instance)).toBe(1);
      });

      it("rises with a mere look", async () => {
        const { start, observe, world, instance } = await begin();
        expect((await observe(3)).kind).toBe("Absent");
        await expect(start("s1", {}, LONG_MS, 2)).rejects.toThrow(LeaseLostError);
        expect(world.containers(instance)).toBe(0);
      });

      it("answers Unknown, never absence, where the sandbox belongs to another incarnation", async () => {
        const { start, world, instance, observe } = await begin();
        await start("s1");
        const other = { ...instance, incarnation: 2 };
        expect(await world.run(world.fleet.observe(other, 1))).toMatchObject({ kind: "Unknown", failure: { class: "Misconfigured" } });
        expect((await world.run(world.fleet.destroy(other, 1))).kind).toBe("Unknown");
        expect((await observe()).kind).toBe("Running");
      });
    });
  });
}
