/** What the sandbox image's server answers about backups and files. */
import type { FakeDisk } from "./fake-disk.ts";

export type Body = Readonly<Record<string, unknown>>;

/** When the stream of an archive dies with its container; null: it does not. */
export type StreamDeath = "Middle" | "End" | null;

export function createArchive(disk: FakeDisk, { dir, archivePath, excludes }: Body): object {
  const archive = disk.pack(String(dir), excludes as readonly string[] | undefined);
  disk.write(String(archivePath), archive);
  return { success: true, sizeBytes: archive.length, archivePath };
}

/** Its events as the server writes them, without their framing. */
export async function* archiveEvents(disk: FakeDisk, path: string, death: StreamDeath, die: () => void): AsyncGenerator<string> {
  const archive = disk.read(path);
  const half = Math.floor(archive.length / 2);
  const chunk = (bytes: Uint8Array) => JSON.stringify({ type: "chunk", data: btoa(String.fromCharCode(...bytes)) });
  yield JSON.stringify({
    type: "metadata",
    mimeType: "application/octet-stream",
    size: archive.length,
    isBinary: true,
    encoding: "base64",
  });
  yield chunk(archive.subarray(0, half));
  if (death === "Middle") {
    die();
    throw new Error("Network connection lost.");
  }
  yield chunk(archive.subarray(half));
  yield JSON.stringify({ type: "complete", bytesRead: archive.length });
  if (death === "End") die();
}

export async function collect(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
