import { describe, expect, test } from "vitest";
import { isolations, isRunning, type RunningServer, startServer, until } from "./running-server.ts";

describe.each(isolations)("the server's life, isolated by %s", (isolation) => {
  test("the end of stdin ends the server and everything it started", async () => {
    const server = await startServer(isolation);
    const pids = await startEverything(server);
    server.process.stdin?.end();
    expect(await server.exit).toEqual({ code: 0, signal: null });
    await until("all of its processes are gone", () => pids.every((pid) => !isRunning(pid)));
    await server.stop();
  });

  test("SIGTERM ends the server with exit code 0, after what it started", async () => {
    const server = await startServer(isolation);
    const pids = await startEverything(server);
    server.process.kill("SIGTERM");
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(pids.filter(isRunning)).toEqual([]);
    await server.stop();
  });

  test("a container that ignores SIGTERM goes on until its engine is gone", async () => {
    const server = await startServer(isolation, { env: { MOORING_IGNORE_SIGTERM: "1" } });
    server.process.kill("SIGTERM");
    expect((await server.run("echo alive")).stdout).toBe("alive");
    server.process.stdin?.end();
    expect(await server.exit).toEqual({ code: 0, signal: null });
    await server.stop();
  });
});

/** A session's shell, a job of it, a process that ignores SIGTERM, and a daemon that has left its session and parent. */
async function startEverything(server: RunningServer): Promise<readonly number[]> {
  const { stdout } = await server.run("sleep 60 & echo $$ $!; (setsid sleep 60 & echo $!)");
  await server.post("/api/process/start", { command: `trap "" TERM; echo ready; while :; do sleep 1; done`, processId: "stubborn" });
  await until(
    "the process ignores SIGTERM",
    async () => (await server.call("GET", "/api/process/stubborn/logs")).body.stdout === "ready\n",
  );
  const { process: stubborn } = (await server.call("GET", "/api/process/stubborn")).body;
  const pids = [...String(stdout).split(/\s+/).map(Number), stubborn?.pid ?? 0];
  expect(pids.every(isRunning)).toBe(true);
  return pids;
}
