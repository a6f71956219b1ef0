/** A workspace as JSON: RFC 3339 instants, `resourceVersion` as text, the grouping of the design. */
import type { Instant, Workspace, WorkspaceName } from "../workspace.ts";
import { toEtag } from "./precondition.ts";
import type { WorkspaceBody } from "./schema.ts";

export function toWorkspaceBody(workspace: Workspace): WorkspaceBody {
  const { status, lastBackup } = workspace;
  return {
    metadata: {
      namespace: workspace.namespace,
      name: workspace.name,
      uid: workspace.uid,
      generation: workspace.generation,
      revision: workspace.revision,
      resourceVersion: String(workspace.resourceVersion),
      etag: toEtag(workspace),
      creationTime: toTimestamp(workspace.creationTime),
      deletionTime: toOptionalTimestamp(workspace.deletionTime),
      labels: workspace.labels,
      annotations: workspace.annotations,
    },
    spec: workspace.spec,
    status: {
      observedGeneration: status.observedGeneration,
      phase: status.phase,
      sandboxId: workspace.sandboxId,
      incarnation: workspace.incarnation,
      failures: workspace.failures,
      nextRetryTime: toOptionalTimestamp(workspace.nextRetryTime),
      lastBackup: lastBackup && { id: lastBackup.id, time: toTimestamp(lastBackup.time) },
      conditions: status.conditions.map((condition) => ({
        type: condition.type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        observedGeneration: condition.observedGeneration,
        lastTransitionTime: toTimestamp(condition.lastTransitionTime),
      })),
    },
  };
}

export function toLocation({ namespace, name }: WorkspaceName): string {
  return `/v1/namespaces/${namespace}/workspaces/${name}`;
}

export function toTimestamp(time: Instant): string {
  return new Date(time).toISOString();
}

export function toOptionalTimestamp(time: Instant | null): string | null {
  return time === null ? null : toTimestamp(time);
}
