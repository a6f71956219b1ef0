/** The controller's ports as one process has them: each call may fail, be slow, be lost, or be the last. What arrived stays done. */
import type { Config } from "../../src/config.ts";
import type { BackupBucket } from "../../src/controller/backup-bucket.ts";
import type { Fleet } from "../../src/controller/fleet.ts";
import type { SweepDeps } from "../../src/controller/sweep-deps.ts";
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { Chance } from "./chance.ts";
import { type Clock, never } from "./clock.ts";
import { toBackupBucket, type Bucket } from "./bucket.ts";
import { callOther, lastCall } from "./calls.ts";
import type { Faults } from "./faults.ts";
import type { Invariants } from "./invariants.ts";
import type { PlatformList } from "./listing.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Process } from "./process.ts";
import { storeOf } from "./store-port.ts";
import type { World } from "./world.ts";

export interface Day {
  readonly clock: Clock;
  readonly store: MemoryStore;
  readonly world: World;
  readonly list: PlatformList;
  readonly bucket: Bucket;
  readonly faults: Faults;
  readonly chance: Chance;
  readonly invariants: Invariants;
  readonly config: Config;
  /** Until then the database answers nobody. */
  storeDownUntilTime: Instant;
  /** Since when only the controller acts. */
  restTime: Instant;
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
  readonly backsUpAnything?: true;
  readonly resumesLate?: true;
  readonly bucket?: (bucket: BackupBucket) => BackupBucket;
}

export function portsOf(process: Process, day: Day): SweepDeps {
  const { clock, config, chance, mistake } = day;
  const controllerStore = storeOf(process, day);
  const fleet = fleetOf(process, day);
  const bucket = bucketOf(process, day);
  return {
    store: mistake.controllerStore?.(controllerStore, day.store) ?? controllerStore,
    fleet: mistake.fleet?.(fleet) ?? fleet,
    inventory: { list: () => listFor(process, day) },
    bucket: mistake.bucket?.(bucket) ?? bucket,
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

function fleetOf(process: Process, day: Day): Fleet {
  const { world, invariants } = day;
  const call = <Result>(effect: () => Promise<Result>): Promise<Result> => callOther(process, day, effect);
  return {
    identify: (uid, incarnation) => world.identify(uid, incarnation),
    observe: (instance, epoch) => {
      process.basis.set(instance.doId, process.loadedTime);
      return call(() => world.observe(instance, epoch));
    },
    start: (...order) => call(() => world.start(...order)),
    backup: (instance, epoch, order, waitMs) =>
      call(() => {
        invariants.backups.ordered(order);
        return world.backup(instance, epoch, order, waitMs);
      }),
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

function bucketOf(process: Process, day: Day): BackupBucket {
  const { bucket, invariants } = day;
  const port = toBackupBucket(bucket, (effect) => callOther(process, day, effect));
  return {
    list: () => port.list(),
    remove: (objectId) => {
      invariants.backups.removing(objectId);
      return port.remove(objectId);
    },
  };
}
