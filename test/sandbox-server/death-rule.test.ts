import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { DeathRule } from "../../dev/sandbox-server/death-rule.ts";
import { isolations, type RunningServer, startServer } from "./running-server.ts";
import { connect } from "./websocket-client.ts";

const ARCHIVE = "/var/backups/a.sqsh";
const KILLED = { code: null, signal: "SIGKILL" };

/** The same call on each transport; that it fails, or never ends, is part of the fault. */
const TRANSPORTS: Readonly<Record<string, (server: RunningServer) => Promise<unknown>>> = {
  http: (server) => server.post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE }),
  rpc: (server) => server.rpc().backup.createArchive("/workspace", ARCHIVE, "s"),
  websocket: async (server) => (await connect(server)).post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE }),
};

async function tell(server: RunningServer, rule: Partial<DeathRule> | null): Promise<void> {
  const whole = rule === null ? null : { operation: "none", moment: "Before", command: null, occurrence: 1, ...rule };
  await new Promise((resolve) => server.process.stdin?.write(`${JSON.stringify({ dieAtOperation: whole })}\n`, resolve));
  // Behind the line in the order of things: whoever is answered has been told.
  await server.call("GET", "/api/ping");
}

describe.each(isolations)("a server that is told to die, isolated by %s", (isolation) => {
  test.for(Object.keys(TRANSPORTS))("kills itself when the operation comes over %s, before anything is done", async (transport) => {
    const server = await startServer(isolation);
    await tell(server, { operation: "backup.createArchive" });
    void TRANSPORTS[transport]?.(server).catch(() => {});
    expect(await server.exit).toEqual(KILLED);
    expect(existsSync(`${server.root}${ARCHIVE}`)).toBe(false);
    await server.stop();
  });
});

describe("a death rule", () => {
  const isolation = isolations.at(-1) ?? "paths";

  test("after the operation: it is done and not answered", async () => {
    const server = await startServer(isolation);
    await tell(server, { operation: "backup.createArchive", moment: "After" });
    await expect(server.post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE })).rejects.toThrow("fetch failed");
    expect(await server.exit).toEqual(KILLED);
    expect(existsSync(`${server.root}${ARCHIVE}`)).toBe(true);
    await server.stop();
  });

  test("in the middle of a stream: what was sent until then arrives", async () => {
    const server = await startServer(isolation);
    await server.run("head -c 3000000 /dev/urandom >/workspace/big");
    await tell(server, { operation: "files.readFileStream", moment: { sentBytes: 2_000_000 } });
    const response = await fetch(`${server.url}/api/read/stream`, { method: "POST", body: JSON.stringify({ path: "/workspace/big" }) });
    let received = 0;
    const reading = (async () => {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) received += chunk.length;
    })();
    await expect(reading).rejects.toThrow("terminated");
    expect(await server.exit).toEqual(KILLED);
    expect(received).toBeGreaterThan(1_000_000);
    expect(received).toBeLessThan(2_200_000);
    await server.stop();
  });

  test("at the end of a stream: its last event arrives", async () => {
    const server = await startServer(isolation);
    await server.run("echo text >/workspace/small");
    await tell(server, { operation: "files.readFileStream", moment: "Sent" });
    const response = await fetch(`${server.url}/api/read/stream`, { method: "POST", body: JSON.stringify({ path: "/workspace/small" }) });
    let text = "";
    const reading = (async () => {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
    })();
    await expect(reading).rejects.toThrow("terminated");
    expect(await server.exit).toEqual(KILLED);
    expect(text).toContain('"type":"complete"');
    await server.stop();
  });

  test("for a command by its text, at the how manieth", async () => {
    const server = await startServer(isolation);
    await tell(server, { operation: "commands.execute", command: "rm -f", occurrence: 2 });
    expect(await server.run("rm -f /workspace/a; echo one")).toMatchObject({ stdout: "one" });
    expect(await server.run("echo other")).toMatchObject({ stdout: "other" });
    await expect(server.run("rm -f /workspace/b")).rejects.toThrow("fetch failed");
    expect(await server.exit).toEqual(KILLED);
    await server.stop();
  });

  test("is replaced by the next, and withdrawn by none", async () => {
    const server = await startServer(isolation);
    await tell(server, { operation: "commands.execute" });
    await tell(server, { operation: "utils.createSession" });
    expect(await server.run("echo alive")).toMatchObject({ stdout: "alive" });
    await tell(server, null);
    expect(await server.post("/api/session/create", { id: "late" })).toMatchObject({ status: 200 });
    await server.stop();
  });
});
