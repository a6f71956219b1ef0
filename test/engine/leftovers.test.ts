import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { startEngine } from "../../dev/engine/engine.ts";
import { identify } from "../../dev/engine/process-identity.ts";
import { atEnd, bench, doId, isRunning, temporaryDirectory, until } from "./fixture.ts";
import { WorkerdClient } from "./workerd-client.ts";

const HOST = fileURLToPath(new URL("./engine-host.ts", import.meta.url));

describe("an engine that was killed", () => {
  it("takes the containers with it that watch their standard input, and the next engine ends the others", async () => {
    const directory = temporaryDirectory();
    const host = spawn(process.execPath, [HOST, directory], { stdio: ["ignore", "pipe", "inherit"] });
    atEnd(() => void host.kill("SIGKILL"));
    await once(host.stdout, "data");
    const watchful = client(directory, 1);
    await watchful.start();
    await watchful.untilListening();
    await client(directory, 2).start("deaf");
    const [pidOfWatchful, pidOfDeaf] = [pidFileOf(directory, 1), pidFileOf(directory, 2)];
    host.kill("SIGKILL");
    await once(host, "exit");
    await until(() => !isRunning(pidOfWatchful));
    expect(isRunning(pidOfDeaf)).toBe(true);
    const { engine } = await bench({ stateDirectory: directory });
    await until(() => !isRunning(pidOfDeaf));
    expect(engine.instances()).toEqual([]);
    expect(readdirSync(join(directory, "containers"))).toEqual([]);
  });
});

describe("the state directory", () => {
  it("does not kill a process that was given the pid of a container", async () => {
    const directory = temporaryDirectory();
    const first = await startEngine({ socketPath: join(directory, "engine.sock"), stateDirectory: directory, image: () => null });
    await first.close();
    const bystander = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" });
    atEnd(() => void bystander.kill("SIGKILL"));
    const pid = bystander.pid ?? 0;
    writeFileSync(join(directory, "pids", `${doId(1)}.json`), JSON.stringify({ pid, startTime: "1" }));
    await bench({ stateDirectory: directory });
    expect(isRunning(pid)).toBe(true);
  });

  it("belongs to one engine at a time", async () => {
    const { directory, engine } = await bench();
    await expect(bench({ stateDirectory: directory })).rejects.toThrow(/belongs to a running engine/);
    await engine.close();
    await bench({ stateDirectory: directory });
  });

  it("can be taken over from an engine that is no more", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "engine.json"), JSON.stringify({ ...identify(process.pid), startTime: "1" }));
    await bench({ stateDirectory: directory });
  });

  it("holds no disk and no pid of a container that was destroyed", async () => {
    const { directory, engine, client: clientOf } = await bench();
    const object = clientOf(1);
    await object.start();
    const root = engine.instance(doId(1))?.root ?? "";
    expect(existsSync(root)).toBe(true);
    expect(pidFileOf(directory, 1)).toBe(engine.instance(doId(1))?.pid);
    await object.destroy();
    await until(() => engine.instances().length === 0);
    await until(() => !existsSync(root));
    expect(readdirSync(join(directory, "pids"))).toEqual([]);
  });
});

function client(directory: string, object: number): WorkerdClient {
  return new WorkerdClient({ socketPath: join(directory, "engine.sock"), doId: doId(object) });
}

function pidFileOf(directory: string, object: number): number {
  return (JSON.parse(readFileSync(join(directory, "pids", `${doId(object)}.json`), "utf8")) as { pid: number }).pid;
}
