import { mkdir, stat } from "node:fs/promises";
import { ArchiveError, createArchive } from "./archive.ts";
import type { Disk } from "./disk.ts";
import { OperationError } from "./errors.ts";
import { compileExclusions, namesWithout } from "./exclusions.ts";
import type { Sessions } from "./sessions.ts";

export interface ArchiveOptions {
  readonly gitignore?: boolean | undefined;
  readonly excludes?: readonly string[] | undefined;
  /** Accepted and without effect: archives on this machine are not compressed. */
  readonly compression?: object | undefined;
}

/** Where archives lie; no directory that may be backed up holds it, so no archive ever holds another. */
const ARCHIVE_DIRECTORY = "/var/backups";

const BACKUP_ROOTS = ["/workspace", "/home", "/tmp", "/var/tmp", "/app"];

/** The backup operations of local mode, with the arguments and answers of the SDK's own interface. */
export function backupOperations(sessions: Sessions, disk: Disk) {
  return {
    async createArchive(dir: string, archivePath: string, sessionId: string, options: ArchiveOptions = {}) {
      checkPaths(dir, archivePath);
      if (options.gitignore === true) {
        throw new OperationError("NOT_IMPLEMENTED", "gitignore is not implemented by the local sandbox server", { operation: "gitignore" });
      }
      const real = sessions.resolve(sessionId, dir);
      const found = await stat(real).catch(() => undefined);
      if (found?.isDirectory() !== true) throw failed(`Source directory does not exist: ${dir}`, { dir });
      await mkdir(disk.real(ARCHIVE_DIRECTORY), { recursive: true });
      try {
        const sizeBytes = await archive(real, sessions.resolve(sessionId, archivePath), options.excludes ?? []);
        return { success: true, sizeBytes, archivePath };
      } catch (error) {
        if (!(error instanceof ArchiveError || error instanceof RangeError)) throw error;
        throw failed(`mksquashfs failed: ${disk.visible(error.message)}`, { dir, archivePath, exitCode: 1 });
      }
    },
  };
}

async function archive(directory: string, archivePath: string, excludes: readonly string[]): Promise<number> {
  const names = excludes.length === 0 ? null : await namesWithout(directory, compileExclusions(excludes));
  return createArchive(directory, archivePath, names);
}

function checkPaths(dir: string, archivePath: string): void {
  if (!isSafe(dir, BACKUP_ROOTS)) throw invalid(`Directory not in allowed paths (${BACKUP_ROOTS.join(", ")}): ${dir}`, dir, archivePath);
  if (!isSafe(archivePath, [ARCHIVE_DIRECTORY])) {
    throw invalid("Invalid archivePath: must use designated backup directory", dir, archivePath);
  }
}

function isSafe(path: string, roots: readonly string[]): boolean {
  return typeof path === "string" && !/\.\.|\0/.test(path) && roots.some((root) => path === root || path.startsWith(`${root}/`));
}

function invalid(message: string, dir: string, archivePath: string): OperationError {
  return new OperationError("INVALID_BACKUP_CONFIG", message, { reason: message, dir, archivePath });
}

function failed(message: string, context: Readonly<Record<string, unknown>>): OperationError {
  return new OperationError("BACKUP_CREATE_FAILED", message, context);
}
