/**
 * The SDK's client of the container, refusing each call that a gate refuses and telling of the others (invariants 2, 6 and 7).
 *
 * The websocket and rpc transports keep a connection open, on which a call no longer passes `fetch` or `containerFetch`. Here every call
 * of every transport passes, and fails with the same error before anything is connected or started.
 */
import type { Sandbox } from "@cloudflare/sandbox";
import type { RefusalCode } from "./not-running.ts";
import { StartRefusedError } from "./refusal.ts";

type Client = Sandbox["client"];

/** Whoever counts calls. */
interface Calls {
  call<T>(work: () => T): T;
}

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

/** Guards `sandbox.client`, which the SDK replaces whenever the transport is set. Guards may be put around guards. */
export function guardClient(sandbox: Pick<Sandbox, "client">, refusal: () => RefusalCode | null, calls: Calls): void {
  const beneath = Object.getOwnPropertyDescriptor(sandbox, "client");
  let guarded = guard(sandbox.client, refusal, calls);
  Object.defineProperty(sandbox, "client", {
    configurable: true,
    get: () => guarded,
    set: (client: Client) => {
      beneath?.set?.(client);
      guarded = guard((beneath?.get?.() as Client | undefined) ?? client, refusal, calls);
    },
  });
}

function guard(client: Client, refusal: () => RefusalCode | null, calls: Calls): Client {
  return new Proxy(client, {
    get(target, property) {
      // Reading one of these already connects.
      const isDomain = DOMAINS.has(property);
      const code = isDomain ? refusal() : null;
      if (code !== null) return refusing(code);
      const value: unknown = Reflect.get(target, property, target);
      if (isDomain && isObject(value)) return countCalls(value, calls);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Refuses as a call that fails does: the SDK's clean-up catches what a call is rejected with, and nothing else. */
function refusing(code: RefusalCode): object {
  const refuse = () => Promise.reject(new StartRefusedError(code));
  return new Proxy({}, { get: () => refuse });
}

function countCalls(domain: object, calls: Calls): object {
  return new Proxy(domain, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      return (...call: readonly unknown[]): unknown => calls.call(() => Reflect.apply(value, target, call));
    },
  });
}

/** The rpc transport's domains are stubs, which are callable. */
function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
