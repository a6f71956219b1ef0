import { afterEach, describe, expect, test, vi } from "vitest";
import { NOW } from "../../support/builders.ts";
import { SECRET, cut, json, page, refusal, reset, text } from "./platform.ts";
import { APPLICATION, TOKEN, begin, described, doId } from "./world.ts";

describe("an instance of the list", () => {
  // oxfmt-ignore
  test.for([
    // word            what it means
    ["running",        "Running"],
    ["unhealthy",      "Running"],
    ["provisioning",   "Settling"],
    ["placed",         "Settling"],
    ["stopping",       "Settling"],
    ["stopped",        "Stopped"],
    ["failed",         "Stopped"],
    ["inactive",       "Stopped"],
    ["unknown",        "Unknown"],
    ["hibernating",    "Unknown"],
    ["constructor",    "Unknown"],
    ["Running",        "Unknown"],
    ["",               "Unknown"],
  ])("that is %s counts as %s", async ([word, state], { expect }) => {
    const { platform, inventory } = await begin();
    platform.instances.set(APPLICATION.id, [described(1, word)]);
    expect(await inventory.list()).toMatchObject({ kind: "Complete", instances: [{ doId: doId(1), state }] });
  });

  const BARE = { doId: doId(1), name: null, state: "Unknown", startedTime: null };
  const FULL = { doId: doId(1), name: "ws-1", state: "Running", startedTime: Date.UTC(2026, 10, 30, 11) };
  // oxfmt-ignore
  test.for([
    // with                     item                                                shows
    ["every field",             described(1),                                       FULL],
    ["fields of a later day",   { ...described(1), mood: "good", tags: [1] },       FULL],
    ["no location",             { ...described(1), location: undefined },           FULL],
    ["an id alone",             { id: doId(1) },                                    BARE],
    ["nothing but nulls",       { id: doId(1), name: null, status: null, started_at: null }, BARE],
    ["other types than said",   { id: doId(1), name: 7, status: "running", started_at: 7 },  BARE],
    ["a status without a word", { ...described(1), status: { updated_at: "…" } },   { ...FULL, state: "Unknown" }],
    ["a start of no date",      { ...described(1), started_at: "yesterday" },       { ...FULL, startedTime: null }],
    ["an id in capitals",       { ...described(1), id: doId(171).toUpperCase() },   { ...FULL, doId: doId(171) }],
  ] as const)("with %s is listed", async ([, item, instance], { expect }) => {
    const { platform, inventory } = await begin();
    platform.instances.set(APPLICATION.id, [item]);
    expect(await inventory.list()).toEqual({ kind: "Complete", instances: [instance] });
  });

  // oxfmt-ignore
  test.for([
    ["no id",                { ...described(1), id: undefined }],
    ["an id of 63 digits",   { ...described(1), id: doId(1).slice(1) }],
    ["an id of other signs", { ...described(1), id: "g".repeat(64) }],
    ["an id of two lines",   { ...described(1), id: `${doId(1)}\n` }],
    ["no fields at all",     "running"],
  ] as const)("with %s spoils the listing", async ([, item], { expect }) => {
    const { platform, inventory } = await begin();
    platform.instances.set(APPLICATION.id, [described(2), item]);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Malformed" });
  });
});

describe("an answer that is no list", () => {
  const OK = { success: true, errors: [], messages: [] };
  // oxfmt-ignore
  test.for([
    // answer                            reply                                                                      reason
    ["without a result",                 json({ ...OK, result_info: {} }),                                          "Malformed"],
    ["with a result of null",            json({ ...OK, result: null, result_info: {} }),                            "Malformed"],
    ["with a result of the old form",    json({ ...OK, result: { instances: [] }, result_info: {} }),               "Malformed"],
    ["that does not say how to go on",   json({ ...OK, result: [] }),                                               "Malformed"],
    ["with a token of no text",          json({ ...OK, result: [], result_info: { next_page_token: 2 } }),          "Malformed"],
    ["that does not claim success",      json({ result: [], result_info: {} }),                                     "Malformed"],
    ["of JSON that is no object",        json([]),                                                                  "Malformed"],
    ["of JSON that breaks off",          text('{"success":true,"result":[', 200, { "Content-Type": "application/json" }), "Malformed"],
    ["of no JSON",                       text("<html>Sign in</html>", 200, { "Content-Type": "text/html" }),        "Malformed"],
    ["of nothing",                       text("", 200, { "Content-Type": "application/json" }),                     "Malformed"],
    ["of nothing, and says so",          text("", 204),                                                             "Malformed"],
    ["that says it is none",             json({ success: false, errors: [{ code: 7 }], result: [], result_info: {} }), "Unavailable"],
    ["that is cut off",                  cut,                                                                       "Unavailable"],
    ["whose connection is reset",        reset,                                                                     "Unavailable"],
  ] as const)("%s fails", async ([, reply, reason], { expect }) => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(reply);
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason });
    platform.replies.applications.push(reply);
    expect(await inventory.list()).toEqual({ kind: "Complete", instances: [] });
  });

  test("where nobody listens fails", async () => {
    const { inventory } = await begin({ baseUrl: "http://127.0.0.1:1" });
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Unavailable" });
  });
});

