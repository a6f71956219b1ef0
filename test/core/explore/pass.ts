/**
 * One pass in the model: the sequence of `src/controller/reconcile.ts` over the model's store and sandbox, with the real `plan`, `conclude`
 * and `interpret`. At every await one thing may come between, and any answer may be lost.
 */
import { mayRun } from "../../../src/controller/compare.ts";
import { conclude } from "../../../src/controller/conclude.ts";
import { interpret } from "../../../src/controller/observation.ts";
import { type Action, plan } from "../../../src/controller/plan.ts";
import type { BackupOutcome, BackupTrigger } from "../../../src/backup.ts";
import type { Observation } from "../../../src/workspace.ts";
import type { WorkspaceRecord } from "../../../src/workspace-record.ts";
import { MINUTE, NOW, instance as instanceOf, silent } from "../../support/builders.ts";
import { type Happenings, ended } from "./events.ts";
import { unsaved } from "./backup-events.ts";
import { NO_ANSWER, claimOf, endBackup, isRequired, isSaving, outcomeOf, runBackup } from "./backups.ts";
import { destroy, isUnderWay, observe, type Progress, start, stop } from "./sandbox.ts";
import { admitStart, claimBackup, expire, forget, saveConclusion } from "./store.ts";
import { type Sandbox, type World, factsOf, hashOf, load, withSandbox, withWorkspace, wishesRunning, workspaceOf } from "./world.ts";

export interface Surroundings {
  /** Picks one of the ways it may go. */
  readonly choose: (ways: readonly string[]) => string;
  /** What else may happen at an await, by name. */
  readonly interferences: (world: World) => Happenings;
  /** How a start may go while it is waited for. */
  readonly progress: readonly Progress[];
  /** How a call may go: answered, lost before it arrived, lost on its way back, or answered although the kill did nothing. */
  readonly calls: readonly ("answered" | "lost" | "answer lost" | "kill ineffective")[];
  readonly check: (law: Law, holds: boolean) => void;
}

export type Law =
  | "at most one start is under way (1)"
  | "a start that begins holds the lane and its sandbox is in the ledger (1, 2)"
  | "a start is admitted for a live wish only (2)"
  | "nothing is started that failed for good in this generation (12)"
  | "nothing is started again before its failure was counted (12)"
  | "a failure is counted once (12)"
  | "what the platform told to go has not failed (12)"
  | "forgotten is only what is gone for good (3, 5)"
  | "a sandbox that was destroyed is not used again"
  | "nothing follows silence (4)"
  | "Ready is what runs with the wished spec (8)"
  | "only a permanent failure of the wished spec stalls it (12)"
  | "only what nobody uses is suspended for idleness"
  | "what is suspended for idleness is not started before it is woken, or its user came back while it ran"
  | "whoever comes back before it is stopped is not put out for idleness"
  | "only what runs too long is stopped for it, while it is wished Running"
  | "only that is expired whose time has come"
  | "a backup is taken of what is verified only (6)"
  | "what is required is there before a container is ended by wish (6)";

interface Live {
  readonly record: WorkspaceRecord;
  readonly observed: Observation;
  /** What the sandbox answered about the active backup. */
  readonly outcome?: BackupOutcome;
}

/** The pass is over: the process died, the lease is lost, or somebody else wrote the row. */
const OVER = new Error("the pass is over");

