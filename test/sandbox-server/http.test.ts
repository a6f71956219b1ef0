import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventsOf, isolations, isRunning, type RunningServer, startServer, until } from "./running-server.ts";

describe.each(isolations)("over HTTP, isolated by %s", (isolation) => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer(isolation);
  });
  afterAll(() => server.stop());

  test("the version is the installed SDK's, so that the SDK finds no mismatch", async () => {
    const sdk = JSON.parse(readFileSync("node_modules/@cloudflare/sandbox/package.json", "utf8")) as { version: string };
    expect((await server.call("GET", "/api/version")).body.version).toBe(sdk.version);
    expect((await server.call("GET", "/api/ping")).body.message).toBe("healthy");
  });

  test("an unknown route and an unimplemented one are answered with a code", async () => {
    expect(await server.post("/api/no-such-thing", {})).toMatchObject({ status: 404, body: { code: "UNKNOWN_ERROR", httpStatus: 404 } });
    expect(await server.post("/api/backup/restore", {})).toMatchObject({ status: 501, body: { code: "NOT_IMPLEMENTED", httpStatus: 501 } });
  });

  test("a body that is no JSON object is refused", async () => {
    const response = await fetch(`${server.url}/api/execute`, { method: "POST", body: "not json" });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "VALIDATION_FAILED" });
  });

  test("a session that exists is not created again", async () => {
    expect((await server.post("/api/session/create", { id: "once" })).status).toBe(200);
    expect(await server.post("/api/session/create", { id: "once" })).toMatchObject({
      status: 409,
      body: { code: "SESSION_ALREADY_EXISTS", context: { sessionId: "once" } },
    });
    expect((await server.post("/api/session/delete", { sessionId: "once" })).status).toBe(200);
    expect((await server.post("/api/session/create", { id: "once" })).status).toBe(200);
  });

  test("a command's exit code and both outputs are returned", async () => {
    expect(await server.run("echo out; echo err >&2; (exit 3)")).toMatchObject({
      success: false,
      exitCode: 3,
      stdout: "out",
      stderr: "err",
    });
  });

  test("variables of one command do not outlive it", async () => {
    const sessionId = "scoped";
    await server.run("export A=before", { sessionId });
    expect((await server.run('echo "$A $B"', { sessionId, env: { A: "it's", B: "set" } })).stdout).toBe("it's set");
    expect((await server.run('echo "$A ${B-unset}"', { sessionId })).stdout).toBe("before unset");
  });

  test("a session keeps its directory, variables and functions, and no other session sees them", async () => {
    const sessionId = "state";
    await server.run("mkdir -p /workspace/kept && cd /workspace/kept && export KEPT=yes && greet() { echo hello; }", { sessionId });
    expect((await server.run("pwd; echo $KEPT; greet", { sessionId })).stdout).toBe("/workspace/kept\nyes\nhello");
    expect((await server.run("pwd; echo ${KEPT-no}", { sessionId: "other" })).stdout).toBe("/workspace\nno");
  });

  test("a directory given for one command is left again, and a missing one fails that command", async () => {
    expect((await server.run("pwd", { sessionId: "dir", cwd: "/tmp" })).stdout).toBe("/tmp");
    expect((await server.run("pwd", { sessionId: "dir" })).stdout).toBe("/workspace");
    expect(await server.run("pwd", { sessionId: "dir", cwd: "/workspace/missing" })).toMatchObject({ exitCode: 1, stdout: "" });
  });

  test("commands sent to one session at once run one after another", async () => {
    const add = (n: number) => server.run(`read n < /workspace/n; sleep 0.01; echo $((n + ${n})) > /workspace/n`, { sessionId: "queue" });
    await server.run("echo 0 > /workspace/n", { sessionId: "queue" });
    await Promise.all([1, 2, 3, 4, 5, 6].map(add));
    expect((await server.run("cat /workspace/n", { sessionId: "queue" })).stdout).toBe("21");
  });

  test("an unclosed quote fails that command only", async () => {
    expect(await server.run("echo 'unclosed", { sessionId: "quotes" })).toMatchObject({ exitCode: 2 });
    expect((await server.run("echo fine", { sessionId: "quotes" })).stdout).toBe("fine");
  });

  test("a background job does not hold up the command that started it", async () => {
    expect((await server.run("sleep 30 & echo started", { sessionId: "jobs" })).stdout).toBe("started");
  });

  test("a command that exits its shell ends the session, and the next one opens it anew", async () => {
    expect(await server.post("/api/execute", { command: "exit 7", sessionId: "leaving" })).toMatchObject({
      status: 410,
      body: { code: "SESSION_TERMINATED", context: { sessionId: "leaving", exitCode: 7 } },
    });
    expect((await server.run("echo back", { sessionId: "leaving" })).stdout).toBe("back");
  });

  test("a command that takes too long is ended and its session goes on", async () => {
    await server.run("export HERE=still", { sessionId: "slow" });
    expect(await server.post("/api/execute", { command: "sleep 30; sleep 30", sessionId: "slow", timeoutMs: 50 })).toMatchObject({
      status: 500,
      body: { code: "COMMAND_EXECUTION_ERROR" },
    });
    expect((await server.run("echo $HERE", { sessionId: "slow" })).stdout).toBe("still");
  });

  test("deleting a session ends the command it runs", async () => {
    const running = server.post("/api/execute", { command: "touch /workspace/begun; sleep 30", sessionId: "doomed" });
    await until("the command runs", async () => (await server.post("/api/exists", { path: "/workspace/begun" })).body.exists === true);
    await server.post("/api/session/delete", { sessionId: "doomed" });
    expect(await running).toMatchObject({ status: 410, body: { code: "SESSION_DESTROYED" } });
  });

  test("without a session every command has a shell of its own", async () => {
    const sessionId = "__DISABLE_SESSION__";
    await server.run("cd /tmp; export LOST=1", { sessionId });
    expect((await server.run("pwd; echo ${LOST-gone}", { sessionId })).stdout).toBe("/workspace\ngone\n");
    expect(await server.run("sleep 30", { sessionId, timeoutMs: 50 })).toMatchObject({ exitCode: 124 });
  });

  test("a file is read back as it was written, text or bytes", async () => {
    expect((await server.post("/api/write", { path: "/workspace/new/text.txt", content: "grüße\n" })).status).toBe(200);
    expect((await server.post("/api/read", { path: "/workspace/new/text.txt" })).body).toMatchObject({
      content: "grüße\n",
      encoding: "utf-8",
      size: 8,
    });
    await server.post("/api/write", { path: "/workspace/raw", content: "AAH/", encoding: "base64" });
    expect((await server.post("/api/read", { path: "/workspace/raw" })).body).toMatchObject({
      content: "AAH/",
      encoding: "base64",
      isBinary: true,
    });
    expect((await server.post("/api/read", { path: "/workspace/new/text.txt", encoding: "base64" })).body.content).toBe("Z3LDvMOfZQo=");
  });

  test("files written through the API are the files commands see, and the reverse", async () => {
    await server.post("/api/write", { path: "/workspace/by-api", content: "a" });
    expect((await server.run("cat /workspace/by-api")).stdout).toBe("a");
    await server.run("cd /workspace; printf b > by-command", { sessionId: "relative" });
    expect((await server.post("/api/read", { path: "by-command", sessionId: "relative" })).body.content).toBe("b");
    expect(readFileSync(`${server.root}/workspace/by-command`, "utf8")).toBe("b");
  });

  test("a big binary file streams whole", async () => {
    await server.run("head -c 200000 /dev/zero > /workspace/zeros");
    const response = await fetch(`${server.url}/api/read/stream`, { method: "POST", body: JSON.stringify({ path: "/workspace/zeros" }) });
    const events = await eventsOf(response.body as ReadableStream<Uint8Array>);
    expect(events[0]).toMatchObject({ type: "metadata", size: 200000, isBinary: true, encoding: "base64" });
    const chunks = events.filter((event) => event.type === "chunk").map((event) => Buffer.from(event.data, "base64"));
    expect(Buffer.concat(chunks).equals(Buffer.alloc(200000))).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: "complete", bytesRead: 200000 });
  });

  test.each([
    ["/api/read", { path: "/workspace/none" }, 404, "FILE_NOT_FOUND"],
    ["/api/read/stream", { path: "/workspace/none" }, 404, "FILE_NOT_FOUND"],
    ["/api/delete", { path: "/workspace/none" }, 404, "FILE_NOT_FOUND"],
    ["/api/rename", { oldPath: "/workspace/none", newPath: "/workspace/x" }, 404, "FILE_NOT_FOUND"],
    ["/api/list-files", { path: "/workspace/none" }, 404, "FILE_NOT_FOUND"],
    ["/api/read", { path: "/workspace" }, 400, "IS_DIRECTORY"],
    ["/api/delete", { path: "/workspace" }, 400, "IS_DIRECTORY"],
    ["/api/mkdir", { path: "/workspace" }, 500, "FILESYSTEM_ERROR"],
    ["/api/read", {}, 400, "VALIDATION_FAILED"],
    ["/api/write", { path: "/workspace/x", content: "*", encoding: "base64" }, 400, "VALIDATION_FAILED"],
  ])("%s of %o is refused with %i %s", async (path, body, status, code) => {
    expect(await server.post(path, body)).toMatchObject({ status, body: { code, httpStatus: status } });
  });

  test("files are renamed, moved to another directory, listed and deleted", async () => {
    await server.post("/api/mkdir", { path: "/workspace/tree/deep", recursive: true });
    await server.post("/api/write", { path: "/workspace/tree/one", content: "1" });
    await server.post("/api/write", { path: "/workspace/tree/.hidden", content: "h" });
    await server.post("/api/rename", { oldPath: "/workspace/tree/one", newPath: "/workspace/tree/two" });
    expect((await server.post("/api/move", { sourcePath: "/workspace/tree/two", destinationPath: "/tmp/two" })).status).toBe(200);
    expect((await server.post("/api/move", { sourcePath: "/tmp/two", destinationPath: "/workspace/tree/deep" })).status).toBe(200);
    const list = (options: object) => server.post("/api/list-files", { path: "/workspace/tree", options });
    const names = async (options: object) => (await list(options)).body.files?.map(({ relativePath }) => relativePath);
    expect(await names({})).toEqual(["deep"]);
    expect(await names({ recursive: true, includeHidden: true })).toEqual([".hidden", "deep", "deep/two"]);
    expect((await list({ recursive: true })).body.files?.[1]).toMatchObject({
      absolutePath: "/workspace/tree/deep/two",
      type: "file",
      size: 1,
    });
    await server.post("/api/delete", { path: "/workspace/tree/deep/two" });
    expect((await server.post("/api/exists", { path: "/workspace/tree/deep/two" })).body.exists).toBe(false);
  });

  test("a process inherits its session, is listed, followed and killed with what it started", async () => {
    await server.run("cd /tmp; export COLOUR=blue", { sessionId: "parent" });
    const command = 'echo "$COLOUR $PWD"; sleep 30 & echo "child $!"; wait';
    expect((await server.post("/api/process/start", { command, processId: "web", sessionId: "parent" })).body).toMatchObject({
      processId: "web",
    });
    let child = "";
    await until("the process has written", async () => {
      const { stdout = "" } = (await server.call("GET", "/api/process/web/logs")).body;
      child = /child (\d+)/.exec(stdout)?.[1] ?? "";
      return stdout.startsWith("blue /tmp\n") && child !== "";
    });
    expect((await server.call("GET", "/api/process/web")).body.process).toMatchObject({ id: "web", status: "running", command });
    expect((await server.call("DELETE", "/api/process/web")).status).toBe(200);
    expect((await server.call("GET", "/api/process/web")).body.process).toMatchObject({ status: "killed", exitCode: 143 });
    await until("its child is gone", () => !isRunning(Number(child)));
    expect(await server.call("DELETE", "/api/process/web")).toMatchObject({ status: 404, body: { code: "COMMAND_NOT_FOUND" } });
    expect(await server.call("GET", "/api/process/nobody")).toMatchObject({ status: 404, body: { code: "PROCESS_NOT_FOUND" } });
  });

  test("a process's stream ends with its exit code, also for one that has ended already", async () => {
    await server.post("/api/process/start", { command: "echo one; echo two >&2; exit 5", processId: "short" });
    const follow = async () => eventsOf((await fetch(`${server.url}/api/process/short/stream`)).body as ReadableStream<Uint8Array>);
    for (const events of [await follow(), await follow()]) {
      expect(events.find(({ type }) => type === "stdout")).toMatchObject({ data: "one\n" });
      expect(events.find(({ type }) => type === "stderr")).toMatchObject({ data: "two\n" });
      expect(events.at(-1)).toMatchObject({ type: "exit", exitCode: 5 });
    }
  });

  test("a command's output streams while it runs", async () => {
    const body = JSON.stringify({ command: "echo first; until [ -e /workspace/go ]; do sleep 0.01; done; echo last" });
    const response = await fetch(`${server.url}/api/execute/stream`, { method: "POST", body });
    let text = "";
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      // The first event repeats the command, and with it both words.
      if (text.includes('"data":"first') && !text.includes('"data":"last'))
        await server.post("/api/write", { path: "/workspace/go", content: "" });
    }
    expect(text).toMatch(/"first\\n".*"last\\n".*"complete","exitCode":0/s);
  });

  test("watching a port tells when it answers, and when the process ends first", async () => {
    const watch = async (fields: object) => {
      const body = JSON.stringify({ mode: "tcp", interval: 10, ...fields });
      return eventsOf((await fetch(`${server.url}/api/port-watch`, { method: "POST", body })).body as ReadableStream<Uint8Array>);
    };
    const port = Number(new URL(server.url).port);
    expect((await watch({ port, mode: "http", path: "/api/ping" })).at(-1)).toMatchObject({ type: "ready", port, statusCode: 200 });
    await server.post("/api/process/start", { command: "exit 9", processId: "brief" });
    expect((await watch({ port: 1, processId: "brief" })).at(-1)).toMatchObject({ type: "process_exited", exitCode: 9 });
  });
});
