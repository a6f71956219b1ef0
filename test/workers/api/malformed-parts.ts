/** What malformed requests are made of: a canary in every valid body, and the same headers. */
import fc from "fast-check";
import { PATH, TOKENS } from "./support.ts";

export interface Malformed {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}

export const CANARY = "canary-2b9e44";
const VALID = { metadata: { labels: { team: "a" }, annotations: { note: CANARY } }, spec: { env: { SECRET: CANARY }, directory: "/app" } };
export const validText = JSON.stringify(VALID);
export const JSON_HEADERS = { Authorization: `Bearer ${TOKENS.operator}`, "Content-Type": "application/json" };
export const anyText = fc.string({ unit: "binary", maxLength: 40 });

export function put(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Malformed {
  return { method: "PUT", path: PATH, headers: { ...JSON_HEADERS, ...headers }, body };
}

/** With a valid workspace as its body wherever it may have one. */
export function request(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Malformed {
  return { method, path, headers: { ...JSON_HEADERS, ...headers }, body: method === "GET" ? null : validText };
}
