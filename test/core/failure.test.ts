/**
 * Every text that a failure is known by, and its class (design.md section 7), in everything that it arrives in. The texts are those of the
 * platform, of @cloudflare/containers 0.3.7, of @cloudflare/sandbox 0.12.10, of workerd and of D1.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { classify } from "../../src/controller/failure.ts";
import { evidenceOf } from "../../src/failure-evidence.ts";
import { describeFailure } from "../../src/sandbox/container-errors.ts";
import type { FailureClass } from "../../src/workspace.ts";

fc.configureGlobal({ seed: 794_825 });

type Row = readonly [text: string, expected: FailureClass];

// oxfmt-ignore
const texts: readonly Row[] = [
  // Want of capacity, and haste.
  ["there is no container instance that can be provided to this durable object",                            "Capacity"],
  ["There is no container instance that can be provided to this Durable Object, try again later",           "Capacity"],
  ["There is no Container instance available at this time.\nThis is likely because you have reached your max concurrent instance count (set in wrangler config) or are you currently provisioning the Container.\nIf you are deploying your Container for the first time, check your dashboard to see provisioning status, this may take a few minutes.", "Capacity"],
  ["maximum number of running container instances exceeded",                                                "Capacity"],
  ["Maximum number of running container instances exceeded. Try again later, or try configuring a higher value for max_instances", "Capacity"],
  ["SURPASSED_BASE_LIMITS",                                                                                 "Capacity"],
  ["SURPASSED_TOTAL_LIMITS",                                                                                "Capacity"],
  ["LOCATION_SURPASSED_BASE_LIMITS",                                                                        "Capacity"],
  ["you are requesting too many containers per second",                                                     "RateLimited"],
  ["Your account is generating too much load on Durable Objects. Please back off and try again later.",     "RateLimited"],
  // A connection that was lost, or never came to be.
  ["RPC session was shut down by disposing the main stub",                                                  "Transient"],
  ["RPC was canceled because the RpcPromise was disposed.",                                                 "Transient"],
  ["The sandbox container was unavailable: the connection was torn down before it became reachable. Retry the operation.", "Transient"],
  ["Container was unavailable after exhausting upgrade retry budget (status 503)",                          "Transient"],
  ["Peer closed WebSocket: 1006 abnormal",                                                                  "Transient"],
  ["WebSocket connection failed.",                                                                          "Transient"],
  ["WebSocket upgrade failed: 500 Internal Server Error",                                                   "Transient"],
  ["WebSocket upgrade failed: 409 WORKSPACE_NOT_RUNNING",                                                   "Transient"],
  ["WebSocket upgrade failed: 404 Not Found",                                                               "Misconfigured"],
  ["No WebSocket in upgrade response",                                                                      "Transient"],
  ["Error proxying request to container: Error: internal error",                                            "Transient"],
  ["Container suddenly disconnected, try again",                                                            "Transient"],
  ["Network connection lost.",                                                                              "Transient"],
  // An operation that something came between.
  ["The sandbox container stopped while the operation was pending.",                                        "Transient"],
  ["The sandbox transport was switched while the operation was pending.",                                   "Transient"],
  ["The sandbox was destroyed while the operation was pending.",                                            "Progressing"],
  ["Sandbox operation commands.execute was interrupted while the runtime connection was closing",           "Uncertain"],
  ["Sandbox operation files.mkdir was interrupted while the runtime connection closed unexpectedly",        "Uncertain"],
  ["Sandbox operation exec was interrupted while the platform was updating the sandbox runtime",            "Uncertain"],
  ["Backup restore was interrupted before completion could be verified",                                    "Transient"],
  ["Backup restore recovery attempts were exhausted",                                                       "Transient"],
  // A start that has not come far enough yet.
  ["Container is starting. Please retry in a moment.",                                                      "Transient"],
  ["container port not found",                                                                              "Transient"],
  ["connection refused: container port 3000",                                                               "Transient"],
  ["The container is not listening in the TCP address 10.0.0.1:3000",                                       "Transient"],
  ["Failed to verify port 3000 is available after 20000ms, last error: The operation was aborted",          "Transient"],
  ["Container did not start after 8000ms",                                                                  "Transient"],
  ["Monitor failed to find container",                                                                      "Transient"],
  ["timed out",                                                                                             "Transient"],
  ["timeout",                                                                                               "Transient"],
  ["The operation was aborted",                                                                             "Transient"],
  ["The operation was aborted due to timeout",                                                              "Transient"],
  ["Aborted waiting for container to start as we received a cancellation signal",                           "Transient"],
  ["Container request aborted.",                                                                            "Transient"],
  ["the start was not verified before its deadline",                                                        "Transient"],
  ["the sandbox was reset while the start was under way",                                                   "Transient"],
  ["the working directory could not be created",                                                            "Transient"],
  // A container that ended.
  ["Container exited with unexpected exit code: 1",                                                         "Transient"],
  ["Container exited before we could determine the container health, exit code: 137",                       "Transient"],
  ["Container crashed while checking for ports, did you start the container and setup the entrypoint correctly?", "Transient"],
  ["Runtime signalled the container to exit: 143",                                                          "Transient"],
  ["Runtime signalled the container to exit due to a new version rollout: 0",                               "Transient"],
  // A Durable Object or its storage.
  ["Durable Object reset because its code was updated.",                                                    "Transient"],
  ["This script has been upgraded. Please send a new request to connect to the new version.",               "Transient"],
  ["Internal error while starting up Durable Object storage caused object to be reset.",                    "Transient"],
  ["Durable Object storage operation exceeded timeout which caused object to be reset.",                    "Transient"],
  ["Connection closed: this Durable Object instance is no longer active. Reconnect or retry the request.",  "Transient"],
  ["Durable Object is overloaded. Too many requests queued.",                                               "Transient"],
  ["Durable Object is overloaded. Too much data queued.",                                                   "Transient"],
  ["Durable Object is overloaded. Requests queued for too long.",                                           "Transient"],
  ["Durable Object is overloaded. Too many requests for the same object within a 10 second window.",        "Transient"],
  // D1.
  ["D1_ERROR: Network connection lost.",                                                                    "Transient"],
  ["D1_ERROR: D1 DB reset because its code was updated.",                                                   "Transient"],
  ["D1_ERROR: Internal error while starting up D1 DB storage caused object to be reset.",                   "Transient"],
  ["D1_ERROR: Internal error in D1 DB storage caused object to be reset.",                                  "Transient"],
  ["D1_ERROR: Cannot resolve D1 DB due to transient issue on remote node.",                                 "Transient"],
  ["D1_ERROR: Can't read from request stream because client disconnected.",                                 "Transient"],
  ["D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.",                   "Transient"],
  ["D1_ERROR: D1 DB is overloaded. Requests queued for too long.",                                          "Transient"],
  ["D1_ERROR: D1 DB is overloaded. Too many requests queued.",                                              "Transient"],
  ["D1_ERROR: D1 DB's isolate exceeded its memory limit and was reset.",                                    "Transient"],
  ["D1_ERROR: D1 DB exceeded its CPU time limit and was reset.",                                            "Transient"],
  ["D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'",                                   "Misconfigured"],
  ["D1_COLUMN_NOTFOUND: Column not found",                                                                  "Misconfigured"],
  ["D1_ERROR: too many SQL variables at offset 411: SQLITE_ERROR",                                          "Misconfigured"],
  ["Failed query: begin\nparams: ",                                                                         "Misconfigured"],
  // What no retry cures.
  ["Container ran out of memory",                                                                           "Permanent"],
  ["too many subprocesses",                                                                                 "Permanent"],
  ["the container did not call start",                                                                      "Permanent"],
  ["no such image",                                                                                         "Permanent"],
  ["No such image available named registry.example/app:1",                                                  "Permanent"],
  ["Container already exists",                                                                              "Permanent"],
  ["Starting container failed with: driver failed programming external connectivity",                       "Permanent"],
  ["Container failed to start due to a permanent error. Check your container configuration.",               "Permanent"],
  ["there is no application that matches the provided constraints",                                         "Misconfigured"],
  ["no container application assigned",                                                                     "Misconfigured"],
  ["Containers have not been enabled for this Durable Object class. Have you correctly setup your Wrangler config? More info: https://developers.cloudflare.com/containers/get-started/#configuration", "Misconfigured"],
  ["ctx.exports is undefined, please try to update your compatibility date or export ContainerProxy from the containers package in your worker entrypoint", "Misconfigured"],
  ["ctx.exports.ContainerProxy is undefined, export ContainerProxy from the containers package in your worker entrypoint", "Misconfigured"],
  // A container that runs, or does not.
  ["start() cannot be called on a container that is already running.",                                      "Uncertain"],
  ["exec() cannot be called on a container that is not running.",                                           "NotRunning"],
  ["snapshotDirectory() cannot be called on a container that is not running.",                              "NotRunning"],
  ["snapshotContainer() cannot be called on a container that is not running.",                              "NotRunning"],
  ["setLabels() cannot be called on a container that is not running.",                                      "NotRunning"],
  ["signal() cannot be called on a container that is not running.",                                         "NotRunning"],
  ["monitor() cannot be called on a container that is not running.",                                        "NotRunning"],
  ["The container is not running, consider calling start()",                                                "NotRunning"],
  // Backups.
  ["Upload verification failed: expected 10 bytes, got 9.",                                                 "Transient"],
  ["Upload verification failed: expected 10 bytes, got 0. This usually means the BACKUP_BUCKET R2 binding is using local storage while presigned URLs upload to remote R2. Add `\"remote\": true` to your BACKUP_BUCKET R2 binding in wrangler.jsonc to fix this.", "Misconfigured"],
  ["Presigned URL upload failed (exit code 28): curl: (28) Operation timed out",                            "Transient"],
  ["Presigned URL download failed (exit code 56): ",                                                        "Transient"],
  ["Parallel download failed (exit code 1): ",                                                              "Transient"],
  ["Downloaded archive size mismatch: expected 10, got 9",                                                  "Transient"],
  ["Container failed to create backup archive",                                                             "Transient"],
  ["Container failed to restore backup archive",                                                            "Transient"],
  ["mksquashfs failed: Could not create destination file: Permission denied",                               "Transient"],
  ["Failed to mount squashfs: This doesn't look like a squashfs image.",                                    "Transient"],
  ["Backup not configured. Add a BACKUP_BUCKET R2 binding to your wrangler.jsonc.",                         "Misconfigured"],
  ["Backup requires R2 presigned URL credentials. Missing: R2_ACCESS_KEY_ID. Set these as environment variables or secrets in your wrangler.jsonc.", "Misconfigured"],
  ["BACKUP_BUCKET R2 binding not found in env. Add a BACKUP_BUCKET R2 binding to your wrangler.jsonc for local backup support.", "Misconfigured"],
  ["BackupOptions.dir must be inside one of the supported backup roots (/workspace, /home, /tmp, /var/tmp, /app)", "Permanent"],
  ["BackupOptions.dir must be an absolute path",                                                            "Permanent"],
  ["BackupOptions.dir must not contain \"..\" path segments",                                               "Permanent"],
  ["BackupOptions.ttl must be a positive number of seconds",                                                "Permanent"],
  ["BackupOptions.name must be a string of at most 256 characters",                                         "Permanent"],
  ["Invalid backup: dir must be an absolute path",                                                          "Permanent"],
  ["Invalid backup: id must be a valid UUID (e.g. from createBackup)",                                      "Permanent"],
  ["Backup not found: 6e0b. Verify the backup ID is correct and the backup has not been deleted.",          "Permanent"],
  ["Backup archive not found in R2: 6e0b. The archive may have been deleted by R2 lifecycle rules.",        "Permanent"],
  ["Backup 6e0b has expired (created: 2026-11-30T00:00:00.000Z, TTL: 60s). Create a new backup.",           "Permanent"],
  ["Backup metadata has invalid createdAt timestamp: yesterday",                                            "Permanent"],
  // Nothing that anybody knows.
  ["something that nobody has ever seen",                                                                   "Transient"],
  ["",                                                                                                      "Transient"],
];

/** What the text of one error becomes a part of. */
const inText: Readonly<Record<string, (text: string) => string>> = {
  "the wrapper of the SDK's rpc path": (text) => `Container failed to start: ${text}`,
  "the wrapper of the container class": (text) => `Failed to start container: ${text}`,
  "the wrapper of the proxy": (text) => `Error proxying request to container: ${text}`,
  "the wrapper of D1": (text) => `D1_ERROR: ${text}`,
  "the name of its class": (text) => `Error: ${text}`,
  "upper case": (text) => text.toUpperCase(),
  "lower case": (text) => text.toLowerCase(),
  "the body of a response": (text) => JSON.stringify({ code: "INTERNAL_ERROR", message: text, httpStatus: 500 }),
  "the context within the body of a response": (text) =>
    JSON.stringify({ ...wrapper, code: "INTERNAL_ERROR", context: { phase: "startup", error: text } }),
};

