import { larger, quotient } from "../check/exact.js";
import {
  LARGEST_PADDING, MASS, checkHits, countSpoken, hitClasses, hitWeights, meanOfCuts,
} from "../check/exact_sets.js";
import { farthest, largestPerGroup, toNumber } from "../check/factors.js";
import { readPartList } from "../check/parts.js";
import { refused } from "../errors.js";
import { integers, list, table } from "../policy/fields.js";
import { KINDS } from "../policy/kinds.js";
import { quoted } from "../policy/labels.js";
import { NOTIONS } from "../policy/notions.js";
import { say } from "../words.js";
import { interpolate, isPrime, times } from "./arithmetic.js";
import { Encoding } from "./base.js";

/**
 * Counted hits: the report is a polynomial p of s + 2 coefficients mod a prime, and names item i of
 * an active group if p(i + 1) is below the limit T. Of at most s own items, of which j are active,
 * some number N is named: N > tau, N = tau or N < tau, with the masses of row j. Any s + 2 values
 * of a random p are independent and uniform, so a report's chance depends on j and N alone.
 */
export class Hits extends Encoding {
  static keys = ["prime"];
  static needs = "sets that are protected as a whole, with notion = \"min\", no budgets of pairs "
    + `and a padding up to ${LARGEST_PADDING}`;
  kind = "hits";
  by = "byNothing";
  yours = "yours";
  #classes = new Map(); // of a part and a number of items, computed when first needed
  #proved = []; // per part, what the check computed

  static fits({ policy: { kind, strict, notion, pairs }, padding }) {
    return KINDS[kind].pads && NOTIONS[notion].hits && (strict || !pairs.length)
      && padding <= LARGEST_PADDING;
  }

  /** @returns {readonly HitsPart[]} */
  static readParts(raw, { groups, padding }) {
    for (const part of readPartList(raw)) {
      table(part, ["chance", "active", "limit", "rows"], "a part");
      integers([part.chance, part.limit], 2, "chance and limit of a part");
      const active = integers(part.active, groups.members.length, "active of a part");
      if (!active.every((x) => x === 0 || x === 1) || !active.includes(1)) {
        throw refused("active of a part must be 0 or 1 per group and 1 at least once, but is not");
      }
      const { length } = list(part.rows, "rows of a part");
      if (length !== padding) {
        throw refused(`a part has ${length} rows, but must have ${padding}, the padding`);
      }
      for (const row of part.rows) integers(row, 4, "a row of a part");
    }
    return raw;
  }

  /** @param {Context} context @param {readonly HitsPart[]} parts */
  constructor(context, parts, { prime }) {
    super(context, parts);
    const { m } = this.groups;
    const fits = Number.isInteger(prime) && prime >= 5 && prime > m && prime < 2 ** 31;
    if (!fits || !isPrime(prime)) {
      const allowed = `a prime above ${Math.max(m, 4)} and below 2^31`;
      throw refused(`prime of the encoding is ${quoted(prime)}, but must be ${allowed}`);
    }
    const width = prime < 2 ** 16 ? 2 : 4;
    Object.assign(this, { prime, width, size: 1 + (this.padding + 2) * width });
  }

  // -- a report

  report(draws, items) {
    const { prime, padding, groups: { groupOf } } = this;
    const k = this.drawPart(draws, ({ chance }) => chance);
    const { active, limit } = this.parts[k];
    // cut the list whatever its levels are; otherwise the promise for lists would not hold
    const kept = items.length > padding ? draws.subset(items, padding) : items;
    const own = kept.filter((item) => active[groupOf[item]]);
    const named = this.#drawNamed(draws, k, own.length);
    const values = own.map((_, place) => {
      return named.includes(place) ? draws.below(limit) : limit + draws.below(prime - limit);
    });
    const free = Array.from({ length: padding + 2 - own.length }, () => draws.below(prime));
    return this.#pack(k, interpolate(own.map((item) => item + 1), values, free, prime));
  }

  /** Which of j own items are named, by their places: first how many by the row, then which. */
  #drawNamed(draws, k, j) {
    if (!j) return [];
    const classes = this.#classesFor(k, j);
    let [mass, c] = [draws.mass(), 0];
    for (; mass >= classes[c].mass; c++) mass -= classes[c].mass;
    const { first, weights, total } = classes[c];
    let n = 0;
    for (let weight = draws.belowBig(total); weight >= weights[n]; n++) weight -= weights[n];
    return draws.subset(Array.from({ length: j }, (_, place) => place), first + n);
  }

  #classesFor(k, j) {
    const key = (LARGEST_PADDING + 1) * k + j;
    const { limit, rows } = this.parts[k];
    if (!this.#classes.has(key)) {
      this.#classes.set(key, hitClasses(rows[j - 1], hitWeights(j, limit, this.prime)));
    }
    return this.#classes.get(key);
  }

  #pack(k, coefficients) {
    const report = new Uint8Array(this.size);
    const view = new DataView(report.buffer);
    report[0] = k;
    coefficients.forEach((value, n) => {
      if (this.width === 2) view.setUint16(1 + 2 * n, value, true);
      else view.setUint32(1 + 4 * n, value, true);
    });
    return report;
  }

  #coefficients(report) {
    const view = new DataView(report.buffer, report.byteOffset, report.length);
    return Array.from({ length: this.padding + 2 }, (_, n) => {
      return this.width === 2 ? view.getUint16(1 + 2 * n, true) : view.getUint32(1 + 4 * n, true);
    });
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    return this.#coefficients(report).some((value) => value >= this.prime) ? "residue" : null;
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const { prime, groups: { groupOf } } = this;
    const { active, limit } = this.parts[this.partOf(report)];
    const falling = this.#coefficients(report).reverse();
    const named = [];
    groupOf.forEach((g, item) => {
      if (!active[g]) return;
      let value = 0;
      for (const x of falling) value = (times(value, item + 1, prime) + x) % prime;
      if (value < limit) named.push(item);
    });
    return named;
  }

  speaks({ active }, g) {
    return active[g] === 1;
  }

  chances(k) {
    const mine = Array.from({ length: this.#mostActive(k) }, (_, j) => this.#ownChance(k, j + 1));
    return { mine, others: [this.parts[k].limit / this.prime] };
  }

  addPadding(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  /** The chance that one of j active own items is named. */
  #ownChance(k, j) {
    return this.#classesFor(k, j).reduce((total, { mass, first, weights, total: all }) => {
      if (!weights.length) return total;
      const hits = weights.reduce((sum, weight, n) => sum + BigInt(first + n) * weight, 0n);
      return total + (mass / MASS) * toNumber([hits, all]);
    }, 0) / j;
  }

  // -- the check, and the promises that it computes

  prove(terms) {
    this.#proved = checkHits(terms, this.parts, this.prime, this.groupSizes);
  }

  /** The most active items of part k that a reported list can hold. */
  #mostActive(k) {
    return Math.min(this.padding, countSpoken(this.parts[k], this.groupSizes));
  }

  factors() {
    return largestPerGroup(this.#proved.map(({ factors }) => factors));
  }

  setFactor() {
    return this.#proved.map(({ all: { high, low } }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const { padding, groups: { groupOf }, parts } = this;
    return this.#proved.map(({ ends, all }, k) => {
      const active = items.filter((item) => parts[k].active[groupOf[item]]).length;
      const [high, low] = meanOfCuts(([j]) => ends[j], [active], items.length, padding);
      return farthest(high, low, all);
    }).reduce(larger);
  }
}
