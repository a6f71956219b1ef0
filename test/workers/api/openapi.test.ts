import { beforeAll, expect, it } from "vitest";
import { openApi, startEmpty } from "./support.ts";

interface Operation {
  readonly operationId: string;
  readonly security?: unknown;
  readonly parameters?: readonly { readonly name: string; readonly schema: unknown }[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Record<string, unknown>>>; readonly securitySchemes: unknown };
}

let document: Document;

beforeAll(async () => {
  await startEmpty();
  document = await (await (await openApi()).send("GET", "/openapi.json", { token: null })).json();
});

it("names every operation, its answers and whether it needs a token", () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { responses, security }]) => `${method} ${path} ${Object.keys(responses).join()} ${security !== undefined}`,
    ),
  );
  expect(operations.toSorted()).toEqual([
    "delete /v1/namespaces/{namespace}/workspaces/{name} 202,204,default true",
    "delete /v1/namespaces/{namespace}/workspaces/{name}/backups/{id} 202,default true",
    "get /healthz 200 false",
    "get /readyz 200,default false",
    "get /v1/controller 200,default true",
    "get /v1/drift 200,default true",
    "get /v1/events 200,default true",
    "get /v1/instances 200,default true",
    "get /v1/namespaces/{namespace}/workspaces 200,default true",
    "get /v1/namespaces/{namespace}/workspaces/{name} 200,default true",
    "get /v1/namespaces/{namespace}/workspaces/{name}/backups 200,default true",
    "get /v1/namespaces/{namespace}/workspaces/{name}/backups/{id} 200,default true",
    "get /v1/namespaces/{namespace}/workspaces/{name}/events 200,default true",
    "get /v1/workspaces 200,default true",
    "post /v1/instances/{doId}:adopt 201,default true",
    "post /v1/instances/{doId}:destroy 202,default true",
    "post /v1/instances/{doId}:protect 202,default true",
    "post /v1/namespaces/{namespace}/workspaces/{name}/backups 202,default true",
    "post /v1/namespaces/{namespace}/workspaces/{name}:reconcile 202,default true",
    "post /v1/namespaces/{namespace}/workspaces/{name}:wake 202,default true",
    "put /v1/controller 200,default true",
    "put /v1/namespaces/{namespace}/workspaces/{name} 200,201,default true",
  ]);
});

it("names every parameter", () => {
  const parameters = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((operation) => [operation.operationId, (operation.parameters ?? []).map(({ name }) => name).toSorted()]),
  );
  expect(Object.fromEntries(parameters)).toEqual({
    putWorkspace: ["If-Match", "If-None-Match", "name", "namespace"],
    getWorkspace: ["name", "namespace", "timeoutSeconds", "waitFor"],
    deleteWorkspace: ["If-Match", "allowMissing", "finalBackup", "name", "namespace"],
    listWorkspaces: ["labelSelector", "limit", "namespace", "pageToken"],
    listAllWorkspaces: ["labelSelector", "limit", "pageToken"],
    wakeWorkspace: ["If-Match", "name", "namespace"],
    reconcileWorkspace: ["If-Match", "name", "namespace"],
    listBackups: ["limit", "name", "namespace", "pageToken"],
    requestBackup: ["name", "namespace"],
    getBackup: ["id", "name", "namespace"],
    deleteBackup: ["id", "name", "namespace"],
    listWorkspaceEvents: ["limit", "name", "namespace", "pageToken"],
    listEvents: ["limit", "namespace", "pageToken"],
    getDrift: ["limit", "namespace", "pageToken", "type"],
    listInstances: ["claimed", "limit", "namespace", "pageToken"],
    destroyInstance: ["doId"],
    protectInstance: ["doId"],
    adoptInstance: ["doId"],
    getController: [],
    putController: ["If-Match"],
    healthz: [],
    readyz: [],
  });
});

it("has the strict schema of the spec that the handlers use, with its defaults", () => {
  expect(document.openapi).toBe("3.1.0");
  const { WorkspaceSpec, WorkspaceApply } = document.components.schemas;
  expect(WorkspaceSpec).toMatchObject({
    type: "object",
    additionalProperties: false,
    properties: {
      operatingMode: { enum: ["Running", "Suspended"], default: "Running" },
      directory: { type: "string", maxLength: 1024, default: "/workspace" },
      idle: { type: ["object", "null"], additionalProperties: false, properties: { timeoutSeconds: { type: "integer", minimum: 10 } } },
      maxLifetimeSeconds: { type: ["integer", "null"], minimum: 60 },
      expireTime: { type: ["string", "null"], format: "date-time", default: null },
      backup: {
        type: ["object", "null"],
        additionalProperties: false,
        properties: {
          everySeconds: { type: ["integer", "null"], minimum: 60, default: null },
          onSuspend: { enum: ["Require", "BestEffort", "Skip"], default: "BestEffort" },
          excludes: { type: "array", default: [] },
          retention: { type: "object", additionalProperties: false, properties: { keepLast: { type: "integer", minimum: 1, default: 5 } } },
        },
      },
      deletion: { additionalProperties: false, properties: { deadlineSeconds: { minimum: 10, maximum: 86_400, default: 600 } } },
      paused: { type: "boolean", default: false },
    },
  });
  expect(WorkspaceApply).toMatchObject({ additionalProperties: false, required: ["spec"] });
  const { ControllerSettings, InstanceAdopt, InstanceProtect, Empty } = document.components.schemas;
  expect(ControllerSettings).toMatchObject({
    additionalProperties: false,
    properties: { brakeReleasedUntilTime: { type: ["string", "null"], format: "date-time" }, laneWidth: { minimum: 1, maximum: 100 } },
  });
  expect(InstanceAdopt).toMatchObject({ additionalProperties: false, required: ["namespace", "name"] });
  expect(InstanceProtect).toMatchObject({ additionalProperties: false, properties: { protected: { type: "boolean", default: true } } });
  expect(Empty).toMatchObject({ type: "object", additionalProperties: false });
});

it("says which parameters are whole numbers and within what", () => {
  const parameters = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).flatMap((operation) => operation.parameters ?? []),
  );
  const schemaOf = (name: string) => parameters.find((parameter) => parameter.name === name)?.schema;
  expect(schemaOf("limit")).toMatchObject({ type: "integer", minimum: 1 });
  expect(schemaOf("timeoutSeconds")).toMatchObject({ type: "integer", minimum: 0, maximum: 25 });
});

it("refers only to what it defines", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? "");
  expect(references.length).toBeGreaterThan(0);
  expect(references.filter((name) => !(name in document.components.schemas))).toEqual([]);
});
