/** All sandboxes and what the platform says of them: the Fleet and the Inventory of the simulated day. */
import { createHash } from "node:crypto";
import type { BackupOutcome } from "../../src/backup.ts";
import { interpretReport } from "../../src/controller/backup-report.ts";
import { type Fleet, LeaseLostError, type OrphanOutcome } from "../../src/controller/fleet.ts";
import { interpret } from "../../src/controller/observation.ts";
import type { Answer, BackupAnswer, BackupOrder } from "../../src/sandbox/protocol.ts";
import type { Failure, Instance, Observation } from "../../src/workspace.ts";
import type { Bucket } from "./bucket.ts";
import type { Chance } from "./chance.ts";
import type { Clock } from "./clock.ts";
import { backupCourse, fateOf, restoreCourse, setupCourse } from "./fates.ts";
import type { Faults } from "./faults.ts";
import { Sandbox } from "./sandbox.ts";
import type { Container, Killer, Surroundings, TakenBackup } from "./surroundings.ts";
import { Transport } from "./transport.ts";

/** As in `src/controller/sandbox-fleet.ts`. */
const OBSERVE_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 5000;
const STOP_GRACE_MS = 10_000;
const STOP_TIMEOUT_MS = 20_000;
const DESTROY_TIMEOUT_MS = 20_000;
/** From a verified start until its user writes something. */
const FIRST_WRITE_MS = 30 * 60_000;
/** How long the platform remembers what stopped. */
export const REMEMBERED_MS = 15 * 60_000;

export interface WorldEvents {
  /** What the sandbox may read from D1. */
  hasRow(uid: string): boolean;
  poke(uid: string): void;
  startBegan(sandbox: Sandbox): void;
  containerStarted(container: Container): void;
  containerVerified(container: Container): void;
  containerEnds(container: Container, killer: Killer): void;
  startFailed(sandbox: Sandbox, isWorkspacesFault: boolean): void;
  backupTaken(backup: TakenBackup): void;
  /** A call of this kind to this sandbox did not go as it should. */
  disturbed(doId: string): void;
}

export class World implements Fleet {
  readonly sandboxes = new Map<string, Sandbox>();
  readonly running = new Set<Container>();
  /** Ended within what the platform remembers, oldest first. */
  readonly ended: Container[] = [];
  /** Sandboxes in which a start may be under way. */
  readonly starting = new Set<Sandbox>();
  /** Workspaces whose image does not exist. */
  readonly cursed = new Set<string>();
  noCapacityUntilTime = 0;
  rateLimitedUntilTime = 0;
  /** Orders to stop or destroy; the others always do. */
  ordersExpire = true;
  backsUpAnything = false;
  resumesLate = false;
  observations = 0;
  /** All that the controller asked of the sandboxes but looks. */
  orders = 0;
  readonly #around: Surroundings;
  readonly #events: WorldEvents;
  readonly #clock: Clock;
  readonly #chance: Chance;
  readonly #faults: Faults;
  readonly #transport: Transport;
  /** By uid and incarnation. */
  readonly #identities = new Map<string, Instance[]>();
  /** The last content that a directory was given. */
  #files = 0;

  constructor(clock: Clock, chance: Chance, faults: Faults, bucket: Bucket, events: WorldEvents) {
    this.#clock = clock;
    this.#chance = chance;
    this.#faults = faults;
    this.#events = events;
    this.#transport = new Transport(clock, chance, faults, (doId) => events.disturbed(doId));
    this.#around = this.#surroundings(bucket);
  }

  identify(uid: string, incarnation: number): Instance {
    const ofUid = this.#identities.get(uid) ?? [];
    if (ofUid.length === 0) this.#identities.set(uid, ofUid);
    const known = ofUid[incarnation];
    if (known !== undefined) return known;
    const sandboxId = `${uid}-${incarnation}`;
    const doId = createHash("sha256").update(sandboxId).digest("hex");
    const identity = { sandboxId, incarnation, doId, running: true, destroyRequested: false, adopted: false };
    ofUid[incarnation] = identity;
    return identity;
  }

