/**
 * The typed refusal, in the forms that each of the SDK's transports passes on unchanged (invariants 2 and 7).
 *
 * 1. Never 503: the SDK repeats a 503 for two minutes, and each repeat is another attempt to start.
 * 2. The code is also in the text, because an error that crosses an RPC boundary may keep nothing but its message.
 */
import { ContainerUnavailableError } from "@cloudflare/sandbox";
import { WORKSPACE_NOT_READY, WORKSPACE_NOT_RUNNING, type RefusalCode } from "./not-running.ts";

const HTTP_STATUS = 409;

/** None of these may contain a phrase that the SDK takes for a transient or a capacity failure: it would retry. */
const DETAIL: Readonly<Record<RefusalCode, string>> = {
  [WORKSPACE_NOT_RUNNING]: "the workspace runs no container, and a call does not start one",
  [WORKSPACE_NOT_READY]: "the workspace is being prepared and takes no calls yet",
};

/**
 * Thrown where a start was asked for and none is admitted.
 *
 * Extends an error of the SDK because its rpc transport rethrows only its own kind as it is; anything else becomes INTERNAL_ERROR.
 */
export class StartRefusedError extends ContainerUnavailableError {
  constructor(code: RefusalCode) {
    super(problem(code) as unknown as ConstructorParameters<typeof ContainerUnavailableError>[0]);
    this.name = "StartRefusedError";
  }
}

/** The answer to traffic. The websocket transport reports nothing but the status line, so the code is in there as well. */
export function refusalResponse(code: RefusalCode): Response {
  return new Response(JSON.stringify(problem(code)), {
    status: HTTP_STATUS,
    statusText: code,
    headers: { "Content-Type": "application/problem+json" },
  });
}

function problem(code: RefusalCode) {
  return {
    type: "about:blank",
    title: code,
    status: HTTP_STATUS,
    code,
    message: `${code}: ${DETAIL[code]}`,
    context: { reason: code, retryable: false },
    httpStatus: HTTP_STATUS,
    timestamp: new Date().toISOString(),
  };
}
