/** (6) Backups as they are claimed, taken, written down and removed. */
import type { BackupClaim, BackupEnding } from "../../src/backup.ts";
import type { BackupOrder } from "../../src/sandbox/protocol.ts";
import type { Instant } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import type { Bucket } from "./bucket.ts";
import { Contents, type Expect } from "./contents.ts";
import type { BackupRow } from "./memory-backup-rows.ts";
import type { MemoryStore } from "./memory-store.ts";
import { type Container, NO_FILES, type TakenBackup } from "./surroundings.ts";
import type { Reason, Wishes } from "./wishes.ts";

/** What a pass has read is seldom older. */
const MEMORY_MS = 600_000;

interface Attempt {
  readonly uid: string;
  readonly startId: string;
  readonly claimTime: Instant;
  readonly trigger: BackupClaim["trigger"];
  state: BackupEnding["state"] | null;
}

export class BackupWatch {
  readonly contents: Contents;
  /** Claimed and without an outcome that was ever written down, although there was a good one. */
  lost = 0;
  readonly #store: MemoryStore;
  readonly #bucket: Bucket;
  readonly #wishes: Wishes;
  readonly #keepAfterDeletionMs: number;
  readonly #expect: Expect;
  /** By the backup's id. */
  readonly #attempts = new Map<string, Attempt>();
  readonly #ofStart = new Map<string, Attempt[]>();
  readonly #taken = new Map<string, TakenBackup>();
  /** By workspace: when the last good one of its schedule was claimed. */
  readonly #scheduled = new Map<string, Instant>();
  /** By workspace: when users did away with backups of it. */
  readonly #thrownAwayTimes = new Map<string, readonly Instant[]>();

  constructor(store: MemoryStore, bucket: Bucket, wishes: Wishes, keepAfterDeletionMs: number, expect: Expect) {
    this.#store = store;
    this.#bucket = bucket;
    this.#wishes = wishes;
    this.#keepAfterDeletionMs = keepAfterDeletionMs;
    this.#expect = expect;
    this.contents = new Contents(store, expect);
  }

