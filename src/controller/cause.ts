/** What of an error goes into the log. */

/** The innermost message: drizzle's own repeats the statement with its values. */
export function causeOf(error: unknown): string {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}
