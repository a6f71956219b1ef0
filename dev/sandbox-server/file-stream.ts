import { open, stat } from "node:fs/promises";
import { isDirectoryError } from "./errors.ts";
import { type EventSource, eventStream } from "./event-stream.ts";
import { mediaType } from "./media-type.ts";

/** A multiple of three, so that the base64 of the chunks is the base64 of the file. */
const CHUNK_BYTES = 48 * 1024;

/** A file as events: `metadata`, `chunk`s (base64 when it is binary), `complete`. Fails before the first if it cannot be read. */
export async function streamFile(path: string, real: string): Promise<ReadableStream<Uint8Array>> {
  const found = await stat(real);
  if (found.isDirectory()) throw isDirectoryError(path);
  const file = await open(real);
  return eventStream(async (source) => {
    try {
      await sendFile(real, found.size, (position) => readChunk(file, position), source);
    } finally {
      await file.close();
    }
    source.close();
  });
}

async function sendFile(
  real: string,
  size: number,
  read: (position: number) => Promise<Buffer>,
  { emit, signal }: EventSource,
): Promise<void> {
  let chunk = await read(0);
  const { mimeType, isBinary } = mediaType(real, chunk);
  const text = new TextDecoder();
  emit({ type: "metadata", mimeType, size, isBinary, encoding: isBinary ? "base64" : "utf-8" });
  let bytesRead = 0;
  while (chunk.length > 0 && !signal.aborted) {
    bytesRead += chunk.length;
    emit({ type: "chunk", data: isBinary ? chunk.toString("base64") : text.decode(chunk, { stream: true }) });
    chunk = await read(bytesRead);
  }
  emit({ type: "complete", bytesRead });
}

async function readChunk(file: Awaited<ReturnType<typeof open>>, position: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
  return buffer.subarray(0, bytesRead);
}
