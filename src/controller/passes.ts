/**
 * The passes under way: one at most for each workspace, and so many of each kind. Starts do not count against the others, so a slow
 * start or backup delays no deletion; a sandbox that did not answer last time waits only for others of its like (invariant 10).
 */

export type PassKind = "ordinary" | "unreachable" | "start" | "backup" | "sweep" | "bucket";

export interface Passes {
  /** Begins the pass, unless one is under way for the same workspace. False where there is no room: offer it again in the next round. */
  begin(kind: PassKind, uid: string, pass: () => Promise<void>): boolean;
  /** Ends the current or next `idle` at once: there is something more to do. */
  wake(): void;
  /** Resolves after `ms`, or as soon as it is woken, or as soon as there is room for a pass that found none. */
  idle(ms: number): Promise<void>;
  /** Resolves when no pass is under way any more. */
  drain(): Promise<void>;
}

/** How many starts there are is for the start lane to say. */
const ROOM: Readonly<Record<PassKind, number>> = {
  ordinary: 8,
  unreachable: 4,
  start: Number.POSITIVE_INFINITY,
  backup: 4,
  sweep: 1,
  bucket: 1,
};

export function createPasses(sleep: (ms: number, signal: AbortSignal) => Promise<void>): Passes {
  const underWay = new Map<string, Promise<void>>();
  const room = { ...ROOM };
  let alarm = new AbortController();
  let foundNoRoom = false;

  function finish(kind: PassKind, uid: string): void {
    room[kind] += 1;
    underWay.delete(uid);
    if (foundNoRoom) alarm.abort();
  }

  return {
    begin(kind, uid, pass) {
      if (underWay.has(uid)) return true;
      if (room[kind] === 0) {
        foundNoRoom = true;
        return false;
      }
      room[kind] -= 1;
      underWay.set(
        uid,
        pass().finally(() => finish(kind, uid)),
      );
      return true;
    },
    wake: () => alarm.abort(),
    async idle(ms) {
      await sleep(ms, alarm.signal);
      alarm = new AbortController();
      foundNoRoom = false;
    },
    async drain() {
      await Promise.all(underWay.values());
    },
  };
}
