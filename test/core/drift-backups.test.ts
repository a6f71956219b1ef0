/** The drift report's items about backups, and what of the others waits for one. Invariant 6. */
import { describe, expect, test } from "vitest";
import type { UnclaimedBackup } from "../../src/backup.ts";
import { driftOfLostBackup, driftOfUnclaimedBackup } from "../../src/controller/drift-backups.ts";
import type { DriftContext, DriftItem } from "../../src/controller/drift-item.ts";
import { driftOf } from "../../src/controller/drift.ts";
import type { ControllerSettings } from "../../src/unclaimed.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  HOUR,
  OBJECT_ID,
  attempt,
  backedUp,
  endsWith,
  keptRecord,
  memory,
  requested,
  storedBackup,
  underWay,
} from "../support/backup-builders.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  admittedRecord,
  changedSpec,
  expiringSpec,
  idleSpec,
  instance,
  observedState,
  readyRecord,
  suspendedSpec,
} from "../support/builders.ts";

const settings: ControllerSettings = { paused: false, gcMode: null, allowEmpty: false, laneWidth: null, brakeReleasedUntilTime: null };
const open: DriftContext = {
  now: NOW,
  mode: "Enforce",
  graceMs: 2 * MINUTE,
  settings,
  brakeUntilTime: null,
  gcBrake: null,
  backupGraceMs: 2 * HOUR,
  backupBrake: null,
  isComplete: true,
};
const halted: DriftContext = { ...open, settings: { ...settings, paused: true } };

type Row = readonly [situation: string, record: WorkspaceRecord, context: DriftContext, expected: string];

const day = { readyTime: NOW - 24 * HOUR };
const old = storedBackup({ endedTime: NOW - 9 * HOUR });
const unused = observedState("Running", { activityTime: NOW - 20 * MINUTE });
const suspending = (policy: Parameters<typeof endsWith>[0], backups: WorkspaceRecord["backups"]) =>
  keptRecord({}, { spec: endsWith(policy, { operatingMode: "Suspended" }), backups });
const changed = (backups: WorkspaceRecord["backups"]) => keptRecord({}, { spec: endsWith("Require", { env: changedSpec.env }), backups });

// oxfmt-ignore
const table: readonly Row[] = [
  ["a backup is in time",                          keptRecord({ newest: storedBackup() }, day),                    open,   "-"],
  ["one is late",                                  keptRecord({ newest: old }, day),                               open,   "BackupOverdue Backup"],
  ["late, and the controller is paused",           keptRecord({ newest: old }, day),                               halted, "BackupOverdue Backup (ControllerPaused)"],
  ["late, and the workspace is paused",            keptRecord({ newest: old }, { ...day, spec: backedUp({}, { paused: true }) }), open, "BackupOverdue Backup (Paused)"],
  ["late, and nobody answers",                     keptRecord({ newest: old }, { ...day, unreachableTime: NOW }),  open,   "BackupOverdue Backup (Unreachable), Unreachable Observe"],
  ["late, and it is being deleted",                keptRecord({ newest: old }, { ...day, deletionTime: NOW }),     open,   "-"],
  ["late, and its spec can not be read",           keptRecord({ newest: old }, { ...day, spec: null }),            open,   "-"],
  ["what sleeps misses none",                      keptRecord({ newest: old }, { readyTime: null, spec: suspendedSpec, observed: observedState("Stopped") }), open, "-"],
  ["where none are taken none is late",            readyRecord({ ...day, spec: backedUp() }),                      open,   "-"],
  // What waits for one.
  ["an end waits for what is under way",           suspending("Skip", memory({ active: underWay() })),             open,   "Unexpected Stop (Backup)"],
  ["a replacement, too",                           changed(memory({ active: underWay() })),                        open,   "OutOfSync Replace (Backup)"],
  ["a mark of idleness, too",                      keptRecord({ active: underWay() }, { spec: { ...idleSpec, backup: null }, observed: unused }), open, "IdleOverrun Suspend (Backup)"],
  ["a start, too",                                 admittedRecord({ backups: memory({ active: underWay() }), observed: observedState("Stopped") }), open, "Missing Start (Backup)"],
  ["a deletion does not wait to be asked for",     admittedRecord({ backups: memory({ active: underWay() }), observed: observedState("Stopped"), spec: expiringSpec(NOW) }), open, "Missing Delete"],
  ["nor does what an operator asked for",          readyRecord({ backups: memory({ active: underWay() }), spec: changedSpec, instance: instance({ destroyRequested: true }) }), open, "OutOfSync Replace"],
  ["an end waits for one that is to be taken",     suspending("Require", memory()),                                open,   "Unexpected Stop (Backup)"],
  ["and for another try",                          suspending("Require", memory({ last: attempt("Failed") })),     open,   "Unexpected Stop (Backup)"],
  ["not for more than one by those who do their best", suspending("BestEffort", memory({ last: attempt("Failed") })), open, "Unexpected Stop"],
  ["not once it is there",                         changed(memory({ last: attempt("Completed") })),                open,   "OutOfSync Replace"],
  ["not for one that nobody wishes",               suspending("Skip", memory()),                                   open,   "Unexpected Stop"],
  ["an idle mark waits for none of its own",       keptRecord({}, { spec: endsWith("Require", { idle: idleSpec.idle }), observed: unused }), open, "IdleOverrun Suspend"],
  ["a start waits for no request",                 admittedRecord({ backups: memory({ active: requested() }), observed: observedState("Stopped") }), open, "Missing Start"],
];

