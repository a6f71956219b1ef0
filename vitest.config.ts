/** The layers of docs/architecture.md: `core` and `dev` in plain Node, `workers` in workerd, `engine` over real workerd with containers. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "core", include: ["test/core/**/*.test.ts"] } },
      { test: { name: "dev", include: ["test/engine/**/*.test.ts", "test/sandbox-server/**/*.test.ts"] } },
      "test/workers/*/vitest.config.ts",
      { test: { name: "stack", include: ["test/stack/**/*.test.ts"], testTimeout: 120_000, fileParallelism: false } },
    ],
  },
});
