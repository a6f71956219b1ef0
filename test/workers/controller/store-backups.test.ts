/** Backups in the real D1: who wins where two write at once, what the history is told, and rows that this version did not write. */
import { beforeEach, describe, expect, it } from "vitest";
import { deleteBackup, requestBackup } from "../../../src/store/backup-intent.ts";
import { claimBackup } from "../../../src/store/backup-progress.ts";
import { claimBackupDeletion, readRetentionCandidates } from "../../../src/store/backup-removal.ts";
import { replaceWorkspace, requestDeletion } from "../../../src/store/intent.ts";
import { forget, saveConclusion } from "../../../src/store/progress.ts";
import { claimOf, endingOf, goodBackup } from "../../contract/store-world.ts";
import { conclusionOf, create, db, dump, epoch, putBackup, record, setSettings, workspace } from "./store-support.ts";
import { all, d1, emptyTables, NOW, SPEC, uidOf } from "./support.ts";

beforeEach(emptyTables);

const A = { namespace: "default", name: "a" };
const [ASKED, CLAIMED] = [uidOf(101), uidOf(102)];

async function active(): Promise<readonly unknown[]> {
  return await all("SELECT id, state FROM backups WHERE state IN ('Requested', 'InProgress')");
}

describe("two at once", () => {
  it("that claim for one workspace: one of them has it", async () => {
    const held = await epoch();
    await create("a", 1);
    const read = await record("a");
    const claims = [1, 2, 3].map((n) => claimBackup(db, held, read, claimOf(`b${n}`, { startId: `s${n}` }), NOW));
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
    expect(await active()).toHaveLength(1);
  });

  it("that claim one request: one of them has it", async () => {
    const held = await epoch();
    const current = await create("a", 1);
    await requestBackup(db, current, { id: ASKED, directory: "/workspace", now: NOW });
    const read = await record("a");
    const claims = [1, 2, 3].map((n) => claimBackup(db, held, read, claimOf(ASKED, { startId: `s${n}` }), NOW));
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
  });

  it("that ask for one: the first is answered to both", async () => {
    const current = await create("a", 1);
    const asked = await Promise.all([1, 2, 3].map((n) => requestBackup(db, current, { id: uidOf(n), directory: "/workspace", now: NOW })));
    expect(new Set(asked.map((answer) => answer?.backup.id)).size).toBe(1);
    expect(asked.filter((answer) => answer?.created === true)).toHaveLength(1);
  });

  it("of whom one asks and one claims: one of them has it", async () => {
    const held = await epoch();
    const current = await create("a", 1);
    const read = await record("a");
    const ask = requestBackup(db, current, { id: ASKED, directory: "/workspace", now: NOW });
    const [asked, claimed] = await Promise.all([ask, claimBackup(db, held, read, claimOf(CLAIMED), NOW)]);
    expect(asked?.created).toBe(!claimed);
    expect(await active()).toEqual([claimed ? { id: CLAIMED, state: "InProgress" } : { id: ASKED, state: "Requested" }]);
  });

  it.each([
    ["withdraws", () => deleteBackup(db, A, ASKED, NOW)],
    ["deletes the workspace", async () => requestDeletion(db, await workspace("a"), NOW)],
    ["edits the workspace", async () => replaceWorkspace(db, await workspace("a"), EDIT)],
  ])("of whom one %s before the other claims the request: nothing is claimed", async (_name, happen) => {
    const held = await epoch();
    const current = await create("a", 1);
    await requestBackup(db, current, { id: ASKED, directory: "/workspace", now: NOW });
    const read = await record("a");
    await happen();
    const rows = await dump();
    expect(await claimBackup(db, held, read, claimOf(ASKED), NOW)).toBe(false);
    expect(await dump()).toEqual(rows);
  });

  it.each([
    ["at once", null],
    ["the reference first", ["refer", "mark"]],
    ["the mark first", ["mark", "refer"]],
  ] as const)(
    "of whom one refers to a backup that the other removes, %s: it is there for the record, or marked, never both",
    async (_name, order) => {
      const held = await epoch();
      const current = await create("a", 1);
      await putBackup(goodBackup(ASKED, "gone", NOW - 9, { name: "gone", workspaceGoneTime: NOW }));
      const marked: boolean[] = [];
      const calls = {
        refer: () => replaceWorkspace(db, current, { ...EDIT, spec: { ...SPEC, source: { backup: ASKED } }, sourceChanged: true }),
        mark: async () => marked.push(await claimBackupDeletion(db, held, ASKED)),
      };
      if (order === null) await Promise.all([calls.refer(), calls.mark()]);
      else for (const call of order) await calls[call]();
      if (order !== null) expect(marked).toEqual([order[0] === "mark"]);
      expect(await all("SELECT state FROM backups")).toEqual([{ state: marked[0] ? "Deleting" : "Completed" }]);
      expect((await record("a")).backups?.source?.id).toBe(marked[0] ? undefined : ASKED);
    },
  );

  it("that mark one after the other: the newest good one stays, whichever it is by then", async () => {
    const held = await epoch();
    const { uid } = await create("a", 1);
    for (const n of [1, 2, 3]) await putBackup(goodBackup(uidOf(n), uid, NOW - n));
    const marked = await Promise.all([1, 2, 3].map((n) => claimBackupDeletion(db, held, uidOf(n))));
    expect(marked).toEqual([false, true, true]);
  });
});

const EDIT = { labels: {}, annotations: {}, spec: { ...SPEC, directory: "/app" }, specChanged: true, now: NOW };

