import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { canIsolate, isolations, type RunningServer, startServer } from "./running-server.ts";

describe.each(isolations)("two sandboxes isolated by %s", (isolation) => {
  let servers: readonly [RunningServer, RunningServer];
  beforeAll(async () => {
    servers = await Promise.all([startServer(isolation), startServer(isolation)]);
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  test.each(["/workspace", "/tmp", "/home", "/root", "/app", "/var/backups"])("each has its own %s", async (directory) => {
    const path = `${directory}/who`;
    await Promise.all(servers.map((server, index) => server.run(`echo ${index} > ${path}`)));
    expect(await Promise.all(servers.map(async (server) => (await server.run(`cat ${path}`)).stdout))).toEqual(["0", "1"]);
    const reads = servers.map(async (server) => (await server.post("/api/read", { path })).body.content);
    expect(await Promise.all(reads)).toEqual(["0\n", "1\n"]);
    expect(readFileSync(`${servers[0].root}${path}`, "utf8")).toBe("0\n");
    expect(existsSync(path)).toBe(false);
  });

  test("a sandbox's own environment says nothing of the machine that plays the container", async () => {
    expect((await servers[0].run("env")).stdout).not.toMatch(/MOORING_(?!CONTAINER_ID)/);
  });
});

test.each(["unshare", "mount", "chroot"])("where %s is refused, paths are mapped instead", async (tool) => {
  const tools = mkdtempSync(join(tmpdir(), "refusing-"));
  writeFileSync(join(tools, tool), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const server = await startServer("namespace", { env: { PATH: `${tools}:${process.env["PATH"]}` } });
  try {
    expect((await server.run("echo mapped > /workspace/file; pwd")).stdout).toBe("/workspace");
    expect(readFileSync(`${server.root}/workspace/file`, "utf8")).toBe("mapped\n");
    expect((await server.post("/api/read", { path: "/workspace/file" })).body.content).toBe("mapped\n");
  } finally {
    await server.stop();
    rmSync(tools, { recursive: true });
  }
});

describe.runIf(canIsolate)("in a namespace", () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer("namespace");
  });
  afterAll(() => server.stop());

  test("a path that a program builds by itself, and a link, lead to the container's files", async () => {
    await server.run('echo built > "$(printf "/%s/built" workspace)"; ln -s /workspace/built /workspace/link');
    expect(readFileSync(`${server.root}/workspace/built`, "utf8")).toBe("built\n");
    expect((await server.post("/api/read", { path: "/workspace/link" })).body.content).toBe("built\n");
  });

  test("neither its own disk nor another's is to be seen from inside", async () => {
    expect((await server.run(`ls ${server.root}`)).exitCode).not.toBe(0);
  });

  test("node can be run, wherever this machine keeps it", async () => {
    expect((await server.run("node -p 1+1")).stdout).toBe("2");
  });

  test.runIf(process.getuid?.() === 0)("what root changes elsewhere stays inside", async () => {
    expect(await server.run("touch /usr/only-inside && ls /usr/only-inside")).toMatchObject({ exitCode: 0 });
    expect(existsSync("/usr/only-inside")).toBe(false);
  });

  test.runIf(process.getuid?.() === 0)("an ordinary user's sandbox is isolated as well", async () => {
    const user = await startServer("namespace", { uid: 65_534 });
    try {
      await user.run('echo mine > "$(printf "/%s/file" workspace)"');
      expect(readFileSync(`${user.root}/workspace/file`, "utf8")).toBe("mine\n");
    } finally {
      await user.stop();
    }
  });
});
