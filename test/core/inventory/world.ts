/** A platform with one application, and an instance list that reads it. */
import { type InstanceListSettings, createInstanceList } from "../../../src/controller/instance-list.ts";
import type { Inventory } from "../../../src/controller/inventory.ts";
import { NOW } from "../../support/builders.ts";
import { Platform } from "./platform.ts";

/** Longer than any test: only a test about deadlines meets one. */
const NEVER_MS = 60_000;

export const TOKEN = "token-of-the-account";
export const APPLICATION = { id: "0f1e2d3c-0000-4000-8000-000000000001", name: "mooring-workspacesandbox" };

export interface World {
  readonly platform: Platform;
  readonly inventory: Inventory;
}

export async function begin(change: Partial<InstanceListSettings> = {}): Promise<World> {
  const platform = await new Platform().start();
  platform.applications = [APPLICATION];
  platform.instances.set(APPLICATION.id, []);
  const inventory = createInstanceList({
    accountId: "acc",
    apiToken: TOKEN,
    application: APPLICATION.name,
    baseUrl: platform.baseUrl,
    now: () => NOW,
    pageTimeoutMs: NEVER_MS,
    listTimeoutMs: NEVER_MS,
    ...change,
  });
  return { platform, inventory };
}

export function doId(object: number): string {
  return object.toString(16).padStart(64, "0");
}

/** An instance as the API describes it, with every field. */
export function described(object: number, state = "running") {
  return {
    id: doId(object),
    application_id: APPLICATION.id,
    image: "registry.example/image:1",
    name: `ws-${object}`,
    status: { state, updated_at: "2026-11-30T12:00:00.000Z", exit_code: 0 },
    started_at: "2026-11-30T11:00:00.000Z",
    configuration: { vcpu: 0.25, memory: 1024, disk: 4000 },
    location: { name: "dfw01", region: "ENAM" },
  };
}
