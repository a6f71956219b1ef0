/**
 * What an error says of itself and of all that it wraps. Imports nothing: both sides of the Durable Object's boundary read errors.
 *
 * Classes do not survive realms and boundaries, and a thrown value may be anything, so nothing here trusts a type and nothing throws.
 */

export interface FailureEvidence {
  /** Texts of the error and of all that it wraps, outermost first. */
  readonly messages: readonly string[];
  readonly code: string | null;
  /** `context.reason` of an SDK error. Absent in what older versions persisted. */
  readonly contextReason?: string | null;
  readonly retryAfterMs: number | null;
}

/** As deep as the SDK itself follows causes; also ends cycles. */
const MAX_CAUSES = 8;

export function evidenceOf(error: unknown): FailureEvidence {
  const chain = selfAndCauses(error);
  return {
    messages: [...new Set(chain.flatMap(textsOf))],
    code: chain.map((link) => fieldOf(link, "code")).find(isText) ?? null,
    contextReason: chain.map((link) => fieldOf(contextOf(link), "reason")).find(isText) ?? null,
    retryAfterMs: chain.map(patienceOf).find((delay) => delay !== null) ?? null,
  };
}

export function selfAndCauses(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let link = error; link !== undefined && link !== null && chain.length < MAX_CAUSES; link = fieldOf(link, "cause")) chain.push(link);
  return chain;
}

/** The SDK keeps the text of what it wraps in its error's context rather than as a cause. */
function textsOf(link: unknown): readonly string[] {
  const context = contextOf(link);
  return [messageOf(link), fieldOf(context, "error"), fieldOf(context, "originalMessage")].filter(isText);
}

export function messageOf(error: unknown): string {
  try {
    return String(fieldOf(error, "message") ?? error);
  } catch {
    return "an error that cannot be shown";
  }
}

/** Undefined where the value has no such field, or does not let it be read. */
export function fieldOf(value: unknown, key: string): unknown {
  try {
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  } catch {
    return undefined;
  }
}

/** A getter of the SDK's class; an error that crossed a boundary has only the response that it was made from. */
function contextOf(link: unknown): unknown {
  return fieldOf(link, "context") ?? fieldOf(fieldOf(link, "errorResponse"), "context");
}

function patienceOf(link: unknown): number | null {
  const context = contextOf(link);
  const [ms, seconds] = [fieldOf(context, "retryAfterMs"), fieldOf(context, "retryAfter")];
  if (isDelay(ms)) return ms;
  return isDelay(seconds) ? seconds * 1000 : null;
}

function isDelay(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
