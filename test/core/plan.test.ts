/** The policy: what is done in which situation. Invariants 1, 2, 4, 5 and 12 of design.md section 2 as rows. */
import { describe, expect, test } from "vitest";
import { plan } from "../../src/controller/plan.ts";
import type { Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import {
  MINUTE,
  NOW,
  SECOND,
  START_ID,
  absent,
  admittedRecord,
  changedSpec,
  condition,
  destroyed,
  destroying,
  exited,
  expiringSpec,
  failed,
  failedBefore,
  idleRecord,
  idleSpec,
  incomparable,
  instance,
  mortalSpec,
  outdated,
  pausedSpec,
  readyRecord,
  record,
  running,
  runs,
  silent,
  spec,
  stalledStatus,
  starting,
  startingRecord,
  statusOf,
  stopped,
  suspendedSpec,
  unverified,
} from "../support/builders.ts";
import { show } from "../support/show.ts";
import { OBSERVATIONS, RECORDS } from "./fixtures.ts";

const fresh = record();
const queued = record({ queuedTime: NOW - SECOND, nextReconcileTime: null });
const inLane = startingRecord();
const awaited = startingRecord({ lane: null });
const outOfLane = admittedRecord();
const ready = readyRecord();
const justReady = readyRecord({ readyTime: NOW - 10 * SECOND });
const changed = readyRecord({ spec: changedSpec, generation: 2 });
const backingOff = admittedRecord({ failures: 1, nextRetryTime: NOW + 1 });
const backedOff = admittedRecord({ failures: 1, nextRetryTime: NOW });
const backingOffChanged = admittedRecord({ failures: 1, nextRetryTime: NOW + 1, generation: 2, spec: changedSpec });
const stalled = admittedRecord({ status: stalledStatus, failures: 1 });
const stalledInLane = admittedRecord({ status: stalledStatus, failures: 1, lane: inLane.lane });
const stalledChanged = admittedRecord({ status: stalledStatus, generation: 2, spec: changedSpec });
const paused = readyRecord({ spec: pausedSpec });
const pausedSuspended = readyRecord({ spec: spec({ paused: true, operatingMode: "Suspended" }) });
const suspended = admittedRecord({ spec: suspendedSpec });
const suspendedInLane = startingRecord({ spec: suspendedSpec });
const invalid = admittedRecord({ spec: null });
const invalidOnce = admittedRecord({
  status: { ...statusOf("Stalled"), conditions: [condition("Ready", "False", "InvalidSpec"), condition("Stalled", "True", "InvalidSpec")] },
});
const deleting = readyRecord({ deletionTime: NOW });
const deletingNew = record({ deletionTime: NOW });
const deletingStarting = startingRecord({ deletionTime: NOW });
const deletingPaused = admittedRecord({ deletionTime: NOW, spec: pausedSpec });
const deletingInvalid = admittedRecord({ deletionTime: NOW, spec: null });
const deletingStalled = admittedRecord({ deletionTime: NOW, status: stalledStatus });
const deletingSuspended = admittedRecord({ deletionTime: NOW, spec: suspendedSpec });
const deletingBackingOff = admittedRecord({ deletionTime: NOW, failures: 3, nextRetryTime: NOW + SECOND });

const crashedAtOnce: Observation = { kind: "Stopped", startId: START_ID, exit: { code: 0, time: NOW - SECOND, signalled: false } };
const idle = idleRecord();
const idleLongAgo = idleRecord({ idleTime: NOW - 20 * MINUTE });
const idleWoken = idleRecord({ wakeTime: NOW - SECOND });
const idleWokenAtOnce = idleRecord({ wakeTime: NOW - 5 * SECOND });
const idleChanged = idleRecord({ spec: spec({ ...idleSpec, directory: "/workspace/a" }), generation: 2 });
const mayIdle = readyRecord({ spec: idleSpec });
const mayIdlePaused = readyRecord({ spec: spec({ ...idleSpec, paused: true }) });
const wokenLately = readyRecord({ spec: idleSpec, wakeTime: NOW - MINUTE });
const mortal = readyRecord({ spec: mortalSpec });
const mortalPaused = readyRecord({ spec: spec({ ...mortalSpec, paused: true }) });
const both = readyRecord({ spec: spec({ ...idleSpec, maxLifetimeSeconds: 3600 }) });
const bothChanged = readyRecord({ spec: spec({ ...idleSpec, maxLifetimeSeconds: 3600, env: { A: "1" } }), generation: 2 });
const unused = runs({ startedTime: NOW - 60 * MINUTE, activityTime: NOW - 10 * MINUTE });

const toBeReplaced = instance({ destroyRequested: true });
const replaced = readyRecord({ instance: toBeReplaced });
const replacedStalled = admittedRecord({ status: stalledStatus, instance: toBeReplaced });
const replacedSuspended = admittedRecord({ spec: suspendedSpec, instance: toBeReplaced });
const replacedPaused = readyRecord({ spec: pausedSpec, instance: toBeReplaced });
const replacedInvalid = readyRecord({ spec: null, instance: toBeReplaced });
const replacedStarting = startingRecord({ instance: toBeReplaced });

const expired = readyRecord({ spec: expiringSpec(NOW) });
const expiresSoon = readyRecord({ spec: expiringSpec(NOW + 1) });
const expiredPaused = readyRecord({ spec: expiringSpec(NOW, { paused: true }) });
const expiredStalled = admittedRecord({ spec: expiringSpec(NOW), status: stalledStatus });
const expiredStarting = startingRecord({ spec: expiringSpec(NOW) });
const expiredReplaced = readyRecord({ spec: expiringSpec(NOW), instance: toBeReplaced });
const expiredNew = record({ spec: expiringSpec(NOW - MINUTE) });
const deletingExpired = readyRecord({ deletionTime: NOW, spec: expiringSpec(NOW - MINUTE) });
const backingOffAsked = admittedRecord({ failures: 1, nextRetryTime: NOW + 1, reconcileRequestTime: NOW });
const stalledAsked = admittedRecord({ status: stalledStatus, failures: 1, reconcileRequestTime: NOW });

/** Whether the workspace holds a place in the lane, or it is its turn. */
type Turn = "may start" | "must wait";
type Row = readonly [situation: string, record: WorkspaceRecord, observed: Observation, turn: Turn, expected: string];

// oxfmt-ignore
const wishedRunning: readonly Row[] = [
  ["a new workspace joins the queue",                                      fresh,      absent,                   "must wait", "Enqueue"],
  ["a new workspace is started when the lane is free",                     fresh,      absent,                   "may start", "Start"],
  ["a queued workspace keeps waiting",                                     queued,     absent,                   "must wait", "-"],
  ["a queued workspace is started at its turn",                            queued,     absent,                   "may start", "Start"],
  ["a healthy workspace is left alone",                                    ready,      running,                  "must wait", "-"],
  ["a healthy workspace is left alone at its turn",                        ready,      running,                  "may start", "-"],
  ["a container of another controller version is not replaced",            ready,      incomparable,             "may start", "-"],
  ["a changed spec replaces the sandbox",                                  changed,    outdated,                 "must wait", "Destroy"],
  ["a container that ran when the spec changed is replaced",               changed,    running,                  "may start", "Destroy"],
  ["a container that stopped quietly queues again",                        ready,      stopped,                  "must wait", "Enqueue"],
  ["a container that ended cleanly queues again",                          ready,      exited(0),                "must wait", "Enqueue"],
  ["a container stopped by SIGTERM queues again",                          ready,      exited(143),              "must wait", "Enqueue"],
  ["an exit without a code is no crash",                                   ready,      exited(null),             "must wait", "Enqueue"],
  ["a container that ends cleanly soon after it was Ready is held back",   justReady,  exited(0),                "may start", "-"],
  ["so is one that SIGTERM ends again and again",                          justReady,  exited(143),              "may start", "-"],
  ["a crash of a Ready container is counted before anything is done",      ready,      exited(137),              "may start", "-"],
  ["a container that the platform told to go queues again, whatever its code", ready,   exited(137, true),        "must wait", "Enqueue"],
  ["so does one that it told to go soon after it was Ready",               justReady,  exited(1, true),          "must wait", "Enqueue"],
  ["a crash that was counted is followed by a start",                      outOfLane,  exited(137),              "may start", "Start"],
  ["a start under way is joined by its lane place",                        inLane,     starting,                 "may start", "Start"],
  ["a start without a lane place is awaited",                              outOfLane,  starting,                 "must wait", "-"],
  ["an admitted start that never reached the sandbox is sent again",       inLane,     absent,                   "may start", "Start"],
  ["a start whose sandbox lost its memory is resumed",                     inLane,     stopped,                  "may start", "Start"],
  ["a container that nobody vouches for is started over",                  inLane,     unverified,               "may start", "Start"],
  ["a container that nobody vouches for queues for a verified start",      outOfLane,  unverified,               "must wait", "Enqueue"],
  ["a failed start is counted before anything is done",                    inLane,     failed("Transient"),      "may start", "-"],
  ["a permanent failure is counted before anything is done",               inLane,     failed("Permanent"),      "may start", "-"],
  ["the failure of a start that outlasted its lane place is counted, too", awaited,    failed("Transient"),      "must wait", "-"],
  ["a start that outlasted its lane place is awaited",                     awaited,    starting,                 "must wait", "-"],
  ["the crash of a start that no pass has seen verified is counted",       awaited,    crashedAtOnce,            "may start", "-"],
  ["a container of an earlier start that ended says nothing of this one",  inLane,     exited(137),              "may start", "Start"],
  ["a failure of an earlier start does not hold the lane's start back",    inLane,     failedBefore("Permanent"),"may start", "Start"],
  ["a failure that was counted is followed by another try",                outOfLane,  failed("Transient"),      "must wait", "Enqueue"],
  ["a sandbox destroyed for good gets a successor",                        outOfLane,  destroyed,                "must wait", "Enqueue"],
  ["a successor is started at its turn",                                   outOfLane,  destroyed,                "may start", "Start"],
  ["an incarnation that is over is destroyed until it is gone",            outOfLane,  destroying,               "may start", "Destroy"],
  ["silence is not taken for absence",                                     fresh,      silent,                   "may start", "-"],
  ["silence starts nothing although the lane is held",                     inLane,     silent,                   "may start", "-"],
  ["silence destroys nothing although the spec changed",                   changed,    silent,                   "may start", "-"],
];

// oxfmt-ignore
const heldBack: readonly Row[] = [
  ["a workspace backs off",                                                backingOff, failed("Transient"),      "may start", "-"],
  ["a workspace that backs off does not queue",                            backingOff, stopped,                  "must wait", "-"],
  ["backing off ends at its very time",                                    backedOff,  failed("Transient"),      "may start", "Start"],
  ["a new generation does not wait for the backoff of the old one",        backingOffChanged, stopped,           "may start", "Start"],
  ["a running container is in step even while backing off",                backingOff, running,                  "may start", "-"],
  ["a stalled workspace is not started",                                   stalled,    failed("Permanent"),      "may start", "-"],
  ["a stalled workspace does not queue",                                   stalled,    absent,                   "must wait", "-"],
  ["a stalled workspace is not started although it holds the lane",        stalledInLane, stopped,               "may start", "-"],
  ["a request ends the stall",                                             stalledAsked, failed("Permanent"),    "must wait", "Enqueue"],
  ["a request ends the backoff",                                           backingOffAsked, stopped,             "may start", "Start"],
  ["a new generation ends the stall",                                      stalledChanged, failed("Permanent"),  "must wait", "Enqueue"],
  ["a spec that parses again ends the stall that it caused",               invalidOnce, stopped,                 "must wait", "Enqueue"],
  ["a paused workspace is not started",                                    paused,     stopped,                  "may start", "-"],
  ["a paused workspace is not replaced",                                   paused,     outdated,                 "may start", "-"],
  ["a paused workspace is not suspended",                                  pausedSuspended, running,             "may start", "-"],
  ["a paused workspace's old incarnation is left alone",                   paused,     destroying,               "may start", "-"],
  ["an unreadable spec starts nothing",                                    invalid,    absent,                   "may start", "-"],
  ["an unreadable spec stops nothing",                                     invalid,    running,                  "may start", "-"],
];

// oxfmt-ignore
const wishedSuspended: readonly Row[] = [
  ["a suspended workspace that never ran is left alone",                   suspended,  absent,                   "may start", "-"],
  ["a suspended workspace that stopped is left alone",                     suspended,  stopped,                  "may start", "-"],
  ["a crash while suspended means nothing",                                suspended,  exited(137),              "may start", "-"],
  ["a failed start is no longer of interest",                              suspended,  failed("Permanent"),      "may start", "-"],
  ["a failed start in the lane is no longer of interest",                  suspendedInLane, failed("Capacity"),  "may start", "-"],
  ["a destroyed sandbox is suspended as it is",                            suspended,  destroyed,                "may start", "-"],
  ["a running container is stopped",                                       suspended,  running,                  "may start", "Stop"],
  ["an outdated container is stopped, not replaced",                       suspended,  outdated,                 "may start", "Stop"],
  ["a start under way is stopped",                                         suspendedInLane, starting,            "may start", "Stop"],
  ["a container that nobody vouches for is stopped",                       suspended,  unverified,               "may start", "Stop"],
  ["an incarnation that is over is destroyed until it is gone",            suspended,  destroying,               "may start", "Destroy"],
  ["silence stops nothing",                                                suspended,  silent,                   "may start", "-"],
];

// oxfmt-ignore
const beingDeleted: readonly Row[] = [
  ["a workspace that never began is forgotten at once",                    deletingNew, absent,                  "must wait", "Forget"],
  ["a running container is destroyed",                                     deleting,   running,                  "must wait", "Destroy"],
  ["a start under way is destroyed",                                       deletingStarting, starting,           "may start", "Destroy"],
  ["an admitted start that never reached its sandbox is revoked for good", deletingStarting, absent,             "may start", "Destroy"],
  ["a stopped sandbox is ended for good before it is forgotten",           deleting,   stopped,                  "must wait", "Destroy"],
  ["a failed start does not make it absent",                               deletingStarting, failed("Permanent"),"may start", "Destroy"],
  ["a container that nobody vouches for is destroyed",                     deleting,   unverified,               "must wait", "Destroy"],
  ["a destroy that is not effective yet is repeated",                      deleting,   destroying,               "must wait", "Destroy"],
  ["what is gone for good is forgotten",                                   deleting,   destroyed,                "must wait", "Forget"],
  ["silence is not taken for absence",                                     deleting,   silent,                   "must wait", "-"],
  ["a paused workspace can be deleted",                                    deletingPaused, running,              "must wait", "Destroy"],
  ["an unreadable spec does not stop deletion",                            deletingInvalid, running,             "must wait", "Destroy"],
  ["an unreadable spec does not stop forgetting",                          deletingInvalid, destroyed,           "must wait", "Forget"],
  ["a stalled workspace can be deleted",                                   deletingStalled, failed("Permanent"), "must wait", "Destroy"],
  ["a suspended workspace can be deleted",                                 deletingSuspended, stopped,           "must wait", "Destroy"],
  ["backing off does not delay a deletion",                                deletingBackingOff, stopped,          "must wait", "Destroy"],
];

// oxfmt-ignore
const limited: readonly Row[] = [
  ["a workspace that is used is left alone",                               mayIdle,    running,                  "may start", "-"],
  ["a workspace that nobody uses is marked before it is stopped",          mayIdle,    unused,                   "may start", "Suspend"],
  ["one that was woken lately is left alone",                              wokenLately, unused,                  "may start", "-"],
  ["one whose container ages is stopped, to be started afresh",            mortal,     unused,                   "may start", "Stop"],
  ["idleness goes before age",                                             both,       unused,                   "may start", "Suspend"],
  ["another wish goes before both",                                        bothChanged, unused,                  "may start", "Destroy"],
  ["a paused workspace is not suspended for idleness",                     mayIdlePaused, unused,                "may start", "-"],
  ["a paused workspace may grow old",                                      mortalPaused, unused,                 "may start", "-"],
  ["what was marked as idle is stopped",                                   idle,       unused,                   "may start", "Stop"],
  ["what was marked as idle is stopped if it was not used since",          idle,       runs({ activityTime: NOW - 5 * SECOND }), "may start", "Stop"],
  ["what was used after the mark is not stopped",                          idle,       runs({ activityTime: NOW - 5 * SECOND + 1 }), "may start", "-"],
  ["what was used after the mark and left alone since is marked anew",      idleLongAgo, runs({ startedTime: NOW - 60 * MINUTE, activityTime: NOW - 10 * MINUTE }), "may start", "Suspend"],
  ["what was marked as idle and stopped is not started again",             idle,       exited(143),              "may start", "-"],
  ["a crash of what was marked as idle means nothing",                     idle,       exited(137),              "may start", "-"],
  ["silence stops nothing that is idle",                                   idle,       silent,                   "may start", "-"],
  ["a wake starts it again",                                               idleWoken,  stopped,                  "must wait", "Enqueue"],
  ["a wake before the stop leaves it running",                             idleWoken,  running,                  "may start", "-"],
  ["a wake in the millisecond of the mark counts",                         idleWokenAtOnce, stopped,             "may start", "Start"],
  ["another wish starts it again",                                         idleChanged, stopped,                 "may start", "Start"],
];

// oxfmt-ignore
const onRequest: readonly Row[] = [
  ["a sandbox that is to be replaced is destroyed",                        replaced,   running,                  "may start", "Destroy"],
  ["though it runs no container",                                          replaced,   stopped,                  "may start", "Destroy"],
  ["once it is gone, another is started",                                  replaced,   destroyed,                "may start", "Start"],
  ["a start under way is destroyed",                                       replacedStarting, starting,           "may start", "Destroy"],
  ["a stalled one is destroyed, too",                                      replacedStalled, failed("Permanent"), "may start", "Destroy"],
  ["and stays stalled",                                                    replacedStalled, destroyed,           "may start", "-"],
  ["a suspended one is destroyed",                                         replacedSuspended, stopped,           "may start", "Destroy"],
  ["and stays suspended",                                                  replacedSuspended, destroyed,         "may start", "-"],
  ["not while it does not answer",                                         replaced,   silent,                   "may start", "-"],
  ["not while it is paused",                                               replacedPaused, running,              "may start", "-"],
  ["also while its spec is unreadable",                                    replacedInvalid, running,             "may start", "Destroy"],
];

// oxfmt-ignore
const expiring: readonly Row[] = [
  ["a millisecond before its time nothing happens",                        expiresSoon, running,                 "may start", "-"],
  ["at its time a workspace is to be deleted",                             expired,    running,                  "may start", "Expire"],
  ["though its sandbox does not answer: that is asked for, not done",      expired,    silent,                   "may start", "Expire"],
  ["though it is paused",                                                  expiredPaused, stopped,               "may start", "Expire"],
  ["though it is stalled",                                                 expiredStalled, stopped,              "may start", "Expire"],
  ["though it was never begun",                                            expiredNew, absent,                   "may start", "Expire"],
  ["though it holds the lane",                                             expiredStarting, starting,            "may start", "Expire"],
  ["though its container crashed",                                         expired,    exited(137),              "may start", "Expire"],
  ["rather than replaced",                                                 expiredReplaced, running,             "may start", "Expire"],
  ["what is being deleted is not asked for again",                         deletingExpired, running,             "must wait", "Destroy"],
  ["nor kept",                                                             deletingExpired, destroyed,           "must wait", "Forget"],
];

describe.each([
  { wish: "wished Running", table: wishedRunning },
  { wish: "held back", table: heldBack },
  { wish: "wished Suspended", table: wishedSuspended },
  { wish: "being deleted", table: beingDeleted },
  { wish: "with limits", table: limited },
  { wish: "to be replaced", table: onRequest },
  { wish: "until its time", table: expiring },
])("$wish", ({ table }) => {
  test.for(table)("%s", ([, situation, observed, turn, expected]) => {
    expect(show(plan(situation, observed, NOW, turn === "may start"))).toBe(expected);
  });
});

test("the whole policy is the one in the snapshot", async () => {
  const lines = Object.entries(RECORDS).flatMap(([name, situation]) => [
    `## ${name}`,
    ...Object.entries(OBSERVATIONS).map(([look, observed]) => {
      const waiting = show(plan(situation, observed, NOW, situation.lane !== null));
      const atTurn = show(plan(situation, observed, NOW, true));
      return `${look.padEnd(18)}${waiting === atTurn ? waiting : `${waiting}, at its turn ${atTurn}`}`;
    }),
    "",
  ]);
  await expect(lines.join("\n")).toMatchFileSnapshot("./plan.grid.txt");
});
