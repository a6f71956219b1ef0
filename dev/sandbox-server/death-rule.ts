/** The engine's fault that ends this container when it is asked for a given operation, whatever the transport. */
import type { Readable } from "node:stream";

/** As the engine writes it to this process's standard input, one JSON object a line. */
export interface DeathRule {
  /** Group and name, as in the SDK's interface. */
  readonly operation: string;
  /**
   * Before it begins; when it is done and not answered; when so much of the stream that answers it has been passed on; or when its last
   * event has arrived.
   */
  readonly moment: "Before" | "After" | { readonly sentBytes: number } | "Sent";
  /** Only commands with this text in them. */
  readonly command: string | null;
  /** At the how manieth such call. */
  readonly occurrence: number;
}

type Operation = (...args: never[]) => Promise<unknown>;
type Groups = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** Follows what the engine says, and wraps operations so that the rule in force ends this process. */
export class DeathWatch {
  #rule: DeathRule | null = null;
  #calls = 0;

  follow(input: Readable): void {
    let text = "";
    input.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        this.#rule = (JSON.parse(line) as { readonly dieAtOperation: DeathRule | null }).dieAtOperation;
        this.#calls = 0;
      }
    });
  }

  over<T extends Groups>(groups: T): T {
    const watched = Object.entries(groups).map(([group, operations]) => [
      group,
      Object.fromEntries(Object.entries(operations).map(([name, operation]) => [name, this.#watch(`${group}.${name}`, operation)])),
    ]);
    return Object.fromEntries(watched) as T;
  }

  #watch(name: string, operation: Operation): Operation {
    return async (...args) => {
      const moment = this.#momentOf(name, args[0]);
      if (moment === "Before") die();
      const result = await operation(...args);
      if (moment === "After") die();
      if (moment === undefined || !(result instanceof ReadableStream)) return result;
      return result.pipeThrough(moment === "Sent" ? dieAtEnd() : dieAfter(moment.sentBytes));
    };
  }

  #momentOf(name: string, subject: unknown): DeathRule["moment"] | undefined {
    const rule = this.#rule;
    if (rule?.operation !== name) return undefined;
    if (rule.command !== null && !(typeof subject === "string" && subject.includes(rule.command))) return undefined;
    this.#calls += 1;
    return this.#calls === rule.occurrence ? rule.moment : undefined;
  }
}

function dieAfter(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let sent = 0;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      sent += chunk.length;
      if (sent >= bytes) die();
    },
  });
}

/** So long the end of a stream takes to reach whoever reads it. */
const ARRIVAL_MS = 20;

/** The stream never ends, as far as its reader can tell. */
function dieAtEnd(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({ flush: () => new Promise(() => setTimeout(die, ARRIVAL_MS)) });
}

/** As when the kernel ends it for want of memory. */
function die(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("This process has killed itself.");
}
