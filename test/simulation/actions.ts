/** Lets a happening of the script take place. What does not apply does nothing, so that any part of a script can be left out. */
import type { WorkspaceSpec } from "../../src/workspace.ts";
import type { Chance } from "./chance.ts";
import type { SpecSketch } from "./lives.ts";
import type { MemoryApi } from "./memory-api.ts";
import type { Day } from "./ports.ts";
import type { Container } from "./surroundings.ts";
import type { CommonEvent, WorkspaceEvent } from "./script.ts";
import { nameOf, sourceOf, toSpec, uidOf } from "./specs.ts";

export const QUOTA_NAMESPACE = "tight";

export class Actions {
  readonly #day: Day;
  readonly #api: MemoryApi;
  readonly #chance: Chance;
  readonly #seed: number;
  /** The workspace of each slot, as long as it has a row. */
  readonly #uids = new Map<number, string>();
  /** What each workspace is a clone of: as sketched, and as that was understood then. */
  readonly #sources = new Map<string, { readonly sketched: string; readonly source: WorkspaceSpec["source"] }>();
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
    this.#happens(uid, slot, event);
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
      case "vanish":
        this.#vanish(event.share, event.ms);
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
    const { world, list, bucket, faults, clock, store } = this.#day;
    faults.end();
    this.#day.restTime = clock.now();
    list.trouble = null;
    this.#day.storeDownUntilTime = 0;
    world.noCapacityUntilTime = 0;
    world.rateLimitedUntilTime = 0;
    world.cursed.clear();
    bucket.hide(false, () => true);
    this.#api.set({ paused: false, gcMode: null, allowEmpty: true, brakeReleasedUntilTime: clock.now() + 86_400_000 });
    for (const doId of store.tables.unclaimed.keys()) this.#api.protect(doId, false);
    // What failed for good is tried once more, since its cause is gone.
    for (const uid of store.tables.workspaces.keys()) this.#api.requestReconcile(uid, clock.now());
  }

  #create(slot: number, sketch: SpecSketch): void {
    const { clock, invariants } = this.#day;
    const uid = uidOf(this.#seed, (this.#lives += 1));
    const spec = toSpec(sketch, this.#sourceOf(uid, slot, sketch), clock.now());
    const row = this.#api.create(uid, namespaceOf(slot), nameOf(slot), spec, clock.now());
    if (row === null) return;
    this.#uids.set(slot, uid);
    invariants.wishes.note(uid, clock.now());
  }

  #sourceOf(uid: string, slot: number, sketch: SpecSketch): WorkspaceSpec["source"] {
    const sketched = JSON.stringify(sketch.source);
    const known = this.#sources.get(uid);
    if (known?.sketched === sketched) return known.source;
    const source = sourceOf(sketch, namespaceOf(slot), namespaceOf, this.#day.store.tables.backups);
    this.#sources.set(uid, { sketched, source });
    return source;
  }

  #happens(uid: string, slot: number, event: Exclude<WorkspaceEvent, { kind: "create" }>): void {
    const { clock, world, store, invariants } = this.#day;
    const now = clock.now();
    const instance = store.instanceOf(uid);
    const sandbox = instance === null ? null : world.sandboxOf(instance);
    switch (event.kind) {
      case "replace":
        world.cursed.delete(uid);
        this.#replace(uid, slot, event.sketch);
        return;
      case "delete":
        this.#delete(uid, now);
        return;
      case "requestBackup":
        this.#api.requestBackup(uid, this.#day.newId(), now);
        return;
      case "weaken":
        this.#api.weakenFinalBackup(uid, this.#chance.pick(["BestEffort", "Skip"]), now);
        return;
      case "deleteBackup":
        this.#deleteBackup(uid, now);
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

  #replace(uid: string, slot: number, sketch: SpecSketch): void {
    const now = this.#day.clock.now();
    const source = this.#sourceOf(uid, slot, sketch);
    const before = this.#day.store.tables.workspaces.get(uid)?.spec?.source ?? null;
    if (JSON.stringify(source) !== JSON.stringify(before)) this.#day.invariants.backups.contents.unpin(uid);
    this.#api.replace(uid, toSpec(sketch, source, now), now);
  }

  #vanish(share: number, ms: number): void {
    const { bucket, clock } = this.#day;
    bucket.hide(true, () => this.#chance.happens(share));
    clock.after(ms, () => bucket.hide(false, () => true));
  }

  #delete(uid: string, now: number): void {
    const { finalBackup = "Skip", deadlineSeconds = 0 } = this.#day.store.tables.workspaces.get(uid)?.spec?.deletion ?? {};
    this.#api.delete(uid, now, { policy: finalBackup, deadlineTime: now + deadlineSeconds * 1000 });
  }

  #deleteBackup(uid: string, now: number): void {
    const own = [...this.#day.store.tables.backups.of(uid)];
    if (own.length === 0) return;
    this.#api.deleteBackup(this.#chance.pick(own).id, now);
    this.#day.invariants.backups.thrownAway(uid, now);
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
  container.changesFromTime = Math.min(container.changesFromTime, now);
}

function namespaceOf(slot: number): string {
  return slot % 10 === 0 ? QUOTA_NAMESPACE : "default";
}
