import { lstat, readdir } from "node:fs/promises";
import type { Stats } from "node:fs";
import { posix } from "node:path";

export interface ListOptions {
  readonly recursive?: boolean | undefined;
  readonly includeHidden?: boolean | undefined;
}

/** What a directory holds, each entry under the path the caller used. */
export async function listDirectory(path: string, real: string, options: ListOptions) {
  const base = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
  return (await namesIn(real, "", options)).map(({ relativePath, found }) => ({
    name: posix.basename(relativePath),
    absolutePath: posix.join(base, relativePath),
    relativePath,
    type: typeOf(found),
    size: found.size,
    modifiedAt: found.mtime.toISOString(),
    mode: modeText(found.mode),
    permissions: { readable: (found.mode & 0o400) > 0, writable: (found.mode & 0o200) > 0, executable: (found.mode & 0o100) > 0 },
  }));
}

interface Entry {
  readonly relativePath: string;
  readonly found: Stats;
}

async function namesIn(root: string, below: string, options: ListOptions): Promise<readonly Entry[]> {
  const names = (await readdir(posix.join(root, below))).toSorted();
  const entries: Entry[] = [];
  for (const name of names) {
    const relativePath = posix.join(below, name);
    const found = await lstat(posix.join(root, relativePath)).catch(() => undefined);
    if (found === undefined) continue;
    // Like the real server's find(1): a hidden directory is left out, what is not hidden below it is not.
    if (options.includeHidden === true || !name.startsWith(".")) entries.push({ relativePath, found });
    if (options.recursive === true && found.isDirectory()) entries.push(...(await namesIn(root, relativePath, options)));
  }
  return entries;
}

function typeOf(found: Stats): "file" | "directory" | "symlink" | "other" {
  if (found.isFile()) return "file";
  if (found.isDirectory()) return "directory";
  return found.isSymbolicLink() ? "symlink" : "other";
}

function modeText(mode: number): string {
  return Array.from((mode & 0o777).toString(2).padStart(9, "0"), (bit, index) => (bit === "1" ? "rwx".charAt(index % 3) : "-")).join("");
}