/** What holds the text in another field than its message, or is no error at all. */
const asError: Readonly<Record<string, (text: string) => unknown>> = {
  "an error": (text) => new Error(text),
  "an error of another realm": (text) => ({ message: text }),
  "a string": (text) => text,
  "the context of an SDK error": (text) => sdkError("INTERNAL_ERROR", { phase: "startup", error: text }),
  "the original message of an SDK error": (text) => sdkError("RPC_TRANSPORT_ERROR", { kind: "unknown", originalMessage: text }),
  "an SDK error that only its response is left of": (text) => ({
    message: wrapper.message,
    errorResponse: { context: { error: text } },
  }),
};

/** What holds another error as its cause. */
const around: Readonly<Record<string, (inner: unknown) => unknown>> = {
  "an error": (inner) => new Error("outer", { cause: inner }),
  "an SDK error": (inner) => ({ ...sdkError("INTERNAL_ERROR", { phase: "startup" }), cause: inner }),
  "an error of another realm": (inner) => ({ message: "outer", cause: inner }),
  "our own deadline": (inner) =>
    Object.assign(new Error("the start was not verified before its deadline", { cause: inner }), { code: "START_DEADLINE" }),
};

const wrapper = { message: "Container is starting. Please retry in a moment.", suggestion: "The container is booting." };