describe("a refusal", () => {
  const DATE = new Date(NOW + 90_000).toUTCString();
  const PAST = new Date(NOW - 90_000).toUTCString();
  // oxfmt-ignore
  test.for([
    // of the list of instances             reply                                           reason          wait
    ["HTTP 401",                             refusal(401, 10_000),                           "Unauthorised", null],
    ["HTTP 403",                             refusal(403, 9109),                             "Unauthorised", null],
    ["HTTP 400 for headers that make no sense", refusal(400, 6003),                          "Unauthorised", null],
    ["HTTP 404",                             refusal(404),                                   "NotFound",     null],
    ["HTTP 429",                             refusal(429),                                   "RateLimited",  null],
    ["HTTP 429 with a wait in seconds",      refusal(429, 1, { "Retry-After": "120" }),      "RateLimited",  120_000],
    ["HTTP 429 with a wait until a date",    refusal(429, 1, { "Retry-After": DATE }),       "RateLimited",  90_000],
    ["HTTP 429 with a date that has passed", refusal(429, 1, { "Retry-After": PAST }),       "RateLimited",  0],
    ["HTTP 429 with a wait of no sense",     refusal(429, 1, { "Retry-After": "soon" }),     "RateLimited",  null],
    ["HTTP 500",                             refusal(500),                                   "Unavailable",  null],
    ["HTTP 503 with a wait",                 refusal(503, 1, { "Retry-After": "5" }),        "Unavailable",  5000],
    ["HTTP 522 in another language",         text("<html>", 522),                            "Unavailable",  null],
    ["HTTP 418",                             refusal(418),                                   "Malformed",    null],
  ] as const)("%s fails with what it means, after one try", async ([, reply, reason, retryAfterMs], { expect }) => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(reply);
    expect(await inventory.list()).toEqual({ kind: "Failed", reason, message: expect.stringContaining("HTTP "), retryAfterMs });
    expect(platform.requests).toHaveLength(2);
  });

  test("is not tried again where the platform asks for that", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(refusal(503, 1, { "X-Should-Retry": "true" }));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Unavailable" });
    expect(platform.requests).toHaveLength(2);
  });

  test("HTTP 400 says that the list is not enabled, with its code", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(refusal(400, 1003));
    expect(await inventory.list()).toEqual({
      kind: "NotEnabled",
      message: "The list of instances was refused with HTTP 400, code 1003.",
    });
  });

  test("with errors of another form than documented keeps its status", async () => {
    const { platform, inventory } = await begin();
    platform.replies.instances.push(json({ success: false, errors: "no" }, 500));
    expect(await inventory.list()).toMatchObject({ message: "The list of instances was refused with HTTP 500." });
  });
});

describe("secrets", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  test("the token is sent to the platform and nowhere else, also where the environment has other credentials", async () => {
    vi.stubEnv("CLOUDFLARE_API_KEY", "other-key");
    vi.stubEnv("CLOUDFLARE_EMAIL", "other@example.com");
    vi.stubEnv("CLOUDFLARE_API_USER_SERVICE_KEY", "v1.0-other");
    vi.stubEnv("CLOUDFLARE_API_TOKEN", "other-token");
    const elsewhere = await begin();
    const { platform, inventory } = await begin();
    platform.replies.instances.push(text("", 302, { Location: `${elsewhere.platform.baseUrl}/elsewhere` }));
    expect(await inventory.list()).toMatchObject({ kind: "Failed", reason: "Malformed" });
    expect(elsewhere.platform.requests).toEqual([]);
    for (const { headers } of platform.requests) {
      expect(headers.authorization).toBe(`Bearer ${TOKEN}`);
      expect(Object.keys(headers).filter((name) => name.startsWith("x-auth-"))).toEqual([]);
    }
  });

  test.for([
    ["a refusal", refusal(500)],
    ["a list refused with success: false", json({ success: false, errors: [{ code: 7, message: SECRET }] })],
    ["text of no JSON", text(SECRET, 502)],
    ["a page that makes no sense", page([{ id: SECRET }])],
  ] as const)("neither the token nor what the platform wrote is in the message about %s, or in a log", async ([, reply], { expect }) => {
    vi.stubEnv("CLOUDFLARE_LOG", "debug");
    const logs = (["debug", "info", "warn", "error", "log"] as const).map((level) => vi.spyOn(console, level));
    const { platform, inventory } = await begin();
    platform.replies.instances.push(reply);
    const answer = JSON.stringify(await inventory.list());
    expect(answer).toContain('"Failed"');
    expect(answer).not.toMatch(new RegExp(`${SECRET}|${TOKEN}`));
    for (const log of logs) expect(log).not.toHaveBeenCalled();
  });

  test("a token that no header can hold fails without showing it", async () => {
    const { inventory } = await begin({ apiToken: `${TOKEN}\n${TOKEN}` });
    const answer = await inventory.list();
    expect(answer).toMatchObject({ kind: "Failed" });
    expect(JSON.stringify(answer)).not.toContain(TOKEN);
  });
});
