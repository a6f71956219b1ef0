import { spawn } from "node:child_process";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { text } from "node:stream/consumers";

/** Why an archive could not be made or unpacked, in the words of the program that could not. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** A block of tar's, so that what follows stays aligned. */
const HEADER_BYTES = 512;
const MAGIC = "mooring archive";

/** GNU tar: some files changed while they were read, which a workspace in use cannot help. */
const SOME_FILES_CHANGED = 1;

/**
 * Archives a directory, and returns the archive's size in bytes. `names` are what it holds, relative to it and each with a NUL behind;
 * without them it is everything.
 *
 * The archive is an uncompressed tar behind a header that says how long it is: squashfs wants tools that a developer's machine may lack,
 * and a tar that ends early between two files is no error to tar. As in squashfs, times have whole seconds.
 */
export async function createArchive(directory: string, archive: string, names: Buffer | null): Promise<number> {
  const file = await open(archive, "w");
  try {
    await file.write(header(0));
    const what = names === null ? ["."] : ["--no-recursion", "--null", "--verbatim-files-from", "--files-from=-"];
    const parameters = ["--create", "--file=-", "--format=gnu", "--numeric-owner", "--ignore-failed-read", `--directory=${directory}`];
    const { exitCode, stderr } = await tar([...parameters, ...what], { names, output: file });
    if (exitCode > SOME_FILES_CHANGED) throw new ArchiveError(stderr);
    const { size } = await file.stat();
    await file.write(header(size), 0, HEADER_BYTES, 0);
    return size;
  } catch (error) {
    await rm(archive, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Unpacks an archive into a directory, which is made where it is missing. What is there already under the same name is replaced. */
export async function unpackArchive(archive: string, directory: string): Promise<void> {
  const file = await open(archive);
  try {
    await checkHeader(file);
    await mkdir(directory, { recursive: true });
    const parameters = ["--extract", "--file=-", "--preserve-permissions", "--numeric-owner", `--directory=${directory}`];
    const { exitCode, stderr } = await tar(parameters, { archive: file });
    if (exitCode !== 0) throw new ArchiveError(stderr);
  } finally {
    await file.close();
  }
}

function header(size: number): Buffer {
  const block = Buffer.alloc(HEADER_BYTES);
  block.write(`${MAGIC} ${size}\n`);
  return block;
}

/** Leaves the file's position behind the header, where tar goes on. */
async function checkHeader(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES);
  if (!buffer.equals(header(size))) throw new ArchiveError("Can't find a valid SQUASHFS superblock");
}

interface TarFiles {
  /** Read from its position. */
  readonly archive?: FileHandle;
  /** Written from its position. */
  readonly output?: FileHandle;
  /** For its standard input. */
  readonly names?: Buffer | null;
}

/** tar reads and writes the files themselves: the bytes of an archive never pass through this process. */
async function tar(parameters: readonly string[], { archive, output, names }: TarFiles): Promise<{ exitCode: number; stderr: string }> {
  const stdio = [archive?.fd ?? (names ? "pipe" : "ignore"), output?.fd ?? "ignore", "pipe"] as const;
  const child = spawn("tar", parameters, { stdio: [...stdio], env: { ...process.env, LC_ALL: "C" } });
  const exited = new Promise<number>((resolve, reject) => {
    child.once("error", reject).once("exit", (code) => resolve(code ?? SOME_FILES_CHANGED + 1));
  });
  // A tar that ends early leaves the names unread; its exit code says why.
  child.stdin?.on("error", () => {}).end(names ?? "");
  const [exitCode, stderr] = await Promise.all([exited, child.stderr === null ? "" : text(child.stderr)]);
  return { exitCode, stderr: stderr.trim() };
}