function sdkError(code: string, context: object): object {
  return { name: "SandboxError", message: wrapper.message, code, context };
}

test.for(texts)("%j as %s", ([text, expected]) => {
  expect(classOf(text)).toBe(expected);
});

describe.each(Object.entries(inText))("in %s", (_form, wrap) => {
  test.for(texts)("%j as %s", ([text, expected]) => {
    expect(classOf(wrap(text))).toBe(expected);
  });
});

describe.each(Object.entries(asError))("thrown as %s", (_form, make) => {
  test.for(texts)("%j as %s", ([text, expected]) => {
    expect(classOfError(make(text))).toBe(expected);
  });
});

describe.each(Object.entries(around))("as the cause of %s", (_form, wrap) => {
  test.for(texts)("%j as %s", ([text, expected]) => {
    expect(classOfError(wrap(new Error(text)))).toBe(expected);
  });
});

test("no number of wrappers changes a class", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...texts),
      fc.array(fc.constantFrom(...Object.values(inText)), { maxLength: 4 }),
      fc.constantFrom(...Object.values(asError)),
      fc.array(fc.constantFrom(...Object.values(around)), { maxLength: 7 }),
      ([text, expected], wrapText, make, wrapError) => {
        const message = wrapText.reduce((inner, wrap) => wrap(inner), text);
        expect(classOfError(wrapError.reduce((inner, wrap) => wrap(inner), make(message)))).toBe(expected);
      },
    ),
    { numRuns: 2000 },
  );
});

