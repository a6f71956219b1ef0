/** What the server streams, without and with its framing. */
import { archiveEvents } from "./fake-backup.ts";
import type { Host, ServerRequest, ServerScript } from "./fake-host.ts";

/** What a command prints: one chunk at once, and one at its end. */
export const STREAMS: ReadonlySet<string> = new Set(["/api/execute/stream", "/api/read/stream", "/download"]);
const FIRST = "1";
const LAST = "2";

export function streamed({ path, body }: ServerRequest, host: Host): AsyncGenerator<string> {
  if (path !== "/api/read/stream") return chunks(host.script);
  host.requests.push(path);
  return archiveEvents(host.disk, String(body["path"]), host.script.diesInStream, () => host.end(137));
}

export async function* chunks(script: ServerScript): AsyncGenerator<string> {
  yield FIRST;
  await released(script);
  yield LAST;
}

/** Looked at rather than told: a test is no part of the object's requests. */
export async function released(script: ServerScript): Promise<void> {
  while (script.holdsCommands) await pauseOf(5);
}

export function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next();
      // A stream from another machine is never read in the same turn.
      await pauseOf(1);
      if (done === true) controller.close();
      else controller.enqueue(new TextEncoder().encode(`data: ${value}\n\n`));
    },
  });
}

export function pauseOf(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
