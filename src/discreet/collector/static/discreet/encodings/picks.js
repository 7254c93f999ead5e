import { larger, quotient } from "../check/exact.js";
import {
  areSoonChecked, blockItems, bunchesOf, checkPicks, classesOf, countClasses, cutsOf, pickMeans,
} from "../check/exact_picks.js";
import { meanOfCuts } from "../check/exact_sets.js";
import { farthest, largestPerGroup, toNumber } from "../check/factors.js";
import { readPartList } from "../check/parts.js";
import { refused } from "../errors.js";
import { integers, list, table } from "../policy/fields.js";
import { quoted } from "../policy/labels.js";
import { say } from "../words.js";
import { Encoding } from "./base.js";
import { Hits } from "./hits.js";

/**
 * Picks: the report is a part and, for every block of items that the part speaks about, a subset of
 * k of its m items. It names more of the own ones than chance would: how many of every block is
 * drawn together with the part, by the row of the person's class, and after that every subset is
 * alike. A block is written as m bits, or as k numbers in ascending order where that is shorter.
 */
export class Picks extends Encoding {
  static keys = ["size"];
  static needs = Hits.needs;
  static fits = Hits.fits;
  kind = "picks";
  sentence = "fixed";
  by = "byAnswer";
  yours = "yours";
  #cuts;
  #layouts;
  #proved = []; // per part, what the check computed

  /** @returns {readonly PicksPart[]} */
  static readParts(raw, { groups, padding }) {
    const blocksOf = readPartList(raw).map((part) => (Array.isArray(part?.sizes) ? part.sizes.length : 0));
    if (!areSoonChecked(blocksOf, padding)) {
      throw refused(`${raw.length} parts of so many blocks at padding ${padding} take too long to `
        + "check");
    }
    for (const part of raw) {
      table(part, ["chance", "blocks", "sizes", "rows"], "a part");
      integers([part.chance], 1, "chance of a part");
      const blocks = integers(part.blocks, groups.members.length, "blocks of a part");
      const named = [...new Set(blocks)].filter((block) => block);
      if (!named.length || named.some((block, b) => block !== b + 1)) {
        throw refused("blocks of a part must be, per group, 0 or the number of a block, from 1 in "
          + "their order, but are not");
      }
      integers(part.sizes, named.length, "sizes of a part");
      const { length } = list(part.rows, "rows of a part");
      const wanted = countClasses(named.length, padding);
      if (length !== wanted) {
        throw refused(`a part has ${length} rows, but must have ${wanted}, one per class of people`);
      }
      for (const row of part.rows) {
        for (const bunch of list(row, "a row of a part")) {
          integers(bunch, Math.max(2, list(bunch, "a bunch of a part").length), "a bunch of a part");
        }
      }
    }
    return raw;
  }

