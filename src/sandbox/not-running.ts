/**
 * How a user's Worker tells "the workspace does not run" from every other failure of a sandbox call.
 *
 * Imports nothing, so that a Worker without the controller's code can bundle it.
 */

/** No container runs, or the one that runs is being stopped. Nothing was started, nothing of the call was done. */
export const WORKSPACE_NOT_RUNNING = "WORKSPACE_NOT_RUNNING";
/** A start is under way but not verified yet. Nothing of the call was done; it may be repeated once the workspace is Ready. */
export const WORKSPACE_NOT_READY = "WORKSPACE_NOT_READY";

export type RefusalCode = typeof WORKSPACE_NOT_RUNNING | typeof WORKSPACE_NOT_READY;

const CODE_IN_TEXT = /\bWORKSPACE_NOT_(?:RUNNING|READY)\b/;
/** As deep as the SDK itself follows causes; also ends cycles. */
const MAX_DEPTH = 8;
/** Where the SDK and the RPC boundary put the original error of a failure that they wrap. */
const WRAPPING_FIELDS = ["cause", "context", "errorResponse", "details", "error", "originalMessage"] as const;

/**
 * True where a sandbox call was refused because its workspace does not run (or does not run yet).
 *
 * Works on what arrives on the far side of an RPC call, where classes and sometimes all fields but the message are gone.
 */
export function isWorkspaceNotRunning(error: unknown): boolean {
  return mentionsRefusal(error, 0);
}

function mentionsRefusal(value: unknown, depth: number): boolean {
  if (typeof value === "string") return CODE_IN_TEXT.test(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  if (mentionsRefusal(fields["code"], MAX_DEPTH) || mentionsRefusal(fields["message"], MAX_DEPTH)) return true;
  return WRAPPING_FIELDS.some((field) => mentionsRefusal(fields[field], depth + 1));
}
