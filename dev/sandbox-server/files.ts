import { access, chmod, cp, lstat, mkdir, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileError, isDirectoryError, OperationError, validationError } from "./errors.ts";
import { now } from "./event-stream.ts";
import { readEncoded, readRaw } from "./file-reading.ts";
import { streamFile } from "./file-stream.ts";
import { type ListOptions, listDirectory } from "./list-directory.ts";
import type { Sessions } from "./sessions.ts";

export interface WriteOptions {
  readonly encoding?: string | undefined;
  readonly permissions?: string | undefined;
}

/** The file operations, with the arguments and answers of the SDK's own interface. */
export function fileOperations(sessions: Sessions) {
  const paths = new Paths(sessions);
  return { ...readingOperations(paths), ...writingOperations(paths), ...directoryOperations(paths) };
}

class Paths {
  readonly #sessions: Sessions;

  constructor(sessions: Sessions) {
    this.#sessions = sessions;
  }

  locate(path: string, sessionId: string): string {
    if (typeof path !== "string" || path === "" || path.includes("\0")) throw validationError("path", `Invalid path: '${path}'`);
    return this.#sessions.resolve(sessionId, path);
  }

  /** Runs system calls on a path and puts their failure into the SDK's terms. */
  async on<T>(operation: string, path: string, sessionId: string, act: (real: string) => Promise<T>): Promise<T> {
    try {
      return await act(this.locate(path, sessionId));
    } catch (error) {
      throw fileError(error, operation, path);
    }
  }
}

function readingOperations(paths: Paths) {
  return {
    readFile: (path: string, sessionId: string, options: { encoding?: string | undefined } = {}) =>
      paths.on<object>("file.read", path, sessionId, (real) =>
        options.encoding === "none" ? readRaw(path, real) : readEncoded(path, real, options.encoding),
      ),
    readFileStream: (path: string, sessionId: string) => paths.on("file.read", path, sessionId, (real) => streamFile(path, real)),
    exists: (path: string, sessionId: string) =>
      paths.on("file.stat", path, sessionId, async (real) => {
        const exists = await access(real).then(
          () => true,
          () => false,
        );
        return { success: true, path, exists, timestamp: now() };
      }),
  };
}

function writingOperations(paths: Paths) {
  return {
    writeFile: (path: string, content: string, sessionId: string, options: WriteOptions = {}) =>
      paths.on("file.write", path, sessionId, async (real) => {
        const bytes = decode(path, content, options.encoding);
        await write(real, bytes);
        if (options.permissions !== undefined) await chmod(real, Number.parseInt(options.permissions, 8));
        return { success: true, path, bytesWritten: bytes.byteLength, timestamp: now() };
      }),
    writeFileStream: (path: string, stream: ReadableStream<Uint8Array>, sessionId: string) =>
      paths.on("file.write", path, sessionId, async (real) => {
        await write(real, stream);
        return { success: true, path, bytesWritten: (await stat(real)).size, timestamp: now() };
      }),
    deleteFile: (path: string, sessionId: string) =>
      paths.on("file.delete", path, sessionId, async (real) => {
        if ((await lstat(real)).isDirectory()) throw isDirectoryError(path);
        await unlink(real);
        return { success: true, path, timestamp: now() };
      }),
    renameFile: (oldPath: string, newPath: string, sessionId: string) =>
      paths.on("file.rename", oldPath, sessionId, async (real) => {
        await moveTo(real, paths.locate(newPath, sessionId));
        return { success: true, path: oldPath, oldPath, newPath, timestamp: now() };
      }),
    moveFile: (sourcePath: string, destinationPath: string, sessionId: string) =>
      paths.on("file.move", sourcePath, sessionId, async (real) => {
        await moveTo(real, paths.locate(destinationPath, sessionId));
        return { success: true, path: sourcePath, newPath: destinationPath, timestamp: now() };
      }),
  };
}

function directoryOperations(paths: Paths) {
  return {
    async mkdir(path: string, sessionId: string, options: { recursive?: boolean | undefined } = {}) {
      const recursive = options.recursive ?? false;
      const real = paths.locate(path, sessionId);
      try {
        await mkdir(real, { recursive });
      } catch (error) {
        // The real server runs mkdir(1) and has one code for all that it may refuse.
        const { message, context } = fileError(error, "directory.create", path);
        throw new OperationError("FILESYSTEM_ERROR", message, context);
      }
      return { success: true, path, recursive, timestamp: now() };
    },
    listFiles: (path: string, sessionId: string, options: ListOptions = {}) =>
      paths.on("directory.list", path, sessionId, async (real) => {
        const files = await listDirectory(path, real, options);
        return { success: true, path, files, count: files.length, timestamp: now() };
      }),
  };
}

function decode(path: string, content: string, encoding: string | undefined): Buffer {
  if (typeof content !== "string") throw validationError("content", `No content for '${path}'`);
  if (encoding !== "base64") return Buffer.from(content, "utf8");
  if (!/^[A-Za-z0-9+/=]*$/.test(content)) throw validationError("content", `Invalid base64 content for '${path}'`);
  return Buffer.from(content, "base64");
}

async function write(real: string, content: Buffer | ReadableStream<Uint8Array>): Promise<void> {
  await mkdir(dirname(real), { recursive: true });
  await writeFile(real, content);
}

/** Moves as mv(1) does: into a directory that exists, and across filesystems. Only a missing source is "not found". */
async function moveTo(from: string, to: string): Promise<void> {
  await lstat(from);
  try {
    await moveExisting(from, to);
  } catch (error) {
    const { message, context } = fileError(error, "file.move", basename(to));
    throw new OperationError("FILESYSTEM_ERROR", message, context);
  }
}

async function moveExisting(from: string, to: string): Promise<void> {
  const target = (await stat(to).catch(() => undefined))?.isDirectory() ? join(to, basename(from)) : to;
  try {
    await rename(from, target);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EXDEV")) throw error;
    await cp(from, target, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    await rm(from, { recursive: true });
  }
}
