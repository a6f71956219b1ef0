/** (6) What each container has to begin with: what the simulation itself knows to be its workspace's newest good backup, or its source. */
import type { WorkspaceSpec } from "../../src/workspace.ts";
import type { BackupRow } from "./memory-backup-rows.ts";
import type { WorkspaceRow } from "./memory-rows.ts";
import type { MemoryStore } from "./memory-store.ts";
import { type Container, NO_FILES, type TakenBackup } from "./surroundings.ts";

export type Expect = (holds: boolean, message: () => string) => void;

export class Contents {
  /** By object id. */
  readonly taken = new Map<string, TakenBackup>();
  readonly #store: MemoryStore;
  readonly #expect: Expect;
  /** By start: any of these, since a user may throw a backup away meanwhile. */
  readonly #expected = new Map<string, Set<number>>();
  /** What each workspace's source was when a start first was to restore it. */
  readonly #pins = new Map<string, BackupRow>();

  constructor(store: MemoryStore, expect: Expect) {
    this.#store = store;
    this.#expect = expect;
  }

  /** The source is another one. */
  unpin(uid: string): void {
    this.#pins.delete(uid);
  }

  admitted(uid: string, startId: string): void {
    const row = this.#store.tables.workspaces.get(uid);
    if (row === undefined) return;
    const isOwn = this.#newestOf(row) !== null;
    const source = isOwn ? null : this.sourceOf(row);
    if (source !== null) this.#pins.set(uid, source);
    const isThere = isOwn || source !== null || row.spec?.source === null || this.#thrownAway(row).length > 0;
    this.#expect(isThere, () => `a start was admitted for ${row.name}, whose source is not there`);
    this.startBegan(uid, startId);
  }

  startBegan(uid: string, startId: string): void {
    const row = this.#store.tables.workspaces.get(uid);
    if (row === undefined) return;
    const backup = this.#newestOf(row) ?? this.sourceOf(row);
    const files = this.#expected.get(startId) ?? new Set();
    for (const { objectId } of [...(backup === null ? [] : [backup]), ...this.#thrownAway(row)]) files.add(this.#filesIn(objectId));
    if (backup === null) files.add(NO_FILES);
    this.#expected.set(startId, files);
  }

  verified({ startId, files, sandbox }: Container): void {
    const expected = this.#expected.get(startId ?? "");
    if (expected === undefined) return;
    this.#expect(expected.has(files), () => `${sandbox.sandboxId} is ready with ${files}, not ${[...expected].join(" or ")}`);
  }

  /** What the source stands for; null where there is none, or nothing. */
  sourceOf(row: WorkspaceRow): BackupRow | null {
    const pinned = this.#pins.get(row.uid);
    if (pinned !== undefined) return pinned;
    const source: WorkspaceSpec["source"] = row.spec?.source ?? null;
    if (source === null) return null;
    const { backups } = this.#store.tables;
    const isGood = ({ state, namespace }: BackupRow) => state === "Completed" && namespace === row.namespace;
    if ("backup" in source) return [backups.get(source.backup)].find((backup) => backup !== undefined && isGood(backup)) ?? null;
    const isNamed = ({ name, workspaceUid }: BackupRow) => name === source.workspace && workspaceUid !== row.uid;
    return newest([...backups.values()].filter((backup) => isNamed(backup) && isGood(backup)));
  }

  /** What neither retention nor a sweep may remove. */
  isKept(row: BackupRow): boolean {
    const { workspaces, backups } = this.#store.tables;
    const good = [...backups.of(row.workspaceUid)].filter(({ state, lostTime }) => state === "Completed" && lostTime === null);
    if (workspaces.has(row.workspaceUid) && newest(good)?.id === row.id) return true;
    return [...workspaces.values()].some((workspace) => this.#mayMean(workspace, row) && this.sourceOf(workspace)?.id === row.id);
  }

  #mayMean({ uid, spec }: WorkspaceRow, { id, name }: BackupRow): boolean {
    const source: WorkspaceSpec["source"] = spec?.source ?? null;
    if (source === null) return false;
    return this.#pins.get(uid)?.id === id || ("backup" in source ? source.backup === id : source.workspace === name);
  }

  #newestOf({ uid }: WorkspaceRow): BackupRow | null {
    return newest([...this.#store.tables.backups.of(uid)].filter(({ state }) => state === "Completed"));
  }

  /** Whoever has read its row before may still restore it. */
  #thrownAway({ uid }: WorkspaceRow): readonly BackupRow[] {
    return [...this.#store.tables.backups.of(uid)].filter(({ state, objectId }) => state === "Deleting" && objectId !== null);
  }

  #filesIn(objectId: string | null): number {
    return this.taken.get(objectId ?? "")?.files ?? Number.NaN;
  }
}

function newest(rows: readonly BackupRow[]): BackupRow | null {
  let found: BackupRow | null = null;
  for (const row of rows) if (found === null || (row.endedTime ?? 0) > (found.endedTime ?? 0)) found = row;
  return found;
}
