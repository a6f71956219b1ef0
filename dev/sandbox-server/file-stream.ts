import { type FileHandle, open, stat } from "node:fs/promises";
import { isDirectoryError } from "./errors.ts";
import { eventsOnDemand } from "./event-stream.ts";
import { mediaType } from "./media-type.ts";

/** A multiple of three, so that the base64 of the chunks is the base64 of the file. */
const CHUNK_BYTES = 48 * 1024;

/** A file as events: `metadata`, `chunk`s (base64 when it is binary), `complete`. Fails before the first if it cannot be read. */
export async function streamFile(path: string, real: string): Promise<ReadableStream<Uint8Array>> {
  const found = await stat(real);
  if (found.isDirectory()) throw isDirectoryError(path);
  return eventsOnDemand(fileEvents(real, found.size, await open(real)));
}

async function* fileEvents(real: string, size: number, file: FileHandle) {
  try {
    let chunk = await readChunk(file, 0);
    const { mimeType, isBinary } = mediaType(real, chunk);
    const text = new TextDecoder();
    yield { type: "metadata", mimeType, size, isBinary, encoding: isBinary ? "base64" : "utf-8" };
    let bytesRead = 0;
    while (chunk.length > 0) {
      bytesRead += chunk.length;
      yield { type: "chunk", data: isBinary ? chunk.toString("base64") : text.decode(chunk, { stream: true }) };
      chunk = await readChunk(file, bytesRead);
    }
    yield { type: "complete", bytesRead };
  } finally {
    await file.close();
  }
}

async function readChunk(file: FileHandle, position: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
  return buffer.subarray(0, bytesRead);
}
