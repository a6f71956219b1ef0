import { describe, expect, test } from "vitest";
import { NoWakeFence } from "../../../src/sandbox/no-wake-fence.ts";

function setUp() {
  const native = { running: true, starts: 0, start: () => {} };
  native.start = () => {
    native.starts += 1;
    native.running = true;
  };
  return { native, fence: new NoWakeFence(native as unknown as Container) };
}

describe("the no-wake fence", () => {
  test("refuses the native start to the work within it, and to nobody else", async () => {
    const { native, fence } = setUp();
    const hold = fence.hold();
    native.running = false;
    const start = async () => fence.container.start();
    await expect(fence.within(hold, start)).rejects.toThrow("WORKSPACE_NOT_RUNNING");
    expect(native.starts).toBe(0);
    await start();
    expect(native.starts).toBe(1);
  });

  test("follows the work through what it sets going", async () => {
    const { native, fence } = setUp();
    const hold = fence.hold();
    native.running = false;
    const later = await fence.within(hold, async () => {
      await Promise.resolve();
      return [new Promise((resolve) => setTimeout(() => resolve(fence.refusal()), 1)), Promise.resolve().then(() => fence.isWithin)];
    });
    expect(await Promise.all(later)).toEqual(["WORKSPACE_NOT_RUNNING", true]);
    expect([fence.isWithin, fence.refusal()]).toEqual([false, null]);
  });

  test("knows its container from the one that took its place", async () => {
    const { native, fence } = setUp();
    const hold = fence.hold();
    expect(hold.state).toBe("Holds");
    native.running = false;
    expect(hold.state).toBe("Ended");
    fence.container.start();
    expect(hold.state).toBe("Replaced");
    expect(await fence.within(hold, async () => fence.refusal())).toBe("WORKSPACE_NOT_RUNNING");
    expect(fence.hold().state).toBe("Holds");
  });

  test("counts no start that the platform threw at", () => {
    const { native, fence } = setUp();
    const hold = fence.hold();
    native.start = () => {
      throw new Error("start() cannot be called on a container that is already running.");
    };
    expect(() => fence.container.start()).toThrow("already running");
    expect(hold.state).toBe("Holds");
  });
});