type ChainRow = readonly [situation: string, messages: readonly string[], expected: FailureClass];

const NO_INSTANCE = "there is no container instance that can be provided to this durable object";

// oxfmt-ignore
const chains: readonly ChainRow[] = [
  ["want of capacity behind a lost connection",              [NO_INSTANCE, "Network connection lost."], "Capacity"],
  ["want of capacity behind a ping without an answer",       [NO_INSTANCE, "The operation was aborted"], "Capacity"],
  ["want of capacity behind a ping of nothing",              [NO_INSTANCE, "The container is not running, consider calling start()"], "Capacity"],
  ["a cause that no retry can cure behind want of capacity", [NO_INSTANCE, "No such image available named app"], "Permanent"],
  ["a missing application behind want of capacity",          [NO_INSTANCE, "no container application assigned"], "Misconfigured"],
  ["a rate limit behind want of capacity",                   [NO_INSTANCE, "you are requesting too many containers per second"], "RateLimited"],
  ["a container that runs behind want of capacity",          [NO_INSTANCE, "start() cannot be called on a container that is already running."], "Uncertain"],
  ["a container that exited behind want of capacity",        [NO_INSTANCE, "Container exited with unexpected exit code: 1"], "Transient"],
  ["an early exit behind want of capacity",                  [NO_INSTANCE, "Container exited before we could determine the container health, exit code: 1"], "Transient"],
  ["a crash behind want of capacity",                        [NO_INSTANCE, "Container crashed while checking for ports, did you start the container"], "Transient"],
  ["a rollout behind want of capacity",                      [NO_INSTANCE, "Runtime signalled the container to exit due to a new version rollout: 0"], "Transient"],
  ["an end that we saw above want of capacity",              ["the container ended before it was verified (exit code 1)", NO_INSTANCE], "Transient"],
  ["a server that did not listen behind want of capacity",   [NO_INSTANCE, "The container is not listening in the TCP address 10.0.0.1:3000"], "Transient"],
  ["a port that was not verified behind want of capacity",   [NO_INSTANCE, "Failed to verify port 3000 is available after 20000ms, last error: x"], "Transient"],
  ["a port that was not found behind want of capacity",      ["There is no Container instance available at this time.", "container port not found"], "Transient"],
  ["a port that refused behind want of capacity",            [NO_INSTANCE, "connection refused: container port"], "Transient"],
  ["the account's own limit beside a server that did not listen", ["maximum number of running container instances exceeded", "The container is not listening"], "Capacity"],
  ["a deadline above want of capacity",                      ["the start was not verified before its deadline", "maximum number of running container instances exceeded"], "Capacity"],
  ["a container that was not running behind a deadline",     ["the start was not verified before its deadline", "The container is not running, consider calling start()"], "NotRunning"],
  ["a missing application behind a permanent error",         ["Container failed to start due to a permanent error. Check your container configuration.", "no application that matches"], "Misconfigured"],
  ["a rate limit behind what a local engine said",           ["Starting container failed with: you are requesting too many containers per second"], "RateLimited"],
  ["an error that says nothing at all",                      [], "Transient"],
];

