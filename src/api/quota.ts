/** A namespace's quota, as far as a write could exceed it. The same limits stand in the statement that writes. */
import { type Config, quotaOf } from "../config.ts";
import { type Exempt, type Limits, NO_LIMITS, readUsage } from "../store/usage-reading.ts";
import type { OperatingMode } from "../workspace.ts";
import type { ApiDeps } from "./context.ts";
import { Problem } from "./problem.ts";

/** One that is suspended uses no place among those that run. */
export function limitsOfCreation({ quotas }: Config, namespace: string, mode: OperatingMode): Limits {
  const { maxWorkspaces, maxRunning } = quotaOf(quotas, namespace);
  return { maxWorkspaces, maxRunning: mode === "Running" ? maxRunning : null };
}

/** `isNew`: whether it was not wished to run before. */
export function limitsOfRunning({ quotas }: Config, namespace: string, isNew: boolean): Limits {
  return isNew ? { ...NO_LIMITS, maxRunning: quotaOf(quotas, namespace).maxRunning } : NO_LIMITS;
}

/** Throws QUOTA_EXCEEDED. */
export async function checkQuota({ db }: ApiDeps, limits: Limits, namespace: string, exempt: Exempt): Promise<void> {
  const { maxWorkspaces, maxRunning } = limits;
  if (maxWorkspaces === null && maxRunning === null) return;
  const usage = await readUsage(db, namespace, exempt);
  if (maxWorkspaces !== null && usage.workspaces >= maxWorkspaces) {
    throw exceeded("maxWorkspaces", maxWorkspaces, `The namespace has ${usage.workspaces} workspaces.`);
  }
  if (maxRunning !== null && usage.running >= maxRunning) {
    throw exceeded("maxRunning", maxRunning, `In the namespace ${usage.running} instances run.`);
  }
}

function exceeded(limit: keyof Limits, value: number, detail: string): Problem {
  const pointer = limit === "maxWorkspaces" ? "path/namespace" : "/spec/operatingMode";
  return new Problem("QUOTA_EXCEEDED", detail, { errors: [{ pointer, detail: `${limit} is ${value}` }] });
}
