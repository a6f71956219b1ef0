/** Runs the import rules, and fails as well when they saw fewer modules than there are: a tool that sees nothing finds nothing. */
import { spawnSync } from "node:child_process";

/** Of the product alone. */
const MODULE_FLOOR = 55;

const { stdout, stderr, status } = spawnSync("depcruise", ["src", "dev", "--config", ".dependency-cruiser.cjs", "--output-type", "json"], {
  encoding: "utf8",
  maxBuffer: 256 * 1024 * 1024,
});
if (stdout === "") fail(stderr);
const { summary, modules } = JSON.parse(stdout) as {
  summary: { violations: { rule: { name: string }; from: string; to: string }[] };
  modules: { source: string }[];
};
for (const { rule, from, to } of summary.violations) console.error(`${rule.name}: ${from} → ${to}`);
if (summary.violations.length > 0 || status !== 0) fail(`${summary.violations.length} imports cross a boundary (.dependency-cruiser.cjs).`);
const cruised = modules.filter(({ source }) => source.startsWith("src/")).length;
if (cruised < MODULE_FLOOR) fail(`Only ${cruised} modules of src/ were cruised; at least ${MODULE_FLOOR} were expected.`);

const transactions = grep(String.raw`\.transaction(`, "src/store");
if (transactions !== "") fail(`D1 has no transactions; use batch:\n${transactions}`);

/** Empty where nothing matches. */
function grep(text: string, folder: string): string {
  const { stdout: found } = spawnSync("git", ["grep", "-n", "--untracked", "-F", text, "--", folder], { encoding: "utf8" });
  return found;
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
