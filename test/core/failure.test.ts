/**
 * Every text that a start is known to fail with, and its class (design.md section 7). The texts are those of the platform, of
 * @cloudflare/containers 0.3.7, of @cloudflare/sandbox 0.12.10 and of workerd.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../../src/controller/failure.ts";
import type { FailureClass } from "../../src/workspace.ts";

fc.configureGlobal({ seed: 794_825 });

type Row = readonly [text: string, expected: FailureClass];

// oxfmt-ignore
const texts: readonly Row[] = [
  ["there is no container instance that can be provided to this durable object",                            "Capacity"],
  ["There is no Container instance available at this time.\nThis is likely because you have reached your max concurrent instance count (set in wrangler config) or are you currently provisioning the Container…", "Capacity"],
  ["maximum number of running container instances exceeded. Try again later, or try configuring a higher value for max_instances", "Capacity"],
  ["you are requesting too many containers per second",                                                     "RateLimited"],
  ["Your account is generating too much load on Durable Objects. Please back off and try again later.",      "RateLimited"],
  ["SURPASSED_BASE_LIMITS",                                                                                  "Capacity"],
  ["LOCATION_SURPASSED_BASE_LIMITS",                                                                         "Capacity"],
  ["SURPASSED_TOTAL_LIMITS",                                                                                 "Capacity"],
  ["Containers have not been enabled for this Durable Object class. Have you correctly setup your Wrangler config?", "Misconfigured"],
  ["there is no application that matches the provided constraints",                                          "Misconfigured"],
  ["no container application assigned",                                                                      "Misconfigured"],
  ["ctx.exports is undefined, please try to update your compatibility date",                                 "Misconfigured"],
  ["ctx.exports.ContainerProxy is undefined, please export it",                                              "Misconfigured"],
  ["No such image available named registry.example/app:1",                                                   "Permanent"],
  ["Container ran out of memory",                                                                            "Permanent"],
  ["too many subprocesses",                                                                                  "Permanent"],
  ["the container did not call start",                                                                       "Permanent"],
  ["Container failed to start due to a permanent error. Check your container configuration.",                "Permanent"],
  ["Container already exists",                                                                               "Permanent"],
  ["WebSocket upgrade failed: 404 Not Found",                                                                "Misconfigured"],
  ["start() cannot be called on a container that is already running.",                                       "Uncertain"],
  ["exec() cannot be called on a container that is not running.",                                            "NotRunning"],
  ["monitor() cannot be called on a container that is not running.",                                         "NotRunning"],
  ["The container is not running, consider calling start()",                                                 "NotRunning"],
  ["RPC session was shut down by disposing the main stub",                                                   "Transient"],
  ["RPC was canceled because the RpcPromise was disposed.",                                                  "Transient"],
  ["The sandbox container was unavailable: the connection was torn down before it became reachable. Retry the operation.", "Transient"],
  ["Container was unavailable after exhausting upgrade retry budget (status 503)",                           "Transient"],
  ["Peer closed WebSocket: 1006 abnormal",                                                                   "Transient"],
  ["WebSocket connection failed.",                                                                           "Transient"],
  ["WebSocket upgrade failed: 500 Internal Server Error",                                                    "Transient"],
  ["The sandbox container stopped while the operation was pending.",                                         "Transient"],
  ["Container is starting. Please retry in a moment.",                                                       "Transient"],
  ["container port not found",                                                                               "Transient"],
  ["connection refused: container port",                                                                     "Transient"],
  ["The container is not listening in the TCP address 10.0.0.1:3000",                                        "Transient"],
  ["Failed to verify port 3000 is available after 20000ms, last error: timeout",                             "Transient"],
  ["Container did not start after 8000ms",                                                                   "Transient"],
  ["Aborted waiting for container to start as we received a cancellation signal",                            "Transient"],
  ["Container request aborted.",                                                                             "Transient"],
  ["Network connection lost.",                                                                               "Transient"],
  ["Container suddenly disconnected, try again",                                                             "Transient"],
  ["Monitor failed to find container",                                                                       "Transient"],
  ["Container exited with unexpected exit code: 1",                                                          "Transient"],
  ["Container exited before we could determine the container health, exit code: 137",                        "Transient"],
  ["Container crashed while checking for ports, did you start the container and setup the entrypoint correctly?", "Transient"],
  ["Runtime signalled the container to exit due to a new version rollout: 143",                              "Transient"],
  ["The operation was aborted due to timeout",                                                               "Transient"],
  ["Durable Object reset because its code was updated.",                                                     "Transient"],
  ["Durable Object storage operation exceeded timeout which caused object to be reset.",                     "Transient"],
  ["Internal error while starting up Durable Object storage caused object to be reset.",                     "Transient"],
  ["Connection closed: this Durable Object instance is no longer active. Reconnect or retry the request.",   "Transient"],
  ["Durable Object is overloaded. Too many requests queued.",                                                "Transient"],
  ["the start was not verified before its deadline",                                                         "Transient"],
  ["the sandbox was reset while the start was under way",                                                    "Transient"],
  ["something that nobody has ever seen",                                                                    "Transient"],
  ["",                                                                                                       "Transient"],
];

describe.each([
  { form: "as it is", before: "", after: "", upper: false },
  { form: "in upper case", before: "", after: "", upper: true },
  { form: "in the SDK's wrapper", before: "Container failed to start: ", after: "", upper: false },
  { form: "in the wrapper of the container class", before: "Failed to start container: ", after: "", upper: false },
  { form: "in a response body", before: '{"code":"INTERNAL_ERROR","message":"', after: '"}', upper: false },
])("a text $form", ({ before, after, upper }) => {
  test.for(texts)("%s", ([text, expected]) => {
    const message = `${before}${text}${after}`;
    expect(classOf([upper ? message.toUpperCase() : message])).toBe(expected);
  });
});

describe("a text that another error wraps", () => {
  test.for(texts)("%s", ([text, expected]) => {
    expect(classOf(["Container is starting. Please retry in a moment.", "Sandbox error", text])).toBe(expected);
  });
});

type ChainRow = readonly [situation: string, messages: readonly string[], expected: FailureClass];

// oxfmt-ignore
const chains: readonly ChainRow[] = [
  ["want of capacity behind a lost connection",           ["there is no container instance that can be provided to this durable object", "Network connection lost."], "Capacity"],
  ["a cause that no retry can cure behind want of capacity", ["there is no container instance that can be provided to this durable object", "No such image available named app"], "Permanent"],
  ["a rate limit behind want of capacity",                ["there is no container instance that can be provided to this durable object", "you are requesting too many containers per second"], "RateLimited"],
  ["a deadline above want of capacity",                   ["the start was not verified before its deadline", "maximum number of running container instances exceeded"], "Capacity"],
  ["a container that was not running behind a deadline",  ["the start was not verified before its deadline", "The container is not running, consider calling start()"], "NotRunning"],
  ["an error that says nothing at all",                   [], "Transient"],
];

test.for(chains)("%s", ([, messages, expected]) => {
  expect(classOf(messages)).toBe(expected);
});

type CodeRow = readonly [code: string, text: string, expected: FailureClass];

// oxfmt-ignore
const codes: readonly CodeRow[] = [
  ["START_CANCELLED", "the start was cancelled because the workspace was stopped",  "Progressing"],
  ["START_CANCELLED", "there is no container instance available at this time",      "Progressing"],
  ["START_DEADLINE",  "the start was not verified before its deadline",             "Transient"],
  ["START_DEADLINE",  "there is no container instance available at this time",      "Capacity"],
  ["INTERNAL_ERROR",  "Container failed to start: no such image",                   "Permanent"],
  ["SOMETHING_ELSE",  "",                                                           "Transient"],
];

test.for(codes)("the code %s with the text %j", ([code, text, expected]) => {
  expect(classify({ messages: [text], code, retryAfterMs: null }).class).toBe(expected);
});

type ReasonRow = readonly [text: string, expected: string];

// oxfmt-ignore
const reasons: readonly ReasonRow[] = [
  ["there is no container instance available at this time",        "CapacityUnavailable"],
  ["you are requesting too many containers per second",            "RateLimited"],
  ["no container application assigned",                            "Misconfigured"],
  ["no such image",                                                "StartFailed"],
  ["exec() cannot be called on a container that is not running.",  "ContainerExited"],
  ["anything else",                                                "StartFailed"],
];

test.for(reasons)("%s has the reason %s", ([text, expected]) => {
  expect(classify({ messages: [text], code: null, retryAfterMs: null }).reason).toBe(expected);
});

test("a message is said once, outermost first, and only where there is one", () => {
  const { message } = classify({ messages: ["outer", "", "outer", "inner"], code: null, retryAfterMs: null });
  expect(message).toBe("outer < inner");
});

test("a long message is cut", () => {
  const { message } = classify({ messages: ["x".repeat(1000)], code: null, retryAfterMs: null });
  expect(message).toBe(`${"x".repeat(299)}…`);
});

test("a message of just the greatest length is not cut", () => {
  const { message } = classify({ messages: ["x".repeat(300)], code: null, retryAfterMs: null });
  expect(message).toBe("x".repeat(300));
});

test("patience is passed on where the platform asked for it, also for none", () => {
  const asked = [30_000, 0, null].map((retryAfterMs) => classify({ messages: [], code: null, retryAfterMs }).retryAfterMs);
  expect(asked).toEqual([30_000, 0, undefined]);
});

test("every error has a class and a reason, and none throws", () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 8 }), fc.option(fc.string()), fc.option(fc.nat()), (messages, code, retryAfterMs) => {
      const failure = classify({ messages, code, retryAfterMs });
      expect(failure.message.length).toBeLessThanOrEqual(300);
      expect(failure.class).toMatch(/^[A-Z]/);
    }),
  );
});

function classOf(messages: readonly string[]): FailureClass {
  return classify({ messages, code: null, retryAfterMs: null }).class;
}
