/** A controller that takes backups, for the tests of what becomes of files. Importing it begins each test of the file with an empty database. */
import { beforeEach } from "vitest";
import { requestBackup } from "../../../src/store/backup-intent.ts";
import { requestDeletion } from "../../../src/store/intent.ts";
import type { BackupPolicy, WorkspaceSpec } from "../../../src/workspace.ts";
import { all, Controller, emptyTables, SPEC } from "./support.ts";

export const MINUTE = 60_000;

const BACKUP = { everySeconds: null, onSuspend: "Require", excludes: [], retention: { keepLast: 2, keepForSeconds: 600 } } as const;

export function backup(change: Partial<NonNullable<WorkspaceSpec["backup"]>> = {}): Partial<WorkspaceSpec> {
  return { backup: { ...BACKUP, ...change } };
}

interface Row {
  readonly id: string;
  readonly trigger: string;
  readonly state: string;
  readonly reason: string;
  readonly started_time: number;
  readonly object_id: string | null;
}

export const rows = () => all<Row>("SELECT id, trigger, state, reason, started_time, object_id FROM backups ORDER BY requested_time, id");
export const states = async () => (await rows()).map(({ trigger, state, reason }) => [trigger, state, reason].join(" ").trim());

export let controller: Controller;

/** Another one, with these settings beside the usual. */
export function renewController(settings: Readonly<Record<string, string>> = {}): void {
  controller = new Controller({ BACKUP_MODE: "local", BACKUP_BUCKET: {}, POLL_INTERVAL_MS: "5000", ...settings });
}

beforeEach(async () => {
  await emptyTables();
  renewController();
});

export async function ready(name = "a", spec: Partial<WorkspaceSpec> = backup()): Promise<string> {
  const { uid } = await controller.put(name, spec);
  await controller.untilReady([name], 10 * MINUTE);
  return uid;
}

export async function ask(name: string): Promise<string> {
  const asked = await requestBackup(controller.db, await controller.get(name), {
    id: crypto.randomUUID(),
    directory: SPEC.directory,
    now: controller.clock.now(),
  });
  if (asked === null) throw new Error("no request");
  return asked.backup.id;
}

export async function remove(name: string, policy: BackupPolicy, deadlineMs = 10 * MINUTE): Promise<void> {
  const now = controller.clock.now();
  await requestDeletion(controller.db, await controller.get(name), now, { finalBackup: { policy, deadlineTime: now + deadlineMs } });
}

/** And the loop has seen it. */
export async function crash(uid: string): Promise<void> {
  controller.world.exit(uid, 137);
  await controller.tick();
}

export const isPhase = (name: string, phase: string) => async () => (await controller.get(name)).status.phase === phase;
export const isGone = (name: string) => async () => (await controller.find(name)) === null;
