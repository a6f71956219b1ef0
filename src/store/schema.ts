/**
 * The tables. `docs/storage.md` says of each column what it means, who writes it and whether it may change.
 *
 * No CHECK constraints and no foreign keys: drizzle-kit changes them by recreating the table, which on D1 cascades
 * (platform behaviour of `PRAGMA foreign_keys` inside a batch). Enumerations are checked where rows are parsed.
 */
import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** The wish (API) and, beside it, what the controller concluded and remembers. */
export const workspaces = sqliteTable(
  "workspaces",
  {
    uid: text("uid").primaryKey(),
    namespace: text("namespace").notNull(),
    name: text("name").notNull(),
    // Written by the API.
    spec: text("spec").notNull(),
    labels: text("labels").notNull(),
    annotations: text("annotations").notNull(),
    generation: integer("generation").notNull(),
    revision: integer("revision").notNull(),
    creationTime: integer("creation_time").notNull(),
    deletionTime: integer("deletion_time"),
    // Written by both: the version of the row, and when the controller should look at it next.
    resourceVersion: integer("resource_version").notNull(),
    nextReconcileTime: integer("next_reconcile_time"),
    // Requests, written by the API. The controller clears the second when it has met it.
    wakeTime: integer("wake_time"),
    reconcileRequestTime: integer("reconcile_request_time"),
    // Written by the controller.
    status: text("status").notNull(),
    incarnation: integer("incarnation").notNull().default(0),
    failures: integer("failures").notNull().default(0),
    nextRetryTime: integer("next_retry_time"),
    readyTime: integer("ready_time"),
    queuedTime: integer("queued_time"),
    unreachableTime: integer("unreachable_time"),
    idleTime: integer("idle_time"),
    startId: text("start_id"),
    observed: text("observed"),
    // Fixed at creation: where in the resync interval the workspace's turn is, in millionths.
    resyncPhase: integer("resync_phase").notNull(),
    // Written with the deletion, by the API or the controller that expires the workspace.
    finalBackup: text("final_backup"),
    finalBackupDeadlineTime: integer("final_backup_deadline_time"),
    // Written by the controller, cleared by the API with another `spec.source`.
    sourceBackupId: text("source_backup_id"),
  },
  (table) => [
    uniqueIndex("workspaces_name").on(table.namespace, table.name),
    index("workspaces_due")
      .on(table.nextReconcileTime)
      .where(sql`next_reconcile_time IS NOT NULL`),
    index("workspaces_queued")
      .on(table.queuedTime)
      .where(sql`queued_time IS NOT NULL`),
    index("workspaces_resync").on(table.resyncPhase, table.uid),
  ],
);

