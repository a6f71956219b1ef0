/** Whether somebody wants the workspace that an object belongs to, as D1 has it at this moment. */

/** Rejects where D1 does not answer: what is unknown is not absent. */
export async function hasRow(db: D1Database, workspaceUid: string): Promise<boolean> {
  const row = await db.prepare("SELECT 1 FROM workspaces WHERE uid = ?").bind(workspaceUid).first();
  return row !== null;
}
