/** Part of the Fleet's contract: what is a workspace's activity. */
import { describe, expect, it } from "vitest";
import { type ContractSubject, LONG_MS, LOOK_MS } from "./fleet-subject.ts";

export function activityContract(begin: () => Promise<ContractSubject>): void {
  describe("activity", () => {
    it("begins with the container, and is renewed by a user's traffic", async () => {
      const { start, use, times, world } = await begin();
      await start("s1");
      const before = await times();
      expect(before.active).toBeGreaterThanOrEqual(before.started);
      await world.pass(LOOK_MS);
      await use();
      const after = await times();
      expect(after.started).toBe(before.started);
      expect(after.active).toBeGreaterThan(before.active);
    });

    it("is renewed by no call of the controller", async () => {
      const { start, stop, use, observe, times, world } = await begin();
      await start("s1");
      await world.pass(LOOK_MS);
      await use();
      const used = await times();
      await world.pass(LOOK_MS);
      await observe(2);
      expect(await start("s1", {}, LONG_MS, 2)).toMatchObject({ startedTime: used.started, activityTime: used.active });
      await stop(2);
      const renewed = await start("s2", {}, LONG_MS, 2);
      if (renewed.kind !== "Running") throw new Error(`not Running but ${renewed.kind}`);
      expect(renewed.startedTime).toBeGreaterThan(used.active);
      expect(renewed.activityTime).toBeGreaterThanOrEqual(renewed.startedTime);
    });

    it("is not renewed by what is refused", async () => {
      const { start, startInVain, use, observe, times, world, instance } = await begin();
      await use();
      world.script(instance, "NeverReady");
      await startInVain("s1");
      await use();
      expect((await observe()).kind).toBe("Failed");
      world.script(instance, "Works");
      await start("s2");
      const { started, active } = await times();
      expect(active).toBeGreaterThanOrEqual(started);
    });
  });
}
