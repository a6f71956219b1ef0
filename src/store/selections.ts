/**
 * The columns of joined rows. D1 answers a batch with one object per row, keyed by column name, so a name that two joined tables share
 * would be lost: each selected column has a name of its own.
 */
import { sql } from "drizzle-orm";
import { instances, startLane } from "./schema.ts";

export const instanceColumns = {
  doId: instances.doId,
  sandboxId: instances.sandboxId,
  incarnation: sql<number>`${instances.incarnation}`.as("instance_incarnation"),
  running: instances.running,
  destroyRequested: sql<boolean>`${instances.destroyRequestTime} IS NOT NULL`.mapWith(Boolean).as("destroy_requested"),
  adopted: instances.adopted,
};

export const laneColumns = {
  startId: sql<string>`${startLane.startId}`.as("lane_start_id"),
  queuedTime: sql<number>`${startLane.queuedTime}`.as("lane_queued_time"),
  deadlineTime: startLane.deadlineTime,
};
