/** GET, at once or when a condition is met. Waiting only reads the store: it wakes nothing and asks no sandbox. */
import { getWorkspace } from "../store/reading.ts";
import type { ConditionType, Workspace, WorkspaceName } from "../workspace.ts";
import type { ApiDeps } from "./context.ts";
import { Problem } from "./problem.ts";

const POLL_INTERVAL_MS = 500;

/** Throws NOT_FOUND. */
export async function readWorkspace(deps: ApiDeps, workspaceName: WorkspaceName): Promise<Workspace> {
  const workspace = await getWorkspace(deps.db, workspaceName);
  if (workspace === null) throw new Problem("NOT_FOUND", "There is no such workspace.");
  return workspace;
}

/** Throws WAIT_TIMEOUT, or NOT_FOUND as soon as the workspace is gone. */
export async function awaitCondition(
  deps: ApiDeps,
  workspaceName: WorkspaceName,
  type: ConditionType,
  timeoutMs: number,
): Promise<Workspace> {
  const deadline = deps.now() + timeoutMs;
  for (;;) {
    const workspace = await readWorkspace(deps, workspaceName);
    if (isMet(workspace, type)) return workspace;
    const remaining = deadline - deps.now();
    if (remaining <= 0) throw new Problem("WAIT_TIMEOUT", `The condition ${type} was not met in time.`);
    await deps.sleep(Math.min(POLL_INTERVAL_MS, remaining));
  }
}

/** A condition about an older generation says nothing about what is wished now. */
function isMet({ generation, status }: Workspace, type: ConditionType): boolean {
  return status.conditions.some(
    (condition) => condition.type === type && condition.status === "True" && condition.observedGeneration === generation,
  );
}
