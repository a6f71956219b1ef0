import { appendFileSync, truncateSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { digestTree, seedTree } from "../../dev/file-tree.ts";
import { eventsOf, isolations, type RunningServer, startServer } from "./running-server.ts";
import { connect } from "./websocket-client.ts";

const ARCHIVE = "/var/backups/0b9a.sqsh";
/** As the SDK writes it. */
const UNPACK = `/usr/bin/unsquashfs -f -d '/workspace' '${ARCHIVE}'`;

describe.each(isolations)("backups in local mode, isolated by %s", (isolation) => {
  let server: RunningServer;
  let other: RunningServer;
  beforeAll(async () => {
    [server, other] = await Promise.all([startServer(isolation), startServer(isolation)]);
    await server.run(seedTree({ directory: "/workspace", smallFiles: 2000, bigFileBytes: 3_000_000 }));
    await server.run(
      "cd /workspace && touch -d @1000000000 many/0/0.txt && touch -h -d @1000000001 links/dangling && touch -d @1000000002 empty",
    );
  });
  afterAll(() => Promise.all([server.stop(), other.stop()]));

  const archive = (fields: object = {}, from = server) =>
    from.post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE, ...fields });
  const digest = async (of: RunningServer, directory = "/workspace") => (await of.run(digestTree(directory))).stdout;
  const clear = () => other.run("rm -rf /workspace /var/backups/*; mkdir /workspace");

  test.for(["http", "rpc", "websocket"] as const)("a tree is the same after it went over %s to another container", async (transport) => {
    await clear();
    using api = server.rpc();
    using otherApi = other.rpc();
    if (transport === "http") {
      const { body } = await archive();
      expect(body).toMatchObject({ success: true, archivePath: ARCHIVE });
      const content = await readArchive(server);
      expect(body).toMatchObject({ sizeBytes: content.length });
      await other.post("/api/write", { path: ARCHIVE, content: content.toString("base64"), encoding: "base64" });
    } else if (transport === "rpc") {
      const { sizeBytes } = await api.backup.createArchive("/workspace", ARCHIVE, "s");
      const content = bytesOf(await eventsOf(await api.files.readFileStream(ARCHIVE, "s")));
      expect(content.length).toBe(sizeBytes);
      await otherApi.files.writeFileStream(ARCHIVE, new Blob([content]).stream(), "s");
    } else {
      const [from, to] = await Promise.all([connect(server), connect(other)]);
      expect(await from.post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE })).toMatchObject({ status: 200 });
      const content = bytesOf((await from.stream("POST", "/api/read/stream", { path: ARCHIVE })).events);
      await to.post("/api/write", { path: ARCHIVE, content: content.toString("base64"), encoding: "base64" });
      for (const { webSocket } of [from, to]) webSocket.close();
    }
    expect(await other.run(UNPACK)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await digest(other)).toBe(await digest(server));
    const times = "cd /workspace && stat -c %Y many/0/0.txt links/dangling empty";
    expect((await other.run(times)).stdout).toBe("1000000000\n1000000001\n1000000002");
  });

  test("what is there already is replaced, and nothing is written through a link", async () => {
    await clear();
    await archive();
    await copyTo(other);
    await other.run("mkdir -p /home/kept /workspace/links && echo kept >/home/kept/file && echo x >/workspace/big");
    await other.run("ln -s /home/kept/file /workspace/links/first; ln -s /home/kept /workspace/many; mkdir /workspace/.hidden");
    expect(await other.run(UNPACK)).toMatchObject({ exitCode: 0 });
    expect(await digest(other)).toBe(await digest(server));
    expect((await other.run("cd /home/kept && ls && cat file")).stdout).toBe("file\nkept");
  });

  test("an empty directory is a backup too, and a directory that is missing is made", async () => {
    await clear();
    await server.run("mkdir -m 750 '/home/it'\\''s empty'");
    expect((await archive({ dir: "/home/it's empty" })).body).toMatchObject({ success: true });
    await copyTo(other);
    const unpack = `/usr/bin/unsquashfs -f -d '/home/it'\\''s here/deep' ${ARCHIVE}`;
    expect(await other.run(unpack, { sessionId: "__DISABLE_SESSION__" })).toMatchObject({ exitCode: 0 });
    expect((await other.run('stat -c %a "/home/it\'s here/deep"; ls -A "/home/it\'s here/deep"')).stdout).toBe("750");
  });

  test("what is excluded is left out, and nothing else", async () => {
    await clear();
    await server.run(
      "mkdir -p /home/e/{src,node_modules/x,src/node_modules} && cd /home/e && touch a.log src/b.log node_modules/x/y src/c $'.d.log'",
    );
    await archive({ dir: "/home/e", excludes: ["node_modules", "*.log"] });
    await copyTo(other);
    expect(await other.run(UNPACK)).toMatchObject({ exitCode: 0 });
    const { stdout } = await other.run("cd /workspace && find . | LC_ALL=C sort");
    expect(stdout).toBe(".\n./.d.log\n./src\n./src/b.log\n./src/c\n./src/node_modules");
  });

  test.for([
    [{ dir: "/workspace/none" }, 500, "BACKUP_CREATE_FAILED", "Source directory does not exist: /workspace/none"],
    [{ dir: "/workspace/big" }, 500, "BACKUP_CREATE_FAILED", "Source directory does not exist: /workspace/big"],
    [{ dir: "/etc" }, 400, "INVALID_BACKUP_CONFIG", "Directory not in allowed paths"],
    [{ archivePath: "/workspace/me.sqsh" }, 400, "INVALID_BACKUP_CONFIG", "must use designated backup directory"],
    [{ excludes: ["/abs"] }, 500, "BACKUP_CREATE_FAILED", "mksquashfs failed: /, ./ and ../ prefixed excludes"],
    [{ gitignore: true }, 501, "NOT_IMPLEMENTED", "gitignore"],
  ] as const)("an archive with %o is refused", async ([fields, status, code, text]) => {
    expect(await archive(fields)).toMatchObject({ status, body: { code, message: expect.stringContaining(text) } });
  });

  test("production's restore is refused, with what there is instead", async () => {
    expect(await server.post("/api/backup/restore", {})).toMatchObject({ body: { message: expect.stringContaining("local mode only") } });
  });

  test("an archive that is not whole, is another file or is missing is not unpacked", async () => {
    await clear();
    await archive();
    await copyTo(other);
    const file = `${other.root}${ARCHIVE}`;
    // Where one file ends and the next begins: a tar is well formed there.
    truncateSync(file, 1024);
    const broken = { exitCode: 1, stderr: `FATAL ERROR: Can't find a valid SQUASHFS superblock on ${ARCHIVE}` };
    expect(await other.run(UNPACK)).toMatchObject(broken);
    writeFileSync(file, "no archive");
    expect(await other.run(UNPACK)).toMatchObject(broken);
    await archive({}, server);
    await copyTo(other);
    appendFileSync(file, "more");
    expect(await other.run(UNPACK)).toMatchObject(broken);
    await other.run(`rm ${ARCHIVE}`);
    expect(await other.run(UNPACK)).toMatchObject({ exitCode: 1, stderr: `Could not open ${ARCHIVE}, because No such file or directory` });
    expect((await other.run("ls -A /workspace")).stdout).toBe("");
  });

  test("a file that changes and one that goes while they are read spoil no archive", async () => {
    await server.run("mkdir -p /app/busy && cd /app/busy && for ((i = 0; i < 500; i++)); do head -c 100000 /dev/zero >$i; done");
    const churn = "cd /app/busy && while :; do for ((i = 0; i < 500; i++)); do echo x >>$i; mv $i m$i; mv m$i $i; done; done";
    await server.post("/api/process/start", { command: churn, processId: "churn" });
    for (const excludes of [[], ["none"]]) expect((await archive({ dir: "/app/busy", excludes })).body).toMatchObject({ success: true });
    await server.call("DELETE", "/api/process/churn");
  });

  async function copyTo(to: RunningServer): Promise<void> {
    const content = (await readArchive(server)).toString("base64");
    await to.post("/api/write", { path: ARCHIVE, content, encoding: "base64" });
  }
});

