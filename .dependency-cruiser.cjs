/**
 * Who may import whom, as allow-lists: a module that is new or moved has no rights until a line here gives them.
 * `npm run check:boundaries` also fails when fewer modules than expected were cruised, since a tool that sees nothing finds nothing.
 */
const only = (name, from, allowed) => ({
  name,
  severity: "error",
  from: { path: from },
  to: { pathNot: allowed },
});

const CORE = "^src/controller/(backoff|compare|conclude|conditions|failure|observation|plan|resync|spec-hash)\\.ts$";

const SHELL = "^src/controller/(dispatch|passes|reconcile|round|sweep|sweep-deps)\\.ts$";

/** The modules that have a rule below. */
const KNOWN = [
  "^src/(index|workspace|spec|config|log)\\.ts$",
  CORE,
  SHELL,
  "^src/controller/(fleet|sandbox-fleet)\\.ts$",
  "^src/(store|api|sandbox)/",
];

module.exports = {
  forbidden: [
    { name: "no-rights-yet", severity: "error", from: { path: "^src/", pathNot: KNOWN }, to: {} },
    only("entry", "^src/index\\.ts$", [
      "^src/(config|log)\\.ts$",
      "^src/api/(app|problem)\\.ts$",
      "^src/controller/(sandbox-fleet|sweep)\\.ts$",
      "^src/sandbox/(not-running|workspace-sandbox)\\.ts$",
      "^src/store/db\\.ts$",
      "^node_modules/@cloudflare/sandbox/",
    ]),
    only("workspace-imports-nothing", "^src/workspace\\.ts$", ["^$"]),
    only("spec", "^src/spec\\.ts$", ["^src/workspace\\.ts$", "^node_modules/zod/"]),
    only("config", "^src/config\\.ts$", ["^node_modules/zod/"]),
    only("log", "^src/log\\.ts$", ["^$"]),
    only("core-is-pure", CORE, ["^src/workspace\\.ts$", CORE, "^src/sandbox/protocol\\.ts$", "^src/store/due\\.ts$", "^(node:)?crypto$"]),
    only("controller-shell", SHELL, [
      "^src/(workspace|config|log)\\.ts$",
      "^src/controller/(?!sandbox-fleet)",
      "^src/store/(db|due|lease|progress)\\.ts$",
    ]),
    only("fleet-port", "^src/controller/fleet\\.ts$", ["^src/workspace\\.ts$", "^src/sandbox/protocol\\.ts$"]),
    only("sandbox-fleet", "^src/controller/sandbox-fleet\\.ts$", [
      "^src/workspace\\.ts$",
      "^src/sandbox/protocol\\.ts$",
      "^src/controller/(failure|fleet|observation)\\.ts$",
    ]),
    only("store", "^src/store/", ["^src/(workspace|spec)\\.ts$", "^src/store/", "^node_modules/(drizzle-orm|zod)/"]),
    only("api", "^src/api/", [
      "^src/(workspace|spec|config|log)\\.ts$",
      "^src/api/",
      "^src/store/(db|intent|reading)\\.ts$",
      "^node_modules/(hono|zod|@hono/zod-openapi)/",
    ]),
    only("sandbox", "^src/sandbox/", [
      "^src/(workspace|log)\\.ts$",
      "^src/sandbox/",
      "^node_modules/@cloudflare/(sandbox|containers)/",
      "^(node:)?async_hooks$",
      "^cloudflare:",
    ]),
    { name: "nobody-imports-the-entry", severity: "error", from: { pathNot: "^(dev/worker|test)/" }, to: { path: "^src/index\\.ts$" } },
    { name: "product-never-imports-dev-or-test", severity: "error", from: { path: "^src/" }, to: { path: "^(dev|test)/" } },
    { name: "no-cycles", severity: "error", from: { path: "^(src|dev)/" }, to: { circular: true, viaOnly: { pathNot: "^$" } } },
    { name: "resolvable", severity: "error", from: { path: "^(src|dev)/" }, to: { couldNotResolve: true, pathNot: "^cloudflare:" } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "worker-configuration" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["workerd", "import", "types", "default"],
      extensions: [".ts", ".js", ".d.ts"],
    },
  },
};
