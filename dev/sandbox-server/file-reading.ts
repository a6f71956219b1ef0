import { createReadStream } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { isDirectoryError, OperationError } from "./errors.ts";
import { now } from "./event-stream.ts";
import { mediaType } from "./media-type.ts";

/** What fits into one response, as in the real server. */
const MAX_ENCODED_BYTES = 32 * 1024 * 1024;

/** Enough of a file to tell text from binary. */
const BEGINNING_BYTES = 8_192;

/** A whole file in one answer: as text, or as base64 when that is wanted or the file is no text. */
export async function readEncoded(path: string, real: string, encoding: string | undefined) {
  const { size } = await statFile(path, real);
  if (size > MAX_ENCODED_BYTES) {
    const context = { path, operation: "file.read", maxSize: MAX_ENCODED_BYTES, actualSize: size };
    throw new OperationError(
      "FILE_TOO_LARGE",
      `File too large: ${path} has ${size} bytes, at most ${MAX_ENCODED_BYTES} are returned`,
      context,
    );
  }
  const bytes = await readFile(real);
  const { mimeType, isBinary } = mediaType(real, bytes.subarray(0, BEGINNING_BYTES));
  const chosen = encoding === "base64" || (encoding === undefined && isBinary) ? "base64" : "utf-8";
  const content = bytes.toString(chosen === "base64" ? "base64" : "utf8");
  return {
    success: true,
    path,
    content,
    encoding: chosen,
    isBinary: chosen === "base64",
    mimeType,
    size: bytes.byteLength,
    timestamp: now(),
  };
}

/** A file as the bytes it is, for a transport that can carry them. */
export async function readRaw(path: string, real: string) {
  const { size } = await statFile(path, real);
  const content = Readable.toWeb(createReadStream(real));
  const beginning = await readBeginning(real, Math.min(size, BEGINNING_BYTES));
  return { success: true, path, content, size, mimeType: mediaType(real, beginning).mimeType, timestamp: now() };
}

async function readBeginning(real: string, length: number): Promise<Buffer> {
  const file = await open(real);
  try {
    return (await file.read(Buffer.alloc(length), 0, length, 0)).buffer;
  } finally {
    await file.close();
  }
}

async function statFile(path: string, real: string) {
  const found = await stat(real);
  if (found.isDirectory()) throw isDirectoryError(path);
  return found;
}