/** The ledger: every incarnation that was ever admitted and is not yet proven gone. Committed before any start. */
export const instances = sqliteTable(
  "instances",
  {
    doId: text("do_id").primaryKey(),
    sandboxId: text("sandbox_id").notNull(),
    workspaceUid: text("workspace_uid").notNull(),
    namespace: text("namespace").notNull(),
    name: text("name").notNull(),
    incarnation: integer("incarnation").notNull(),
    admittedTime: integer("admitted_time").notNull(),
    /** Whether it may run a container, as last seen; counts against the namespace's quota. */
    running: integer("running", { mode: "boolean" }).notNull().default(true),
    destroyRequestTime: integer("destroy_request_time"),
    adopted: integer("adopted", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("instances_workspace").on(table.workspaceUid, table.incarnation),
    index("instances_running")
      .on(table.namespace)
      .where(sql`running = 1`),
  ],
);

/** Instances that no desired record claims, until their absence is confirmed. */
export const unclaimed = sqliteTable(
  "unclaimed",
  {
    doId: text("do_id").primaryKey(),
    sandboxId: text("sandbox_id"),
    workspaceUid: text("workspace_uid"),
    namespace: text("namespace"),
    name: text("name"),
    incarnation: integer("incarnation"),
    state: text("state").notNull(),
    firstSeenTime: integer("first_seen_time").notNull(),
    lastSeenTime: integer("last_seen_time").notNull(),
    timesSeen: integer("times_seen").notNull(),
    startedTime: integer("started_time"),
    // Written by an operator through the API.
    protected: integer("protected", { mode: "boolean" }).notNull().default(false),
    destroyRequestTime: integer("destroy_request_time"),
    // Written by the controller.
    destroyAttempts: integer("destroy_attempts").notNull().default(0),
    lastDestroyTime: integer("last_destroy_time"),
  },
  (table) => [index("unclaimed_workspace").on(table.workspaceUid)],
);

/** One row for each backup that was asked for, and for each that was claimed. Outlives its workspace. */
export const backups = sqliteTable(
  "backups",
  {
    id: text("id").primaryKey(),
    workspaceUid: text("workspace_uid").notNull(),
    namespace: text("namespace").notNull(),
    name: text("name").notNull(),
    trigger: text("trigger").notNull(),
    state: text("state").notNull(),
    reason: text("reason").notNull().default(""),
    message: text("message").notNull().default(""),
    directory: text("directory").notNull(),
    requestedTime: integer("requested_time").notNull(),
    // Written with the claim.
    startId: text("start_id"),
    generation: integer("generation"),
    startedTime: integer("started_time"),
    deadlineTime: integer("deadline_time"),
    /** Failed attempts in a row, this one included once it has failed. */
    failures: integer("failures").notNull().default(0),
    // Written with the outcome.
    endedTime: integer("ended_time"),
    objectId: text("object_id"),
    sizeBytes: integer("size_bytes"),
    // Written by the sweep of the bucket, and with the end of the workspace.
    lostTime: integer("lost_time"),
    workspaceGoneTime: integer("workspace_gone_time"),
  },
  (table) => [
    /** One at most is asked for or under way. */
    uniqueIndex("backups_active")
      .on(table.workspaceUid)
      .where(sql`state IN ('Requested', 'InProgress')`),
    index("backups_workspace").on(table.workspaceUid, table.startedTime),
    index("backups_good")
      .on(table.workspaceUid, table.endedTime)
      .where(sql`state = 'Completed'`),
    index("backups_name").on(table.namespace, table.name, table.requestedTime, table.id),
    index("backups_deleting")
      .on(table.id)
      .where(sql`state = 'Deleting'`),
    uniqueIndex("backups_object")
      .on(table.objectId)
      .where(sql`object_id IS NOT NULL`),
  ],
);

/** Backups in the bucket that no row knows, until their objects are gone. */
export const unclaimedBackups = sqliteTable("unclaimed_backups", {
  objectId: text("object_id").primaryKey(),
  uploadedTime: integer("uploaded_time").notNull(),
  sizeBytes: integer("size_bytes").notNull(),
  firstSeenTime: integer("first_seen_time").notNull(),
  lastSeenTime: integer("last_seen_time").notNull(),
  timesSeen: integer("times_seen").notNull(),
});

/** One row for each change worth telling. Kept after the workspace is gone, until it is too old. */
export const events = sqliteTable(
  "events",
  {
    id: integer("id").primaryKey({ autoIncrement: true }),
    /** Null where the event is about no workspace. */
    workspaceUid: text("workspace_uid"),
    namespace: text("namespace"),
    name: text("name"),
    /** Null where the event is about no single instance. */
    doId: text("do_id"),
    time: integer("time").notNull(),
    type: text("type").notNull(),
    reason: text("reason").notNull(),
    message: text("message").notNull(),
    /** The name of the token that asked for it; null: the controller. */
    actor: text("actor"),
  },
  (table) => [
    index("events_workspace").on(table.namespace, table.name, table.id),
    index("events_uid").on(table.workspaceUid, table.id),
    index("events_time").on(table.time),
  ],
);

/** One row: what an operator set. Written by the API only. */
export const settings = sqliteTable("settings", {
  id: integer("id").primaryKey(),
  revision: integer("revision").notNull(),
  paused: integer("paused", { mode: "boolean" }).notNull(),
  gcMode: text("gc_mode"),
  allowEmpty: integer("allow_empty", { mode: "boolean" }).notNull(),
  laneWidth: integer("lane_width"),
  brakeReleasedUntilTime: integer("brake_released_until_time"),
});

/** One row for each start in flight; a slot whose deadline passed may be taken. */
export const startLane = sqliteTable(
  "start_lane",
  {
    slot: integer("slot").primaryKey(),
    startId: text("start_id").notNull(),
    workspaceUid: text("workspace_uid").notNull(),
    /** Since when the workspace waited: a start that the platform put off goes back to this place in the queue. */
    queuedTime: integer("queued_time").notNull(),
    admittedTime: integer("admitted_time").notNull(),
    deadlineTime: integer("deadline_time").notNull(),
  },
  (table) => [uniqueIndex("start_lane_workspace").on(table.workspaceUid)],
);

/** One row: who may sweep, until when, and what the sweeps remember. */
export const controller = sqliteTable("controller", {
  id: integer("id").primaryKey(),
  holder: text("holder").notNull(),
  epoch: integer("epoch").notNull(),
  expiresTime: integer("expires_time").notNull(),
  /** The resync has looked at every workspace whose turn came before this. */
  resyncTime: integer("resync_time").notNull(),
  /** End of the last tick that went through without an error of its own. */
  lastSweepTime: integer("last_sweep_time"),
  /** No start is admitted before this: the platform has no capacity, or asked for patience. */
  brakeUntilTime: integer("brake_until_time"),
  brakeFailures: integer("brake_failures").notNull().default(0),
  brakeReason: text("brake_reason"),
  brakeMessage: text("brake_message"),
  /** How the last inventory sweep went, as JSON. */
  inventory: text("inventory"),
  /** How the last sweep of the bucket went, as JSON. */
  backupSweep: text("backup_sweep"),
});

/** One row: the last resource version given out. */
export const sequence = sqliteTable("sequence", {
  id: integer("id").primaryKey(),
  value: integer("value").notNull(),
});
