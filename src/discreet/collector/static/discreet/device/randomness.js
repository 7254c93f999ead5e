import { D } from "../check/exact.js";

/** Uniform integers from Web Crypto, exactly: by rejection, never by a float or a plain modulo. */
export class Draws {
  #pool = new Uint32Array(1024); // getRandomValues gives at most 65,536 bytes at once
  #next = this.#pool.length;

  /** A uniform 32-bit integer: below a numerator over 2^32 with exactly that probability. */
  next() {
    if (this.#next === this.#pool.length) {
      globalThis.crypto.getRandomValues(this.#pool);
      this.#next = 0;
    }
    return this.#pool[this.#next++];
  }

  /** A uniform integer in [0, bound), 1 <= bound <= 2^32. */
  below(bound) {
    const limit = D - (D % bound);
    for (;;) {
      const draw = this.next();
      if (draw < limit) return draw % bound;
    }
  }

  /** A uniform integer below 2^52. */
  mass() {
    return (this.next() >>> 12) * D + this.next();
  }

  /** The same as `below` for a positive BigInt of any size. */
  belowBig(bound) {
    const words = Math.ceil(bound.toString(16).length / 8);
    const all = 1n << BigInt(32 * words);
    const limit = all - (all % bound);
    for (;;) {
      let draw = 0n;
      for (let k = 0; k < words; k++) draw = (draw << 32n) | BigInt(this.next());
      if (draw < limit) return draw % bound;
    }
  }

  /** A uniform subset of so many of these. */
  subset(values, wanted) {
    const left = [...values];
    for (let k = 0; k < wanted; k++) {
      const place = k + this.below(left.length - k);
      [left[k], left[place]] = [left[place], left[k]];
    }
    return left.slice(0, wanted);
  }
}
