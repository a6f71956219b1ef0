import { describe, expect, it } from "vitest";
import type { Engine } from "../../dev/engine/contract.ts";
import { bench, doId, until } from "./fixture.ts";

interface Page {
  readonly success: boolean;
  readonly result: readonly {
    readonly id: string;
    readonly name: string;
    readonly status: { readonly state: string; readonly exit_code?: number };
  }[];
  readonly result_info: { readonly next_page_token?: string };
}

describe("the inventory", () => {
  it("finds an application by name, before and after its first container", async () => {
    const { engine, client } = await bench({ applications: ["my-worker-Box"] });
    const before = await get(engine, "applications?name=my-worker-box");
    expect(before.result).toHaveLength(1);
    await client(1, { session: "4f2a" }).start();
    expect((await get(engine, "applications?name=my-worker-box")).result).toEqual(before.result);
    expect((await get(engine, "applications?name=other")).result).toEqual([]);
  });

  it("lists instances in pages, by state", async () => {
    const { engine, client } = await bench({ applications: ["my-worker-box"] });
    const application = await applicationId(engine);
    expect((await get(engine, `applications/${application}/instances-v2`)).result).toEqual([]);
    for (const object of [1, 2, 3]) await client(object).start();
    await until(() => engine.instances().every(({ state }) => state === "Running"));
    await engine.kill(doId(2), 137);
    const first = await get(engine, `applications/${application}/instances-v2?per_page=2`);
    expect(first.result.map(({ id }) => id)).toEqual([doId(1), doId(2)]);
    const second = await get(engine, `applications/${application}/instances-v2?per_page=2&page_token=${first.result_info.next_page_token}`);
    expect(second.result.map(({ id }) => id)).toEqual([doId(3)]);
    expect(second.result_info.next_page_token).toBeUndefined();
    const active = await get(engine, `applications/${application}/instances-v2?state=active`);
    expect(active.result.map(({ id, status }) => [id, status.state])).toEqual([
      [doId(1), "running"],
      [doId(3), "running"],
    ]);
    const stopped = await get(engine, `applications/${application}/instances-v2?state=not-active`);
    expect(stopped.result).toMatchObject([{ id: doId(2), status: { state: "failed", exit_code: 137 } }]);
  });

  it("shows ghosts, and keeps listing what was destroyed as not active", async () => {
    const { engine, client } = await bench({ faults: { ghostStart: { probability: 1, windowMs: 20, upAfterMs: 30, forced: true } } });
    await client(1).start();
    await until(() => engine.instances()[0]?.state === "Running");
    const application = await applicationId(engine);
    expect((await get(engine, `applications/${application}/instances-v2?state=active`)).result).toMatchObject([{ id: doId(1) }]);
    await client(1).destroy();
    await until(() => engine.instances().length === 0);
    expect((await get(engine, `applications/${application}/instances-v2?state=not-active`)).result).toMatchObject([{ id: doId(1) }]);
  });

  it("refuses calls without a token and applications it does not know, and fails when told to", async () => {
    const { engine } = await bench({ applications: ["my-worker-box"] });
    expect((await fetch(`${engine.inventoryUrl}/accounts/a/containers/applications`)).status).toBe(401);
    expect((await call(engine, "applications/unknown/instances-v2")).status).toBe(404);
    engine.setFaults({ inventory: { status: 500, times: 1 } });
    expect((await call(engine, "applications")).status).toBe(500);
    expect((await call(engine, "applications")).status).toBe(200);
    expect((await call(engine, "registries")).status).toBe(501);
  });
});

function call(engine: Engine, path: string): Promise<Response> {
  const url =
    path === "registries" ? `${engine.inventoryUrl}/accounts/a/registries` : `${engine.inventoryUrl}/accounts/a/containers/${path}`;
  return fetch(url, { headers: { Authorization: "Bearer local" } });
}

async function get(engine: Engine, path: string): Promise<Page> {
  const answer = await call(engine, path);
  return JSON.parse(await answer.text()) as Page;
}

async function applicationId(engine: Engine): Promise<string> {
  return (await get(engine, "applications?name=my-worker-box")).result[0]?.id ?? "";
}
