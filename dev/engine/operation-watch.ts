import type { Container } from "./container.ts";
import type { Lifecycle } from "./lifecycle.ts";

const MAX_REQUEST_LINE = 8192;

/** Reads along on one connection to a container, for the fault that kills it when a given request arrives. */
export class OperationWatch {
  exitCode = 0;
  #pending = "";
  readonly #lifecycle: Lifecycle;
  readonly #container: Container;

  constructor(lifecycle: Lifecycle, container: Container) {
    this.#lifecycle = lifecycle;
    this.#container = container;
  }

  /**
   * True when this chunk brings the request that kills. A request begins at the begin of a chunk: workerd opens a
   * connection for each, and a client that keeps one alive waits for an answer before it writes the next.
   */
  isFatal(chunk: Buffer): boolean {
    const rule = this.#lifecycle.deaths.requestRule(this.#container);
    if (rule === undefined) return false;
    const text = this.#pending + chunk.subarray(0, MAX_REQUEST_LINE).toString("latin1");
    const lineEnd = text.indexOf("\r\n");
    this.#pending = lineEnd === -1 && /^[A-Z]+ ?\S*$/.test(text) && text.length < MAX_REQUEST_LINE ? text : "";
    const path = /^[A-Z]+ (\S+) HTTP\/1\.[01]$/.exec(lineEnd === -1 ? "" : text.slice(0, lineEnd))?.[1];
    if (path === undefined || !path.startsWith(rule.path)) return false;
    this.exitCode = rule.exitCode;
    return true;
  }
}
