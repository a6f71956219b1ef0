/** What was wished of each workspace, and since when: by what the simulation knows, not by what the controller concluded. */
import { specHash } from "../../src/controller/spec-hash.ts";
import type { BackupPolicy, Instant, WorkspaceSpec } from "../../src/workspace.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Container } from "./surroundings.ts";

export interface Wish {
  readonly fromTime: Instant;
  readonly isDeleting: boolean;
  readonly spec: WorkspaceSpec | null;
  /** When it was found idle, where it is suspended for that. */
  readonly idleSince: Instant | null;
  /** The DO whose replacement an operator asked for. */
  readonly destroyRequested: string | null;
  /** What a deletion asks for, and until when it waits for it. */
  readonly finalBackup: BackupPolicy;
  readonly finalBackupDeadlineTime: Instant | null;
}

export interface Reason {
  readonly wish: Wish;
  readonly decidedTime: Instant;
  readonly isByOperator: boolean;
}

const GONE: Omit<Wish, "fromTime"> = {
  isDeleting: true,
  spec: null,
  idleSince: null,
  destroyRequested: null,
  finalBackup: "Skip",
  finalBackupDeadlineTime: null,
};

export class Wishes {
  readonly #store: MemoryStore;
  readonly #histories = new Map<string, Wish[]>();

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  /** To be called after every write to the workspace. */
  note(uid: string, now: Instant): void {
    const history = this.#histories.get(uid) ?? [];
    if (history.length === 0) this.#histories.set(uid, history);
    const last = history.at(-1);
    const wish = this.now(uid);
    if (last === undefined || !isSame(last, wish)) history.push({ ...wish, fromTime: now });
  }

  now(uid: string): Omit<Wish, "fromTime"> {
    const row = this.#store.tables.workspaces.get(uid);
    if (row === undefined) return GONE;
    const { spec, idleTime, wakeTime, status, generation, deletionTime, finalBackup, finalBackupDeadlineTime } = row;
    const instance = this.#store.instanceOf(uid);
    const isOfThisWish = spec?.idle !== null && status.observedGeneration === generation;
    return {
      isDeleting: deletionTime !== null,
      spec,
      idleSince: isOfThisWish && idleTime !== null && (wakeTime === null || wakeTime < idleTime) ? idleTime : null,
      destroyRequested: instance !== null && instance.destroyRequestTime !== null ? instance.doId : null,
      finalBackup,
      finalBackupDeadlineTime,
    };
  }

  isToRun(uid: string): boolean {
    return wishesRunning(this.now(uid));
  }

  /** Whether at some time from `since` on there was a reason to end the container. */
  mayEnd(container: Container, since: Instant, now: Instant): boolean {
    return container.sandbox.uid === null || this.reasonsFor(container, since, now).length > 0;
  }

  /** What was wished, at some time from `since` on, that ends the container; each with the time since which it was to end. */
  reasonsFor(container: Container, since: Instant, now: Instant): readonly Reason[] {
    const { uid, doId } = container.sandbox;
    const reasons: Reason[] = [];
    let decidedTime: Instant | null = null;
    const history = this.#histories.get(uid ?? "") ?? [];
    for (const [index, wish] of history.entries()) {
      const untilTime = Math.min(now, history[index + 1]?.fromTime ?? now);
      const isByOperator = wish.destroyRequested === doId;
      const isEnd = isByOperator || isReason(wish, container, untilTime, since);
      const outlivedTime = container.startedTime + (wish.spec?.maxLifetimeSeconds ?? Number.POSITIVE_INFINITY) * 1000;
      const isSinceBefore = isByOperator || isReason(wish, container, Math.min(untilTime, outlivedTime - 1), since);
      decidedTime = isEnd ? (decidedTime ?? (isSinceBefore ? wish.fromTime : outlivedTime)) : null;
      if (decidedTime !== null && untilTime >= since) reasons.push({ wish, decidedTime, isByOperator });
    }
    return reasons;
  }

  /** All that were wished at some time from `since` on. */
  specsSince(uid: string, since: Instant): readonly (WorkspaceSpec | null)[] {
    const history = this.#histories.get(uid) ?? [];
    return history.filter((_, index) => (history[index + 1]?.fromTime ?? Number.POSITIVE_INFINITY) >= since).map(({ spec }) => spec);
  }

  /** Whether at some time from `since` on the workspace was to run. */
  wasToRun(uid: string, since: Instant): boolean {
    const history = this.#histories.get(uid) ?? [];
    return history.some((wish, index) => (history[index + 1]?.fromTime ?? Number.POSITIVE_INFINITY) >= since && wishesRunning(wish));
  }
}

function wishesRunning({ isDeleting, spec, idleSince }: Omit<Wish, "fromTime">): boolean {
  return !isDeleting && spec?.operatingMode === "Running" && !spec.paused && idleSince === null;
}

/** `since`: when whoever ends it looked at it. */
function isReason(wish: Wish, container: Container, time: Instant, since: Instant): boolean {
  const { spec } = wish;
  const { specHash: running, startedTime } = container;
  if (wish.isDeleting || spec === null || spec.operatingMode === "Suspended") return true;
  if (wish.idleSince !== null && !isBack(wish, container, since)) return true;
  if (running !== hashOf(spec)) return true;
  if (spec.expireTime !== null && time >= Date.parse(spec.expireTime)) return true;
  return spec.maxLifetimeSeconds !== null && time >= startedTime + spec.maxLifetimeSeconds * 1000;
}

/** Whether that look showed that it was used after it had been found idle. */
function isBack({ fromTime }: Wish, { activityTime, earlierActivityTime }: Container, since: Instant): boolean {
  return [activityTime, earlierActivityTime].some((time) => time !== null && time > fromTime && time < since);
}

function isSame(one: Wish, other: Omit<Wish, "fromTime">): boolean {
  return (
    one.spec === other.spec &&
    one.isDeleting === other.isDeleting &&
    one.finalBackup === other.finalBackup &&
    one.idleSince === other.idleSince &&
    one.destroyRequested === other.destroyRequested
  );
}

const hashes = new WeakMap<WorkspaceSpec, string>();

export function hashOf(spec: WorkspaceSpec): string {
  const known = hashes.get(spec) ?? specHash(spec);
  hashes.set(spec, known);
  return known;
}
