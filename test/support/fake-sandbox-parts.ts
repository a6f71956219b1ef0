import type { OperationFailure } from "../../src/sandbox/protocol.ts";
import type { WorldClock } from "./fake-fleet.ts";

export function failureOf(message: string, retryAfterMs: number | null = null): OperationFailure {
  return { messages: [message], code: null, exitCode: null, retryAfterMs };
}

/** Null where the work is not done in time. */
export async function within<T>(clock: WorldClock, ms: number, work: Promise<T>): Promise<T | null> {
  const ended = new AbortController();
  const timeout = clock.sleep(ms, ended.signal).then(() => null);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    ended.abort();
  }
}
