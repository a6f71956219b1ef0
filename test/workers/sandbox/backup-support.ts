/** What the tests of backups share. */
import type { BackupMetadata } from "../../../src/sandbox/backup-objects.ts";
import type { BackupOrder } from "../../../src/sandbox/protocol.ts";
import { machineOf, type Machine, type Script } from "./fake-container.ts";
import { FakeDisk } from "./fake-disk.ts";
import { bindings, runningSandbox, type Subject, type Transport } from "./support.ts";
import type { StandaloneSandbox } from "./worker.ts";

export const DIRECTORY = "/workspace";
export const OPTIONS = { dir: DIRECTORY, localBucket: true };

export interface Standalone {
  readonly machine: Machine;
  readonly stub: DurableObjectStub<StandaloneSandbox>;
}

/** A sandbox without a controller whose container a user's call has started, with a file in it. */
export async function runningStandalone(transport: Transport = "http"): Promise<Standalone> {
  const name = crypto.randomUUID();
  const stub = bindings.STANDALONE.getByName(name);
  const machine = machineOf(bindings.STANDALONE.idFromName(name));
  await stub.setTransport(transport);
  await stub.exec("true");
  machine.disk.files.set(`${DIRECTORY}/a`, "1");
  return { machine, stub };
}

/** Each place at which a container can die under a backup, and whether all of the backup was in the bucket by then. */
export const DEATHS: readonly [string, Partial<Script>, "NotRunning" | "Completed"][] = [
  ["at the look into the directory", { diesOn: "/api/execute (test -d" }, "NotRunning"],
  ["at the session's creation", { diesOn: "/api/session/create" }, "NotRunning"],
  ["at the archive", { diesOn: "/api/backup/create" }, "NotRunning"],
  ["during the upload", { diesInStream: "Middle" }, "NotRunning"],
  ["after the upload, before the metadata", { diesInStream: "End" }, "Completed"],
  ["at the removal of the archive", { diesOn: "/api/execute rm -f" }, "Completed"],
  ["at the session's removal", { diesOn: "/api/session/delete" }, "Completed"],
];

/** The keys of all objects in the bucket. */
export async function storedKeys(): Promise<readonly string[]> {
  return (await bindings.BACKUP_BUCKET.list()).objects.map(({ key }) => key);
}

export async function emptyBucket(): Promise<void> {
  for (const key of await storedKeys()) await bindings.BACKUP_BUCKET.delete(key);
}

/** What an archive holds. */
export async function archivedFiles(id: string): Promise<unknown> {
  const object = await bindings.BACKUP_BUCKET.get(`backups/${id}/data.sqsh`);
  return object === null ? null : JSON.parse((await object.text()).slice("hsqs".length + 4));
}

export function backupOrder(change: Partial<BackupOrder> = {}): BackupOrder {
  return {
    backupId: crypto.randomUUID(),
    startId: "start-1",
    directory: DIRECTORY,
    excludes: [],
    timeoutMs: 10_000,
    localBucket: true,
    ...change,
  };
}

/** A workspace whose container was verified, with a file in it. */
export async function workspaceWithFile(transport: Transport = "http"): Promise<Subject> {
  const subject = await runningSandbox({}, transport);
  subject.machine.disk.files.set(`${DIRECTORY}/a`, "1");
  return subject;
}

/** The objects of a backup of these files. */
export async function storeBackup(files: Readonly<Record<string, string>>, change: Partial<BackupMetadata> = {}): Promise<string> {
  const id = crypto.randomUUID();
  const disk = new FakeDisk();
  for (const [path, content] of Object.entries(files)) disk.files.set(`${DIRECTORY}/${path}`, content);
  const archive = disk.pack(DIRECTORY);
  const metadata = {
    id,
    dir: DIRECTORY,
    name: null,
    sizeBytes: archive.length,
    ttl: 86_400,
    createdAt: new Date().toISOString(),
    ...change,
  };
  await bindings.BACKUP_BUCKET.put(`backups/${id}/data.sqsh`, archive);
  await bindings.BACKUP_BUCKET.put(`backups/${id}/meta.json`, JSON.stringify(metadata));
  return id;
}
