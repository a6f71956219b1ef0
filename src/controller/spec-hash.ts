/** What a container is started with and cannot take up later: the static fields of the spec, as one comparable value. */
import { createHash } from "node:crypto";
import type { WorkspaceSpec } from "../workspace.ts";

/**
 * Raised whenever the static fields or their canonical form change. Hashes of other versions are not comparable and count as equal:
 * otherwise an upgrade of the controller would replace every running sandbox.
 */
const HASH_VERSION = "v1";

/** `directory` and `env` are static; `operatingMode` and `paused` steer the controller and never differ. */
export function specHash(spec: WorkspaceSpec): string {
  const environment = Object.entries(spec.env).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const canonical = JSON.stringify([spec.directory, environment]);
  return `${HASH_VERSION}:${createHash("sha256").update(canonical).digest("hex").slice(0, 32)}`;
}

export function isSameSpec(desired: string, observed: string): boolean {
  return desired === observed || versionOf(desired) !== versionOf(observed);
}

function versionOf(hash: string): string {
  return hash.slice(0, hash.indexOf(":"));
}