  /** @param {Context} context @param {readonly PicksPart[]} parts */
  constructor(context, parts, { size }) {
    super(context, parts);
    this.#cuts = cutsOf(parts);
    this.#layouts = parts.map((part) => {
      let first = 0;
      return blockItems(part, this.groupSizes).map((m, b) => {
        const items = this.groups.groupOf.flatMap((g, item) => (part.blocks[g] === b + 1 ? [item] : []));
        const [k, width] = [part.sizes[b], m > 1 ? 32 - Math.clz32(m - 1) : 1];
        const asNumbers = k * width < m;
        const block = { first, m, k, width, items, asNumbers, used: asNumbers ? k * width : m };
        first += block.used;
        return block;
      });
    });
    const wanted = 1 + Math.max(...parts.map((_, k) => Math.ceil(this.#used(k) / 8)));
    if (size !== wanted) {
      throw refused(`size of the encoding is ${quoted(size)}, but must be ${wanted}, the bytes of `
        + "a report");
    }
    Object.assign(this, { size });
  }

  /** The bits of a report of part k. */
  #used(k) {
    const { first, used } = this.#layouts[k].at(-1);
    return first + used;
  }

  /** How many items every block of part k has. */
  #items(k) {
    return this.#layouts[k].map(({ m }) => m);
  }

  /** Empty samples are told apart by how many items people have. */
  get shareCount() {
    return this.groups.members.length + this.padding;
  }

  // -- a report

  report(draws, items) {
    const { padding } = this;
    const cut = this.#drawCut(draws);
    // cut the list whatever its levels are; otherwise the promise for lists would not hold
    const kept = new Set(items.length > padding ? draws.subset(items, padding) : items);
    const ranks = this.#layouts[cut[0]].map((block) => block.items.map((_, rank) => rank));
    const isOwn = (b) => (rank) => kept.has(this.#layouts[cut[0]][b].items[rank]);
    const own = ranks.map((mine, b) => mine.filter(isOwn(b)));
    const others = ranks.map((mine, b) => mine.filter((rank) => !isOwn(b)(rank)));
    const [k, named] = this.#drawPart(draws, cut, own.map(({ length }) => length));
    return this.#pack(k, named.map((n, b) => {
      const rest = draws.subset(others[b], this.parts[k].sizes[b] - n);
      return [...draws.subset(own[b], n), ...rest];
    }));
  }

  #drawCut(draws) {
    const cuts = this.#cuts;
    let c = 0;
    if (cuts.length === 1) return cuts[c]; // and nothing is drawn
    const chance = (place) => this.parts[cuts[place][0]].chance;
    for (let draw = draws.next(); draw >= chance(c); c++) draw -= chance(c);
    return cuts[c];
  }

  /** The part, and how many of j own items are named: first the bunch, then within it. */
  #drawPart(draws, cut, j) {
    const r = classesOf(j.length, this.padding).findIndex((other) => `${other}` === `${j}`);
    const bunches = cut.flatMap((k) => {
      const part = this.parts[k];
      return bunchesOf(this.#items(k), part, j, part.rows[r]).map((bunch) => ({ k, ...bunch }));
    });
    let [mass, i] = [draws.mass(), 0];
    for (; mass >= bunches[i].mass; i++) mass -= bunches[i].mass;
    const { k, vectors, weights, total } = bunches[i];
    let n = 0;
    for (let left = draws.belowBig(total); left >= weights[n]; n++) left -= weights[n];
    return [k, vectors[n]];
  }

  /** @param {number[][]} ranks of every block */
  #pack(k, ranks) {
    const report = new Uint8Array(this.size);
    const set = (bit) => { report[1 + (bit >> 3)] |= 1 << (bit & 7); };
    report[0] = k;
    this.#layouts[k].forEach(({ first, asNumbers, width }, b) => {
      if (!asNumbers) return ranks[b].forEach((rank) => set(first + rank));
      return [...ranks[b]].sort((x, y) => x - y).forEach((rank, n) => {
        for (let bit = 0; bit < width; bit++) if ((rank >> bit) & 1) set(first + n * width + bit);
      });
    });
    return report;
  }

  /** The ranks that a report names in every block, as they are written. */
  #ranks(report) {
    const bit = (place) => (report[1 + (place >> 3)] >> (place & 7)) & 1;
    return this.#layouts[this.partOf(report)].map(({ first, asNumbers, width, m, k }) => {
      const places = Array.from({ length: asNumbers ? k : m }, (_, n) => n);
      if (!asNumbers) return places.filter((n) => bit(first + n));
      return places.map((n) => {
        let rank = 0;
        for (let b = 0; b < width; b++) rank += bit(first + n * width + b) << b;
        return rank;
      });
    });
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    const k = this.partOf(report);
    if (k >= this.parts.length) return "part";
    for (let place = this.#used(k); place < 8 * (this.size - 1); place++) {
      if ((report[1 + (place >> 3)] >> (place & 7)) & 1) return "tail";
    }
    const found = this.#ranks(report);
    const blocks = this.#layouts[k];
    if (found.some((ranks, b) => ranks.length !== blocks[b].k)) return "size";
    const rises = (ranks, b) => ranks.every((rank, n) => {
      return rank < blocks[b].m && (!n || ranks[n - 1] < rank);
    });
    return found.every(rises) ? null : "order";
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const blocks = this.#layouts[this.partOf(report)];
    return this.#ranks(report).flatMap((ranks, b) => ranks.map((rank) => blocks[b].items[rank]))
      .sort((x, y) => x - y);
  }

  speaks({ blocks }, g) {
    return blocks[g] > 0;
  }

  /** The chances that an item is named in reports of part k, whatever one has. */
  chances(k) {
    const [mine, others] = [[], []];
    for (const { j, named } of pickMeans(this.parts[k], this.#items(k), this.padding)) {
      this.#layouts[k].forEach(({ m, k: size }, b) => {
        const own = toNumber(named[b]);
        if (j[b]) mine.push(own / j[b]);
        if (j[b] < m) others.push((size - own) / (m - j[b]));
      });
    }
    return { mine, others };
  }

  addPadding(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  // -- the check, and the promises that it computes

  prove(terms) {
    this.#proved = checkPicks(terms, this.parts, this.groupSizes, this.padding);
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
      const blocks = items.map((item) => parts[k].blocks[groupOf[item]]);
      const mine = parts[k].sizes.map((_, b) => blocks.filter((block) => block === b + 1).length);
      const [high, low] = meanOfCuts((j) => ends.get(`${j}`), mine, items.length, padding);
      return farthest(high, low, all);
    }).reduce(larger);
  }
}
