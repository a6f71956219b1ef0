/**
 * Tells the controller that something happened to a container, by making its row due.
 *
 * A hint only: a poke that fails is dropped, and the controller's resync finds what it missed.
 */
import { log } from "../log.ts";
import { messageOf } from "./container-errors.ts";

/** Moves the time in any case, also of a row that is due already: a pass that looked before the poke must not take it for its own. */
const MAKE_DUE =
  "UPDATE workspaces SET next_reconcile_time = CASE WHEN next_reconcile_time <= ?1 THEN next_reconcile_time + 1 ELSE ?1 END WHERE uid = ?2";

/** Never rejects. */
export async function poke(db: D1Database | undefined, workspaceUid: string | null, now: number): Promise<void> {
  if (db === undefined || workspaceUid === null) return;
  try {
    await db.prepare(MAKE_DUE).bind(now, workspaceUid).run();
  } catch (error) {
    log("warn", "Workspace poke failed", { workspaceUid, error: messageOf(error) });
  }
}
