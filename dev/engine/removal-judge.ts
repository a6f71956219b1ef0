/** The deletes of an eviction follow each other within a few milliseconds; this allows for a busy machine. */
const FOLLOW_UP_MS = 250;
/** Lets a wait call that was closed just before a delete be seen to be closed. */
const SETTLE_MS = 10;

export type Removal = "Destroy" | "Eviction";

interface OpenCase {
  /** The caller has asked when the removal is done, as every removal that is not cut short does. */
  followedUp: boolean;
  readonly decide: (removal: Removal) => void;
}

/**
 * Tells why workerd deletes an app container. On the platform a container lives on when its object leaves memory, and only
 * destroy() ends it; local workerd deletes it in both cases. Dropping an object from memory (eviction, abort) happens when its
 * last call is over, and takes the sidecar along; destroy() comes from a living object and spares the sidecar:
 *
 *     destroy()   DELETE app, wait for its removal                                          monitor's wait call still open
 *     eviction    (monitor's wait call closed) DELETE app, wait for its removal, DELETE sidecar; versions before 2026-11
 *                 send the two deletes at the same time
 *
 * workerd watches every running container of a living object, so an open wait call proves a destroy. Without one the delete is
 * answered, the container hidden, and the calls that follow decide:
 *
 *     DELETE sidecar              eviction
 *     inspect                     eviction: its object came back so soon that workerd cut the removal short
 *     create, or DELETE app again destroy: a living object acts on the container
 *     nothing                     destroy if the removal was waited for, else it was cut short: eviction
 *
 * The sidecar delete of a start cannot be mistaken for the first half of an eviction, because that start creates the new
 * sidecar before it touches the app container.
 */
export class RemovalJudge {
  readonly #sidecarDeletes = new Map<string, number>();
  readonly #open = new Map<string, OpenCase>();

  async appDeleted(key: string, isWatched: () => boolean): Promise<Removal | "Undecided"> {
    const sidecarDelete = this.#sidecarDeletes.get(key);
    this.#sidecarDeletes.delete(key);
    if (sidecarDelete !== undefined && Date.now() - sidecarDelete <= FOLLOW_UP_MS) return "Eviction";
    if (!isWatched()) return "Undecided";
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    return isWatched() ? "Destroy" : "Undecided";
  }

  /** Resolves with the verdict on an undecided removal. */
  verdict(key: string): Promise<Removal> {
    return new Promise((resolve) => {
      const decide = (removal: Removal) => {
        clearTimeout(timer);
        this.#open.delete(key);
        resolve(removal);
      };
      const open: OpenCase = { followedUp: false, decide };
      const timer = setTimeout(() => decide(open.followedUp ? "Destroy" : "Eviction"), FOLLOW_UP_MS);
      this.#open.set(key, open);
    });
  }

  removalAwaited(key: string): void {
    const open = this.#open.get(key);
    if (open !== undefined) open.followedUp = true;
  }

  sidecarDeleted(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) this.#sidecarDeletes.set(key, Date.now());
    else open.decide("Eviction");
  }

  sidecarCreated(key: string): void {
    this.#sidecarDeletes.delete(key);
  }

  inspected(key: string): void {
    this.#open.get(key)?.decide("Eviction");
  }

  createdOrDeletedAgain(key: string): void {
    this.#open.get(key)?.decide("Destroy");
  }
}
