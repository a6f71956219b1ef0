/** How a start of the simulation says that it failed. */
import { type OperationFailure, SETUP_FAILED, START_CANCELLED } from "../../src/sandbox/protocol.ts";

export function failureOf(message: string, retryAfterMs: number | null = null): OperationFailure {
  return { messages: [message], code: null, contextReason: null, exitCode: null, retryAfterMs };
}

export const CANCELLED: OperationFailure = { ...failureOf("the start was cancelled"), code: START_CANCELLED };

export const LATE: OperationFailure = failureOf("the start was not verified before its deadline");

export const REFUSED_STEPS: Readonly<Record<"Restore" | "Setup", OperationFailure>> = {
  Restore: failureOf("Failed to restore backup archive"),
  Setup: { ...failureOf("setup command 1 failed with exit code 1: "), code: SETUP_FAILED },
};

const NOBODYS_FAULT = /no container instance|too many containers|cancelled/;

export function isWorkspacesFault({ messages, code }: OperationFailure): boolean {
  return code !== START_CANCELLED && !NOBODYS_FAULT.test(messages.join());
}
