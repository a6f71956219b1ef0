/** One isolate that runs one tick: how far it gets, and what it has read so far. */
import { DEFAULT_SETTINGS } from "../../src/store/controller-settings.ts";
import type { ControllerSettings } from "../../src/unclaimed.ts";
import type { Instant } from "../../src/workspace.ts";
import type { GivenListing } from "./listing.ts";

export interface Fortune {
  /** It dies at its nth call. Null: it lives. */
  readonly diesAt: number | null;
  /** Its nth call is answered only so much later. */
  readonly stall: { readonly at: number; readonly ms: number } | null;
}

export const LUCKY: Fortune = { diesAt: null, stall: null };

export class Process {
  isDead = false;
  /** Its tick went through with the lease held all the time. */
  isThrough = false;
  /** Calls of it that failed, were slow, or never answered. */
  troubles = 0;
  settings: ControllerSettings = DEFAULT_SETTINGS;
  /** When the records that it last read were true. */
  loadedTime: Instant = 0;
  /** Since when it knows that an operator has paused all; null while nobody has. */
  #pausedTime: Instant | null = null;
  /** By DO: the time of the record on which it acts. */
  readonly basis = new Map<string, Instant>();
  /** When it was allowed to destroy what no record claims; by DO. */
  readonly claims = new Map<string, Instant>();
  lastListing: { readonly askedTime: Instant; readonly given: GivenListing } | null = null;
  readonly startTime: Instant;
  readonly fortune: Fortune;
  #calls = 0;

  constructor(startTime: Instant, fortune: Fortune) {
    this.startTime = startTime;
    this.fortune = fortune;
  }

  loaded(settings: ControllerSettings, now: Instant): void {
    this.settings = settings;
    this.loadedTime = now;
    this.#pausedTime = settings.paused ? (this.#pausedTime ?? now) : null;
  }

  /** Whether all was paused, as far as it knew, when it read what it acts on. What was begun before goes on. */
  isPausedFor(readTime: Instant): boolean {
    return this.#pausedTime !== null && readTime >= this.#pausedTime;
  }

  /** What becomes of the process in its next call. */
  next(): "lives" | "dies" | "stalls" {
    this.#calls += 1;
    const { diesAt, stall } = this.fortune;
    if (diesAt !== null && this.#calls === diesAt) return "dies";
    return stall !== null && this.#calls === stall.at ? "stalls" : "lives";
  }
}
