/** What may happen to backups in the model: what a client asks, what becomes of one under way, whose patience ends. */
import type { ActiveBackup } from "../../../src/backup.ts";
import { requested } from "../../support/backup-builders.ts";
import { NOW } from "../../support/builders.ts";
import { endBackup, isFresh, outlived } from "./backups.ts";
import type { Happenings } from "./events.ts";
import { type World, LONG_AGO, withSandbox, withWorkspace, workspaceOf } from "./world.ts";

/** Its end was wished just now: what was taken before does not count. */
export function unsaved(world: World, uid: string): World {
  const { sandbox } = workspaceOf(world, uid);
  const backup = sandbox.backup && { ...sandbox.backup, fresh: false };
  return withWorkspace(withSandbox(world, uid, { backup }), uid, { saved: false });
}

/** What a client may ask for. */
export function requests(world: World, uid: string): Happenings {
  const { row } = workspaceOf(world, uid);
  if (row?.backups == null || row.backups.active !== null) return {};
  const backups = { ...row.backups, active: requested({ id: "asked" }) };
  return { [`ask for a backup of ${uid}`]: () => withWorkspace(world, uid, { row: { ...row, backups, nextReconcileTime: NOW } }) };
}

/** How a backup under way may end, and whose patience. */
export function ofBackup(world: World, uid: string): Happenings {
  const { row, sandbox } = workspaceOf(world, uid);
  if (row?.backups == null) return {};
  const { backups, finalBackupDeadlineTime } = row;
  const { active, last } = backups;
  const end = (state: string) => withRowDue(withSandbox(world, uid, endBackup(sandbox, state)), uid);
  const isPatient = active?.state === "InProgress" && (active.deadlineTime ?? 0) > NOW;
  return {
    ...(sandbox.backup?.state === "InProgress" && {
      [`backup completed ${uid}`]: () => end("Completed"),
      [`backup failed ${uid}`]: () => end("Failed"),
    }),
    ...(isPatient && { [`claim expires ${uid}`]: () => withClaim(world, uid, { ...active, deadlineTime: LONG_AGO }) }),
    ...(last !== null &&
      isFresh(last) && {
        [`last backup grows old ${uid}`]: () =>
          withWorkspace(world, uid, { row: { ...row, backups: { ...backups, last: outlived(last) } }, saved: false }),
      }),
    ...(finalBackupDeadlineTime !== null &&
      finalBackupDeadlineTime > NOW && {
        [`deletion waits no longer ${uid}`]: () => withWorkspace(world, uid, { row: { ...row, finalBackupDeadlineTime: NOW } }),
      }),
  };
}

function withClaim(world: World, uid: string, active: ActiveBackup): World {
  const { row } = workspaceOf(world, uid);
  return row?.backups == null ? world : withWorkspace(world, uid, { row: { ...row, backups: { ...row.backups, active } } });
}

/** A poke. */
function withRowDue(world: World, uid: string): World {
  const { row } = workspaceOf(world, uid);
  return row === null ? world : withWorkspace(world, uid, { row: { ...row, nextReconcileTime: NOW } });
}
