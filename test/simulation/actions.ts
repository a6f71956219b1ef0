/** Lets a happening of the script take place. What does not apply does nothing, so that any part of a script can be left out. */
import { createHash } from "node:crypto";
import type { WorkspaceSpec } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { SpecSketch } from "./lives.ts";
import type { MemoryApi } from "./memory-api.ts";
import type { Day } from "./ports.ts";
import type { Container } from "./surroundings.ts";
import type { CommonEvent, WorkspaceEvent } from "./script.ts";

export const QUOTA_NAMESPACE = "tight";

export class Actions {
  readonly #day: Day;
  readonly #api: MemoryApi;
  readonly #chance: Chance;
  readonly #seed: number;
  /** The workspace of each slot, as long as it has a row. */
  readonly #uids = new Map<number, string>();
  #lives = 0;

  constructor(day: Day, api: MemoryApi, chance: Chance, seed: number) {
    this.#day = day;
    this.#api = api;
    this.#chance = chance;
    this.#seed = seed;
  }

  happensTo(slot: number, event: WorkspaceEvent): void {
    const now = this.#day.clock.now();
    if (event.kind === "create") this.#create(slot, event.sketch);
    const uid = this.#uids.get(slot);
    this.#day.invariants.trace?.(uid ?? "", JSON.stringify(event));
    if (uid === undefined || event.kind === "create") return;
    this.#happens(uid, event);
    this.#day.invariants.wishes.note(uid, now);
  }

  happens(event: CommonEvent): void {
    const { clock, world, list, store, invariants } = this.#day;
    const now = clock.now();
    invariants.trace?.("", JSON.stringify(event));
    switch (event.kind) {
      case "deploy":
        for (const sandbox of world.sandboxes.values()) if (sandbox.run !== null || sandbox.breakers.size > 0) sandbox.loseMemory();
        return;
      case "stranger":
        world.addStranger();
        return;
      case "protect":
      case "unprotect":
      case "requestOrphanDestroy":
        this.#happensToOrphan(event.kind);
        return;
      case "releaseBrake":
        this.#api.set({ brakeReleasedUntilTime: now + 600_000 });
        return;
      case "rollout":
        for (const { sandbox } of world.running) if (this.#chance.happens(event.share)) sandbox.exit(143, true);
        return;
      case "noCapacity":
        world.noCapacityUntilTime = now + event.ms;
        return;
      case "rateLimited":
        world.rateLimitedUntilTime = now + event.ms;
        return;
      case "storeDown":
        this.#day.storeDownUntilTime = now + event.ms;
        return;
      case "pause":
        this.#api.set({ paused: true });
        clock.after(event.ms, () => this.#api.set({ paused: false }));
        return;
      case "gcMode":
        this.#api.set({ gcMode: event.mode });
        clock.after(event.ms, () => this.#api.set({ gcMode: null }));
        return;
      case "laneWidth":
        this.#api.set({ laneWidth: event.width });
        invariants.widthChanged(store.tables.settings.laneWidth ?? this.#day.config.startLaneWidth);
        return;
      case "list": {
        const { trouble } = event;
        list.trouble = trouble;
        clock.after(event.ms, () => {
          if (list.trouble === trouble) list.trouble = null;
        });
      }
    }
  }

  /** The outside world comes to rest: from now on only the controller acts. */
  end(): void {
    const { world, list, faults, clock, store } = this.#day;
    faults.end();
    list.trouble = null;
    this.#day.storeDownUntilTime = 0;
    world.noCapacityUntilTime = 0;
    world.rateLimitedUntilTime = 0;
    world.cursed.clear();
    this.#api.set({ paused: false, gcMode: null, allowEmpty: true, brakeReleasedUntilTime: clock.now() + 86_400_000 });
    for (const doId of store.tables.unclaimed.keys()) this.#api.protect(doId, false);
    // What failed for good is tried once more, since its cause is gone.
    for (const uid of store.tables.workspaces.keys()) this.#api.requestReconcile(uid, clock.now());
  }

  #create(slot: number, sketch: SpecSketch): void {
    const { clock, invariants } = this.#day;
    const uid = uidOf(this.#seed, (this.#lives += 1));
    const namespace = slot % 10 === 0 ? QUOTA_NAMESPACE : "default";
    const row = this.#api.create(uid, namespace, `w${slot}`, toSpec(sketch, clock.now()), clock.now());
    if (row === null) return;
    this.#uids.set(slot, uid);
    invariants.wishes.note(uid, clock.now());
  }

  #happens(uid: string, event: Exclude<WorkspaceEvent, { kind: "create" }>): void {
    const { clock, world, store, invariants } = this.#day;
    const now = clock.now();
    const instance = store.instanceOf(uid);
    const sandbox = instance === null ? null : world.sandboxOf(instance);
    switch (event.kind) {
      case "replace":
        world.cursed.delete(uid);
        this.#api.replace(uid, toSpec(event.sketch, now), now);
        return;
      case "delete":
        this.#api.delete(uid, now);
        return;
      case "wake":
        this.#api.wake(uid, now);
        return;
      case "reconcile":
        this.#api.requestReconcile(uid, now);
        return;
      case "requestDestroy":
        this.#api.requestDestroy(uid, now);
        return;
      case "use":
        if (sandbox?.container?.isVerified) use(sandbox.container, now);
        return;
      case "reset":
        sandbox?.loseMemory();
        return;
      case "ghost":
        this.#ghost(uid);
        return;
      case "cursed":
        world.cursed.add(uid);
        return;
      case "exit":
        if (!event.signalled && sandbox?.container) invariants.failed(uid);
        sandbox?.exit(event.code, event.signalled);
    }
  }

  /** A container starts in an object that was told never to run again, or was stopped: the SDK's own loop is known to. */
  #ghost(uid: string): void {
    const { world } = this.#day;
    const own = [...world.sandboxes.values()].filter(
      (sandbox) => sandbox.uid === uid && sandbox.run === null && sandbox.container === null,
    );
    const ended = own.filter(({ admission }) => admission.state === "Destroyed" || admission.state === "Revoked");
    if (ended.length > 0) this.#chance.pick(ended).startUnasked();
  }

  #happensToOrphan(kind: "protect" | "unprotect" | "requestOrphanDestroy"): void {
    const { store, clock } = this.#day;
    const rows = [...store.tables.unclaimed.values()];
    if (rows.length === 0) return;
    const { doId } = this.#chance.pick(rows);
    if (kind === "requestOrphanDestroy") this.#api.requestOrphanDestroy(doId, clock.now());
    else this.#api.protect(doId, kind === "protect");
  }
}

function use(container: Container, now: number): void {
  container.earlierActivityTime = container.activityTime;
  container.activityTime = now;
}

function toSpec(sketch: SpecSketch, now: number): WorkspaceSpec {
  return {
    operatingMode: sketch.mode,
    directory: "/workspace",
    env: { VERSION: String(sketch.env) },
    idle: sketch.idleSeconds === null ? null : { timeoutSeconds: sketch.idleSeconds },
    maxLifetimeSeconds: sketch.lifetimeSeconds,
    expireTime: sketch.expiresInMs === null ? null : new Date(now + sketch.expiresInMs).toISOString(),
    paused: sketch.paused,
  };
}

function uidOf(seed: number, life: number): string {
  const hex = createHash("sha256").update(`${seed}/${life}`).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
