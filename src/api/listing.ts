/** One page of workspaces, in the order of namespace and name. */
import { listWorkspaces } from "../store/reading.ts";
import type { Principal } from "./auth.ts";
import type { ApiDeps } from "./context.ts";
import { cutPage, type PageOptions, readPaging } from "./paging.ts";
import { workspacePath, type WorkspaceListBody } from "./schema.ts";
import { canonicalSelector, parseLabelSelector } from "./selector.ts";
import { toWorkspaceBody } from "./wire.ts";

export interface ListOptions extends PageOptions {
  readonly labelSelector?: string | undefined;
}

/** `namespace` null: all that the principal may see. */
export async function listPage(
  deps: ApiDeps,
  principal: Principal,
  namespace: string | null,
  options: ListOptions,
): Promise<WorkspaceListBody> {
  const labels = parseLabelSelector(options.labelSelector ?? "");
  const paging = await readPaging(options, [namespace, canonicalSelector(labels)], workspacePath);
  const namespaces = namespace === null ? principal.namespaces : [namespace];
  const { items, resourceVersion } = await listWorkspaces(deps.db, { namespaces, labels, after: paging.after, limit: paging.readLimit });
  const page = await cutPage(items, paging, (workspace) => ({ namespace: workspace.namespace, name: workspace.name }));
  return {
    items: page.items.map(toWorkspaceBody),
    nextPageToken: page.nextPageToken,
    resourceVersion: String(resourceVersion),
  };
}
