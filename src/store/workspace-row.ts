/** A new row of `workspaces`, for statements that insert one only where a condition holds. */
import { type SQL, sql } from "drizzle-orm";
import type { Instant, WorkspaceName, WorkspaceSpec } from "../workspace.ts";
import { INITIAL_STATUS } from "./status.ts";
import { currentVersion } from "./versions.ts";

export interface NewWorkspace extends WorkspaceName {
  /** A UUID: its first digits also choose the workspace's turn in the resync. */
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: WorkspaceSpec;
  readonly now: Instant;
}

/** Turns in one resync interval. */
const RESYNC_PHASES = 1_000_000;

/** Every column in the table's order, where `condition` holds. */
export function workspaceRow(workspace: NewWorkspace, incarnation: number | SQL, condition: SQL): SQL {
  const { uid, namespace, name, now } = workspace;
  const [spec, labels, annotations, status] = [workspace.spec, workspace.labels, workspace.annotations, INITIAL_STATUS].map((value) =>
    JSON.stringify(value),
  );
  return sql`
    SELECT ${uid}, ${namespace}, ${name}, ${spec}, ${labels}, ${annotations}, 1, 1, ${now}, NULL, ${currentVersion}, ${now}, NULL, NULL,
      ${status}, ${incarnation}, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ${resyncPhase(uid)}, NULL, NULL, NULL
    WHERE ${condition}`;
}

function resyncPhase(uid: string): number {
  return Number.parseInt(uid.slice(0, 8), 16) % RESYNC_PHASES;
}
