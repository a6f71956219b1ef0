/** What the next container begins with, and what of it is pinned. Invariant 6. */
import { expect, test } from "vitest";
import type { BackupMemory } from "../../src/backup.ts";
import { type Restore, restoreOf, sourceToPin } from "../../src/controller/restore.ts";
import type { WorkspaceSpec } from "../../src/workspace.ts";
import { memory, storedBackup } from "../support/backup-builders.ts";
import { NOW, record, spec } from "../support/builders.ts";

const own = storedBackup({ id: "own" });
const lost = storedBackup({ id: "lost", lostTime: NOW });
const other = storedBackup({ id: "other" });
const fromBackup = { backup: "other" } as const;
const fromWorkspace = { workspace: "bob" } as const;

type Row = readonly [
  situation: string,
  source: WorkspaceSpec["source"],
  backups: BackupMemory | null,
  pinned: string | null,
  restored: string,
  toPin: string | null,
];

// oxfmt-ignore
const table: readonly Row[] = [
  // situation                                              source         memory                                 pinned    begins with   pins
  ["nothing was wished, nothing was saved",                 null,          memory(),                              null,     "Nothing",    null],
  ["where backups are not taken",                           null,          null,                                  null,     "Nothing",    null],
  ["its own newest",                                        null,          memory({ newest: own }),               null,     "own",        null],
  ["what its source stands for: that is pinned",            fromWorkspace, memory({ source: other }),             null,     "other",      "other"],
  ["the backup that it names",                              fromBackup,    memory({ source: other }),             null,     "other",      "other"],
  ["what was pinned stays so",                              fromWorkspace, memory({ source: other }),             "other",  "other",      "other"],
  ["its own newest rather than its source: the pin stays",  fromWorkspace, memory({ newest: own, source: other }), "other", "own",        "other"],
  ["its own newest rather than a source it never had",      fromWorkspace, memory({ newest: own, source: other }), null,    "own",        null],
  ["its own newest, though that is lost: no older one",     fromWorkspace, memory({ newest: lost, source: other }), null,   "lost",       null],
  ["its own newest, though its source is gone",             fromWorkspace, memory({ newest: own }),               "other",  "own",        "other"],
  ["a source that is its own newest",                       fromBackup,    memory({ newest: other, source: other }), null,  "other",      "other"],
  ["a lost source: the sandbox finds that out",             fromBackup,    memory({ source: lost }),              null,     "lost",       "lost"],
  ["a workspace that has no good one",                      fromWorkspace, memory(),                              null,     "There is no good backup of a workspace bob in the namespace.", null],
  ["a backup that is not good",                             fromBackup,    memory(),                              null,     "There is no good backup other in the namespace.", null],
  ["a source where backups are not taken",                  fromBackup,    null,                                  "other",  "This installation takes no backups and restores none (BACKUP_MODE).", "other"],
];

test.for(table)("%s", ([, source, backups, sourceBackupId, restored, toPin]) => {
  const situation = record({ spec: spec({ source }), backups, sourceBackupId });
  const restore = restoreOf(situation, spec({ source }));
  expect([show(restore), sourceToPin(situation, restore)]).toEqual([restored, toPin]);
});

function show(restore: Restore): string {
  if (restore.kind === "Backup") return restore.backup.id;
  return restore.kind === "Missing" ? restore.message : restore.kind;
}

test("what has good backups that are of no use here begins with nothing at all", () => {
  expect(restoreOf(record({ unrestorable: true }), spec()).kind).toBe("Missing");
});
