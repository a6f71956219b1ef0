/** A stream of chance that a seed repeats exactly. */

export class Chance {
  #state: number;

  constructor(seed: number) {
    // Neighbouring seeds must not give neighbouring streams.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    for (let n = 0; n < 4; n += 1) this.next();
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  happens(share: number): boolean {
    return share > 0 && this.next() < share;
  }

  /** An integer, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Evenly spread over orders of magnitude: short far more often than long. */
  lasting(least: number, most: number): number {
    return Math.round(least * (most / least) ** this.next());
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }

  /** Another stream, that this one does not disturb. */
  fork(): Chance {
    return new Chance(Math.floor(this.next() * 4_294_967_296));
  }
}
