import { now } from "./event-stream.ts";
import type { ListOptions } from "./list-directory.ts";
import type { Operations } from "./operations.ts";
import type { Variables } from "./sessions.ts";

/** Whatever a request may carry. The operations check what they cannot do without. */
export interface Body {
  readonly sessionId?: string;
  readonly id?: string;
  readonly command?: string;
  readonly processId?: string;
  readonly timeoutMs?: number;
  readonly commandTimeoutMs?: number;
  readonly env?: Variables;
  readonly cwd?: string;
  readonly path?: string;
  readonly content?: string;
  readonly encoding?: string;
  readonly permissions?: string;
  readonly recursive?: boolean;
  readonly options?: ListOptions;
  readonly oldPath?: string;
  readonly newPath?: string;
  readonly sourcePath?: string;
  readonly destinationPath?: string;
  readonly port?: number;
  readonly mode?: "http" | "tcp";
  readonly statusMin?: number;
  readonly statusMax?: number;
  readonly interval?: number;
  readonly dir?: string;
  readonly archivePath?: string;
  readonly gitignore?: boolean;
  readonly excludes?: readonly string[];
  readonly compression?: object;
}

export interface Call {
  readonly body: Body;
  /** What stands for `{id}` in the route's path. */
  readonly id: string;
}

type Answer = Promise<object | string>;

/** The HTTP transport: which request is which operation. `{id}` matches one path segment; the first match counts. */
export function httpRoutes(operations: Operations): ReadonlyMap<string, (call: Call) => Answer> {
  const { commands, files, processes, ports, utils, git, interpreter, backup, watch } = operations;
  return new Map<string, (call: Call) => Answer>([
    ["GET /", async () => "The sandbox server is running."],
    ["GET /api/ping", async () => answer({ status: "healthy", message: await utils.ping() })],
    ["GET /api/health", async () => answer({ status: await utils.ping() })],
    ["GET /api/version", async () => answer({ version: await utils.getVersion() })],
    ["GET /api/commands", async () => answer({ availableCommands: await utils.getCommands() })],
    ["GET /api/session/list", async () => answer(await utils.listSessions())],
    ["POST /api/session/create", ({ body }) => utils.createSession({ ...body, id: body.id ?? "" })],
    ["POST /api/session/delete", ({ body }) => utils.deleteSession(session(body))],
    ["POST /api/execute", ({ body }) => commands.execute(body.command ?? "", session(body), body)],
    ["POST /api/execute/stream", ({ body }) => commands.executeStream(body.command ?? "", session(body), body)],
    ["POST /api/read", ({ body }) => files.readFile(body.path ?? "", session(body), body)],
    ["POST /api/read/stream", ({ body }) => files.readFileStream(body.path ?? "", session(body))],
    ["POST /api/write", ({ body }) => files.writeFile(body.path ?? "", body.content ?? "", session(body), body)],
    ["POST /api/delete", ({ body }) => files.deleteFile(body.path ?? "", session(body))],
    ["POST /api/rename", ({ body }) => files.renameFile(body.oldPath ?? "", body.newPath ?? "", session(body))],
    ["POST /api/move", ({ body }) => files.moveFile(body.sourcePath ?? "", body.destinationPath ?? "", session(body))],
    ["POST /api/mkdir", ({ body }) => files.mkdir(body.path ?? "", session(body), body)],
    ["POST /api/list-files", ({ body }) => files.listFiles(body.path ?? "", session(body), body.options)],
    ["POST /api/exists", ({ body }) => files.exists(body.path ?? "", session(body))],
    ["POST /api/process/start", ({ body }) => processes.startProcess(body.command ?? "", session(body), body)],
    ["GET /api/process/list", () => processes.listProcesses()],
    ["DELETE /api/process/kill-all", () => processes.killAllProcesses()],
    ["GET /api/process/{id}", ({ id }) => processes.getProcess(id)],
    ["DELETE /api/process/{id}", ({ id }) => processes.killProcess(id)],
    ["GET /api/process/{id}/logs", ({ id }) => processes.getProcessLogs(id)],
    ["GET /api/process/{id}/stream", ({ id }) => processes.streamProcessLogs(id)],
    ["POST /api/port-watch", ({ body }) => ports.watchPort({ ...body, port: body.port ?? 0, mode: body.mode ?? "http" })],
    ["POST /api/git/checkout", () => git.checkout()],
    ["GET /api/contexts", () => interpreter.listCodeContexts()],
    ["POST /api/contexts", () => interpreter.createCodeContext()],
    ["DELETE /api/contexts/{id}", () => interpreter.deleteCodeContext()],
    ["POST /api/execute/code", () => interpreter.streamCode()],
    ["POST /api/backup/create", ({ body }) => backup.createArchive(body.dir ?? "", body.archivePath ?? "", session(body), body)],
    ["POST /api/backup/restore", () => backup.restoreArchive()],
    ["POST /api/backup/upload-parts", () => backup.uploadParts()],
    ["POST /api/watch", () => watch.watch()],
    ["POST /api/watch/check", () => watch.checkChanges()],
  ]);
}

function session(body: Body): string {
  return body.sessionId ?? "default";
}

function answer(fields: object): object {
  return { success: true, ...fields, timestamp: now() };
}
