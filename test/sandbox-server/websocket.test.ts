import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Dispatch } from "../../dev/sandbox-server/dispatch.ts";
import { websocketUpgrade } from "../../dev/sandbox-server/websocket-server.ts";
import { isolations, type RunningServer, startServer, until } from "./running-server.ts";
import { connect, type Connection } from "./websocket-client.ts";

describe.each(isolations)("over a WebSocket, isolated by %s", (isolation) => {
  let server: RunningServer;
  let connection: Connection;
  beforeAll(async () => {
    server = await startServer(isolation);
    connection = await connect(server);
  });
  afterAll(async () => {
    connection.webSocket.close();
    await server.stop();
  });

  test("a request is answered with the status and the body that it has over HTTP", async () => {
    expect(await connection.call("GET", "/api/ping?from=websocket")).toMatchObject({
      type: "response",
      status: 200,
      body: { message: "healthy" },
      done: true,
    });
    expect(await connection.call("GET", "/")).not.toHaveProperty("body");
    expect(await connection.post("/api/no-such-thing", {})).toMatchObject({ status: 404, body: { code: "UNKNOWN_ERROR" } });
    expect(await connection.post("/api/backup/restore", {})).toMatchObject({ status: 501, body: { code: "NOT_IMPLEMENTED" } });
    expect(await connection.post("/api/read", { path: "/workspace/none" })).toMatchObject({
      status: 404,
      body: { code: "FILE_NOT_FOUND", context: { path: "/workspace/none" }, httpStatus: 404 },
      done: true,
    });
  });

  test("a session is the same one over a WebSocket and over HTTP", async () => {
    await connection.post("/api/session/create", { id: "shared", env: { FROM: "websocket" }, cwd: "/tmp" });
    expect((await server.run("echo $FROM; pwd", { sessionId: "shared" })).stdout).toBe("websocket\n/tmp");
    expect(await connection.post("/api/session/create", { id: "shared" })).toMatchObject({
      status: 409,
      body: { code: "SESSION_ALREADY_EXISTS", context: { sessionId: "shared" } },
    });
    expect((await connection.post("/api/execute", { command: "(exit 3)", sessionId: "shared" })).body).toMatchObject({
      success: false,
      exitCode: 3,
    });
  });

  test("files travel as text and as streams", async () => {
    await connection.post("/api/mkdir", { path: "/workspace/ws", recursive: true });
    await connection.post("/api/write", { path: "/workspace/ws/text", content: "grüße\n" });
    expect((await connection.post("/api/read", { path: "/workspace/ws/text" })).body.content).toBe("grüße\n");
    const { events, end } = await connection.stream("POST", "/api/read/stream", { path: "/workspace/ws/text" });
    expect(events.map(({ type }) => type)).toEqual(["metadata", "chunk", "complete"]);
    expect(events[1]).toMatchObject({ data: "grüße\n" });
    expect(end).toMatchObject({ type: "response", status: 200, done: true });
  });

  test("a stream that cannot begin is one response, with its error", async () => {
    expect(await connection.stream("POST", "/api/read/stream", { path: "/workspace/none" })).toMatchObject({
      events: [],
      end: { type: "response", status: 404, body: { code: "FILE_NOT_FOUND" }, done: true },
    });
  });

  test("processes are started, followed and ended", async () => {
    await connection.post("/api/process/start", { command: "echo up; sleep 30", processId: "p" });
    expect((await connection.call("GET", "/api/process/p")).body.process).toMatchObject({ id: "p", status: "running" });
    expect((await connection.call("DELETE", "/api/process/p")).status).toBe(200);
    const followed = await connection.stream("GET", "/api/process/p/stream");
    expect(followed.events.at(-1)).toMatchObject({ type: "exit", exitCode: 143 });
    const ran = await connection.stream("POST", "/api/execute/stream", { command: "exit 4" });
    expect(ran.events.at(-1)).toMatchObject({ type: "complete", exitCode: 4 });
  });

  test("output streams while the command runs, and other requests are answered meanwhile", async () => {
    const id = connection.request("POST", "/api/execute/stream", {
      command: "echo first; until [ -e /workspace/go ]; do sleep 0.01; done",
    });
    const { data } = await connection.next(id, (message) => message.type === "stream" && message.data.includes('"data":"first'));
    expect(data).toMatch(/^\{.*\}$/);
    await connection.post("/api/write", { path: "/workspace/go", content: "" });
    expect(await connection.next(id, ({ done }) => done === true)).toMatchObject({ type: "response", status: 200 });
  });

  test("a cancelled stream sends nothing more, and its process goes on", async () => {
    const command = "until [ -e /workspace/cancelled ]; do sleep 0.01; done; echo late";
    await connection.post("/api/process/start", { command, processId: "uncared-for" });
    const id = connection.request("GET", "/api/process/uncared-for/stream");
    await connection.next(id);
    connection.cancel(id);
    await connection.post("/api/write", { path: "/workspace/cancelled", content: "" });
    const { events } = await connection.stream("GET", "/api/process/uncared-for/stream");
    expect(events.slice(-2)).toMatchObject([{ type: "stdout", data: "late\n" }, { type: "exit" }]);
    expect(connection.messages.filter((message) => message.id === id)).toHaveLength(1);
  });

  test("a connection that breaks in mid-call ends neither the command nor the server", async () => {
    const broken = await connect(server);
    const command = "touch /workspace/begun; until [ -e /workspace/broken ]; do sleep 0.01; done; echo done > /workspace/outcome";
    broken.request("POST", "/api/execute", { command, sessionId: "broken" });
    await until("the command runs", async () => (await connection.post("/api/exists", { path: "/workspace/begun" })).body.exists === true);
    broken.webSocket.terminate();
    await connection.post("/api/write", { path: "/workspace/broken", content: "" });
    // Behind the other command, in the same session.
    expect((await connection.post("/api/execute", { command: "cat /workspace/outcome", sessionId: "broken" })).body.stdout).toBe("done");
  });

  test("a message that is no request is refused, and the connection goes on", async () => {
    const confused = await connect(server);
    for (const message of ["no JSON", "null", '{"type":"request","id":"without a path","method":"GET"}']) confused.webSocket.send(message);
    expect((await confused.call("GET", "/api/ping")).status).toBe(200);
    expect(confused.messages.map(({ type, code }) => [type, code])).toEqual([
      ["error", "PARSE_ERROR"],
      ["error", "INVALID_REQUEST"],
      ["error", "INVALID_REQUEST"],
      ["response", undefined],
    ]);
    confused.webSocket.close();
  });

  test("a connection that breaks the protocol is closed, and the server goes on", async () => {
    const invalid = await connect(server);
    const closed = new Promise((resolve) => invalid.webSocket.once("close", resolve));
    invalid.webSocket.send(Buffer.from([0xff]), { binary: false });
    expect(await closed).toBe(1007);
    expect((await connection.call("GET", "/api/ping")).status).toBe(200);
  });
});

test.each(["before", "after"])("the end of a connection ends its streams, also when it comes %s their beginning", async (moment) => {
  const begun = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const dispatch: Dispatch = async () => {
    begun.resolve();
    await proceed.promise;
    return { status: 200, content: new ReadableStream({ cancel: () => cancelled.resolve() }) };
  };
  const closed = Promise.withResolvers<void>();
  const upgrade = websocketUpgrade(dispatch);
  const server = createServer().on("upgrade", (request, socket, head) => {
    socket.once("close", () => closed.resolve());
    upgrade(request, socket, head);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const connection = await connect({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  connection.request("GET", "/api/process/p/stream");
  await begun.promise;
  if (moment === "after") proceed.resolve();
  connection.webSocket.terminate();
  await closed.promise;
  proceed.resolve();
  await cancelled.promise;
  server.close();
});
