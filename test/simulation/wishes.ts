/** What was wished of each workspace, and since when: by what the simulation knows, not by what the controller concluded. */
import { specHash } from "../../src/controller/spec-hash.ts";
import type { Instant, WorkspaceSpec } from "../../src/workspace.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Container } from "./surroundings.ts";

export interface Wish {
  readonly fromTime: Instant;
  readonly isDeleting: boolean;
  readonly spec: WorkspaceSpec | null;
  readonly isIdleSuspended: boolean;
  /** The DO whose replacement an operator asked for. */
  readonly destroyRequested: string | null;
}

const GONE: Omit<Wish, "fromTime"> = { isDeleting: true, spec: null, isIdleSuspended: false, destroyRequested: null };

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
    const { spec, idleTime, wakeTime, status, generation, deletionTime } = row;
    const instance = this.#store.instanceOf(uid);
    const isOfThisWish = spec?.idle !== null && status.observedGeneration === generation;
    return {
      isDeleting: deletionTime !== null,
      spec,
      isIdleSuspended: isOfThisWish && idleTime !== null && (wakeTime === null || wakeTime < idleTime),
      destroyRequested: instance !== null && instance.destroyRequestTime !== null ? instance.doId : null,
    };
  }

  isToRun(uid: string): boolean {
    return wishesRunning(this.now(uid));
  }

  /** Whether at some time from `since` on there was a reason to end the container. */
  mayEnd(container: Container, since: Instant, now: Instant): boolean {
    const { uid, doId } = container.sandbox;
    if (uid === null) return true;
    const history = this.#histories.get(uid) ?? [];
    return history.some((wish, index) => {
      const untilTime = history[index + 1]?.fromTime ?? now;
      return untilTime >= since && (wish.destroyRequested === doId || isReason(wish, container, Math.min(now, untilTime)));
    });
  }

  /** Whether at some time from `since` on the workspace was to run. */
  wasToRun(uid: string, since: Instant): boolean {
    const history = this.#histories.get(uid) ?? [];
    return history.some((wish, index) => (history[index + 1]?.fromTime ?? Number.POSITIVE_INFINITY) >= since && wishesRunning(wish));
  }
}

function wishesRunning({ isDeleting, spec, isIdleSuspended }: Omit<Wish, "fromTime">): boolean {
  return !isDeleting && spec?.operatingMode === "Running" && !spec.paused && !isIdleSuspended;
}

function isReason(wish: Wish, { specHash: running, startedTime }: Container, time: Instant): boolean {
  const { spec } = wish;
  if (wish.isDeleting || spec === null || wish.isIdleSuspended || spec.operatingMode === "Suspended") return true;
  if (running !== hashOf(spec)) return true;
  if (spec.expireTime !== null && time >= Date.parse(spec.expireTime)) return true;
  return spec.maxLifetimeSeconds !== null && time >= startedTime + spec.maxLifetimeSeconds * 1000;
}

function isSame(one: Wish, other: Omit<Wish, "fromTime">): boolean {
  return (
    one.spec === other.spec &&
    one.isDeleting === other.isDeleting &&
    one.isIdleSuspended === other.isIdleSuspended &&
    one.destroyRequested === other.destroyRequested
  );
}

const hashes = new WeakMap<WorkspaceSpec, string>();

export function hashOf(spec: WorkspaceSpec): string {
  const known = hashes.get(spec) ?? specHash(spec);
  hashes.set(spec, known);
  return known;
}