export function runPass(before: World, uid: string, epoch: number, isTurn: boolean, surroundings: Surroundings): World {
  const { choose, check, calls } = surroundings;
  let world = before;
  let disturbed = false;

  function pause(): void {
    if (disturbed) return;
    const happenings = surroundings.interferences(world);
    const way = choose(["quiet", ...Object.keys(happenings)]);
    disturbed = way !== "quiet";
    if (way === "dies") throw OVER;
    world = happenings[way]?.() ?? world;
  }

  function ask(call: (sandbox: Sandbox, works: boolean) => Sandbox | null, ways: readonly string[]): Observation {
    const way = choose(ways);
    if (way === "lost") return silent;
    const after = call(workspaceOf(world, uid).sandbox, way !== "kill ineffective");
    if (after === null) throw OVER;
    world = withSandbox(world, uid, after);
    return way === "answer lost" ? silent : interpret(factsOf(after));
  }

  function perform(action: Action, { record, observed }: Live): Live {
    if (action.kind === "Start") return begin(record, observed);
    if (action.kind === "Backup") return take(record, observed, action.trigger);
    if (record.instance === null || (action.kind !== "Stop" && action.kind !== "Destroy")) return { record, observed };
    const call = action.kind === "Stop" ? stop : destroy;
    const mayEnd = !isRequired(record) || observed.kind !== "Running" || workspaceOf(world, uid).saved;
    check("what is required is there before a container is ended by wish (6)", mayEnd);
    const end = (sandbox: Sandbox, works: boolean) => {
      const after = call(sandbox, epoch, works);
      // What was to end anyway owes nothing for how it did.
      if (after !== null) world = withWorkspace(world, uid, { owed: false });
      return after;
    };
    return { record, observed: ask(end, calls) };
  }

  function begin(loaded: WorkspaceRecord, observed: Observation): Live {
    const record = loaded.lane === null ? admit(loaded, observed) : loaded;
    const { lane, spec, instance } = record;
    if (lane === null || spec === null || instance === null) throw OVER;
    const order = { startId: lane.startId, specHash: hashOf(spec) };
    const ordered = ask(
      (sandbox) => {
        const after = start(sandbox, epoch, order);
        if (after !== null && isUnderWay(after) && !isUnderWay(sandbox)) {
          const isHolder = world.lane?.uid === uid && world.lane.startId === order.startId;
          check("a start that begins holds the lane and its sandbox is in the ledger (1, 2)", isHolder && isInLedger(world, uid, instance));
        }
        if (after === null || !isUnderWay(after)) return after;
        world = ended(withSandbox(world, uid, after), uid, choose(surroundings.progress) as Progress);
        return workspaceOf(world, uid).sandbox;
      },
      ["answered", "lost", "answer lost"].filter((way) => (calls as readonly string[]).includes(way)),
    );
    const underWay = Object.values(world.workspaces).filter(({ sandbox }) => isUnderWay(sandbox));
    check("at most one start is under way (1)", underWay.length <= 1);
    return { record, observed: ordered };
  }

  function take(record: WorkspaceRecord, observed: Observation, trigger: BackupTrigger): Live {
    const { instance, backups } = record;
    if (instance === null || backups === null) throw OVER;
    const active = backups.active?.state === "InProgress" ? backups.active : claimOf(record, observed, trigger);
    if (active !== backups.active) {
      check("a backup is taken of what is verified only (6)", observed.kind === "Running");
      const claimed = claimBackup(world, epoch, record, active);
      if (claimed === null) throw OVER;
      world = claimed;
      pause();
    }
    const way = choose(calls.filter((call) => call !== "kill ineffective"));
    const asked = { ...record, backups: { ...backups, active } };
    if (way === "lost") return { record: asked, observed, outcome: NO_ANSWER };
    const { sandbox } = workspaceOf(world, uid);
    if (epoch < sandbox.epoch) throw OVER;
    const begun = runBackup({ ...sandbox, epoch }, active);
    const going = begun.backup?.state === "InProgress" && begun.backup.id === active.id;
    const end = going ? choose(["InProgress", "Completed", "Failed"]) : "InProgress";
    world = withSandbox(world, uid, end === "InProgress" ? begun : endBackup(begun, end));
    const outcome = way === "answer lost" ? NO_ANSWER : outcomeOf(workspaceOf(world, uid).sandbox, active.id);
    return { record: asked, observed, outcome };
  }

  function admit(record: WorkspaceRecord, observed: Observation): WorkspaceRecord {
    const isNew = record.instance === null || observed.kind === "Destroyed";
    const incarnation = record.incarnation + 1;
    const successor = instanceOf({ doId: `${uid}-${incarnation}`, sandboxId: "", incarnation });
    const instance = isNew || record.instance === null ? successor : record.instance;
    const lane = { startId: NEW_START_ID, queuedTime: record.queuedTime ?? NOW, deadlineTime: NOW + MINUTE };
    const conclusion = conclude(record, { kind: "Start" }, { kind: "Starting", startId: lane.startId }, NOW, 0);
    const { row, sandbox, doomed, owed, asleep } = workspaceOf(world, uid);
    const admitted = admitStart(world, epoch, record, { instance, lane, conclusion });
    if (admitted === null) throw OVER;
    check("a start is admitted for a live wish only (2)", row !== null && wishesRunning(row));
    check("nothing is started that failed for good in this generation (12)", !doomed);
    check("nothing is started again before its failure was counted (12)", !owed);
    check("what is suspended for idleness is not started before it is woken, or its user came back while it ran", !asleep);
    const isOver = sandbox.admission === "Destroyed";
    check("a sandbox that was destroyed is not used again", isNew || !isOver);
    check("forgotten is only what is gone for good (3, 5)", !isNew || record.instance === null || (isOver && !sandbox.running));
    world = admitted;
    const reloaded = load(world, uid);
    if (reloaded === null) throw OVER;
    pause();
    return reloaded;
  }

  function conclusionOf({ record, observed, outcome }: Live, action: Action): void {
    const conclusion = conclude(record, action, observed, NOW, 0, outcome ?? null);
    const isFresh = workspaceOf(world, uid).sandbox.backup?.fresh === true;
    pause();
    const isTruthful = observed.kind === "Running" && (observed.specHash === hashOf(record.spec) || record.spec?.paused === true);
    check("Ready is what runs with the wished spec (8)", conclusion.status.phase !== "Ready" || isTruthful);
    const saved = saveConclusion(world, epoch, record, conclusion);
    if (saved === null) throw OVER;
    world = saved;
    const { doomed, owed, counted, asleep, sandbox } = workspaceOf(world, uid);
    const isStall = conclusion.status.phase === "Stalled" && record.spec !== null;
    const isIllegible = conclusion.status.phase === "Stalled" && record.spec === null;
    const isOwn = sandbox.operation?.specHash === hashOf(record.spec) && sandbox.operation.failure === "Permanent";
    if (isStall && !doomed) check("only a permanent failure of the wished spec stalls it (12)", isOwn);
    const isCounted = conclusion.failures > record.failures;
    check("a failure is counted once (12)", !isCounted || !counted);
    check("what the platform told to go has not failed (12)", !isCounted || observed.kind !== "Stopped" || !observed.exit?.signalled);
    const isBack = observed.kind === "Running" && record.idleTime !== null && observed.activityTime > record.idleTime;
    world = withWorkspace(world, uid, {
      doomed: isStall || (doomed && !isIllegible),
      owed: owed && !isCounted && action.kind !== "Suspend",
      counted: counted || isCounted,
      asleep: (asleep && !isBack) || action.kind === "Suspend",
      saved: (workspaceOf(world, uid).saved || (isSaving(conclusion.backup) && isFresh)) && observed.kind === "Running",
    });
    if (action.kind === "Suspend") world = unsaved(world, uid);
  }

  const record = load(world, uid);
  if (record === null) return world;
  try {
    pause();
    const observed = record.instance === null ? ABSENT : ask((sandbox) => observe(sandbox, epoch), looks(calls));
    const action = plan(record, observed, NOW, isTurn || record.lane !== null);
    pause();
    check("nothing follows silence (4)", observed.kind !== "Unknown" || action.kind === "Rest" || action.kind === "Expire");
    checkGrounds(action, { record, observed }, check);
    if (action.kind === "Forget") return tryForget(world, uid, epoch, record, check);
    if (action.kind === "Expire") return expire(world, epoch, record) ?? world;
    conclusionOf(perform(action, { record, observed }), action);
  } catch (error) {
    if (error !== OVER) throw error;
  }
  return world;
}

