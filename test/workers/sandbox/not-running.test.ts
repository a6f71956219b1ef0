import { describe, expect, test } from "vitest";
import { isWorkspaceNotRunning } from "../../../src/sandbox/not-running.ts";

describe("isWorkspaceNotRunning", () => {
  test.for<[string, unknown]>([
    ["an error with the code", Object.assign(new Error("x"), { code: "WORKSPACE_NOT_RUNNING" })],
    ["an error with the code of a start under way", Object.assign(new Error("x"), { code: "WORKSPACE_NOT_READY" })],
    ["an error that kept only its text", new Error("SandboxError: WORKSPACE_NOT_RUNNING: the workspace runs no container")],
    ["a failed websocket upgrade", new Error("WebSocket upgrade failed: 409 WORKSPACE_NOT_RUNNING")],
    ["a wrapper with the original as its cause", new Error("wrapped", { cause: new Error("WORKSPACE_NOT_RUNNING: …") })],
    [
      "a wrapper with the original's text in its context",
      Object.assign(new Error("x"), { context: { error: "WORKSPACE_NOT_RUNNING: …" } }),
    ],
    ["a wrapper of the SDK's rpc transport", Object.assign(new Error("x"), { context: { originalMessage: "WORKSPACE_NOT_READY: …" } })],
    ["an error response as plain data", { errorResponse: { code: "WORKSPACE_NOT_RUNNING" } }],
  ])("recognises %s", ([, error]) => {
    expect(isWorkspaceNotRunning(error)).toBe(true);
  });

  test.for<[string, unknown]>([
    ["another refusal", Object.assign(new Error("Permission denied"), { code: "PERMISSION_DENIED" })],
    ["a capacity failure", new Error("there is no container instance that can be provided to this durable object")],
    ["nothing", undefined],
    ["null", null],
    ["a longer code", new Error("MY_WORKSPACE_NOT_RUNNING_2")],
  ])("does not recognise %s", ([, error]) => {
    expect(isWorkspaceNotRunning(error)).toBe(false);
  });

  test("ends on a cycle of causes", () => {
    const error = new Error("x");
    error.cause = error;
    expect(isWorkspaceNotRunning(error)).toBe(false);
  });
});
