/** The product's own reader of the platform's list against the engine's: neither may know a shape that the other does not. */
import { describe, expect, it } from "vitest";
import type { Engine } from "../../dev/engine/contract.ts";
import { createInstanceList } from "../../src/controller/instance-list.ts";
import type { Inventory, Listing } from "../../src/controller/inventory.ts";
import { bench, doId, until } from "./fixture.ts";

const APPLICATION = "my-worker-Box";

describe("the engine's inventory, as the controller reads it", () => {
  it("is complete from the first container to the last, in whatever state each is", async () => {
    const { engine, client } = await bench({ applications: [APPLICATION] });
    const inventory = inventoryOf(engine);
    expect(await inventory.list()).toEqual({ kind: "Complete", instances: [] });
    for (const object of [1, 2]) await client(object).start();
    await until(() => engine.instances().length === 2 && engine.instances().every(({ state }) => state === "Running"));
    expect(states(await inventory.list())).toEqual([
      [doId(1), "Running"],
      [doId(2), "Running"],
    ]);
    await engine.kill(doId(2), 137);
    const listing = await inventory.list();
    expect(states(listing)).toEqual([
      [doId(1), "Running"],
      [doId(2), "Stopped"],
    ]);
    expect(listing).toMatchObject({ instances: [{ name: null, startedTime: engine.instance(doId(1))?.startedTime }, {}] });
  });

  it("knows no application of another name, and fails when told to", async () => {
    const { engine } = await bench({ applications: [APPLICATION] });
    expect(await inventoryOf(engine, "other").list()).toMatchObject({ kind: "Failed", reason: "NotFound" });
    const inventory = inventoryOf(engine);
    await inventory.list();
    engine.setFaults({ inventory: { status: 400, times: 1 } });
    expect(await inventory.list()).toMatchObject({ kind: "NotEnabled" });
    engine.setFaults({ inventory: { status: 500, times: 1 } });
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Unavailable" });
    expect(await inventory.list()).toEqual({ kind: "Complete", instances: [] });
    expect(engine.counters().unimplemented).toBe(0);
  });
});

function inventoryOf({ inventoryUrl }: Engine, application = APPLICATION): Inventory {
  return createInstanceList({
    accountId: "local",
    apiToken: "local",
    application,
    baseUrl: inventoryUrl,
    now: Date.now,
    pageTimeoutMs: 10_000,
    listTimeoutMs: 20_000,
  });
}

function states(listing: Listing): unknown {
  return listing.kind === "Complete" ? listing.instances.map((instance) => [instance.doId, instance.state]) : listing;
}
