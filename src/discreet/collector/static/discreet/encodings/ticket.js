import { D } from "../check/exact.js";
import { refused, violation } from "../errors.js";
import { quoted } from "../policy/labels.js";
import { isPrime, power } from "./arithmetic.js";
import { Sampling, isPlain } from "./sampling.js";

/**
 * A 32-bit number whose digits in base q are the part and y_0, …, y_t. It names an item of group
 * g if the mark y_0 + y_1 c_1 + … + y_t c_t mod q is below other[g], where c is the item's code.
 * Two codes differ, so two marks are independent and uniform. The last part may be plain: its
 * digits are the place of an answer that nobody needs to hide.
 */
export class Ticket extends Sampling {
  static keys = ["q", "t"];
  kind = "ticket";
  size = 4;

  /** @param {Context} context @param {{q: number, t: number}} sizes */
  constructor(context, parts, { q, t }) {
    super(context, parts);
    const { m } = this.groups;
    const fits = [q, t].every(Number.isInteger) && t >= 2 && t <= 31 && q > t
      && parts.length * power(q, t + 1) <= D && isPrime(q) && power(q, t) >= m;
    if (!fits) {
      const what = `${m} items and ${parts.length} parts`;
      throw refused(`a ticket of q = ${quoted(q)}, t = ${quoted(t)} does not fit ${what}`);
    }
    const plain = isPlain(parts.at(-1)) ? parts.length - 1 : -1;
    Object.assign(this, { q, t, tickets: power(q, t + 1), plain });
  }

  checkPlain() {
    if (this.plain < 0) return super.checkPlain();
    const { chance, own, other } = this.parts[this.plain];
    if (other.some((x) => x) || own.some((x, g) => x !== (chance[g] ? D : 0))) {
      throw violation("a part of answers that are sent as they are holds nothing else");
    }
    return super.checkPlain(this.parts.slice(0, -1));
  }

  denominator() {
    return this.q;
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    const [k, item] = [this.partOf(report), readUint32(report) % this.tickets];
    const isKnown = k !== this.plain || this.parts[k].chance[this.groups.groupOf[item]] > 0;
    return k < this.parts.length && isKnown ? null : "ticket";
  }

  partOf(report) {
    return Math.floor(readUint32(report) / this.tickets);
  }

  named(report) {
    const { q, t, groups } = this;
    if (this.partOf(report) === this.plain) return [readUint32(report) % this.tickets];
    const { other } = this.parts[this.partOf(report)];
    const y = [];
    let rest = readUint32(report);
    for (; y.length <= t; rest = Math.floor(rest / q)) y.unshift(rest % q);
    const [first, ...others] = y;
    const named = [];
    groups.groupOf.forEach((g, item) => { // `other` of a silent group is 0, so no mark is below it
      if ((first + this.#sum(others, item)) % q < other[g]) named.push(item);
    });
    return named;
  }

  write(draws, k, held, own) {
    const { q, t } = this;
    if (k === this.plain) return this.#pack(k * this.tickets + held);
    const threshold = held < 0 ? 0 : this.parts[k].other[this.groups.groupOf[held]];
    // A silent group draws every ticket alike; a mark of its own would give its items away.
    if (!threshold) return this.#pack(k * this.tickets + draws.below(this.tickets));
    const mark = own ? draws.below(threshold) : threshold + draws.below(q - threshold);
    const others = Array.from({ length: t }, () => draws.below(q));
    const first = (mark + q - (this.#sum(others, held) % q)) % q;
    return this.#pack([first, ...others].reduce((sum, digit) => sum * q + digit, k));
  }

  /**
   * y_1 c_1 + … + y_t c_t: c_1 is the item's first digit x in base q, c_j its digit j plus x^j.
   */
  #sum(y, item) {
    const x = item % this.q;
    let [sum, rest, bent] = [y[0] * x, item, x];
    for (let j = 1; j < this.t; j++) {
      rest = Math.floor(rest / this.q);
      bent = (bent * x) % this.q;
      sum += y[j] * ((rest + bent) % this.q);
    }
    return sum;
  }

  #pack(value) {
    const report = new Uint8Array(this.size);
    new DataView(report.buffer).setUint32(0, value, true);
    return report;
  }
}

/** The 4-byte little-endian integer. */
function readUint32(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
}