  observe(instance: Instance, epoch: number): Promise<Observation> {
    this.observations += 1;
    return this.#ask(instance, epoch, OBSERVE_TIMEOUT_MS, (sandbox) => sandbox.observe());
  }

  start(instance: Instance, epoch: number, request: Parameters<Fleet["start"]>[2], waitMs: number): Promise<Observation> {
    return this.#order(instance, epoch, waitMs + ANSWER_TIMEOUT_MS, (sandbox) => sandbox.start(request, waitMs), true);
  }

  async backup(instance: Instance, epoch: number, order: BackupOrder, waitMs: number): Promise<BackupOutcome> {
    this.orders += 1;
    const sandbox = this.sandboxOf(instance);
    const timeoutMs = waitMs + ANSWER_TIMEOUT_MS;
    const expiresTime = this.#clock.now() + timeoutMs;
    const answer = await this.#transport.call<BackupAnswer>(sandbox, timeoutMs, async () => {
      const refusal = sandbox.passFence(epoch, instance.incarnation) ?? (this.#clock.now() > expiresTime ? "Expired" : null);
      return refusal === null ? { accepted: true, report: await sandbox.backups.run(order, waitMs) } : { accepted: false, refusal };
    });
    if ("class" in answer) return { kind: "Unknown", message: answer.message };
    if (answer.accepted) return interpretReport(answer.report);
    if (answer.refusal === "StaleEpoch") throw new LeaseLostError(SUPERSEDED);
    return { kind: "Unknown", message: "The sandbox refused the order." };
  }

  stop(instance: Instance, epoch: number): Promise<Observation> {
    return this.#order(instance, epoch, STOP_TIMEOUT_MS, (sandbox) => sandbox.stop(STOP_GRACE_MS));
  }

  destroy(instance: Instance, epoch: number): Promise<Observation> {
    return this.#order(instance, epoch, DESTROY_TIMEOUT_MS, (sandbox) => sandbox.destroy());
  }

  async destroyOrphan(doId: string, epoch: number): Promise<OrphanOutcome> {
    this.orders += 1;
    const sandbox = this.sandboxes.get(doId) ?? this.#sandbox(doId, null, null);
    const answer = await this.#transport.call<Answer | "StaleEpoch" | "Wanted">(sandbox, DESTROY_TIMEOUT_MS, () => {
      if (epoch < (sandbox.fence?.epoch ?? epoch)) return "StaleEpoch";
      const { workspaceUid, state } = sandbox.admission;
      if (state !== "Destroyed" && workspaceUid !== null && this.#events.hasRow(workspaceUid)) return "Wanted";
      sandbox.fence = { epoch, incarnation: sandbox.fence?.incarnation ?? 0 };
      return sandbox.destroy("destroyOrphan");
    });
    if (answer === "StaleEpoch") throw new LeaseLostError(SUPERSEDED);
    if (answer === "Wanted") return { kind: "Wanted" };
    if ("class" in answer) return { kind: "Unknown", failure: answer };
    return { kind: answer.facts.running ? "StillRuns" : "Gone" };
  }

  sandboxOf(instance: Pick<Instance, "doId" | "sandboxId">): Sandbox {
    const uid = instance.sandboxId.slice(0, instance.sandboxId.lastIndexOf("-"));
    return this.sandboxes.get(instance.doId) ?? this.#sandbox(instance.doId, instance.sandboxId, uid);
  }

  /** A container in an object that no controller ever heard of. */
  addStranger(): Container | null {
    const doId = createHash("sha256").update(`stranger-${this.#chance.next()}`).digest("hex");
    const sandbox = this.#sandbox(doId, null, null);
    sandbox.startUnasked();
    return sandbox.container;
  }

  /** Starts that may still bring a container up. */
  startsInFlight(): number {
    const now = this.#clock.now();
    for (const sandbox of this.starting) if (!sandbox.isStarting(now)) this.starting.delete(sandbox);
    return this.starting.size;
  }

  #surroundings(bucket: Bucket): Surroundings {
    const events = this.#events;
    const clock = this.#clock;
    const chance = this.#chance;
    const faults = this.#faults;
    return {
      clock,
      bucket,
      backsUpAnything: () => this.backsUpAnything,
      resumesLate: () => this.resumesLate,
      fateOf: (sandbox) => fateOf(sandbox, this, clock.now(), chance, faults),
      stopMs: () => (chance.happens(0.1) ? null : chance.between(10, 3000)),
      killMs: () => chance.between(5, 800),
      isDeaf: (sandbox) => this.#isDeaf(sandbox),
      poke: (uid) => events.poke(uid),
      startBegan: (sandbox) => {
        this.starting.add(sandbox);
        events.startBegan(sandbox);
      },
      containerStarted: (container) => {
        this.running.add(container);
        events.containerStarted(container);
      },
      containerEnds: (container, killer) => {
        events.containerEnds(container, killer);
        this.running.delete(container);
        this.ended.push(container);
        while ((this.ended[0]?.endedTime ?? Number.POSITIVE_INFINITY) < clock.now() - REMEMBERED_MS) this.ended.shift();
      },
      startFailed: (sandbox, isWorkspacesFault) => events.startFailed(sandbox, isWorkspacesFault),
      containerVerified: (container) => events.containerVerified(container),
      restoreCourse: () => restoreCourse(chance, faults),
      setupCourse: () => setupCourse(chance, faults),
      backupCourse: () => backupCourse(chance, faults),
      happensUnseen: () => chance.happens(0.5),
      firstWriteMs: () => (chance.happens(0.15) ? null : chance.lasting(1000, FIRST_WRITE_MS)),
      newFiles: () => (this.#files += 1),
      backupTaken: (backup) => events.backupTaken(backup),
    };
  }

  #sandbox(doId: string, sandboxId: string | null, uid: string | null): Sandbox {
    const sandbox = new Sandbox(this.#around, doId, sandboxId, uid);
    this.sandboxes.set(doId, sandbox);
    return sandbox;
  }

  /** Its caller has given up by then and may have decided otherwise, so an order that arrives later does nothing. */
  #order(
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: Sandbox) => Promise<Answer>,
    expires = this.ordersExpire,
  ): Promise<Observation> {
    this.orders += 1;
    const expiresTime = this.#clock.now() + timeoutMs;
    return this.#ask(instance, epoch, timeoutMs, (sandbox) => {
      const isExpired = expires && this.#clock.now() > expiresTime;
      return isExpired ? { accepted: false, refusal: "Expired", facts: sandbox.facts() } : work(sandbox);
    });
  }

  async #ask(
    instance: Instance,
    epoch: number,
    timeoutMs: number,
    work: (sandbox: Sandbox) => Answer | Promise<Answer>,
  ): Promise<Observation> {
    const sandbox = this.sandboxOf(instance);
    const answer = await this.#transport.call<Answer>(sandbox, timeoutMs, () => {
      const refusal = sandbox.passFence(epoch, instance.incarnation);
      return refusal === null ? work(sandbox) : { accepted: false, refusal, facts: sandbox.facts() };
    });
    if ("class" in answer) return { kind: "Unknown", failure: answer };
    if (!answer.accepted && answer.refusal === "StaleEpoch") throw new LeaseLostError(SUPERSEDED);
    if (!answer.accepted && answer.refusal === "OtherIncarnation") return { kind: "Unknown", failure: OTHER_INCARNATION };
    return interpret(answer.facts);
  }

  #isDeaf(sandbox: Sandbox): boolean {
    const isDeaf = this.#faults.draw(["killDeaf"]) !== null;
    if (isDeaf) this.#events.disturbed(sandbox.doId);
    return isDeaf;
  }
}

const SUPERSEDED = "A controller with a higher epoch is at work.";
const OTHER_INCARNATION: Failure = {
  class: "Misconfigured",
  reason: "Misconfigured",
  message: "The sandbox belongs to another incarnation.",
};
