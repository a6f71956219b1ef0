import { describe, expect, test } from "vitest";
import { NOW } from "../../support/builders.ts";
import { type Reply, halfSilent, page, refusal, silent } from "./platform.ts";
import { APPLICATION, begin, described, doId } from "./world.ts";

const HURRIED_MS = 50;

describe("pages", () => {
  test("are asked for as documented, each with the token of the one before, and without a filter by state", async () => {
    const { platform, inventory } = await begin();
    platform.pageSize = 2;
    platform.instances.set(
      APPLICATION.id,
      [1, 2, 3, 4, 5].map((object) => described(object)),
    );
    const listing = await inventory.list();
    expect(listing).toMatchObject({ kind: "Complete", instances: [1, 2, 3, 4, 5].map((object) => ({ doId: doId(object) })) });
    expect(platform.paths).toEqual(["applications", ...Array(3).fill(`applications/${APPLICATION.id}/instances-v2`)]);
    expect(platform.requests.map(({ query }) => query)).toEqual([
      { name: APPLICATION.name, per_page: "500" },
      { per_page: "1000" },
      { per_page: "1000", page_token: "after-2" },
      { per_page: "1000", page_token: "after-4" },
    ]);
    expect(platform.requests[0]?.headers).toMatchObject({ "api-version": "2026-11-30" });
  });

  test("go on after an empty one that names another", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(page([described(1)], "a"), page([], "b"), page([described(2)]));
    expect(await inventory.list()).toMatchObject({ kind: "Complete", instances: [{ doId: doId(1) }, { doId: doId(2) }] });
  });

  test("end with an empty token", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(page([described(1)], ""));
    expect(await inventory.list()).toMatchObject({ kind: "Complete", instances: [{ doId: doId(1) }] });
  });

  const one = [described(1)];
  const two = [described(2)];
  // oxfmt-ignore
  test.for([
    // pages that                             are                                                               reason
    ["repeat an instance",                    [page(one, "a"), page(two, "b"), page(one)],                      "Changed"],
    ["repeat one in another state",           [page(one, "a"), page([described(1, "stopped")])],                "Changed"],
    ["repeat one in capitals",                [page([described(171)], "a"), page([{ id: doId(171).toUpperCase() }])], "Changed"],
    ["list an instance twice on one page",    [page([...one, ...two, ...one])],                                 "Changed"],
    ["lead back to themselves",               [page(one, "a"), page(two, "a")],                                 "Changed"],
    ["lead back to an earlier one",           [page([], "a"), page([], "b"), page([], "a")],                    "Changed"],
    ["take their token back",                 [page(one, "a"), refusal(400)],                                   "Changed"],
    ["break off for too many requests",       [page(one, "a"), refusal(429)],                                   "RateLimited"],
    ["lose their application",                [page(one, "a"), refusal(404)],                                   "NotFound"],
    ["make no sense later",                   [page(one, "a"), page([{}])],                                     "Malformed"],
  ] as const)("that %s are no listing", async ([, replies, reason], { expect }) => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(...replies);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason });
    expect(platform.requests).toHaveLength(1 + replies.length);
  });

  test("that change between two requests are a listing only where each instance shows once", async () => {
    const { platform, inventory } = await begin();
    platform.pageSize = 2;
    const instances = [1, 2, 3, 4].map((object) => described(object));
    const change: Reply = (response, request) => {
      platform.instances.set(APPLICATION.id, [described(0), ...instances]);
      page(instances.slice(0, 2), "after-2")(response, request);
    };
    platform.instances.set(APPLICATION.id, instances);
    platform.replies.instances.push(change);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Changed" });
  });

  test("without end are given up", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(...Array.from({ length: 200 }, (_, count) => page([described(count)], `after-${count}`)));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Malformed" });
    expect(platform.requests).toHaveLength(1 + 100);
  });
});

describe("a deadline", () => {
  test.for([
    ["a page that never answers", "instances", silent],
    ["a page that never ends", "instances", halfSilent],
    ["a lookup that never answers", "applications", silent],
    ["a lookup that never ends", "applications", halfSilent],
  ] as const)("ends the wait for %s", async ([, kind, reply], { expect }) => {
    const { platform, inventory } = await begin({ pageTimeoutMs: HURRIED_MS });
    platform.replies[kind].push(reply);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Timeout" });
  });

  test("ends the request, too", async () => {
    const { platform, inventory } = await begin({ pageTimeoutMs: HURRIED_MS });
    const closed = new Promise((resolve) => {
      platform.replies.applications.push((response) => response.on("close", resolve));
    });
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Timeout" });
    await closed;
  });

  test("of the whole list also limits a single page", async () => {
    const { platform, inventory } = await begin({ listTimeoutMs: HURRIED_MS });
    platform.replies.instances.push(silent);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Timeout" });
  });

  test("ends the wait where the request cannot be ended", async () => {
    const { inventory } = await begin({ pageTimeoutMs: HURRIED_MS, fetch: () => new Promise(() => {}) });
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Timeout" });
  });

  test("of the whole list lets no page begin after it", async () => {
    let time = NOW;
    const { platform, inventory } = await begin({ now: () => time, listTimeoutMs: 30_000 });
    const slow = (reply: Reply): Reply => {
      return (response, request) => {
        time += 15_000;
        reply(response, request);
      };
    };
    platform.replies.instances.push(slow(page([described(1)], "a")), slow(page([described(2)], "b")), page([described(3)]));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Timeout" });
    expect(platform.requests).toHaveLength(1 + 2);
  });
});
