import { mkdirSync, realpathSync } from "node:fs";
import { posix } from "node:path";
import type { Settings } from "./settings.ts";

/** The directories that belong to one container alone. */
const PRIVATE_DIRECTORIES = ["/workspace", "/tmp", "/home", "/root", "/app", "/var/tmp", "/var/backups"];

/** Where the container's paths are, as this process and the commands it starts see them. */
export interface Disk {
  /** A directory for this server's own files. */
  readonly scratch: string;
  /** The path to open for an absolute path the caller named. */
  real(path: string): string;
  /** A command as it must read to find the container's files. */
  command(text: string): string;
  /** A path or an output as the caller would have seen it in a real container. */
  visible(text: string): string;
}

/** The disk for the isolation in force. */
export function openDisk(settings: Settings): Disk {
  return settings.isolation === "namespace" ? namespaceDisk() : mappedDisk(settings.root);
}

function namespaceDisk(): Disk {
  return { scratch: "/.mooring/run", real: (path) => posix.normalize(path), command: same, visible: same };
}

function same(text: string): string {
  return text;
}

/**
 * The fallback: a literal private path in a command is replaced by the real one, and back in its output. A path that a
 * program builds by itself, or a link to an absolute path, still escapes to the host's directory of that name.
 */
function mappedDisk(directory: string): Disk {
  for (const name of PRIVATE_DIRECTORIES) mkdirSync(directory + name, { recursive: true });
  const root = realpathSync(directory);
  const scratch = `${root}/run`;
  mkdirSync(scratch, { recursive: true });
  const names = PRIVATE_DIRECTORIES.join("|");
  const inCommand = new RegExp(`(?<![\\w./-])(${names})(?![\\w.-])`, "g");
  const inOutput = new RegExp(`${escapePattern(root)}(?=(?:${names})(?![\\w.-]))`, "g");
  return {
    scratch,
    real: (path) => {
      const normal = posix.normalize(path);
      return PRIVATE_DIRECTORIES.some((name) => normal === name || normal.startsWith(`${name}/`)) ? root + normal : normal;
    },
    command: (text) => text.replace(inCommand, (name) => root + name),
    visible: (text) => text.replace(inOutput, ""),
  };
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
