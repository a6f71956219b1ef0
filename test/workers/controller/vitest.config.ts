/** A vitest project of its own: store and controller in workerd over a real D1 with the real migrations. */
import { fileURLToPath } from "node:url";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig(async () => ({
  root: here("."),
  plugins: [
    cloudflareTest({
      miniflare: {
        compatibilityDate: "2026-08-01",
        compatibilityFlags: ["nodejs_compat"],
        d1Databases: ["DB"],
        bindings: { TEST_MIGRATIONS: await readD1Migrations(here("../../../migrations")) },
      },
    }),
  ],
  test: {
    name: "controller",
    include: ["**/*.test.ts"],
    setupFiles: [here("./setup.ts")],
    testTimeout: 60_000,
  },
}));

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
