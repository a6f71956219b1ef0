import { expect, test } from "vitest";
import { FakeInventory } from "../../support/fake-inventory.ts";

/** A clock that stands still until the test lets it go. */
function fake() {
  const waiting: { ms: number; resolve: () => void }[] = [];
  const sleep = (ms: number) => new Promise<void>((resolve) => waiting.push({ ms, resolve }));
  const pass = () => {
    for (const { resolve } of waiting.splice(0)) resolve();
  };
  return { inventory: new FakeInventory({ sleep }), waiting, pass };
}

test("changes what is said of an instance, and keeps the rest", async () => {
  const { inventory } = fake();
  inventory.set("a", { name: "ws-a", startedTime: 5 });
  inventory.set("a", { state: "Settling" });
  expect(await inventory.list()).toEqual({
    kind: "Complete",
    instances: [{ doId: "a", name: "ws-a", state: "Settling", startedTime: 5 }],
  });
});

test("answers a stale listing with what the test says, and forgets what it misses for one list", async () => {
  const { inventory } = fake();
  inventory.set("a");
  const before = inventory.snapshot();
  inventory.instances.clear();
  inventory.set("b");
  inventory.set("c");
  inventory.fault({ kind: "Stale", instances: before });
  inventory.fault({ kind: "Misses", doIds: ["b"] });
  expect(await inventory.list()).toEqual({ kind: "Complete", instances: before });
  expect(await inventory.list()).toMatchObject({ instances: [{ doId: "c" }] });
  expect(await inventory.list()).toMatchObject({ instances: [{ doId: "b" }, { doId: "c" }] });
  expect(inventory.listings).toHaveLength(3);
});

test("meets a fault as often as told", async () => {
  const { inventory } = fake();
  inventory.fault({ kind: "Fails", reason: "Changed" }, 2);
  inventory.fault({ kind: "NotEnabled" });
  const kinds = [await inventory.list(), await inventory.list(), await inventory.list(), await inventory.list()].map(({ kind }) => kind);
  expect(kinds).toEqual(["Failed", "Failed", "NotEnabled", "Complete"]);
});

test("hangs until the clock has moved on, and is late with what there was before", async () => {
  const { inventory, waiting, pass } = fake();
  inventory.set("a");
  inventory.fault({ kind: "Hangs", ms: 10_000 });
  inventory.fault({ kind: "Late", ms: 3000 });
  const answers = Promise.all([inventory.list(), inventory.list()]);
  inventory.set("a", { state: "Stopped" });
  expect([waiting.map(({ ms }) => ms), inventory.calls, inventory.listings]).toEqual([[10_000, 3000], 2, []]);
  pass();
  expect(await answers).toMatchObject([
    { kind: "Failed", reason: "Timeout" },
    { kind: "Complete", instances: [{ doId: "a", state: "Running" }] },
  ]);
});