test.for(chains)("%s", ([, messages, expected]) => {
  expect(classify({ messages, code: null, retryAfterMs: null }).class).toBe(expected);
});

type CodeRow = readonly [code: string | null, contextReason: string | null, text: string, expected: FailureClass];

// oxfmt-ignore
const codes: readonly CodeRow[] = [
  ["START_CANCELLED",       null,                               "the start was cancelled because the workspace was stopped", "Progressing"],
  ["START_CANCELLED",       null,                               NO_INSTANCE,                                                 "Progressing"],
  ["START_CANCELLED",       "max_container_instances_exceeded", "",                                                          "Progressing"],
  ["START_DEADLINE",        null,                               "the start was not verified before its deadline",            "Transient"],
  ["START_DEADLINE",        null,                               NO_INSTANCE,                                                 "Capacity"],
  ["START_DEADLINE",        "max_container_instances_exceeded", "",                                                          "Capacity"],
  ["CONTAINER_UNAVAILABLE", "no_container_instance_available",  "",                                                          "Capacity"],
  ["CONTAINER_UNAVAILABLE", "no_container_instance_available",  "The container is not listening",                            "Transient"],
  ["CONTAINER_UNAVAILABLE", "max_container_instances_exceeded", "",                                                          "Capacity"],
  ["CONTAINER_UNAVAILABLE", "max_container_instances_exceeded", "The container is not listening",                            "Capacity"],
  ["container_unavailable", "Max_Container_Instances_Exceeded", "",                                                          "Capacity"],
  ["CONTAINER_UNAVAILABLE", "container_starting",               "",                                                          "Progressing"],
  ["CONTAINER_UNAVAILABLE", "container_starting",               NO_INSTANCE,                                                 "Capacity"],
  ["CONTAINER_UNAVAILABLE", "container_unhealthy",              "",                                                          "Transient"],
  ["CONTAINER_UNAVAILABLE", "container_replaced",               "",                                                          "Transient"],
  ["CONTAINER_UNAVAILABLE", "container_unreachable",            "",                                                          "Transient"],
  ["CONTAINER_UNAVAILABLE", "rpc_upgrade_failed",               "",                                                          "Transient"],
  ["CONTAINER_UNAVAILABLE", "a reason of another version",      "",                                                          "Transient"],
  ["CONTAINER_UNAVAILABLE", null,                               "",                                                          "Transient"],
  ["OPERATION_INTERRUPTED", "runtime_replaced",                 "",                                                          "Transient"],
  ["OPERATION_INTERRUPTED", "runtime_replaced",                 "Sandbox operation exec was interrupted while the runtime connection closed unexpectedly", "Uncertain"],
  ["OPERATION_INTERRUPTED", "transport_disposed",               "",                                                          "Uncertain"],
  ["OPERATION_INTERRUPTED", "recovery_exhausted",               "",                                                          "Transient"],
  ["OPERATION_INTERRUPTED", "sandbox_lifetime_changed",         "",                                                          "Progressing"],
  ["RPC_TRANSPORT_ERROR",   null,                               "",                                                          "Transient"],
  ["INTERNAL_ERROR",        null,                               "Container failed to start: no such image",                  "Permanent"],
  ["INTERNAL_ERROR",        null,                               "Container failed to start: you are requesting too many containers per second", "RateLimited"],
  ["BACKUP_NOT_FOUND",      null,                               "",                                                          "Permanent"],
  ["BACKUP_EXPIRED",        null,                               "",                                                          "Permanent"],
  ["INVALID_BACKUP_CONFIG", "Missing BACKUP_BUCKET R2 binding", "",                                                          "Misconfigured"],
  ["INVALID_BACKUP_CONFIG", "dir must be an absolute path",     "BackupOptions.dir must be an absolute path",                "Permanent"],
  ["BACKUP_CREATE_FAILED",  null,                               "",                                                          "Transient"],
  ["BACKUP_RESTORE_FAILED", null,                               "",                                                          "Transient"],
  ["SOMETHING_ELSE",        null,                               "",                                                          "Transient"],
  [null,                    null,                               "INVALID_BACKUP_CONFIG",                                     "Transient"],
];

