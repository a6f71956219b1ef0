/**
 * What a failure is, from its texts, codes and reasons. Never from `instanceof`: errors cross realms and arrive wrapped in others, so
 * every text of the chain is looked at, case ignored. What nothing here knows is Transient.
 */
import type { FailureEvidence } from "../failure-evidence.ts";
import type { Failure } from "../workspace.ts";
import { SIGNATURES, type Signature } from "./failure-signatures.ts";

/** Everything in lower case. */
interface Testimony {
  readonly texts: readonly string[];
  readonly codes: readonly string[];
  readonly reasons: readonly string[];
}

export function classify(evidence: FailureEvidence): Failure {
  const messages = evidence.messages.map(withoutBoundValues);
  const testimony = hear(messages, evidence);
  const signature = SIGNATURES.find((candidate) => fits(candidate, testimony));
  const retryAfterMs = evidence.retryAfterMs ?? retryAfterIn(messages);
  return {
    class: signature?.class ?? "Transient",
    reason: signature?.reason ?? "StartFailed",
    message: summarise(messages),
    ...(retryAfterMs !== null && { retryAfterMs }),
  };
}

/** drizzle repeats what was bound to its statement: a user's values, neither to be read as the platform's words nor to be shown. */
const BOUND_VALUES = /(failed query:.*?params:).*/is;

function withoutBoundValues(message: string): string {
  return message.replace(BOUND_VALUES, "$1 …");
}

function hear(messages: readonly string[], { code, contextReason }: FailureEvidence): Testimony {
  const texts = messages.map((message) => message.toLowerCase());
  return {
    texts,
    codes: [code?.toLowerCase() ?? "", ...toldInJson(texts, CODE_IN_JSON)],
    reasons: [contextReason?.toLowerCase() ?? "", ...toldInJson(texts, REASON_IN_JSON)],
  };
}

/** A response's body may have become a message, and that message a part of another body: each quote is then escaped once more. */
const CODE_IN_JSON = /"code\\*"\s*:\s*\\*"(\w+)/g;
const REASON_IN_JSON = /"reason\\*"\s*:\s*\\*"(\w+)/g;

function toldInJson(texts: readonly string[], field: RegExp): readonly string[] {
  return texts.flatMap((text) => [...text.matchAll(field)].map(([, value]) => value ?? ""));
}

function fits(signature: Signature, { texts, codes, reasons }: Testimony): boolean {
  return (
    codes.some((code) => signature.codes?.includes(code)) ||
    reasons.some((reason) => signature.reasons?.includes(reason)) ||
    signature.texts.some((known) => texts.some((text) => text.includes(known)))
  );
}

/** A header in seconds, or the SDK's own field in milliseconds, within a text. */
const RETRY_AFTER = /\bretry-?after(ms)?[\s"\\]*[:=][\s"\\]*(\d{1,9})\b/i;

function retryAfterIn(messages: readonly string[]): number | null {
  const found = messages.map((message) => RETRY_AFTER.exec(message)).find((match) => match !== null);
  return found ? Number(found[2]) * (found[1] === undefined ? 1000 : 1) : null;
}

/** A status message is for a glance; the whole chain is in the log. */
const MESSAGE_MAX_LENGTH = 300;

function summarise(messages: readonly string[]): string {
  const distinct = messages.filter((message, index) => message !== "" && messages.indexOf(message) === index);
  const text = distinct.join(" < ");
  return text.length > MESSAGE_MAX_LENGTH ? `${text.slice(0, MESSAGE_MAX_LENGTH - 1)}…` : text;
}
