/** A vitest project of its own: the API in workerd over a real D1 with the real migrations. */
import { fileURLToPath } from "node:url";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig(async () => ({
  root: here("."),
  cacheDir: here("../../../node_modules/.vite"),
  plugins: [
    cloudflareTest({
      main: here("./worker.ts"),
      miniflare: {
        compatibilityDate: "2026-08-01",
        compatibilityFlags: ["nodejs_compat"],
        d1Databases: ["DB"],
        bindings: { TEST_MIGRATIONS: await readD1Migrations(here("../../../migrations")) },
      },
    }),
  ],
  // One worker for all files: each file starts from an empty database itself, and loading the API costs more than its tests.
  test: { name: "workers-api", include: ["**/*.test.ts"], isolate: false, maxWorkers: 1, sequence: { groupOrder: 1 } },
}));

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
