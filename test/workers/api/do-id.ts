/** In place of `idFromName`. */

/** Any pure function of the name that gives 64 hex digits. */
export function testDoIdOf(sandboxId: string): string {
  const hex = [...new TextEncoder().encode(sandboxId)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.padEnd(64, "0").slice(0, 64);
}
