import { beforeEach, describe, expect, it } from "vitest";
import { d1, NOW, openApi, problemOf, startEmpty, type TestApi } from "./support.ts";

let api: TestApi;

beforeEach(async () => {
  await startEmpty();
  api = await openApi();
});

async function sweepAt(time: number | null) {
  await d1
    .prepare("INSERT INTO controller (id, holder, epoch, expires_time, resync_time, last_sweep_time) VALUES (1, 'x', 1, 0, 0, ?)")
    .bind(time)
    .run();
}

it("/healthz is 200 for anyone", async () => {
  expect(await (await api.send("GET", "/healthz", { token: null })).json()).toEqual({ status: "ok" });
});

describe("/readyz", () => {
  it("is 503 NOT_READY before the first sweep, with or without a controller's record", async () => {
    for (const prepare of [async () => {}, () => sweepAt(null)]) {
      await prepare();
      const response = await api.send("GET", "/readyz", { token: null });
      expect(response.headers.get("Retry-After")).toBe("60");
      expect(await problemOf(response)).toMatchObject({ status: 503, code: "NOT_READY", detail: "No sweep was completed yet." });
    }
  });

  it.each([
    ["just now", 0, 200],
    ["exactly five minutes ago", 300_000, 200],
    ["longer ago", 300_001, 503],
  ])("with a sweep completed %s", async (_sentence, age, status) => {
    await sweepAt(NOW - age);
    const response = await api.send("GET", "/readyz", { token: null });
    expect(response.status).toBe(status);
    if (status === 200) expect(await response.json()).toEqual({ status: "ready", lastSweepTime: new Date(NOW - age).toISOString() });
  });
});