function checkGrounds({ kind }: Action, { record, observed }: Live, check: Surroundings["check"]): void {
  const { spec, wakeTime, idleTime } = record;
  const isRunning = observed.kind === "Running";
  const isLeftAlone = isRunning && spec?.idle && NOW - Math.max(observed.activityTime, wakeTime ?? 0) >= spec.idle.timeoutSeconds * 1000;
  const isOld = isRunning && spec?.maxLifetimeSeconds && NOW - observed.startedTime >= spec.maxLifetimeSeconds * 1000;
  const isWishedDown = spec?.operatingMode === "Suspended" || idleTime !== null;
  check("only what nobody uses is suspended for idleness", kind !== "Suspend" || isLeftAlone === true);
  const mayStop = !isRunning || !spec?.idle || NOW - observed.activityTime >= spec.idle.timeoutSeconds * 1000;
  const isPutOut = kind === "Stop" && spec?.operatingMode === "Running" && isOld !== true && !mayStop;
  check("whoever comes back before it is stopped is not put out for idleness", !isPutOut);
  check("only what runs too long is stopped for it, while it is wished Running", kind !== "Stop" || isWishedDown || isOld === true);
  check("only that is expired whose time has come", kind !== "Expire" || (spec?.expireTime ?? "9") <= new Date(NOW).toISOString());
}

/** Unlike any in a world that is canonical, and a pass begins no two starts. */
const NEW_START_ID = "new";
const ABSENT: Observation = { kind: "Absent" };

function looks(calls: readonly string[]): readonly string[] {
  return calls.includes("lost") ? ["answered", "lost"] : ["answered"];
}

function isInLedger(world: World, uid: string, { incarnation }: { readonly incarnation: number }): boolean {
  return workspaceOf(world, uid).row?.instance?.incarnation === incarnation;
}

function tryForget(world: World, uid: string, epoch: number, record: WorkspaceRecord, check: Surroundings["check"]): World {
  const forgotten = forget(world, epoch, record);
  if (forgotten === null) return world;
  const { sandbox } = workspaceOf(world, uid);
  const isGone = sandbox.admission === "None" ? record.instance === null : sandbox.admission === "Destroyed";
  check("forgotten is only what is gone for good (3, 5)", isGone && !mayRun(interpret(factsOf(sandbox)).kind));
  return forgotten;
}
