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

const CORE =
  "^src/controller/(attribution|backoff|backup-due|backup-ending|backup-orphans|backup-report|compare|conclude|conclude-missing|conditions|drift|drift-backups|drift-item|event|failure|failure-signatures|farewell|observation|orphans|outcome|plan|restore|resync|retention|spec-hash|wish)\\.ts$";

const SHELL =
  "^src/controller/(cause|collect|collect-backups|dispatch|ledger-inventory|passes|reconcile|round|sweep|sweep-deps|sweeps|take-backup)\\.ts$";

/** The modules that have a rule below. */
const KNOWN = [
  "^src/(index|workspace|workspace-record|unclaimed|backup|backup-objects|spec|config|log|failure-evidence)\\.ts$",
  CORE,
  SHELL,
  "^src/controller/(fleet|sandbox-fleet|inventory|instance-list|platform-pages|backup-bucket|r2-bucket)\\.ts$",
  "^src/(store|api|sandbox)/",
];

module.exports = {
  forbidden: [
    { name: "no-rights-yet", severity: "error", from: { path: "^src/", pathNot: KNOWN }, to: {} },
    only("entry", "^src/index\\.ts$", [
      "^src/(config|log)\\.ts$",
      "^src/api/(app|problem)\\.ts$",
      "^src/controller/(instance-list|r2-bucket|sandbox-fleet|sweep)\\.ts$",
      "^src/sandbox/(no-wake-sandbox|not-running|workspace-sandbox)\\.ts$",
      "^src/store/(controller-store|db)\\.ts$",
      "^node_modules/@cloudflare/sandbox/",
    ]),
    only("workspace-imports-nothing", "^src/workspace\\.ts$", ["^$"]),
    only("vocabulary", "^src/(workspace-record|unclaimed|backup)\\.ts$", ["^src/(workspace|backup)\\.ts$"]),
    only("spec", "^src/spec\\.ts$", ["^src/workspace\\.ts$", "^node_modules/zod/"]),
    only("config", "^src/config\\.ts$", ["^src/unclaimed\\.ts$", "^node_modules/zod/"]),
    only("backup-objects", "^src/backup-objects\\.ts$", ["^$"]),
    only("log", "^src/log\\.ts$", ["^$"]),
    only("failure-evidence", "^src/failure-evidence\\.ts$", ["^$"]),
    only("core-is-pure", CORE, [
      "^src/(workspace|workspace-record|unclaimed|backup|failure-evidence)\\.ts$",
      CORE,
      "^src/controller/(fleet|inventory|backup-bucket)\\.ts$",
      "^src/sandbox/protocol\\.ts$",
      "^src/store/(due|unclaimed|backup-sweep)\\.ts$",
      "^(node:)?crypto$",
    ]),
    only("controller-shell", SHELL, [
      "^src/(workspace|workspace-record|unclaimed|backup|config|log)\\.ts$",
      "^src/controller/(?!sandbox-fleet|instance-list|platform-pages|r2-bucket)",
      "^src/store/(controller-store|due|lease|quota|unclaimed)\\.ts$",
    ]),
    only("fleet-port", "^src/controller/fleet\\.ts$", ["^src/(workspace|backup)\\.ts$", "^src/sandbox/protocol\\.ts$"]),
    only("sandbox-fleet", "^src/controller/sandbox-fleet\\.ts$", [
      "^src/(workspace|backup|failure-evidence)\\.ts$",
      "^src/sandbox/protocol\\.ts$",
      "^src/controller/(backup-report|failure|fleet|observation)\\.ts$",
    ]),
    only("bucket", "^src/controller/(backup-bucket|r2-bucket)\\.ts$", [
      "^src/(workspace|backup-objects)\\.ts$",
      "^src/controller/backup-bucket\\.ts$",
    ]),
    only("inventory-port", "^src/controller/inventory\\.ts$", ["^src/workspace\\.ts$"]),
    only("instance-list", "^src/controller/(instance-list|platform-pages)\\.ts$", [
      "^src/workspace\\.ts$",
      "^src/controller/(inventory|platform-pages)\\.ts$",
      "^node_modules/(cloudflare|zod)/",
    ]),
    only("store", "^src/store/", [
      "^src/(workspace|workspace-record|unclaimed|backup|spec)\\.ts$",
      "^src/store/",
      "^node_modules/(drizzle-orm|zod)/",
    ]),
    only("api", "^src/api/", [
      "^src/(workspace|workspace-record|unclaimed|backup|spec|config|log)\\.ts$",
      "^src/api/",
      // What the report says and what the loop does come from the same functions.
      CORE,
      "^src/store/(adoption|db|.*intent|.*reading|due|quota|events|controller-settings|inventory-record|unclaimed)\\.ts$",
      "^node_modules/(hono|zod|@hono/zod-openapi)/",
    ]),
    only("sandbox", "^src/sandbox/", [
      "^src/(workspace|backup-objects|log|failure-evidence)\\.ts$",
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
