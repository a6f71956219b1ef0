/** The drift report. What differs, and what follows, is decided by the controller's own pure functions over what the store remembers. */
import { z } from "@hono/zod-openapi";
import { quotaOf } from "../config.ts";
import { driftOf, driftOfUnclaimed } from "../controller/drift.ts";
import { driftOfLostBackup, driftOfUnclaimedBackup } from "../controller/drift-backups.ts";
import type { DriftContext, DriftItem } from "../controller/drift-item.ts";
import { type DriftView, readDriftView } from "../store/drift-reading.ts";
import type { InventoryRecord } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { WorkspaceRecord } from "../workspace-record.ts";
import { authorise, type Principal } from "./auth.ts";
import { brakeReason, isStale, startBrakeOf, toBrake } from "./brake.ts";
import type { Api, ApiDeps } from "./context.ts";
import { type DriftBody, type DriftItemBody, type DriftOptions, driftRoute } from "./drift-schema.ts";
import { cutPage, readPaging } from "./paging.ts";
import { Problem } from "./problem.ts";
import { toTimestamp } from "./wire.ts";

/** Rows that one statement reads. */
const PART_SIZE = 1000;
const RETRY_AFTER_SECONDS = 60;

/** A place in the order of the report. */
const placeSchema = z.tuple([z.string(), z.string(), z.string(), z.string()]);
type Place = z.infer<typeof placeSchema>;

interface Placed {
  readonly place: Place;
  readonly item: DriftItem;
}

export function registerDrift(app: Api, deps: ApiDeps): void {
  app.openapi(driftRoute, async (c) => {
    const options = c.req.valid("query");
    authorise(c.var.principal, "operate", options.namespace ?? null);
    return c.json(await readDrift(deps, c.var.principal, options), 200);
  });
}

async function readDrift(deps: ApiDeps, principal: Principal, { type, namespace, ...options }: DriftOptions): Promise<DriftBody> {
  const paging = await readPaging(options, ["drift", type ?? null, namespace ?? null], placeSchema);
  const namespaces = namespace === undefined ? principal.namespaces : [namespace];
  const now = deps.now();
  const view = await readDriftView(deps.db, { namespaces, now, partSize: PART_SIZE, backups: deps.config.backups !== null });
  const inventory = view.controller.state?.inventory ?? null;
  if (inventory === null) throw new Problem("NOT_READY", "No inventory sweep has ended yet.", { retryAfterSeconds: RETRY_AFTER_SECONDS });
  const context = toContext(deps, view, inventory, now);
  const found = toPlaced(deps, view, context).filter(({ item }) => type === undefined || item.type === type);
  const remaining = found.filter(({ place }) => paging.after === null || isAfter(place, paging.after)).slice(0, paging.readLimit);
  const { items, nextPageToken } = await cutPage(remaining, paging, ({ place }) => place);
  return {
    asOf: toTimestamp(now),
    complete: context.isComplete,
    lastSweep: { time: toTimestamp(inventory.time), ok: inventory.outcome !== "Failed", ageSeconds: toSeconds(now - inventory.time) },
    summary: count(found),
    items: items.map(({ item }) => toItemBody(item, now)),
    brake: toBrake(inventory, view.controller.settings, now),
    unreachable: view.records
      .filter(({ unreachableTime }) => unreachableTime !== null)
      .map((record) => ({ namespace: record.namespace, name: record.name })),
    nextPageToken,
  };
}

function toContext({ config }: ApiDeps, { controller }: DriftView, inventory: InventoryRecord, now: Instant): DriftContext {
  const { settings, state } = controller;
  return {
    now,
    mode: settings.gcMode ?? config.gcMode,
    graceMs: config.orphanGraceMs,
    settings,
    brakeUntilTime: startBrakeOf(state, now)?.untilTime ?? null,
    gcBrake: brakeReason(inventory, settings, now),
    backupGraceMs: config.backups?.orphanGraceMs ?? 0,
    backupBrake: brakeReason(state?.backupSweep ?? null, settings, now),
    isComplete: inventory.outcome !== "Failed" && !isStale(inventory, config, now),
  };
}

/** Unclaimed instances by the time they were first seen, then workspaces, then backups by that time. */
function toPlaced({ config }: ApiDeps, view: DriftView, context: DriftContext): readonly Placed[] {
  const { records, unclaimed, unclaimedBackups, lostBackups, running } = view;
  const isFull = ({ namespace, instance }: WorkspaceRecord) => {
    const { maxRunning } = quotaOf(config.quotas, namespace);
    return maxRunning !== null && (running.get(namespace) ?? 0) - (instance?.running ? 1 : 0) >= maxRunning;
  };
  const ofInstances = unclaimed.flatMap((instance) =>
    driftOfUnclaimed(instance, context).map((item): Placed => {
      return { place: ["0", sortable(item.firstSeenTime), instance.doId, item.type], item };
    }),
  );
  const ofWorkspaces = records.flatMap((record) =>
    driftOf({ ...record, quotaReached: isFull(record) }, context).map((item): Placed => {
      return { place: ["1", record.namespace, record.name, item.type], item };
    }),
  );
  const backups = [
    ...unclaimedBackups.flatMap((backup) => driftOfUnclaimedBackup(backup, context)),
    ...lostBackups.flatMap(driftOfLostBackup),
  ];
  const ofBackups = backups.map((item): Placed => {
    return { place: ["2", sortable(item.firstSeenTime), item.backup?.objectId ?? "", item.type], item };
  });
  return [...ofInstances, ...ofWorkspaces, ...ofBackups].toSorted((a, b) => (isAfter(a.place, b.place) ? 1 : -1));
}

/** As text in the order of time. */
function sortable(time: Instant): string {
  return String(time).padStart(15, "0");
}

function isAfter(place: Place, other: Place): boolean {
  const first = place.findIndex((part, index) => part !== other[index]);
  return first !== -1 && (place[first] ?? "") > (other[first] ?? "");
}

function count(found: readonly Placed[]): DriftBody["summary"] {
  const summary: DriftBody["summary"] = {};
  for (const { item } of found) summary[item.type] = (summary[item.type] ?? 0) + 1;
  return summary;
}

function toItemBody(item: DriftItem, now: Instant): DriftItemBody {
  const { type, workspace, instance, backup, differences, firstSeenTime, timesSeen, plannedAction, blockedBy, reason, message } = item;
  return {
    type,
    ...(workspace !== null && { workspace }),
    ...(instance !== null && { instance }),
    ...(backup !== null && { backup }),
    ...(differences.length > 0 && { differences: [...differences] }),
    firstSeenTime: toTimestamp(firstSeenTime),
    timesSeen,
    ageSeconds: toSeconds(now - firstSeenTime),
    plannedAction,
    ...(blockedBy !== null && { blockedBy }),
    reason,
    message,
  };
}

/** Clocks differ: what was seen a moment ago is never in the future. */
function toSeconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}
