/** The rpc transport: the same calls as objects. */
import { RpcTarget } from "capnweb";
import { type Body, collect } from "./fake-backup.ts";
import type { Handle, Host } from "./fake-host.ts";
import { chunks, streamed, streamOf } from "./fake-streams.ts";

export class ControlTarget extends RpcTarget {
  readonly #calls: CallTarget;

  constructor(handle: Handle, host: Host) {
    super();
    this.#calls = new CallTarget(handle, host);
  }

  get backup() {
    return this.#calls;
  }
  get commands() {
    return this.#calls;
  }
  get files() {
    return this.#calls;
  }
  get utils() {
    return this.#calls;
  }
}

class CallTarget extends RpcTarget {
  readonly #handle: Handle;
  readonly #host: Host;

  constructor(handle: Handle, host: Host) {
    super();
    this.#handle = handle;
    this.#host = host;
  }

  readFile() {
    return { success: true, content: streamOf(chunks(this.#host.script)) };
  }
  readFileStream(path: string) {
    return streamOf(streamed({ method: "POST", path: "/api/read/stream", body: { path } }, this.#host));
  }
  async writeFileStream(path: string, stream: ReadableStream<Uint8Array>) {
    this.#host.disk.write(path, await collect(stream));
    return this.#call("/api/write", { path, content: this.#host.disk.files.get(path) });
  }
  executeStream() {
    return streamOf(chunks(this.#host.script));
  }

  createArchive(dir: string, archivePath: string, _session: string, { excludes }: Body) {
    return this.#call("/api/backup/create", { dir, archivePath, excludes });
  }
  restoreArchive(dir: string, archivePath: string) {
    return this.#call("/api/backup/restore", { dir, archivePath });
  }
  execute(command: string, _session: string, options: Body = {}) {
    return this.#call("/api/execute", { command, cwd: options["cwd"] });
  }
  mkdir(path: string) {
    return this.#call("/api/mkdir", { path });
  }
  createSession() {
    return this.#call("/api/session/create", {});
  }
  deleteSession() {
    return this.#call("/api/session/delete", {});
  }
  async getVersion() {
    await this.#call("/api/version", {});
    return "0.12.10";
  }

  async #call(path: string, body: Body) {
    const result = await this.#handle({ method: "POST", path, body });
    if (result.status !== 200) throw new Error(JSON.stringify(result.body));
    return result.body;
  }
}
