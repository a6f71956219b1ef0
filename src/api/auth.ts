/** Who asks (a bearer token) and what that role may do where. */
import type { ApiToken, Role } from "../config.ts";
import { Problem } from "./problem.ts";

export interface Principal {
  readonly name: string;
  readonly role: Role;
  /** Null: every namespace. */
  readonly namespaces: readonly string[] | null;
}

/** `read` and `write`: workspaces. `operate`: drift, instances, the controller and all of the history. */
export type Access = "read" | "write" | "operate";
export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

const ROLES: Readonly<Record<Access, readonly Role[]>> = {
  read: ["viewer", "editor", "operator"],
  write: ["editor", "operator"],
  operate: ["operator"],
};

/** RFC 6750's syntax of a token; the scheme's name is case-insensitive. */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i;

/** Checks an `Authorization` header against the configured digests; throws UNAUTHENTICATED. */
export function createAuthenticator(tokens: readonly ApiToken[]): Authenticate {
  const candidates = tokens.map((token) => ({ token, digest: fromHex(token.sha256) }));
  return async (authorization) => {
    const presented = authorization === undefined ? null : (BEARER.exec(authorization)?.[1] ?? null);
    if (presented === null) {
      throw unauthenticated("The request needs an Authorization header with a bearer token.", 'Bearer realm="mooring"');
    }
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(presented)));
    let found: ApiToken | null = null;
    // Every candidate is compared, so that the time taken says nothing about which one matched.
    for (const candidate of candidates) {
      if (crypto.subtle.timingSafeEqual(candidate.digest, digest)) found = candidate.token;
    }
    if (found === null) {
      throw unauthenticated("The bearer token is not known.", 'Bearer realm="mooring", error="invalid_token"');
    }
    return toPrincipal(found);
  };
}

/** Throws FORBIDDEN unless the principal's role has the access and its namespaces include this one (null: no single one). */
export function authorise(principal: Principal, access: Access, namespace: string | null): void {
  if (!ROLES[access].includes(principal.role)) {
    throw new Problem("FORBIDDEN", `The role ${principal.role} has no ${access} access.`);
  }
  if (namespace !== null && principal.namespaces !== null && !principal.namespaces.includes(namespace)) {
    throw new Problem("FORBIDDEN", "The token is not for this namespace.");
  }
}

/** Throws FORBIDDEN unless the principal operates every namespace: what it asks for belongs to none, or to all. */
export function authoriseEverywhere(principal: Principal): void {
  authorise(principal, "operate", null);
  if (principal.namespaces !== null) throw new Problem("FORBIDDEN", "The token is not for every namespace.");
}

function toPrincipal({ name, role, namespaces }: ApiToken): Principal {
  return { name, role, namespaces: namespaces.includes("*") ? null : namespaces };
}

function unauthenticated(detail: string, challenge: string): Problem {
  return new Problem("UNAUTHENTICATED", detail, { headers: { "WWW-Authenticate": challenge } });
}

function fromHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) => Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16));
}