describe("the history", () => {
  async function told(trigger: "Schedule" | "Request", change: Parameters<typeof endingOf>[1]): Promise<readonly unknown[]> {
    const held = await epoch();
    await create("a", 1);
    await claimBackup(db, held, await record("a"), claimOf(CLAIMED, { trigger: trigger === "Request" ? "Suspend" : trigger }), NOW);
    const read = await record("a");
    await saveConclusion(db, held, read, conclusionOf(read, { backup: endingOf(CLAIMED, { trigger, ...change }) }), NOW + 3);
    return await all("SELECT namespace, name, time, type, reason, message, actor FROM events WHERE reason <> 'Created'");
  }

  const about = { ...A, time: NOW + 3, actor: null };

  it.each([
    ["TooLarge", "the archive is too large", "TooLarge: the archive is too large"],
    ["Timeout", "", "Timeout"],
  ])("is told why one failed: %s", async (reason, message, text) => {
    const events = await told("Schedule", { state: "Failed", reason, message });
    expect(events).toEqual([{ ...about, type: "Warning", reason: "BackupFailed", message: text }]);
  });

  it("is told that one was given up", async () => {
    const events = await told("Schedule", { state: "Abandoned", reason: "DeadlineExceeded" });
    expect(events).toMatchObject([{ type: "Warning", reason: "BackupFailed" }]);
  });

  it("is told of one that was asked for", async () => {
    expect(await told("Request", {})).toEqual([{ ...about, type: "Normal", reason: "BackupCompleted", message: "" }]);
  });

  it("is told why one was skipped that was asked for", async () => {
    const events = await told("Request", { state: "Skipped", reason: "NotRunning", message: "none ran" });
    expect(events).toEqual([{ ...about, type: "Normal", reason: "BackupSkipped", message: "NotRunning" }]);
  });

  it("is told once of one end", async () => {
    await told("Request", {});
    const read = await record("a");
    await saveConclusion(db, 1, read, conclusionOf(read, { backup: endingOf(CLAIMED, { trigger: "Request" }) }), NOW + 4);
    expect(await all("SELECT reason FROM events WHERE reason = 'BackupCompleted'")).toHaveLength(1);
  });
});

describe("rows of another version", () => {
  it("hide nothing: a trigger that is not known holds its place, a policy that is not known waits for nothing", async () => {
    const { uid } = await create("a", 1);
    await putBackup(goodBackup(CLAIMED, uid, NOW, { state: "InProgress", trigger: "Whim", endedTime: null, objectId: null }));
    await d1.exec("UPDATE workspaces SET final_backup = 'Perhaps'");
    expect(await record("a")).toMatchObject({ finalBackup: "Skip", backups: { active: { id: CLAIMED, trigger: "Request" } } });
  });

  it.each(["", "null", "{", "[]", "7", '{"source":7}', '{"source":{"workspace":{}}}', '{"backup":7}', '{"backup":{"retention":7}}'])(
    "do not fail the others' statements: the spec %s",
    async (garbage) => {
      const held = await epoch();
      const { uid } = await create("a", 1);
      await create("b", 2);
      await putBackup(goodBackup(uidOf(11), uid, NOW));
      await putBackup(goodBackup(uidOf(12), uid, NOW - 9));
      await d1.prepare("UPDATE workspaces SET spec = ? WHERE name = 'a'").bind(garbage).run();
      expect((await record("a")).backups).toMatchObject({ newest: { id: uidOf(11) }, source: null });
      const [candidate] = await readRetentionCandidates(db, null, 10);
      expect(candidate).toMatchObject({ id: uidOf(12), rank: 2 });
      if (garbage === "" || garbage === "{" || garbage.startsWith('{"backup"')) expect(candidate?.retention).toBeNull();
      expect(await claimBackupDeletion(db, held, uidOf(12))).toBe(true);
    },
  );

  it("have the retention that a spec of today has where theirs says nothing of it", async () => {
    const { uid } = await create("a", 1);
    await putBackup(goodBackup(uidOf(11), uid, NOW));
    await putBackup(goodBackup(uidOf(12), uid, NOW - 9));
    await d1.exec('UPDATE workspaces SET spec = \'{"directory":"/workspace"}\'');
    expect(await readRetentionCandidates(db, null, 10)).toMatchObject([{ retention: { keepLast: 5, keepForSeconds: 7 * 86_400 } }]);
  });
});

it("the pause of the controller holds retention back until it ends", async () => {
  const held = await epoch();
  const { uid } = await create("a", 1);
  for (const n of [1, 2]) await putBackup(goodBackup(uidOf(n), uid, NOW - n));
  await setSettings({ paused: 1 });
  expect(await claimBackupDeletion(db, held, uidOf(2))).toBe(false);
  await setSettings({ paused: 0, gc_mode: "Off" });
  expect(await claimBackupDeletion(db, held, uidOf(2))).toBe(true);
});

it("a workspace that is created again has no backup of its former life, and may name it", async () => {
  const held = await epoch();
  const { uid } = await create("a", 1);
  await putBackup(goodBackup(uidOf(11), uid, NOW - 9));
  await requestDeletion(db, await workspace("a"), NOW);
  await forget(db, held, await record("a"), NOW + 1);
  const again = await create("a", 2);
  expect(again.lastBackup).toBeNull();
  expect((await record("a")).backups).toEqual({ active: null, newest: null, last: null, source: null });
  await replaceWorkspace(db, again, { ...EDIT, spec: { ...SPEC, source: { workspace: "a" } }, sourceChanged: true });
  expect((await record("a")).backups).toMatchObject({ newest: null, source: { id: uidOf(11) } });
});
