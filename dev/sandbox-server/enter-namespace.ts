import { fileURLToPath } from "node:url";

/**
 * Replaces this process by the same program inside a mount namespace in which /workspace and its like are the
 * container's own. Does not return, unless this Node cannot replace its process (before 22.15) or this is not Linux;
 * where the kernel refuses, the script starts the program again with MOORING_ISOLATION=paths.
 *
 * Replacing, rather than spawning a child, keeps the process id: signals and the end of stdin reach the server itself.
 */
export function enterNamespace(): void {
  const root = process.env["MOORING_CONTAINER_ROOT"];
  if (process.platform !== "linux" || process.execve === undefined || root === undefined) return;
  // Node warns that execve is experimental; in a container's log that would be noise at every start.
  process.removeAllListeners("warning");
  const script = fileURLToPath(new URL("./namespace.sh", import.meta.url));
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  process.execve("/bin/sh", ["sh", script, process.execPath, main], definedEnvironment());
}

function definedEnvironment(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