test("200 MB pass in one request of the HTTP transport, and are not held in memory on their way out", async () => {
  const server = await startServer(isolations[0] ?? "paths");
  await server.run("head -c 200000000 /dev/urandom >/workspace/big");
  await server.post("/api/backup/create", { dir: "/workspace", archivePath: ARCHIVE });
  const reading = await fetch(`${server.url}/api/read/stream`, { method: "POST", body: JSON.stringify({ path: ARCHIVE }) });
  // A reader that does not read: whoever goes on for it has nowhere to put it but memory.
  expect(reading.headers.get("content-type")).toBe("text/event-stream");
  const before = (await server.run("sha256sum </workspace/big")).stdout;
  expect(await residentBytes(server)).toBeLessThan(160_000_000);
  const content = bytesOf(await eventsOf(reading.body as ReadableStream<Uint8Array>)).toString("base64");
  await server.run(`rm -rf /workspace/* ${ARCHIVE}`);
  expect(await server.post("/api/write", { path: ARCHIVE, content, encoding: "base64" })).toMatchObject({ status: 200 });
  expect(await server.run(UNPACK)).toMatchObject({ exitCode: 0 });
  expect((await server.run("sha256sum </workspace/big")).stdout).toBe(before);
  await server.stop();
}, 120_000);

async function residentBytes(server: RunningServer): Promise<number> {
  const { stdout = "" } = await server.run("awk '/^VmRSS/ { print $2 }' /proc/$PPID/status");
  return Number(stdout) * 1024;
}

async function readArchive({ url }: RunningServer): Promise<Buffer> {
  const response = await fetch(`${url}/api/read/stream`, { method: "POST", body: JSON.stringify({ path: ARCHIVE }) });
  return bytesOf(await eventsOf(response.body as ReadableStream<Uint8Array>));
}

function bytesOf(events: Awaited<ReturnType<typeof eventsOf>>): Buffer {
  expect(events.at(-1)?.type).toBe("complete");
  return Buffer.concat(events.filter(({ type }) => type === "chunk").map(({ data = "" }) => Buffer.from(data, "base64")));
}
