/** One page of workspaces, in the order of namespace and name. */
import { listWorkspaces } from "../store/reading.ts";
import type { Principal } from "./auth.ts";
import type { ApiDeps } from "./context.ts";
import { decodePageToken, encodePageToken } from "./page-token.ts";
import { DEFAULT_LIMIT, MAX_LIMIT, type WorkspaceListBody } from "./schema.ts";
import { canonicalSelector, parseLabelSelector } from "./selector.ts";
import { toWorkspaceBody } from "./wire.ts";

export interface ListOptions {
  readonly labelSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly pageToken?: string | undefined;
}

/** `namespace` null: all that the principal may see. */
export async function listPage(
  deps: ApiDeps,
  principal: Principal,
  namespace: string | null,
  options: ListOptions,
): Promise<WorkspaceListBody> {
  const labels = parseLabelSelector(options.labelSelector ?? "");
  const limit = Math.min(options.limit ?? DEFAULT_LIMIT, MAX_LIMIT);
  const filter = JSON.stringify([namespace, canonicalSelector(labels)]);
  const after = options.pageToken === undefined ? null : await decodePageToken(options.pageToken, filter);
  const namespaces = namespace === null ? principal.namespaces : [namespace];
  // One more than asked tells whether there is a next page.
  const { items, resourceVersion } = await listWorkspaces(deps.db, { namespaces, labels, after, limit: limit + 1 });
  const page = items.slice(0, limit);
  const last = items.length > limit ? page.at(-1) : undefined;
  return {
    items: page.map(toWorkspaceBody),
    nextPageToken: last === undefined ? null : await encodePageToken(last, filter),
    resourceVersion: String(resourceVersion),
  };
}