test.for(table)("%s", ([, situation, context, expected]) => {
  expect(show(driftOf(situation, context))).toBe(expected);
});

const objects: UnclaimedBackup = {
  objectId: OBJECT_ID,
  uploadedTime: NOW - 9 * HOUR,
  sizeBytes: 12,
  firstSeenTime: NOW - 3 * HOUR,
  lastSeenTime: NOW - HOUR,
  timesSeen: 3,
};

type ObjectsRow = readonly [situation: string, objects: Partial<UnclaimedBackup>, context: DriftContext, expected: string];

// oxfmt-ignore
const nobodys: readonly ObjectsRow[] = [
  ["nothing holds their removal back",   {},                                   open,   "BackupOrphaned Remove"],
  ["the controller is paused",           {},                                   halted, "BackupOrphaned Remove (ControllerPaused)"],
  ["they are young",                     { firstSeenTime: NOW - 2 * HOUR + 1 }, open,  "BackupOrphaned Remove (Grace)"],
  ["old enough for an instance only",    { firstSeenTime: NOW - 3 * MINUTE },  open,   "BackupOrphaned Remove (Grace)"],
  ["they were seen once",                { timesSeen: 1 },                     open,   "BackupOrphaned Remove (SeenOnce)"],
  ["garbage collection is off",          {},                                   { ...open, mode: "Off" }, "BackupOrphaned None (GcOff)"],
  ["garbage collection only reports",    {},                                   { ...open, mode: "Report" }, "BackupOrphaned None (ReportOnly)"],
  ["there are too many",                 {},                                   { ...open, backupBrake: "TooManyOrphans" }, "BackupOrphaned Remove (TooManyOrphans)"],
  ["there are too many, and they are young", { timesSeen: 1 },                 { ...open, backupBrake: "EmptyDesired" }, "BackupOrphaned Remove (SeenOnce)"],
  ["there are too many instances",       {},                                   { ...open, gcBrake: "TooManyOrphans" }, "BackupOrphaned Remove"],
];

test.for(nobodys)("objects without a row: %s", ([, overrides, context, expected]) => {
  expect(show(driftOfUnclaimedBackup({ ...objects, ...overrides }, context))).toBe(expected);
});

describe("an item says", () => {
  test("of what is late: since when, how old the newest is, and what came of the last try", () => {
    const last = attempt("Failed", { failures: 4, message: "no space left", startedTime: NOW - MINUTE, endedTime: NOW - SECOND });
    expect(driftOf(keptRecord({ newest: old, last }, day), open)).toMatchObject([
      {
        type: "BackupOverdue",
        workspace: { namespace: "default", name: "alice-1" },
        backup: null,
        differences: [{ field: "/spec/backup/everySeconds", desired: "3600 s", observed: "32400 s" }],
        firstSeenTime: NOW - 9 * HOUR + 2 * HOUR + 10 * MINUTE,
        timesSeen: 4,
        reason: "Failed",
        message: "no space left",
      },
    ]);
  });

  test("of what never was", () => {
    expect(driftOf(keptRecord({}, day), open)).toMatchObject([
      {
        differences: [{ observed: "none" }],
        timesSeen: 0,
        reason: "NeverBackedUp",
        message: "",
        firstSeenTime: NOW - 22 * HOUR + 10 * MINUTE,
      },
    ]);
  });

  test("of objects without a row: how much they are, and since when they are known", () => {
    expect(driftOfUnclaimedBackup(objects, open)).toMatchObject([
      {
        workspace: null,
        instance: null,
        backup: { id: null, objectId: OBJECT_ID },
        differences: [{ field: "/backup/objects", desired: "none", observed: "12 bytes" }],
        firstSeenTime: NOW - 3 * HOUR,
        timesSeen: 3,
        reason: "NoRow",
      },
    ]);
  });

  test("of a row without objects: whose it is, and that somebody has to decide", () => {
    const lost = { id: "backup-1", objectId: OBJECT_ID, namespace: "default", name: "alice-1", lostTime: NOW - HOUR };
    expect(driftOfLostBackup(lost)).toMatchObject([
      {
        type: "BackupOrphaned",
        workspace: { namespace: "default", name: "alice-1" },
        backup: { id: "backup-1", objectId: OBJECT_ID },
        firstSeenTime: NOW - HOUR,
        plannedAction: "None",
        blockedBy: null,
        reason: "NoObjects",
      },
    ]);
  });
});

function show(items: readonly DriftItem[]): string {
  const lines = items.map(({ type, plannedAction, blockedBy }) => `${type} ${plannedAction}${blockedBy === null ? "" : ` (${blockedBy})`}`);
  return lines.join(", ") || "-";
}
