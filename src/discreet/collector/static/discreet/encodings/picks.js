import { larger, quotient } from "../check/exact.js";
import { checkPicks, cutsOf, pickMeans, pickRuns } from "../check/exact_picks.js";
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
 * Picks: the report is a part and a subset of k of the m items that the part speaks about. It names
 * more of the own ones than chance would: how many is drawn together with the part, by row j for j
 * active items, and after that every subset is alike. It is written as m bits, or as k numbers in
 * ascending order where that is shorter.
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
    for (const part of readPartList(raw)) {
      table(part, ["chance", "active", "size", "rows"], "a part");
      integers([part.chance, part.size], 2, "chance and size of a part");
      const active = integers(part.active, groups.members.length, "active of a part");
      if (!active.every((x) => x === 0 || x === 1) || !active.includes(1)) {
        throw refused("active of a part must be 0 or 1 per group and 1 at least once, but is not");
      }
      const { length } = list(part.rows, "rows of a part");
      if (length !== padding + 1) {
        throw refused(`a part has ${length} rows, but must have ${padding + 1}, up to the padding`);
      }
      for (const row of part.rows) {
        for (const run of list(row, "a row of a part")) integers(run, 2, "a run of a part");
      }
    }
    return raw;
  }

  /** @param {Context} context @param {readonly PicksPart[]} parts */
  constructor(context, parts, { size }) {
    super(context, parts);
    this.#cuts = cutsOf(parts);
    this.#layouts = parts.map((part, k) => {
      const active = this.groups.groupOf.flatMap((g, item) => (part.active[g] ? [item] : []));
      const m = active.length;
      const width = m > 1 ? 32 - Math.clz32(m - 1) : 0;
      const [numbers, bits] = [Math.ceil((part.size * width) / 8), Math.ceil(m / 8)];
      const asNumbers = numbers < bits;
      const used = asNumbers ? part.size * width : m;
      return { k, m, active, width, asNumbers, used, bytes: Math.ceil(used / 8) };
    });
    const wanted = 1 + Math.max(...this.#layouts.map(({ bytes }) => bytes));
    if (size !== wanted) {
      throw refused(`size of the encoding is ${quoted(size)}, but must be ${wanted}, the bytes of `
        + "a report");
    }
    Object.assign(this, { size });
  }

  /** Empty samples are told apart by how many items people have. */
  get shareCount() {
    return this.groups.members.length + this.padding;
  }

  // -- a report

  report(draws, items) {
    const { padding, parts } = this;
    const cut = this.#drawCut(draws);
    // cut the list whatever its levels are; otherwise the promise for lists would not hold
    const kept = new Set(items.length > padding ? draws.subset(items, padding) : items);
    const { m, active } = this.#layouts[cut[0]];
    const ranks = active.map((_, rank) => rank);
    const own = ranks.filter((rank) => kept.has(active[rank]));
    const others = ranks.filter((rank) => !kept.has(active[rank]));
    const [k, n] = this.#drawPart(draws, cut, m, own.length);
    const rest = draws.subset(others, parts[k].size - n);
    return this.#pack(k, [...draws.subset(own, n), ...rest]);
  }

  #drawCut(draws) {
    const cuts = this.#cuts;
    let c = 0;
    if (cuts.length === 1) return cuts[c]; // and nothing is drawn
    const chance = (place) => this.parts[cuts[place][0]].chance;
    for (let draw = draws.next(); draw >= chance(c); c++) draw -= chance(c);
    return cuts[c];
  }

  /** The part, and how many of j active items are named: first the run, then within it. */
  #drawPart(draws, cut, m, j) {
    const runs = cut.flatMap((k) => {
      const { size, rows } = this.parts[k];
      return pickRuns(m, size, j, rows[j]).map((run) => ({ k, ...run }));
    });
    let [mass, r] = [draws.mass(), 0];
    for (; mass >= runs[r].mass; r++) mass -= runs[r].mass;
    const { k, first, weights, total } = runs[r];
    let n = 0;
    for (let weight = draws.belowBig(total); weight >= weights[n]; n++) weight -= weights[n];
    return [k, first + n];
  }

  #pack(k, ranks) {
    const report = new Uint8Array(this.size);
    const { asNumbers, width } = this.#layouts[k];
    const set = (bit) => { report[1 + (bit >> 3)] |= 1 << (bit & 7); };
    report[0] = k;
    if (!asNumbers) {
      ranks.forEach(set);
      return report;
    }
    [...ranks].sort((a, b) => a - b).forEach((rank, n) => {
      for (let b = 0; b < width; b++) if ((rank >> b) & 1) set(n * width + b);
    });
    return report;
  }

  /** The ranks that a report names, as they are written. */
  #ranks(report) {
    const k = this.partOf(report);
    const { asNumbers, width, m } = this.#layouts[k];
    const bit = (place) => (report[1 + (place >> 3)] >> (place & 7)) & 1;
    const places = Array.from({ length: asNumbers ? this.parts[k].size : m }, (_, n) => n);
    if (!asNumbers) return places.filter(bit);
    return places.map((n) => {
      let rank = 0;
      for (let b = 0; b < width; b++) rank += bit(n * width + b) << b;
      return rank;
    });
  }

  refusal(report) {
    if (report.length !== this.size) return "length";
    const k = this.partOf(report);
    if (k >= this.parts.length) return "part";
    const { m, used } = this.#layouts[k];
    for (let place = used; place < 8 * (this.size - 1); place++) {
      if ((report[1 + (place >> 3)] >> (place & 7)) & 1) return "tail";
    }
    const ranks = this.#ranks(report);
    if (ranks.length !== this.parts[k].size) return "size";
    return ranks.every((rank, n) => rank < m && (!n || ranks[n - 1] < rank)) ? null : "order";
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const { active } = this.#layouts[this.partOf(report)];
    return this.#ranks(report).map((rank) => active[rank]);
  }

  speaks({ active }, g) {
    return active[g] === 1;
  }

  /** The chances that an item is named in reports of part k, whatever one has. */
  chances(k) {
    const { m } = this.#layouts[k];
    const means = pickMeans(this.parts[k], m).slice(0, Math.min(this.padding, m) + 1);
    const mine = means.slice(1).map(({ used, named }, n) => {
      return toNumber(quotient(named, used)) / (n + 1);
    });
    const others = means.slice(0, m).map(({ used, named }, j) => {
      return (this.parts[k].size - toNumber(quotient(named, used))) / (m - j);
    });
    return { mine, others };
  }

  addPadding(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  // -- the check, and the promises that it computes

  prove(terms) {
    this.#proved = checkPicks(terms, this.parts, this.groupSizes);
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
      const [high, low] = meanOfCuts(ends, active, items.length, padding);
      return farthest(high, low, all);
    }).reduce(larger);
  }
}
