import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventsOf, isolations, type RunningServer, startServer } from "./running-server.ts";

describe.each(isolations)("over RPC, isolated by %s", (isolation) => {
  let server: RunningServer;
  let api: ReturnType<RunningServer["rpc"]>;
  beforeAll(async () => {
    server = await startServer(isolation);
    api = server.rpc();
  });
  afterAll(async () => {
    api[Symbol.dispose]();
    await server.stop();
  });

  test("every group of the SDK's interface is there", async () => {
    expect(await api.utils.ping()).toBe("healthy");
    const unimplemented = [
      () => api.git.checkout(),
      () => api.interpreter.createCodeContext(),
      () => api.backup.restoreArchive(),
      () => api.watch.watch(),
      () => api.tunnels.listTunnels(),
    ];
    for (const call of unimplemented) {
      // The SDK reads a code it does not know from a message that is JSON; anything else it takes for a broken connection.
      const error = await call().then(
        () => undefined,
        (reason: Error) => reason,
      );
      expect(JSON.parse(error?.message ?? "")).toMatchObject({ code: "NOT_IMPLEMENTED" });
    }
  });

  test("a known failure carries the SDK's code and context", async () => {
    await expect(api.files.readFile("/workspace/none", "s")).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
      details: { path: "/workspace/none", operation: "file.read" },
    });
    await api.utils.createSession({ id: "twice" });
    await expect(api.utils.createSession({ id: "twice" })).rejects.toMatchObject({
      code: "SESSION_ALREADY_EXISTS",
      details: { sessionId: "twice", containerPlacementId: null },
    });
    await expect(api.processes.getProcess("none")).rejects.toMatchObject({ code: "PROCESS_NOT_FOUND" });
  });

  test("a session is the same one over RPC and over HTTP", async () => {
    await api.utils.createSession({ id: "shared", env: { FROM: "rpc" }, cwd: "/tmp" });
    expect((await server.run("echo $FROM; pwd", { sessionId: "shared" })).stdout).toBe("rpc\n/tmp");
    expect(await api.commands.execute("(exit 3)", "shared", {})).toMatchObject({ success: false, exitCode: 3 });
    expect((await api.utils.listSessions()).sessions).toContain("shared");
  });

  test("files travel as text, as base64 and as streams", async () => {
    await api.files.mkdir("/workspace/rpc", "s", { recursive: true });
    await api.files.writeFile("/workspace/rpc/text", "hello", "s", {});
    expect(await api.files.readFile("/workspace/rpc/text", "s")).toMatchObject({ content: "hello", encoding: "utf-8" });
    await api.files.writeFileStream("/workspace/rpc/streamed", new Blob(["in pieces"]).stream(), "s");
    const { content } = (await api.files.readFile("/workspace/rpc/streamed", "s", { encoding: "none" })) as { content: ReadableStream };
    expect(await new Response(content).text()).toBe("in pieces");
    const events = await eventsOf(await api.files.readFileStream("/workspace/rpc/text", "s"));
    expect(events.map(({ type }) => type)).toEqual(["metadata", "chunk", "complete"]);
    expect(await api.files.exists("/workspace/rpc/none", "s")).toMatchObject({ exists: false });
  });

  test("processes are started, followed and ended", async () => {
    await api.processes.startProcess("echo up; sleep 30", "s", { processId: "p" });
    expect((await api.processes.getProcess("p")).process).toMatchObject({ id: "p", status: "running" });
    await api.processes.killProcess("p");
    expect((await eventsOf(await api.processes.streamProcessLogs("p"))).at(-1)).toMatchObject({ type: "exit", exitCode: 143 });
    expect((await eventsOf(await api.commands.executeStream("exit 4", "s", {}))).at(-1)).toMatchObject({ type: "complete", exitCode: 4 });
  });
});