describe("a code and a reason", () => {
  test.for(codes)("%s %s %j", ([code, contextReason, text, expected]) => {
    expect(classify({ messages: [text], code, contextReason, retryAfterMs: null }).class).toBe(expected);
  });

  test.for(codes)("%s %s %j, as an error", ([code, reason, message, expected]) => {
    expect(classOfError({ message, code, context: { reason } })).toBe(expected);
  });

  test.for(codes)("%s %s %j, as the cause of another", ([code, reason, message, expected]) => {
    expect(classOfError(new Error("outer", { cause: { message, code, context: { reason } } }))).toBe(expected);
  });

  test.for(codes)("%s %s %j, in the body of a response within another", ([code, reason, message, expected]) => {
    const body = JSON.stringify({ code, message, context: { reason, retryable: true } });
    expect([body, JSON.stringify({ error: body }), JSON.stringify({ error: JSON.stringify({ error: body }) })].map(classOf)).toEqual([
      expected,
      expected,
      expected,
    ]);
  });
});

describe("what a user chose", () => {
  const bait = [NO_INSTANCE, "no such image", "you are requesting too many containers per second", "no container application assigned"];

  test.for(bait)("is not read where drizzle repeats it: %s", (value) => {
    const message = `Failed query: update "workspaces" set "spec" = ?\nparams: ${value}`;
    const { class: of, message: shown } = classify(
      evidenceOf(new Error(message, { cause: new Error("D1_ERROR: Network connection lost.") })),
    );
    expect([of, shown]).toEqual([
      "Transient",
      'Failed query: update "workspaces" set "spec" = ?\nparams: … < D1_ERROR: Network connection lost.',
    ]);
    expect(classOf(JSON.stringify({ message }))).toBe("Transient");
  });

  test.for(bait)("is not read where an error repeats the environment: %s", (value) => {
    const { messages, code, retryAfterMs } = describeFailure(new Error(`cannot set NAME=${value}`), null, { NAME: value });
    expect(classify({ messages, code, retryAfterMs })).toMatchObject({ class: "Transient", message: "cannot set NAME=[redacted]" });
  });

  test.for([...bait, '{"code":"START_CANCELLED","reason":"no_container_instance_available"}'])(
    "is not read where a setup command said it: %s",
    (output) => {
      const message = `setup command 1 failed with exit code 1: ${output}`;
      const evidence = { messages: [message], code: "SETUP_FAILED", contextReason: null, retryAfterMs: null };
      expect(classify(evidence)).toMatchObject({ class: "Transient", reason: "SetupFailed" });
    },
  );

  test("is not taken for a reason where it merely reads like one", () => {
    expect(classOf("cannot open /workspace/max_container_instances_exceeded/sandbox_lifetime_changed/backup_not_found")).toBe("Transient");
  });
});

