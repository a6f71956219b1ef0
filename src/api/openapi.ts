/** `/openapi.json`, made from the schemas that the handlers use. */
import { workspaceSpecSchema } from "../spec.ts";
import { emptySchema } from "./body.ts";
import type { Api } from "./context.ts";
import { settingsSchema } from "./controller-schema.ts";
import { adoptSchema, protectSchema } from "./instance-schema.ts";
import { applySchema } from "./schema.ts";

const DESCRIPTION = "Declare the workspaces you want; the controller moves each sandbox toward its record.";

export function registerOpenApi(app: Api): void {
  const { openAPIRegistry } = app;
  openAPIRegistry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  openAPIRegistry.register("WorkspaceSpec", workspaceSpecSchema);
  openAPIRegistry.register("WorkspaceApply", applySchema);
  openAPIRegistry.register("Empty", emptySchema);
  openAPIRegistry.register("InstanceProtect", protectSchema);
  openAPIRegistry.register("InstanceAdopt", adoptSchema);
  openAPIRegistry.register("ControllerSettings", settingsSchema);
  app.get("/openapi.json", (c) =>
    c.json(app.getOpenAPI31Document({ openapi: "3.1.0", info: { title: "Mooring", version: "v1", description: DESCRIPTION } })),
  );
}
