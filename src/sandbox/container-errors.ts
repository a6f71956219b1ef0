/**
 * What the platform's and the SDK's errors say of a container, read from their text: their classes do not survive realms and boundaries.
 */
import { evidenceOf, fieldOf, messageOf, selfAndCauses } from "../failure-evidence.ts";
import type { Exit } from "../workspace.ts";
import { SETUP_FAILED, type OperationFailure } from "./protocol.ts";

export { messageOf };

/** Shorter values are words that ordinary messages contain; none of them can hold a text that a failure is known by. */
const MIN_SECRET_LENGTH = 13;
const REDACTED = "[redacted]";

/** What requests to a container that has ended are answered; the exit says more. */
const CONSEQUENCES_OF_EXIT = /the container is not running|WORKSPACE_NOT_READY/i;

const REFUSED =
  /there is no container instance|maximum number of running container instances exceeded|surpassed_(?:base|total)_limits|you are requesting too many containers per second/i;

/** The wordings of workerd, of the platform (with and without a reason before the code) and of the SDK. */
const EXIT_CODE = /(?:unexpected exit code:|signalled the container to exit(?: due to [^:]*)?:|health, exit code:)\s*(\d+)/i;
const SIGNALLED = /runtime signalled the container to exit/i;

/** The platform's words where a start got no instance, so that no container ever ran. */
export function refusalIn(error: unknown): string | null {
  return evidenceOf(error).messages.find((text) => REFUSED.test(text)) ?? null;
}

/** The end that a settled monitor stands for: code 0 where it did not reject, null where the error names none. */
export function endOf(error: unknown): Omit<Exit, "time"> {
  if (error === undefined) return { code: 0, signalled: false };
  return { code: exitCodeIn(error), signalled: evidenceOf(error).messages.some((text) => SIGNALLED.test(text)) };
}

/** A failed start as it is persisted. `exit` is that of the container that the start ran, where it ended by itself. */
export function describeFailure(error: unknown, exit: Exit | null, env: Readonly<Record<string, string>>): OperationFailure {
  const { messages, code, contextReason, retryAfterMs } = evidenceOf(error);
  const told = messages.filter((text) => exit === null || !CONSEQUENCES_OF_EXIT.test(text));
  // The SDK throws undefined where the container's end was no error.
  const hasEnded = exit !== null || error === undefined;
  return {
    messages: (hasEnded ? [endText(exit), ...told] : told).map((message) => withoutValues(message, env)),
    // A container that ended after a command failed has not ended because of the platform.
    code: exit === null || code === SETUP_FAILED ? code : null,
    contextReason: exit === null ? (contextReason ?? null) : null,
    exitCode: exitCodeIn(error) ?? exit?.code ?? null,
    retryAfterMs,
  };
}

function exitCodeIn(error: unknown): number | null {
  return (
    selfAndCauses(error)
      .map(exitCodeOf)
      .find((code) => code !== null) ?? null
  );
}

function exitCodeOf(link: unknown): number | null {
  const exitCode = fieldOf(link, "exitCode");
  if (typeof exitCode === "number") return exitCode;
  const match = EXIT_CODE.exec(messageOf(link));
  return match?.[1] === undefined ? null : Number(match[1]);
}

function endText(exit: Exit | null): string {
  return `the container ended before it was verified (exit code ${exit?.code ?? "unknown"})`;
}

/** The longest first: one value may contain another. Also as JSON writes them, since a message may be a response's body. */
export function withoutValues(message: string, env: Readonly<Record<string, string>>, minLength = MIN_SECRET_LENGTH): string {
  const secrets = Object.values(env)
    .flatMap((value) => (value.length < minLength ? [] : [value, JSON.stringify(value).slice(1, -1)]))
    .toSorted((one, other) => other.length - one.length);
  const redacted = secrets.reduce((text, secret) => text.replaceAll(secret, REDACTED), message);
  // Shorter ones may be words of the platform's own; in an assignment they are not.
  return Object.entries(env).reduce((text, [name, value]) => text.replaceAll(`${name}=${value}`, `${name}=${REDACTED}`), redacted);
}
