/**
 * Mistakes that somebody could make in the controller, its store or its sandboxes, put in where the simulation hands out the ports. Each
 * must be found: it is how we know that a day without a violation means something.
 */
import type { Fleet } from "../../src/controller/fleet.ts";
import type { ControllerStore } from "../../src/store/controller-store.ts";
import type { InventoryView } from "../../src/store/unclaimed.ts";
import type { Instant, Observation } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import { MemoryStore } from "./memory-store.ts";
import type { Mistake } from "./ports.ts";
import type { Script } from "./script.ts";
import { returns, secondThoughts, shortLives } from "./special-days.ts";

export interface NamedMistake extends Mistake {
  readonly name: string;
  /** One of these promises is then seen broken. */
  readonly breaks: readonly number[];
  /** A day on which it shows, where an ordinary one seldom has it. */
  readonly script?: (seed: number) => Script;
}

/** Who lost the lease writes on. */
class UnfencedStore extends MemoryStore {
  override holdsLease(): boolean {
    return true;
  }
}

/** Forgets what it knows of the platform's refusals. */
class BrakelessStore extends MemoryStore {
  override saveConclusion(...[epoch, record, conclusion, now]: Parameters<MemoryStore["saveConclusion"]>): boolean {
    return super.saveConclusion(epoch, record, { ...conclusion, brake: null }, now);
  }
}

/** Destroys without a look at the row. */
class RecklessStore extends MemoryStore {
  #earlier: InventoryView | null = null;

  /** As of the sweep before, as a replica that lags would answer. */
  override readInventoryView(...view: Parameters<MemoryStore["readInventoryView"]>): InventoryView {
    const current = super.readInventoryView(...view);
    const answered = this.#earlier ?? current;
    this.#earlier = current;
    return { ...answered, unclaimed: current.unclaimed };
  }

  override claimDestroy(): boolean {
    return true;
  }

  override recordSweep(...[epoch, result, now]: Parameters<MemoryStore["recordSweep"]>): boolean {
    const isRecorded = super.recordSweep(epoch, result, now);
    for (const seen of result.unclaimed) this.tables.unclaimed.set(seen.doId, { ...seen, destroyRequestTime: null });
    return isRecorded;
  }
}

/** The version that the row has now, whatever the pass has read. */
function upToDate(record: WorkspaceRecord, memory: MemoryStore): WorkspaceRecord {
  return { ...record, resourceVersion: memory.tables.workspaces.get(record.uid)?.resourceVersion ?? 0 };
}

export function seeing(change: (observed: Observation) => Observation): (fleet: Fleet) => Fleet {
  return (fleet) => ({
    identify: (...call) => fleet.identify(...call),
    observe: async (...call) => change(await fleet.observe(...call)),
    start: async (...call) => change(await fleet.start(...call)),
    backup: (...call) => fleet.backup(...call),
    stop: async (...call) => change(await fleet.stop(...call)),
    destroy: async (...call) => change(await fleet.destroy(...call)),
    destroyOrphan: (...call) => fleet.destroyOrphan(...call),
  });
}

/** Knows of each container the last use that its tick saw first. */
function incurious(fleet: Fleet): Fleet {
  const seen = new Map<string, Instant>();
  return seeing((observed) => {
    if (observed.kind !== "Running") return observed;
    const activityTime = seen.get(observed.startId) ?? observed.activityTime;
    seen.set(observed.startId, activityTime);
    return { ...observed, activityTime };
  })(fleet);
}

function writing(change: Partial<ControllerStore>): (store: ControllerStore) => ControllerStore {
  return (store) => ({ ...store, ...change });
}

export const MISTAKES: readonly NamedMistake[] = [
  {
    name: "a lane that is wider than it may be",
    breaks: [1],
    controllerStore: (store) => ({
      ...store,
      loadDue: (query) => store.loadDue({ ...query, laneWidth: query.laneWidth + 1 }),
      admitStart: (epoch, record, admission, now) =>
        store.admitStart(epoch, record, { ...admission, laneWidth: admission.laneWidth + 1 }, now),
    }),
  },
  {
    name: "an admission that does not look whether the row has moved on",
    breaks: [2],
    script: secondThoughts,
    controllerStore: (store, memory) => ({
      ...store,
      admitStart: (epoch, record, admission, now) => store.admitStart(epoch, upToDate(record, memory), admission, now),
    }),
  },
  { name: "a grace that is ignored", breaks: [3], config: { orphanGraceMs: 0 } },
  { name: "orphans that nobody collects", breaks: [3], config: { gcMode: "Off" } },
  {
    name: "a sweep that forgets what it saw",
    breaks: [3],
    controllerStore: (store) => ({
      ...store,
      recordSweep: (epoch, result, now) => store.recordSweep(epoch, { ...result, unclaimed: [] }, now),
    }),
  },
  {
    name: "silence taken for absence",
    breaks: [3, 4, 5],
    fleet: seeing((observed) => (observed.kind === "Unknown" ? { kind: "Destroyed" } : observed)),
  },
  {
    name: "a stop that is remembered as a wish",
    breaks: [4],
    fleet: seeing((observed) => (observed.kind === "Running" ? { ...observed, startedTime: observed.startedTime - 86_400_000 } : observed)),
  },
  {
    name: "claims as of the sweep before, and destroys without a look at row or sandbox",
    breaks: [3, 4],
    store: () => new RecklessStore(),
    config: { orphanGraceMs: 0 },
    hasRow: () => false,
  },
  {
    name: "an operator's pause that is not heeded",
    breaks: [2, 4],
    controllerStore: (store) => ({
      ...store,
      loadDue: async (query) => {
        const loaded = await store.loadDue(query);
        return { ...loaded, settings: { ...loaded.settings, paused: false } };
      },
    }),
  },
  { name: "a fence that lets everybody write", breaks: [11], store: () => new UnfencedStore() },
  { name: "a brake that does not hold", breaks: [12], store: () => new BrakelessStore() },
  {
    name: "a lack of capacity that is the workspace's fault",
    breaks: [12],
    fleet: seeing((observed) =>
      observed.kind === "Failed" ? { ...observed, failure: { ...observed.failure, class: "Transient", reason: "StartFailed" } } : observed,
    ),
  },
  {
    name: "a container that was told to go, and counts as crashed",
    breaks: [12],
    fleet: seeing((observed) =>
      observed.kind === "Stopped" && observed.exit !== null ? { ...observed, exit: { ...observed.exit, signalled: false } } : observed,
    ),
  },
  { name: "a user's return that is not heeded", breaks: [4], script: returns, fleet: incurious },
  { name: "an order to stop that never expires", breaks: [4], ordersExpire: false, script: shortLives },
  {
    name: "a deletion that is not carried through",
    breaks: [5, 10],
    controllerStore: writing({ forget: () => Promise.resolve(false) }),
  },
  {
    name: "a steady state that is written down each time",
    breaks: [9],
    controllerStore: (store) => ({
      ...store,
      saveConclusion: (epoch, record, conclusion, now) => store.saveConclusion(epoch, record, { ...conclusion, laneReleased: true }, now),
    }),
  },
];
