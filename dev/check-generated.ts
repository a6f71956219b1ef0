/** Fails where a generated file is not what its source gives today: migrations from the schema, types from the configuration. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

checkMigrations();
run(
  "wrangler",
  ["types", "--include-runtime=false", "--check", "worker-configuration.d.ts"],
  "worker-configuration.d.ts is out of date: npm run generate",
);

/** Generates into a copy: what is committed stays as it is. */
function checkMigrations(): void {
  const copy = mkdtempSync(join(tmpdir(), "mooring-migrations-"));
  try {
    cpSync("migrations", copy, { recursive: true });
    const before = readdirSync(copy).length;
    run("drizzle-kit", ["generate", "--dialect", "sqlite", "--schema", "src/store/schema.ts", "--out", copy], "drizzle-kit failed");
    if (readdirSync(copy).length !== before) fail("The schema has no migration for its last change: npm run generate");
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function run(command: string, parameters: readonly string[], complaint: string): void {
  const { status, stdout, stderr } = spawnSync(command, parameters, { encoding: "utf8" });
  if (status !== 0) fail(`${stdout}${stderr}\n${complaint}`);
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
