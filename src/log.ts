/** A constant message and its fields as one JSON line, which Workers Logs indexes. Never a spec value, never a token. */
export function log(level: "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>> = {}): void {
  console[level](JSON.stringify({ message, ...fields }));
}
