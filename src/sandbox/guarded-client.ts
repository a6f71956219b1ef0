/**
 * The SDK's client of the container, refusing each call that the start gate refuses (invariants 2 and 7).
 *
 * The websocket and rpc transports keep a connection open, on which a call no longer passes `fetch` or `containerFetch`. Here every call
 * of every transport passes, and fails with the same error before anything is connected or started.
 */
import type { RefusalCode } from "./not-running.ts";
import { StartRefusedError } from "./refusal.ts";

/** What stands for calls to the container; the rest of the client (disconnect, settings) stays usable. */
const CALLS: ReadonlySet<string | symbol> = new Set([
  "backup",
  "commands",
  "files",
  "git",
  "interpreter",
  "ports",
  "processes",
  "tunnels",
  "utils",
  "watch",
]);

export function guardClient<Client extends object>(client: Client, refusal: () => RefusalCode | null): Client {
  return new Proxy(client, {
    get(target, property) {
      // Reading one of these already connects.
      const isCall = CALLS.has(property);
      const code = isCall ? refusal() : null;
      if (code !== null) throw new StartRefusedError(code);
      const value: unknown = Reflect.get(target, property, target);
      return !isCall && typeof value === "function" ? value.bind(target) : value;
    },
  });
}
