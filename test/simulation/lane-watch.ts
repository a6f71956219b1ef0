/** (1, 2, 12) Who may start, and how many at a time. */
import type { Admission } from "../../src/store/progress.ts";
import type { RunningLimits } from "../../src/store/quota.ts";
import type { Instant } from "../../src/workspace.ts";
import type { WorkspaceRecord } from "../../src/workspace-record.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Process } from "./process.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Wishes } from "./wishes.ts";
import type { World } from "./world.ts";

/** Longer than a start may take, lane margin included: a width that an operator has lowered may show for so long. */
const WIDTH_MEMORY_MS = 240_000;

type Expect = (invariant: number, holds: boolean, message: () => string) => void;

interface Admitted {
  readonly doId: string;
  readonly deadlineTime: Instant;
  /** When the record was read that it is about. */
  readonly since: Instant;
}

export class LaneWatch {
  readonly #store: MemoryStore;
  readonly #world: World;
  readonly #wishes: Wishes;
  readonly #limits: RunningLimits;
  readonly #expect: Expect;
  readonly #admitted = new Map<string, Admitted>();
  readonly #widths: { readonly width: number; fromTime: Instant }[];
  #brakeUntilTime: Instant = 0;

  constructor(
    store: MemoryStore,
    world: World,
    wishes: Wishes,
    { laneWidth, limits }: { readonly laneWidth: number; readonly limits: RunningLimits },
    expect: Expect,
  ) {
    this.#store = store;
    this.#world = world;
    this.#wishes = wishes;
    this.#limits = limits;
    this.#expect = expect;
    this.#widths = [{ width: laneWidth, fromTime: 0 }];
  }

  widthChanged(width: number, now: Instant): void {
    this.#widths.push({ width, fromTime: now });
  }

  brakedUntil(time: Instant): void {
    this.#brakeUntilTime = time;
  }

  admitted(process: Process, record: WorkspaceRecord, { startId, deadlineTime, instance }: Admission, now: Instant): void {
    const { name, uid, namespace } = record;
    const since = process.basis.get(record.instance?.doId ?? "") ?? process.loadedTime;
    this.#expect(2, this.#wishes.isToRun(uid), () => `a start was admitted for ${name}, which is not to run`);
    this.#expect(2, !process.isPausedFor(since), () => `a start was admitted for ${name} although an operator has paused all`);
    this.#expect(12, now >= this.#brakeUntilTime, () => `a start was admitted for ${name} while the brake was on`);
    const held = this.#store.tables.lane.filter((place) => place.deadlineTime > now).length;
    this.#expect(1, held <= this.#width(now), () => `${held} places in the lane are held`);
    this.#checkQuota(namespace);
    this.#admitted.set(startId, { doId: instance.doId, deadlineTime, since: process.loadedTime });
  }

  /** Null where it is not admitted. */
  began(sandbox: Sandbox, startId: string, now: Instant): Admitted | null {
    const admission = this.#admitted.get(startId) ?? null;
    const isAdmitted = admission?.doId === sandbox.doId && now < admission.deadlineTime;
    this.#expect(2, isAdmitted, () => `${sandbox.sandboxId} starts without an admission`);
    const inFlight = this.#world.startsInFlight();
    this.#expect(1, inFlight <= this.#width(now), () => `${inFlight} starts are in flight`);
    return admission;
  }

  #checkQuota(namespace: string): void {
    const limit = this.#limits[namespace] ?? null;
    if (limit === null) return;
    const running = [...this.#store.tables.instances.values()].filter((row) => row.running && row.namespace === namespace).length;
    this.#expect(12, running <= limit, () => `${running} run in ${namespace}, whose quota is ${limit}`);
  }

  /** The most that was allowed within the last minutes. */
  #width(now: Instant): number {
    while ((this.#widths[1]?.fromTime ?? Number.POSITIVE_INFINITY) < now - WIDTH_MEMORY_MS) this.#widths.shift();
    return Math.max(...this.#widths.map(({ width }) => width));
  }
}
