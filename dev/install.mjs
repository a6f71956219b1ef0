/**
 * Runs before `npm start` and `npm test`, on whatever Node the machine has: installs from the lockfile unless what is installed is
 * what the lockfile says. Node built-ins only, since nothing else is there yet.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

if (!isInstalled()) {
  console.log("Installing the dependencies from package-lock.json …");
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  process.exit(status ?? 1);
}

/** npm keeps a copy of the lockfile, of what it really installed; a package for another platform is not in it. */
function isInstalled() {
  const wanted = readPackages("package-lock.json");
  const installed = readPackages("node_modules/.package-lock.json");
  return (
    installed !== null &&
    Object.entries(wanted ?? {}).every(
      ([path, { version, optional, os, cpu }]) =>
        path === "" || installed[path]?.version === version || (installed[path] === undefined && (optional || os || cpu)),
    )
  );
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(`${root}/${file}`, "utf8")).packages;
  } catch {
    return null;
  }
}