  claimed({ uid, name, spec }: WorkspaceRecord, { id, trigger, startId }: BackupClaim, claimTime: Instant): void {
    const active = [...this.#store.tables.backups.of(uid)].filter(({ state }) => state === "Requested" || state === "InProgress");
    this.#expect(active.length === 1, () => `${name} has ${active.length} backups at a time`);
    const everyMs = (spec?.backup?.everySeconds ?? 0) * 1000;
    const isDue = trigger !== "Schedule" || claimTime >= (this.#scheduled.get(uid) ?? 0) + everyMs;
    this.#expect(isDue, () => `a backup of ${name} was begun twice for one window`);
    const attempt: Attempt = { uid, startId, claimTime, trigger, state: null };
    this.#attempts.set(id, attempt);
    const ofStart = this.#ofStart.get(startId) ?? [];
    if (ofStart.length === 0) this.#ofStart.set(startId, ofStart);
    ofStart.push(attempt);
  }

  /** A user has done away with one: where it was the last, the next comes sooner. */
  thrownAway(uid: string, now: Instant): void {
    this.#scheduled.delete(uid);
    this.#thrownAwayTimes.set(uid, [...(this.#thrownAwayTimes.get(uid) ?? []), now]);
  }

  ordered({ backupId, startId }: BackupOrder): void {
    const isClaimed = this.#attempts.get(backupId)?.startId === startId;
    this.#expect(isClaimed, () => `${backupId} was ordered and never claimed`);
  }

  /** By its sandbox. */
  taken(backup: TakenBackup): void {
    this.#taken.set(backup.backupId, backup);
    this.contents.taken.set(backup.objectId, backup);
  }

  ended({ name, uid }: WorkspaceRecord, { id, state, objectId }: BackupEnding): void {
    const attempt = this.#attempts.get(id);
    const row = this.#store.tables.backups.get(id);
    if (attempt === undefined || row?.state !== state) return;
    const taken = this.#taken.get(id);
    if (state === "Completed") this.#checkGood(attempt, taken, uid, objectId);
    else if (state === "Abandoned") this.lost += Number(taken !== undefined);
    else this.#expect(taken === undefined, () => `a good backup of ${name} was written down as ${state}`);
    attempt.state = state;
    if (state === "Completed" && attempt.trigger === "Schedule") this.#scheduled.set(uid, attempt.claimTime);
  }

  /** Before the mark is written; to be told whether it was. */
  marking(id: string, now: Instant): (isMarked: boolean) => void {
    const row = this.#store.tables.backups.get(id);
    const isKept = row?.state === "Completed" && (this.contents.isKept(row) || this.#isWithinRetention(row, now));
    return (isMarked) => this.#expect(!(isMarked && isKept), () => `${id} of ${row?.name} is to be kept and was marked for removal`);
  }

  /** By each spec that the controller may have read, and with what it may have seen before a user did away with it. */
  #isWithinRetention({ workspaceUid, workspaceGoneTime, endedTime, id }: BackupRow, now: Instant): boolean {
    if (workspaceGoneTime !== null && now >= workspaceGoneTime + this.#keepAfterDeletionMs) return false;
    const others = [...this.#store.tables.backups.of(workspaceUid)].filter((row) => row.state === "Completed" && row.lostTime === null);
    const thrownAway = (this.#thrownAwayTimes.get(workspaceUid) ?? []).filter((time) => time > now - MEMORY_MS).length;
    const newer = thrownAway + others.filter((row) => row.id !== id && (row.endedTime ?? 0) >= (endedTime ?? 0)).length;
    return this.#wishes.specsSince(workspaceUid, now - MEMORY_MS).every((spec) => {
      const { keepLast, keepForSeconds } = spec?.backup?.retention ?? { keepLast: Number.POSITIVE_INFINITY, keepForSeconds: null };
      return newer < keepLast || (keepForSeconds !== null && now <= (endedTime ?? 0) + keepForSeconds * 1000);
    });
  }

  removing(objectId: string): void {
    const backupId = this.contents.taken.get(objectId)?.backupId ?? "";
    const row = this.#store.tables.backups.get(backupId);
    const isWanted = row?.state === "InProgress" || (row?.state === "Completed" && row.objectId === objectId);
    this.#expect(!isWanted, () => `${objectId} was removed while ${backupId} was ${row?.state}`);
  }

  /** Whether the container may be ended by wish: what the policy asks for has been done since its end was decided, or cannot be. */
  mayGo(container: Container, reasons: readonly Reason[], now: Instant): boolean {
    const attempts = this.#ofStart.get(container.startId ?? "") ?? [];
    return reasons.some(({ wish, decidedTime, isByOperator }) => {
      const { isDeleting, finalBackup, finalBackupDeadlineTime: deadlineTime, spec } = wish;
      if (isByOperator || (isDeleting && (deadlineTime === null || now >= deadlineTime))) return true;
      const policy = isDeleting ? finalBackup : (spec?.backup?.onSuspend ?? "Skip");
      const goodEnough = attempts.filter(({ state }) => state === "Completed" || state === "Skipped" || (policy !== "Require" && state));
      return policy === "Skip" || goodEnough.some(({ claimTime }) => claimTime >= decidedTime);
    });
  }

  #checkGood({ startId }: Attempt, taken: TakenBackup | undefined, uid: string, objectId: string | null): void {
    const isTaken = taken !== undefined && taken.objectId === objectId;
    this.#expect(isTaken, () => `${objectId} was written down as good, and nobody has taken it`);
    if (taken === undefined || !isTaken) return;
    const { container, files, readTime } = taken;
    const isOwn = container.sandbox.uid === uid && container.startId === startId;
    this.#expect(isOwn, () => `${objectId} is of another container than was claimed`);
    const isVerified = container.verifiedTime !== null && container.verifiedTime <= readTime;
    this.#expect(isVerified, () => `${objectId} was taken of what was not restored`);
    this.#expect(files !== NO_FILES, () => `${objectId} holds nothing`);
    const objects = this.#bucket.stored.get(taken.objectId);
    this.#expect(objects?.hasArchive === true && objects.hasMetadata, () => `${objectId} is good, and its objects are not there`);
  }
}
