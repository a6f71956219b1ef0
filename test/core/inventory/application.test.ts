import { describe, expect, test } from "vitest";
import { json, page, refusal } from "./platform.ts";
import { APPLICATION, begin, described, doId } from "./world.ts";

const OTHER = { ...APPLICATION, id: "0f1e2d3c-0000-4000-8000-000000000002" };

describe("the application", () => {
  test("is looked up once", async () => {
    const { platform, inventory } = await begin();
    for (const _ of [1, 2, 3]) expect(await inventory.list()).toMatchObject({ kind: "Complete" });
    expect(platform.paths.filter((path) => path === "applications")).toHaveLength(1);
    expect(platform.requests).toHaveLength(1 + 3);
  });

  test("is looked up again after a lookup that failed, and not after a list that failed", async () => {
    const { platform, inventory } = await begin();
    platform.replies.applications.push(refusal(500));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Unavailable" });
    platform.replies.instances.push(refusal(500), refusal(400));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Unavailable" });
    expect(await inventory.list()).toMatchObject({ kind: "NotEnabled" });
    expect(await inventory.list()).toMatchObject({ kind: "Complete" });
    expect(platform.paths.filter((path) => path === "applications")).toHaveLength(2);
  });

  test("made anew is found by the list after the one that missed it", async () => {
    const { platform, inventory } = await begin();
    await inventory.list();
    platform.applications = [OTHER];
    platform.instances.delete(APPLICATION.id);
    platform.instances.set(OTHER.id, [described(7)]);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "NotFound" });
    expect(await inventory.list()).toMatchObject({ kind: "Complete", instances: [{ doId: doId(7) }] });
  });

  const named = (name: string) => ({ ...APPLICATION, name });
  const NEIGHBOURS = [`${APPLICATION.name}-staging`, `old-${APPLICATION.name}`].map((name) => ({ ...OTHER, id: name, name }));
  // oxfmt-ignore
  test.for([
    // is found                           settings                      applications                              requests
    ["by its name",                       APPLICATION.name,             [APPLICATION],                            1],
    ["among names that contain its own",  APPLICATION.name,             [...NEIGHBOURS, APPLICATION],             1],
    ["in the lower case of wrangler",     "mooring-WorkspaceSandbox",   [APPLICATION],                            2],
    ["in capitals of its own",            "mooring-WorkspaceSandbox",   [named("mooring-WorkspaceSandbox")],      1],
  ] as const)("is found %s", async ([, application, applications, requests], { expect }) => {
    const { platform, inventory } = await begin({ application });
    platform.applications = [...applications];
    expect(await inventory.list()).toMatchObject({ kind: "Complete" });
    expect(platform.paths.filter((path) => path === "applications")).toHaveLength(requests);
  });

  test("is looked for on every page", async () => {
    const { platform, inventory } = await begin();
    platform.applications = [...NEIGHBOURS, APPLICATION];
    platform.pageSize = 1;
    expect(await inventory.list()).toMatchObject({ kind: "Complete" });
    expect(platform.requests).toHaveLength(3 + 1);
  });

  test("may come without the page information that the list of instances must have", async () => {
    const { platform, inventory } = await begin();
    platform.replies.applications.push(json({ success: true, errors: [], messages: [], result: [APPLICATION] }));
    expect(await inventory.list()).toMatchObject({ kind: "Complete" });
  });

  // oxfmt-ignore
  test.for([
    // where                       applications            message
    ["none exists",                [],                     `No container application is named "${APPLICATION.name}".`],
    ["only others exist",          NEIGHBOURS,             `No container application is named "${APPLICATION.name}".`],
    ["two have the name",          [APPLICATION, OTHER],   `More than one container application is named "${APPLICATION.name}".`],
    ["two have it in other cases", [{ ...OTHER, name: APPLICATION.name.toUpperCase() }, APPLICATION],
                                                           `More than one container application is named "${APPLICATION.name}".`],
  ] as const)("cannot be told where %s", async ([, applications, message], { expect }) => {
    const { platform, inventory } = await begin();
    platform.replies.applications.push(page(applications));
    expect(await inventory.list()).toEqual({ kind: "Failed", reason: "NotFound", message, retryAfterMs: null });
    expect(platform.requests).toHaveLength(1);
  });

  // oxfmt-ignore
  test.for([
    // lookup                      reply                                                   reason
    ["refused with HTTP 400",      refusal(400),                                           "Malformed"],
    ["refused with HTTP 400/6003", refusal(400, 6003),                                     "Unauthorised"],
    ["refused with HTTP 401",      refusal(401),                                           "Unauthorised"],
    ["refused with HTTP 404",      refusal(404),                                           "NotFound"],
    ["refused with HTTP 429",      refusal(429),                                           "RateLimited"],
    ["refused with HTTP 500",      refusal(500),                                           "Unavailable"],
    ["refused with HTTP 200",      json({ success: false, errors: [], result: [] }),       "Unavailable"],
    ["that finds no ids",          page([{ name: APPLICATION.name }]),                     "Malformed"],
    ["that finds an empty id",     page([{ ...APPLICATION, id: "" }]),                     "Malformed"],
  ] as const)("is not known after a lookup %s", async ([, reply, reason], { expect }) => {
    const { platform, inventory } = await begin();
    platform.replies.applications.push(reply);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason });
    expect(platform.requests).toHaveLength(1);
  });
});
