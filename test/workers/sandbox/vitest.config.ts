import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest({
      main: "./test/workers/sandbox/worker.ts",
      miniflare: {
        compatibilityDate: "2026-08-01",
        compatibilityFlags: ["nodejs_compat"],
        durableObjects: {
          FENCED: { className: "FencedSandbox", useSQLite: true },
          STANDALONE: { className: "StandaloneSandbox", useSQLite: true },
          UNFENCED: { className: "UnfencedSandbox", useSQLite: true },
        },
        d1Databases: ["DB"],
        r2Buckets: ["BACKUP_BUCKET"],
        bindings: {
          SANDBOX_LOG_LEVEL: "error",
          BACKUP_BUCKET_NAME: "archives",
          R2_ACCESS_KEY_ID: "key",
          R2_SECRET_ACCESS_KEY: "of nobody",
          CLOUDFLARE_ACCOUNT_ID: "account",
        },
      },
    }),
  ],
  test: {
    name: "sandbox",
    root: new URL("../../../", import.meta.url).pathname,
    setupFiles: ["test/workers/sandbox/setup.ts"],
    testTimeout: 20_000,
    silent: "passed-only",
    include: ["test/workers/sandbox/*.test.ts"],
  },
});
