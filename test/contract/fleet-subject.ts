/** The world that a Fleet's contract is tested in, and one sandbox of it as the suite handles it. */
import type { Fleet, StartRequest } from "../../src/controller/fleet.ts";
import type { Instance, Observation } from "../../src/workspace.ts";

export type Behaviour = "Works" | "NeverReady" | "NoCapacity" | "DeafToDestroy";

export interface ContractWorld {
  readonly fleet: Fleet;
  /** What a start gets that is to fail: longer than a few calls, and than a world without capacity takes to say so. */
  readonly timeoutMs: number;
  /** Awaits while the world's time passes. */
  readonly run: <T>(work: Promise<T>) => Promise<T>;
  readonly pass: (ms: number) => Promise<void>;
  /** The next containers of the sandbox behave so; `DeafToDestroy` and its end are for the one that runs, too. */
  readonly script: (instance: Instance, behaviour: Behaviour) => void;
  /** The container ends by itself. */
  readonly exit: (instance: Instance, code: number) => Promise<void>;
  /** As an eviction: what the sandbox had in memory is gone. */
  readonly loseMemory: (instance: Instance) => Promise<void>;
  /** Whether a container runs, asked behind the port. */
  readonly runs: (instance: Instance) => boolean;
  /** Containers that ever began. */
  readonly containers: (instance: Instance) => number;
  /** A user's traffic to the sandbox, which may be refused. */
  readonly use: (instance: Instance) => Promise<void>;
  /** A container runs in the sandbox that no controller started. */
  readonly startStranger: (instance: Instance) => Promise<void>;
  /** What D1 says from now on to the sandbox that asks for the row of its workspace; until then there is none. */
  readonly answerRow: (instance: Instance, answer: "Exists" | "Fails") => Promise<void>;
}

export type MakeWorld = () => Promise<ContractWorld> | ContractWorld;

export const LONG_MS = 60_000;
/** Between two looks, where the suite waits for something to show. */
export const LOOK_MS = 20;

/** The start "s1" was ended by a wish. */
export const CANCELLED = { kind: "Failed", startId: "s1", failure: { class: "Progressing" } };

export type ContractSubject = Awaited<ReturnType<typeof newSubject>>;

/** A sandbox that nobody has used yet, in a world of its own. */
export async function newSubject(makeWorld: MakeWorld) {
  const world = await makeWorld();
  const { fleet, timeoutMs } = world;
  const uid = `contract-${crypto.randomUUID()}`;
  const instance = fleet.identify(uid, 1);
  const orderOf = (startId: string, change: Partial<StartRequest> = {}): StartRequest => ({
    startId,
    workspaceUid: uid,
    timeoutMs: 20_000,
    directory: "/workspace",
    env: { A: "1" },
    specHash: "v1:hash",
    adopt: false,
    prepareTimeoutMs: 60_000,
    restore: null,
    setup: [],
    ...change,
  });
  const observe = (epoch = 1) => world.run(fleet.observe(instance, epoch));
  return {
    ...world,
    uid,
    instance,
    orderOf,
    observe,
    /** The first look that does not show `kind` any more. */
    after: async (kind: Observation["kind"]) => {
      let seen = await observe();
      for (; seen.kind === kind; seen = await observe()) await world.pass(LOOK_MS);
      return seen;
    },
    begun: async () => {
      while (!world.runs(instance)) await world.pass(LOOK_MS);
    },
    start: (startId: string, change: Partial<StartRequest> = {}, waitMs = LONG_MS, epoch = 1) =>
      world.run(fleet.start(instance, epoch, orderOf(startId, change), waitMs)),
    startInVain: (startId: string, waitMs = LONG_MS) => world.run(fleet.start(instance, 1, orderOf(startId, { timeoutMs }), waitMs)),
    stop: (epoch = 1) => world.run(fleet.stop(instance, epoch)),
    destroy: (epoch = 1) => world.run(fleet.destroy(instance, epoch)),
    destroyOrphan: (epoch = 1) => world.run(fleet.destroyOrphan(instance.doId, epoch)),
    use: () => world.run(world.use(instance)),
    /** When the container began and was last used, as a look shows it. */
    times: async () => {
      const seen = await observe();
      if (seen.kind !== "Running") throw new Error(`not Running but ${seen.kind}`);
      return { started: seen.startedTime, active: seen.activityTime };
    },
    world,
  };
}

export function kinds(...observations: Observation[]): readonly string[] {
  return observations.map(({ kind }) => kind);
}
