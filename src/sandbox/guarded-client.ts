/**
 * The SDK's client of the container, refusing each call that the start gate refuses and counting the others (invariants 2, 6 and 7).
 *
 * The websocket and rpc transports keep a connection open, on which a call no longer passes `fetch` or `containerFetch`. Here every call
 * of every transport passes, and fails with the same error before anything is connected or started.
 */
import type { RefusalCode } from "./not-running.ts";
import { StartRefusedError } from "./refusal.ts";
import type { Traffic } from "./traffic.ts";

/** What offers calls to the container; the rest of the client (disconnect, settings) stays usable. */
const DOMAINS: ReadonlySet<string | symbol> = new Set([
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

export function guardClient<Client extends object>(client: Client, refusal: () => RefusalCode | null, traffic: Traffic): Client {
  return new Proxy(client, {
    get(target, property) {
      // Reading one of these already connects.
      const isDomain = DOMAINS.has(property);
      const code = isDomain ? refusal() : null;
      if (code !== null) throw new StartRefusedError(code);
      const value: unknown = Reflect.get(target, property, target);
      if (isDomain && isObject(value)) return countCalls(value, traffic);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function countCalls(domain: object, traffic: Traffic): object {
  return new Proxy(domain, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      return (...call: readonly unknown[]): unknown => traffic.call(() => Reflect.apply(value, target, call));
    },
  });
}

/** The rpc transport's domains are stubs, which are callable. */
function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
