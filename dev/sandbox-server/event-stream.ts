/** Sends one event; false when nobody listens any more. */
export type Emit = (event: Readonly<Record<string, unknown>>) => boolean;

export interface EventSource {
  readonly emit: Emit;
  readonly close: () => void;
  /** Aborted when the reader goes away. */
  readonly signal: AbortSignal;
}

/** A stream of server-sent events, as the SDK reads them on every transport. Each chunk is one event. */
export function eventStream(produce: (source: EventSource) => void | Promise<void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const gone = new AbortController();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let open = true;
      gone.signal.addEventListener("abort", () => (open = false));
      const emit: Emit = (event) => {
        if (open) controller.enqueue(encodeEvent(encoder, event));
        return open;
      };
      const close = (): void => {
        if (open) controller.close();
        open = false;
      };
      // Not awaited: a pull must find what was produced so far, not wait for the last event.
      void Promise.resolve(produce({ emit, close, signal: gone.signal })).catch((error: unknown) => {
        emit(failure(error));
        close();
      });
    },
    cancel() {
      gone.abort();
    },
  });
}

/** As `eventStream`, for events that are made only when somebody is ready for them: what they come from may be larger than memory. */
export function eventsOnDemand(events: AsyncGenerator<Readonly<Record<string, unknown>>, void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await events.next();
        if (done === true) controller.close();
        else controller.enqueue(encodeEvent(encoder, value));
      } catch (error) {
        controller.enqueue(encodeEvent(encoder, failure(error)));
        controller.close();
      }
    },
    async cancel() {
      await events.return();
    },
  });
}

function encodeEvent(encoder: TextEncoder, event: Readonly<Record<string, unknown>>): Uint8Array {
  return encoder.encode(`data: ${JSON.stringify(event)}\n\n`);
}

function failure(error: unknown): Readonly<Record<string, unknown>> {
  return { type: "error", error: error instanceof Error ? error.message : String(error), timestamp: now() };
}

/** The data of the event that a chunk of such a stream is. */
export function eventData(chunk: Uint8Array): string {
  return new TextDecoder().decode(chunk).slice("data: ".length, -"\n\n".length);
}

/** The present instant, as the protocol writes it. */
export function now(): string {
  return new Date().toISOString();
}
