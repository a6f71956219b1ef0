import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identify, isAlive, signalGroup } from "./process-identity.ts";
import type { ProcessIdentity } from "./process-identity.ts";

export const ROOT_VARIABLE = "MOORING_CONTAINER_ROOT";

const claimedHere = new Set<string>();

/** The part of the disk one engine owns: who it is, and which processes it must not leave behind. */
export class StateDirectory {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Takes the directory over, and ends what an engine that was killed left running. */
  claim(): void {
    const owner = readIdentity(this.#ownerFile);
    if (owner !== null && isAlive(owner) && (owner.pid !== process.pid || claimedHere.has(this.path))) {
      throw new Error(`The state directory ${this.path} belongs to a running engine (pid ${owner.pid}).`);
    }
    claimedHere.add(this.path);
    this.#endLeftovers();
    rmSync(join(this.path, "containers"), { recursive: true, force: true, maxRetries: 5 });
    rmSync(this.#pidDirectory, { recursive: true, force: true });
    mkdirSync(this.#pidDirectory, { recursive: true });
    mkdirSync(join(this.path, "containers"), { recursive: true });
    mkdirSync(join(this.path, "logs"), { recursive: true });
    writeIdentity(this.#ownerFile, process.pid);
  }

  release(): void {
    claimedHere.delete(this.path);
    rmSync(this.#ownerFile, { force: true });
  }

  /** An empty disk for a container that is about to start. */
  freshRoot(doId: string): string {
    const root = this.rootOf(doId);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    mkdirSync(root, { recursive: true });
    return root;
  }

  rootOf(doId: string): string {
    return join(this.path, "containers", doId);
  }

  logOf(doId: string): string {
    return join(this.path, "logs", `${doId}.log`);
  }

  removeRoot(doId: string): void {
    rmSync(this.rootOf(doId), { recursive: true, force: true, maxRetries: 5 });
  }

  rememberProcess(doId: string, pid: number): void {
    writeIdentity(join(this.#pidDirectory, `${doId}.json`), pid);
  }

  forgetProcess(doId: string): void {
    rmSync(join(this.#pidDirectory, `${doId}.json`), { force: true });
  }

  #endLeftovers(): void {
    for (const file of listDirectory(this.#pidDirectory)) {
      const identity = readIdentity(join(this.#pidDirectory, file));
      if (identity !== null && isAlive(identity)) signalGroup(identity.pid, "SIGKILL");
    }
    // A main process that died takes its pid file's proof with it, but not the children it had.
    for (const pid of processesRootedIn(join(this.path, "containers"))) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself.
      }
    }
  }

  get #ownerFile(): string {
    return join(this.path, "engine.json");
  }

  get #pidDirectory(): string {
    return join(this.path, "pids");
  }
}

/** Processes whose environment says that they belong to a container below this directory. Empty where there is no /proc. */
function processesRootedIn(directory: string): readonly number[] {
  const marker = `${ROOT_VARIABLE}=${directory}/`;
  return listDirectory("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .filter(
      (entry) =>
        readText(`/proc/${entry}/environ`)
          ?.split("\0")
          .some((line) => line.startsWith(marker)) === true,
    )
    .map(Number);
}

function readIdentity(file: string): ProcessIdentity | null {
  const text = readText(file);
  if (text === null) return null;
  try {
    const { pid, startTime } = JSON.parse(text) as Partial<ProcessIdentity>;
    return typeof pid === "number" && typeof startTime === "string" ? { pid, startTime } : null;
  } catch {
    return null;
  }
}

function writeIdentity(file: string, pid: number): void {
  const identity = identify(pid);
  if (identity !== null) writeFileSync(file, JSON.stringify(identity));
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

function listDirectory(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
