/** The sweep of the bucket: what rows and objects know of each other, and the claim of one removal. */
import { and, asc, eq, isNotNull, type SQL, sql } from "drizzle-orm";
import type { BackupSweepRecord, UnclaimedBackup } from "../backup.ts";
import type { Instant } from "../workspace.ts";
import type { Database } from "./db.ts";
import { recordEvent } from "./events.ts";
import { isHeld } from "./lease.ts";
import { backups, controller, settings, unclaimedBackups } from "./schema.ts";
import { sweepRecordJson } from "./sweep-record.ts";

export interface BackupSweepView {
  /** The good ones. */
  readonly stored: readonly {
    readonly id: string;
    readonly objectId: string;
    readonly endedTime: Instant;
    readonly lostTime: Instant | null;
  }[];
  /** Every object id that a row has, whatever its state. */
  readonly known: ReadonlySet<string>;
  readonly unclaimed: readonly UnclaimedBackup[];
  /** Of the backups under way: their objects may be there before their row knows. */
  readonly oldestClaimTime: Instant | null;
}

/** In one round trip and so of one moment. */
export async function readBackupSweepView(db: Database): Promise<BackupSweepView> {
  const [objects, unclaimed, [claims]] = await db.batch([
    db
      .select({
        id: backups.id,
        state: backups.state,
        objectId: backups.objectId,
        endedTime: backups.endedTime,
        lostTime: backups.lostTime,
      })
      .from(backups)
      .where(isNotNull(backups.objectId))
      .orderBy(asc(backups.id)),
    selectUnclaimedBackups(db, sql`1`),
    db
      .select({ time: sql<number | null>`min(${backups.startedTime})`.as("oldest_time") })
      .from(backups)
      .where(sql`${backups.state} = 'InProgress'`),
  ]);
  return {
    stored: objects.flatMap(({ id, state, objectId, endedTime, lostTime }) =>
      state === "Completed" && objectId !== null && endedTime !== null ? [{ id, objectId, endedTime, lostTime }] : [],
    ),
    known: new Set(objects.flatMap(({ objectId }) => objectId ?? [])),
    unclaimed,
    oldestClaimTime: claims?.time ?? null,
  };
}

/** A sweep may have met the objects of a backup before their row knew them. */
const isKnown: SQL = sql`EXISTS (SELECT 1 FROM ${backups} WHERE ${backups.objectId} = ${unclaimedBackups.objectId})`;

export function selectUnclaimedBackups(db: Database, which: SQL) {
  return db
    .select()
    .from(unclaimedBackups)
    .where(and(sql`NOT ${isKnown}`, which))
    .orderBy(asc(unclaimedBackups.objectId))
    .$dynamic();
}

export interface BackupSweepResult {
  /** The store itself says when the last complete one was. */
  readonly record: BackupSweepRecord;
  readonly unclaimed: readonly UnclaimedBackup[];
  /** Object ids whose objects are gone. */
  readonly gone: readonly string[];
  /** Backups whose objects a complete sweep missed. */
  readonly lost: readonly string[];
  /** Backups whose objects are there. */
  readonly found: readonly string[];
}

/** What a sweep saw. False, and nothing written, where the lease is lost. */
export async function recordBackupSweep(db: Database, epoch: number, result: BackupSweepResult, now: Instant): Promise<boolean> {
  const held = isHeld(epoch);
  const { gone, lost, found } = result;
  const [recorded] = await db.batch([
    db
      .update(controller)
      .set({ backupSweep: sweepRecordJson(controller.backupSweep, result.record, "stored") })
      .where(held)
      .returning({ epoch: controller.epoch }),
    upsert(db, result.unclaimed, held),
    // Also what the statement before has just written of a backup whose row came to know its objects meanwhile.
    db.delete(unclaimedBackups).where(and(sql`(${unclaimedBackups.objectId} IN ${listOf(gone)} OR ${isKnown})`, held)),
    db
      .update(backups)
      .set({ lostTime: now })
      .where(and(sql`${backups.id} IN ${listOf(lost)} AND ${backups.state} = 'Completed' AND ${backups.lostTime} IS NULL`, held)),
    db
      .update(backups)
      .set({ lostTime: null })
      .where(and(sql`${backups.id} IN ${listOf(found)}`, isNotNull(backups.lostTime), held)),
  ]);
  return recorded.length === 1;
}

/** One parameter however many there are. */
function listOf(ids: readonly string[]): SQL {
  return sql`(SELECT value FROM json_each(${JSON.stringify(ids)}))`;
}

function upsert(db: Database, seen: readonly UnclaimedBackup[], held: SQL) {
  return db
    .insert(unclaimedBackups)
    .select(
      sql`
      SELECT ${field("objectId")}, ${field("uploadedTime")}, ${field("sizeBytes")}, ${field("firstSeenTime")}, ${field("lastSeenTime")},
        ${field("timesSeen")}
      FROM json_each(${JSON.stringify(seen)})
      WHERE ${held}`,
    )
    .onConflictDoUpdate({
      target: unclaimedBackups.objectId,
      set: {
        uploadedTime: sql`excluded.uploaded_time`,
        sizeBytes: sql`excluded.size_bytes`,
        firstSeenTime: sql`excluded.first_seen_time`,
        lastSeenTime: sql`excluded.last_seen_time`,
        timesSeen: sql`excluded.times_seen`,
      },
    });
}

function field(name: keyof UnclaimedBackup): SQL {
  return sql.raw(`json_extract(value, '$.${name}')`);
}

/** The last look before objects are removed: true where at this very moment no row knows them and nobody holds the collector back. */
export async function claimObjectRemoval(db: Database, epoch: number, objectId: string, now: Instant): Promise<boolean> {
  const isHeldBack = sql`EXISTS (SELECT 1 FROM ${settings} WHERE ${settings.paused} = 1 OR ${settings.gcMode} IN ('Off', 'Report'))`;
  const isFree = and(eq(unclaimedBackups.objectId, objectId), sql`NOT ${isKnown}`, sql`NOT ${isHeldBack}`, isHeld(epoch));
  const event = { type: "Warning", reason: "RemovingBackupOrphan", message: `No backup has the objects of ${objectId}.` } as const;
  const [, claimed] = await db.batch([
    recordEvent(db, {}, event, now, sql`EXISTS (SELECT 1 FROM ${unclaimedBackups} WHERE ${isFree})`),
    db.select({ objectId: unclaimedBackups.objectId }).from(unclaimedBackups).where(isFree),
  ]);
  return claimed.length === 1;
}
