/** The Durable Object in the model: what `src/sandbox` promises in `protocol.ts`. Null stands for a refusal of the epoch. */
import type { FailureClass } from "../../../src/workspace.ts";
import { cutOff } from "./backups.ts";
import type { Operation, Sandbox } from "./world.ts";

export interface Order {
  readonly startId: string;
  readonly specHash: string;
}

/** How far a start comes while the caller waits for it. */
export type Progress = "pending" | "restoring" | "verified" | FailureClass;

export function observe(sandbox: Sandbox, epoch: number): Sandbox | null {
  return epoch < sandbox.epoch ? null : settle({ ...sandbox, epoch });
}

export function start(sandbox: Sandbox, epoch: number, order: Order): Sandbox | null {
  if (epoch < sandbox.epoch) return null;
  const settled = settle({ ...sandbox, epoch });
  if (settled.admission === "Destroyed") return settled;
  const known = settled.operation;
  if (known?.startId === order.startId && known.state !== "Interrupted") return settled;
  const operation: Operation = { ...order, state: "InProgress", failure: null, live: true, restoring: false };
  const begun = { ...settled, admission: "Admitted", operation, running: false, exit: null, unused: false, old: false } as const;
  return { ...begun, backup: cutOff(settled.backup) };
}

const STOPPED = { code: 143, signalled: false };

/** `works`: whether the platform's kill does anything. */
export function stop(sandbox: Sandbox, epoch: number, works: boolean): Sandbox | null {
  if (epoch < sandbox.epoch) return null;
  const admission = sandbox.admission === "Admitted" ? "Revoked" : sandbox.admission;
  const cancelled = cancel({ ...sandbox, epoch, admission });
  const stopped = { ...cancelled, backup: cutOff(cancelled.backup) };
  return stopped.running && works ? { ...stopped, running: false, exit: STOPPED } : stopped;
}

export function destroy(sandbox: Sandbox, epoch: number, works: boolean): Sandbox | null {
  if (epoch < sandbox.epoch) return null;
  const cancelled = cancel({ ...sandbox, epoch, admission: "Destroyed" });
  const destroyed = { ...cancelled, backup: cutOff(cancelled.backup) };
  return works ? { ...destroyed, running: false } : destroyed;
}

/** How a start under way ends, or goes on. */
export function proceed(sandbox: Sandbox, progress: Progress): Sandbox {
  const { operation } = sandbox;
  if (operation === null || progress === "pending") return sandbox;
  if (progress === "restoring") return { ...sandbox, running: true, operation: { ...operation, restoring: true } };
  if (progress === "verified") {
    return { ...sandbox, running: true, unused: false, old: false, operation: { ...operation, state: "Succeeded", live: false } };
  }
  return { ...sandbox, admission: "Revoked", running: false, operation: { ...operation, state: "Failed", failure: progress, live: false } };
}

export function isUnderWay({ operation }: Sandbox): boolean {
  return operation?.state === "InProgress" && operation.live;
}

/** An operation that nothing works on was interrupted, or is over where its admission is. */
function settle(sandbox: Sandbox): Sandbox {
  const { operation, admission } = sandbox;
  if (operation === null || isUnderWay(sandbox) || (operation.state !== "InProgress" && operation.state !== "Interrupted")) return sandbox;
  if (admission === "Admitted") return { ...sandbox, operation: { ...operation, state: "Interrupted" } };
  return { ...sandbox, operation: { ...operation, state: "Failed", failure: operation.failure ?? "Transient" } };
}

function cancel(sandbox: Sandbox): Sandbox {
  const { operation } = sandbox;
  if (operation?.state !== "InProgress" && operation?.state !== "Interrupted") return sandbox;
  return { ...sandbox, operation: { ...operation, state: "Failed", failure: "Transient", live: false } };
}
