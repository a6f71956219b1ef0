import { applyD1Migrations } from "cloudflare:test";
import { afterAll, beforeAll, vi } from "vitest";
import { bindings } from "./support.ts";

beforeAll(async () => {
  await applyD1Migrations(bindings.DB, bindings.TEST_MIGRATIONS);
  // What a sweep logs is not what these tests are about.
  vi.spyOn(console, "info").mockImplementation(() => {});
  vi.spyOn(console, "error").mockImplementation(() => {});
});

afterAll(() => {
  vi.restoreAllMocks();
});
