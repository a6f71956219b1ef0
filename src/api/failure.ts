/** What an unexpected error means for the caller and what of it may be logged: never a message that can hold a caller's value. */
import { log } from "../log.ts";
import { Problem } from "./problem.ts";

/**
 * Fragments of D1's messages for failures that pass by themselves (its documentation's error list).
 * A write that met one may have happened; PUT and DELETE can be repeated safely.
 */
const TRANSIENT = [
  "Network connection lost",
  "D1 DB is overloaded",
  "D1 DB reset because its code was updated",
  "Internal error while starting up D1 DB storage",
  "Internal error in D1 DB storage",
  "Cannot resolve D1 DB due to transient issue",
  "D1 DB storage operation exceeded timeout",
  "storage caused object to be reset",
  "reset because its code was updated",
  "Durable Object is overloaded",
  "Too many requests queued",
];

const RETRY_AFTER_SECONDS = 2;
/** Deep enough for drizzle's wrapper, D1's error and D1's own cause. */
const MAX_CAUSES = 5;
/** drizzle's own message is the statement and the bound values. */
const DRIZZLE_MESSAGE = /^Failed query:/;
/** D1 quotes the value it could not bind. */
const QUOTED_VALUE = / for value .*$/s;

/** The answer to any error; what was not foreseen is logged under the request's id and stays unexplained to the caller. */
export function toProblem(error: unknown, requestId: string): Problem {
  if (error instanceof Problem) return error;
  const messages = storeMessages(error);
  const transient = messages.some((message) => TRANSIENT.some((fragment) => message.includes(fragment)));
  const problem = transient
    ? new Problem("STORE_UNAVAILABLE", "The store is not available at the moment; the same request can be sent again.", {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      })
    : new Problem("INTERNAL", "The request failed for a reason on the server's side.");
  log(transient ? "warn" : "error", "request failed", { requestId, code: problem.code, cause: describe(error, messages) });
  return problem;
}

/** The messages of the store in the chain of causes. Those of any other error may quote a body and are left out. */
function storeMessages(error: unknown): readonly string[] {
  const messages: string[] = [];
  for (let cause = error, depth = 0; cause instanceof Error && depth < MAX_CAUSES; cause = cause.cause, depth += 1) {
    const fromStore = cause.message.startsWith("D1_") || TRANSIENT.some((fragment) => cause.message.includes(fragment));
    if (fromStore && !DRIZZLE_MESSAGE.test(cause.message)) messages.push(cause.message.replace(QUOTED_VALUE, ""));
  }
  return messages;
}

/** The store's words, else the kind of error and where it was thrown. */
function describe(error: unknown, messages: readonly string[]): unknown {
  if (messages[0] !== undefined) return messages[0];
  if (!(error instanceof Error)) return typeof error;
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  return { name: error.name, at: frames.slice(0, 5).map((frame) => frame.trim()) };
}
