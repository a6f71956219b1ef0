/** What may still be written of a deletion that is under way: that it waits less for its final backup. */
import { and, eq, inArray } from "drizzle-orm";
import type { BackupPolicy, Instant, Workspace } from "../workspace.ts";
import type { Database } from "./db.ts";
import { capEvents, recordEvent } from "./events.ts";
import type { WriteOptions } from "./intent.ts";
import { workspaces } from "./schema.ts";
import { currentVersion, isWritten, nextVersion } from "./versions.ts";

/** The policies that each is weaker than. */
const STRONGER: Readonly<Record<BackupPolicy, readonly BackupPolicy[]>> = {
  Require: [],
  BestEffort: ["Require"],
  Skip: ["Require", "BestEffort"],
};

/**
 * Whether the policy of the deletion was weakened to this one; one that would not be weaker changes nothing. The revision stays, so that
 * a repeated DELETE may still carry the tag its first one had.
 */
export async function weakenFinalBackup(
  db: Database,
  { uid, namespace, name }: Pick<Workspace, "uid" | "namespace" | "name">,
  policy: BackupPolicy,
  now: Instant,
  { actor }: WriteOptions = {},
): Promise<boolean> {
  // Only what is being deleted has a policy.
  const isStronger = inArray(workspaces.finalBackup, STRONGER[policy]);
  const event = { type: "Normal", reason: "FinalBackupWeakened", message: `To ${policy}.` } as const;
  const [, written] = await db.batch([
    nextVersion(db),
    db
      .update(workspaces)
      .set({ finalBackup: policy, nextReconcileTime: now, resourceVersion: currentVersion })
      .where(and(eq(workspaces.uid, uid), isStronger))
      .returning({ uid: workspaces.uid }),
    recordEvent(db, { uid, namespace, name, actor: actor ?? null }, event, now, isWritten(uid)),
    capEvents(db, uid),
  ]);
  return written.length === 1;
}
