/** The controller's ports as one process has them: each call may fail, be slow, be lost, or be the last. What arrived stays done. */
import type { Config } from "../../src/config.ts";
import type { Fleet } from "../../src/controller/fleet.ts";
import type { SweepDeps } from "../../src/controller/sweep-deps.ts";
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { Chance } from "./chance.ts";
import { type Clock, never } from "./clock.ts";
import { type Faults, STORE_FAULTS } from "./faults.ts";
import type { Invariants } from "./invariants.ts";
import type { PlatformList } from "./listing.ts";
import { toInstance } from "./memory-rows.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

export interface Day {
  readonly clock: Clock;
  readonly store: MemoryStore;
  readonly world: World;
  readonly list: PlatformList;
  readonly faults: Faults;
  readonly chance: Chance;
  readonly invariants: Invariants;
  readonly config: Config;
  /** Until then the database answers nobody. */
  storeDownUntilTime: Instant;
  newId: () => string;
  /** A mistake that is put in on purpose. */
  readonly mistake: Mistake;
}

type Instant = number;

/** Changes what the controller gets, so that a simulation that finds nothing is known to be able to. */
export interface Mistake {
  readonly config?: Partial<Config>;
  readonly store?: () => MemoryStore;
  readonly fleet?: (fleet: Fleet) => Fleet;
  readonly controllerStore?: (store: ControllerStore, memory: MemoryStore) => ControllerStore;
  readonly hasRow?: () => boolean;
  readonly ordersExpire?: false;
}

export function portsOf(process: Process, day: Day): SweepDeps {
  const { clock, config, chance, mistake } = day;
  const controllerStore = storeOf(process, day);
  const fleet = fleetOf(process, day);
  return {
    store: mistake.controllerStore?.(controllerStore, day.store) ?? controllerStore,
    fleet: mistake.fleet?.(fleet) ?? fleet,
    inventory: { list: () => listFor(process, day) },
    config: { ...config, ...mistake.config },
    now: () => clock.now(),
    sleep: async (ms, signal) => {
      await clock.sleep(ms, signal);
      if (process.isDead) await never();
    },
    chance: () => chance.next(),
    newId: day.newId,
  };
}

function storeOf(process: Process, day: Day): ControllerStore {
  const { store, invariants } = day;
  const call = <Result>(effect: () => Result): Promise<Result> => callStore(process, day, effect);
  return {
    acquireLease: (...query) => call(() => store.acquireLease(...query)),
    renewLease: (epoch, ...lease) => call(() => noting(store.renewLease(epoch, ...lease), () => invariants.wrote("the lease", epoch))),
    releaseLease: (epoch, ...lease) => call(() => noting(store.releaseLease(epoch, ...lease), () => invariants.wrote("the lease", epoch))),
    holdsLease: (...query) => call(() => store.holdsLease(...query)),
    loadDue: (query) =>
      call(() => {
        const loaded = store.loadDue(query);
        process.settings = loaded.settings;
        process.loadedTime = day.clock.now();
        return loaded;
      }),
    saveConclusion: (epoch, record, conclusion, now) =>
      call(() => {
        const { version } = store.tables;
        const isSaved = store.saveConclusion(epoch, record, conclusion, now);
        if (isSaved && store.tables.version !== version) invariants.saved(process, epoch, record, conclusion, now);
        return isSaved;
      }),
    admitStart: (epoch, record, admission, now) =>
      call(() => {
        const version = store.admitStart(epoch, record, admission, now);
        if (version !== null) invariants.admitted(process, epoch, record, admission);
        return version;
      }),
    expire: (epoch, record, now) => call(() => noting(store.expire(epoch, record, now), () => invariants.expired(epoch, record))),
    forget: (epoch, record, now) =>
      call(() => {
        const instance = store.instanceOf(record.uid);
        const known = instance === null ? null : toInstance(instance);
        return noting(store.forget(epoch, record, now), () => invariants.forgotten(epoch, record, known));
      }),
    readInventoryView: (...query) => call(() => store.readInventoryView(...query)),
    recordSweep: (epoch, result, now) =>
      call(() =>
        noting(store.recordSweep(epoch, result, now), () => {
          invariants.wrote("a sweep", epoch);
          invariants.trace?.("", `sweep ${JSON.stringify(result.record)}`);
          for (const { doId, state, timesSeen, firstSeenTime } of result.unclaimed) {
            invariants.trace?.(doId, `seen ${state} ${timesSeen} times since ${Math.round((now - firstSeenTime) / 1000)} s`);
          }
          const { lastListing } = process;
          process.lastListing = null;
          invariants.dropped(result.gone, lastListing?.given ?? null);
          invariants.leaks.swept(process, lastListing, day.clock.now());
        }),
      ),
    claimDestroy: (epoch, instance, now) => call(() => store.claimDestroy(epoch, instance, now)),
    expireEvents: () => call(() => {}),
  };
}

