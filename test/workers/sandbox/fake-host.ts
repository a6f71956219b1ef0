/** What a scripted server is asked, and the machine that it runs on. */
import type { Body, StreamDeath } from "./fake-backup.ts";
import type { FakeDisk } from "./fake-disk.ts";

export interface ServerScript {
  /** The container is killed while it works on a request to this path, or on a command: `/api/execute rm`. */
  diesOn: string | null;
  /** The container is killed while it streams a file. */
  diesInStream: StreamDeath;
  /** What the server says instead of an archive. */
  failsArchive: string | null;
  /** As long as it is set, such a request is not answered, whatever becomes of the container. */
  hangsOn: string | null;
  /** How the server answers a request to create a directory. */
  mkdir: "Works" | "Fails" | "Hangs";
  /** As long as it is set, commands do not end, and what they stream pauses after the first chunk. */
  holdsCommands: boolean;
}

export interface ServerRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Body;
}

export type Handle = (request: ServerRequest) => Promise<{ status: number; body: object }>;

/** What the server does to the machine that it runs on. */
export interface Host {
  readonly script: ServerScript;
  /** The path of everything that the server is asked. */
  readonly requests: string[];
  readonly commands: { readonly command: string; readonly cwd: unknown }[];
  readonly disk: FakeDisk;
  /** Cut when the container ends. */
  readonly sockets: Set<WebSocket>;
  end(code: number): void;
}
