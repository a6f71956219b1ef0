import type { InstanceState, ListedInstance } from "../../../src/controller/inventory.ts";
import { type PlatformFault, RETRY_AFTER_MS, inventoryContract } from "../../contract/inventory.ts";
import { FakeInventory, type InventoryFault } from "../../support/fake-inventory.ts";
import { type Reply, page, refusal, reset, silent } from "./platform.ts";
import { APPLICATION, begin, described } from "./world.ts";

const WORDS: Readonly<Record<InstanceState, string>> = { Running: "running", Settling: "stopping", Stopped: "failed", Unknown: "dreaming" };

const REPLIES: Readonly<Record<PlatformFault, readonly Reply[]>> = {
  Unauthorised: [refusal(403)],
  RateLimited: [refusal(429, 10_429, { "Retry-After": String(RETRY_AFTER_MS / 1000) })],
  Unavailable: [refusal(500)],
  Silent: [silent],
  NotEnabled: [refusal(400)],
  HalfRead: [page([described(0)], "after-1"), reset],
};

inventoryContract("the platform's list", async ({ deadline }) => {
  const { platform, inventory } = await begin(deadline === "Short" ? { pageTimeoutMs: 50 } : {});
  platform.pageSize = 10;
  return {
    inventory,
    set: (instances) => platform.instances.set(APPLICATION.id, instances.map(describe)),
    fault: (fault) => platform.replies.instances.push(...REPLIES[fault]),
    run: (work) => work,
  };
});

function describe({ doId, name, state, startedTime }: ListedInstance) {
  return {
    ...described(0, WORDS[state]),
    id: doId,
    name: name ?? undefined,
    started_at: startedTime === null ? undefined : new Date(startedTime).toISOString(),
  };
}

const FAULTS: Readonly<Record<PlatformFault, InventoryFault>> = {
  Unauthorised: { kind: "Fails", reason: "Unauthorised" },
  RateLimited: { kind: "Fails", reason: "RateLimited", retryAfterMs: RETRY_AFTER_MS },
  Unavailable: { kind: "Fails", reason: "Unavailable" },
  Silent: { kind: "Hangs", ms: 30_000 },
  NotEnabled: { kind: "NotEnabled" },
  HalfRead: { kind: "Fails", reason: "Unavailable" },
};

inventoryContract("the fake", () => {
  const inventory = new FakeInventory({ sleep: async () => {} });
  return {
    inventory,
    set: (instances) => {
      inventory.instances.clear();
      for (const { doId, ...rest } of instances) inventory.set(doId, rest);
    },
    fault: (fault) => inventory.fault(FAULTS[fault]),
    run: (work) => work,
  };
});
