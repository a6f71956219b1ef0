/** The files of one container, and what the commands that the SDK and Mooring run there do to them. */

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** As much of squashfs as anybody outside a container reads: the magic and the count of inodes, little endian. The rest is ours. */
const MAGIC = 0x73717368;
const HEADER_BYTES = 8;

export class FakeDisk {
  readonly files = new Map<string, string>();

  /** Entries below a directory, by their path in it. */
  below(directory: string): ReadonlyMap<string, string> {
    const root = `${directory}/`;
    return new Map([...this.files].filter(([path]) => path.startsWith(root)).map(([path, content]) => [path.slice(root.length), content]));
  }

  pack(directory: string, excludes: readonly string[] = []): Uint8Array {
    const entries = [...this.below(directory)].filter(([path]) => !excludes.includes(path));
    const body = new TextEncoder().encode(JSON.stringify(entries));
    const archive = new Uint8Array(HEADER_BYTES + body.length);
    const header = new DataView(archive.buffer);
    header.setUint32(0, MAGIC, true);
    header.setUint32(4, 1 + entries.length, true);
    archive.set(body, HEADER_BYTES);
    return archive;
  }

  unpack(archive: Uint8Array, directory: string): void {
    const entries = JSON.parse(new TextDecoder().decode(archive.subarray(HEADER_BYTES))) as readonly (readonly [string, string])[];
    for (const [path, content] of entries) this.files.set(`${directory}/${path}`, content);
  }

  clear(directory: string): void {
    for (const path of this.below(directory).keys()) this.files.delete(`${directory}/${path}`);
  }

  /** Archives lie beside the files, as base64. */
  read(path: string): Uint8Array {
    return Uint8Array.from(atob(this.files.get(path) ?? ""), (character) => character.charCodeAt(0));
  }

  write(path: string, archive: Uint8Array): void {
    this.files.set(path, btoa(String.fromCharCode(...archive)));
  }

  run(command: string): CommandResult {
    const [first = "", second = ""] = [...command.matchAll(/'([^']*)'/g)].map(([, word]) => word);
    if (command.startsWith("(test -d ")) return exited(this.below(first).size === 0 ? 1 : 0);
    if (command.startsWith("(test ! -d ")) this.clear(first);
    if (command.startsWith("rm -f ")) this.files.delete(first);
    if (command.startsWith("mv ")) this.write(second, this.read(first));
    if (command.startsWith("stat ")) return { exitCode: 0, stdout: `${this.read(first).length}\n`, stderr: "" };
    if (command.startsWith("/usr/bin/unsquashfs ")) return this.#unsquash(second, first);
    const failure = /^echo (?<words>.*); exit (?<code>\d+)$/.exec(command)?.groups;
    return failure === undefined ? exited(0) : { exitCode: Number(failure["code"]), stdout: `${failure["words"]}\n`, stderr: "" };
  }

  #unsquash(path: string, directory: string): CommandResult {
    try {
      this.unpack(this.read(path), directory);
      return exited(0);
    } catch {
      return { exitCode: 1, stdout: "", stderr: "FATAL ERROR: Can't find a valid SQUASHFS superblock" };
    }
  }
}

function exited(exitCode: number): CommandResult {
  return { exitCode, stdout: exitCode === 0 ? "done\n" : "", stderr: "" };
}
