import { beforeAll } from "vitest";
import { bindings } from "./support.ts";

// As much of the controller's table as a poke needs.
beforeAll(async () => {
  await bindings.DB.exec("CREATE TABLE IF NOT EXISTS workspaces (uid TEXT PRIMARY KEY, next_reconcile_time INTEGER)");
});
