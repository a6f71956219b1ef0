/** The layers of docs/architecture.md: L1 in plain Node, L3 in workerd, L4 over real workerd with containers that are processes. */
import { defineConfig } from "vitest/config";

/** Two files at a time keep two cores busy. */
const FILES_AT_ONCE = 2;

export default defineConfig({
  test: {
    maxWorkers: FILES_AT_ONCE,
    // The SDK passes on the body of a response and catches nothing of it, so the end that a fake stream of `sandbox` comes to is nobody's.
    onUnhandledError: ({ message, stack }) => message !== "Network connection lost." || stack?.includes("archiveEvents") !== true,
    projects: [
      { test: { name: "core", include: ["test/core/**/*.test.ts"] } },
      { test: { name: "dev", include: ["test/engine/**/*.test.ts", "test/sandbox-server/**/*.test.ts", "test/dev/**/*.test.ts"] } },
      "test/workers/*/vitest.config.ts",
      {
        test: {
          name: "stack",
          include: ["test/stack/**/*.test.ts"],
          testTimeout: 120_000,
          // They wait for containers most of the time: twice as many keep two cores busy.
          maxWorkers: 2 * FILES_AT_ONCE,
          // After the others, whose many small files would take its processor time.
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