function noting(isDone: boolean, note: () => void): boolean {
  if (isDone) note();
  return isDone;
}

const SLOW_MS = 15_000;

/** One call of the database. */
function callStore<Result>(process: Process, { clock, faults, chance, storeDownUntilTime }: Day, effect: () => Result): Promise<Result> {
  if (process.isDead) return never();
  const fortune = process.next();
  if (fortune === "dies") return lastCall(process, clock, chance, effect);
  const fault = clock.now() < storeDownUntilTime ? "storeFails" : faults.draw(STORE_FAULTS);
  if (fault !== null || fortune === "stalls") process.troubles += 1;
  if (fault === "storeFails") return Promise.reject(new Error("D1_ERROR: Network connection lost."));
  if (fault === null && fortune === "lives") return Promise.resolve(effect());
  const arrivesInMs = fault === "storeSlow" ? chance.lasting(10, SLOW_MS) : 0;
  const returnsInMs = fortune === "stalls" ? (process.fortune.stall?.ms ?? 0) : arrivesInMs;
  return new Promise((resolve, reject) => {
    clock.after(arrivesInMs, () => {
      const result = effect();
      clock.after(returnsInMs, () => {
        // Whoever counts on what was just done must know that its answer was no ordinary one.
        process.troubles += 1;
        if (process.isDead) return;
        if (fault === "storeAnswerLost") reject(new Error("D1_ERROR: Network connection lost."));
        else resolve(result);
      });
    });
  });
}

/** Its process dies with it: it arrives at once, or later, or never. */
function lastCall<Result>(process: Process, clock: Clock, chance: Chance, effect: () => Result): Promise<Result> {
  process.isDead = true;
  process.troubles += 1;
  if (chance.happens(0.5)) clock.after(chance.happens(0.5) ? 0 : chance.lasting(1, 10_000), () => void effect());
  return never();
}

function fleetOf(process: Process, day: Day): Fleet {
  const { world, invariants, clock, chance } = day;
  async function call<Result>(effect: () => Promise<Result>): Promise<Result> {
    if (process.isDead) return never();
    const fortune = process.next();
    if (fortune === "dies") return lastCall(process, clock, chance, () => void effect().catch(() => {})) as never;
    const result = await effect();
    if (fortune === "stalls") {
      process.troubles += 1;
      await clock.sleep(process.fortune.stall?.ms ?? 0);
    }
    return process.isDead ? never() : result;
  }
  return {
    identify: (uid, incarnation) => world.identify(uid, incarnation),
    observe: (instance, epoch) => {
      process.basis.set(instance.doId, process.loadedTime);
      return call(() => world.observe(instance, epoch));
    },
    start: (...order) => call(() => world.start(...order)),
    stop: (instance, epoch) =>
      call(() => {
        invariants.ordered(process, "stop", instance, epoch);
        return world.stop(instance, epoch);
      }),
    destroy: (instance, epoch) =>
      call(() => {
        invariants.ordered(process, "destroy", instance, epoch);
        return world.destroy(instance, epoch);
      }),
    destroyOrphan: (doId, epoch) =>
      call(() => {
        invariants.orderedOrphan(process, doId);
        return world.destroyOrphan(doId, epoch);
      }),
  };
}

async function listFor(process: Process, { list, clock, chance }: Day) {
  if (process.isDead) return never<never>();
  const askedTime = clock.now();
  const fortune = process.next();
  if (fortune === "dies") return lastCall<never>(process, clock, chance, () => undefined as never);
  const given = await list.list();
  process.lastListing = { askedTime, given };
  return process.isDead ? never<never>() : given.listing;
}
