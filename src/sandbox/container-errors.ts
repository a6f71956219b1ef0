/**
 * What the platform's and the SDK's errors say, read from their text: their classes do not survive realms and boundaries.
 */
import type { Exit } from "../workspace.ts";
import type { OperationFailure } from "./protocol.ts";

/** As deep as the SDK itself follows causes; also ends cycles. */
const MAX_CAUSES = 8;
/** Shorter values are words that ordinary messages contain. */
const MIN_SECRET_LENGTH = 16;
const REDACTED = "[redacted]";

/** What requests to a container that has ended are answered; the exit says more. */
const CONSEQUENCES_OF_EXIT = /the container is not running|WORKSPACE_NOT_READY/i;

const NEVER_ADMITTED = [
  "there is no container instance",
  "maximum number of running container instances exceeded",
  "you are requesting too many containers per second",
];

/** The wordings of workerd, of the platform (with and without a reason before the code) and of the SDK. */
const EXIT_CODE = /(?:unexpected exit code:|signalled the container to exit(?: due to [^:]*)?:|health, exit code:)\s*(\d+)/i;

export function messageOf(error: unknown): string {
  return String(fieldsOf(error)["message"] ?? error);
}

/** True for the monitor error of a start that got no instance: no container ever ran. */
export function wasNeverAdmitted(error: unknown): boolean {
  const text = messageOf(error).toLowerCase();
  return NEVER_ADMITTED.some((phrase) => text.includes(phrase));
}

/** The exit code that a settled monitor stands for: 0 where it did not reject, null where the error names none. */
export function exitCodeOf(error: unknown): number | null {
  if (error === undefined) return 0;
  const { exitCode } = fieldsOf(error);
  if (typeof exitCode === "number") return exitCode;
  const match = EXIT_CODE.exec(messageOf(error));
  return match?.[1] === undefined ? null : Number(match[1]);
}

/** A failed start as it is persisted. `exit` is that of the container that the start ran, where it ended by itself. */
export function describeFailure(error: unknown, exit: Exit | null, env: Readonly<Record<string, string>>): OperationFailure {
  const chain = selfAndCauses(error);
  const told = chain.flatMap(textsOf).filter((text) => exit === null || !CONSEQUENCES_OF_EXIT.test(text));
  const messages = exit === null && told.length > 0 ? told : [endText(exit), ...told];
  const codes = chain.map((link) => fieldsOf(link)["code"]);
  const delays = chain.map((link) => fieldsOf(fieldsOf(link)["context"])["retryAfterMs"]);
  const exitCodes = chain.map(exitCodeOf);
  return {
    messages: [...new Set(messages)].map((message) => withoutValues(message, env)),
    code: exit === null ? (codes.find((code) => typeof code === "string") ?? null) : null,
    exitCode: exitCodes.find((code) => code !== null) ?? exit?.code ?? null,
    retryAfterMs: delays.find((delay) => typeof delay === "number") ?? null,
  };
}

function endText(exit: Exit | null): string {
  return `the container ended before it was verified (exit code ${exit?.code ?? "unknown"})`;
}

function selfAndCauses(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let link = error; link !== undefined && link !== null && chain.length < MAX_CAUSES; link = fieldsOf(link)["cause"]) {
    chain.push(link);
  }
  return chain;
}

/** The SDK keeps the text of what it wraps in its error's context rather than as a cause. */
function textsOf(link: unknown): readonly string[] {
  const { error, originalMessage } = fieldsOf(fieldsOf(link)["context"]);
  return [messageOf(link), error, originalMessage].filter((text): text is string => typeof text === "string" && text !== "");
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function withoutValues(message: string, env: Readonly<Record<string, string>>): string {
  const secrets = Object.values(env).filter((value) => value.length >= MIN_SECRET_LENGTH);
  return secrets.reduce((text, secret) => text.replaceAll(secret, REDACTED), message);
}