type ReasonRow = readonly [text: string, expected: string];

// oxfmt-ignore
const reasons: readonly ReasonRow[] = [
  ["there is no container instance available at this time",        "CapacityUnavailable"],
  ["maximum number of running container instances exceeded",       "CapacityUnavailable"],
  ["you are requesting too many containers per second",            "RateLimited"],
  ["no container application assigned",                            "Misconfigured"],
  ["no such image",                                                "StartFailed"],
  ["exec() cannot be called on a container that is not running.",  "ContainerExited"],
  ["The sandbox was destroyed while the operation was pending.",   "Terminating"],
  ["Container exited with unexpected exit code: 1",                "StartFailed"],
  ["Backup not found: 6e0b. Verify the backup ID is correct",      "SourceNotFound"],
  ["Backup archive not found in R2: 6e0b.",                        "SourceNotFound"],
  ["Backup 6e0b has expired (created: 2026-11-30T00:00:00.000Z, TTL: 60s).", "SourceNotFound"],
  ["Invalid backup: dir must be an absolute path",                 "StartFailed"],
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

describe("patience", () => {
  test("is passed on where the platform asked for it, also for none", () => {
    const asked = [30_000, 0, null].map((retryAfterMs) => classify({ messages: [], code: null, retryAfterMs }).retryAfterMs);
    expect(asked).toEqual([30_000, 0, undefined]);
  });

  // oxfmt-ignore
  const told: readonly (readonly [text: string, expected: number | undefined])[] = [
    ["503 Service Unavailable, Retry-After: 10",                  10_000],
    ["retry-after=3",                                             3000],
    ['{"headers":{"Retry-After":"5"}}',                           5000],
    ['{"context":{"retryAfter":2}}',                              2000],
    ['{"context":{"retryAfterMs":1500}}',                         1500],
    [JSON.stringify({ body: '{"context":{"retryAfterMs":1500}}' }), 1500],
    ["Retry-After: Wed, 21 Oct 2026 07:28:00 GMT",                undefined],
    ["retry after a while: 5",                                    undefined],
    ["Retry-After: 99999999999999999999",                         undefined],
    ["nothing of the kind",                                       undefined],
  ];

  test.for(told)("is read from the text %s", ([text, expected]) => {
    expect(classify({ messages: ["outer", text], code: null, retryAfterMs: null }).retryAfterMs).toBe(expected);
  });

  test("that an error states itself goes before that in a text", () => {
    expect(classify({ messages: ["Retry-After: 10"], code: null, retryAfterMs: 7 }).retryAfterMs).toBe(7);
  });
});

test("every error has a class and a reason, and none throws", () => {
  const texts = fc.array(fc.oneof(fc.string(), fc.string({ unit: "binary" })), { maxLength: 8 });
  fc.assert(
    fc.property(
      texts,
      fc.option(fc.string()),
      fc.option(fc.string()),
      fc.option(fc.nat()),
      (messages, code, contextReason, retryAfterMs) => {
        const failure = classify({ messages, code, contextReason, retryAfterMs });
        expect(failure.message.length).toBeLessThanOrEqual(300);
        expect(failure.class).toMatch(/^[A-Z]/);
      },
    ),
  );
});

test("whatever is thrown has a class", () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withSparseArray: true }), (thrown) => {
      expect(classOfError({ message: "no such image", context: thrown, cause: thrown, code: thrown, exitCode: thrown })).toBe("Permanent");
      expect(classOfError(thrown)).toMatch(/^[A-Z]/);
    }),
  );
});

function classOf(message: string): FailureClass {
  return classify({ messages: [message], code: null, retryAfterMs: null }).class;
}

/** As the controller reads it of a call, and as the sandbox keeps it of a start: both must come to the same. */
function classOfError(error: unknown): FailureClass {
  const ofCall = classify(evidenceOf(error)).class;
  expect(classify(describeFailure(error, null, {})).class).toBe(ofCall);
  return ofCall;
}
