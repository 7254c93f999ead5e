import {
  D, ZERO, checkChances, checkPairs, groupExtremes, integer, larger, onlyState, plus, product,
  quotient,
} from "../check/exact.js";
import {
  answerFactors, farthest, largestPerGroup, overallExtremes, protectedFactors, samplingFactors,
} from "../check/factors.js";
import { readPartList } from "../check/parts.js";
import { violation } from "../errors.js";
import { integers, table } from "../policy/fields.js";
import { KINDS } from "../policy/kinds.js";
import { Encoding } from "./base.js";

/** Whether a part holds answers as they are. */
export const isPlain = ({ own, other }) => own.some((x, g) => x === D && !other[g]);

/** Reports about one item of an answer: the only one, or one drawn at random from a padded list. */
export class Sampling extends Encoding {
  samples = true;
  static needs = "sets that are protected as a whole, or single answers";
  by = "byAnswer";
  yours = "drawn";
  #states; // per part, computed when first needed

  static fits({ policy }) {
    return !KINDS[policy.kind].alone;
  }

  /** @returns {readonly Part[]} */
  static readParts(raw, { groups, policy }, most = 256) {
    const keys = ["chance", "own", "other"];
    const { lists } = KINDS[policy.kind]; // then there is an input "none"
    for (const part of readPartList(raw, most)) {
      table(part, lists ? [...keys, "none"] : keys, "a part");
      for (const key of keys) integers(part[key], groups.members.length, `${key} of a part`);
      if (lists) integers([part.none], 1, "none of a part");
    }
    return raw;
  }

  prove(terms) {
    this.checkPlain();
    checkChances(this.parts, terms);
    for (const part of this.parts) checkPairs(terms, this.#inputs(part, terms.names));
  }

  /** Throw where answers are sent as they are: only tickets can, in their last part. */
  checkPlain(parts = this.parts) {
    if (parts.some(isPlain)) {
      throw violation("answers are sent as they are in the last part of tickets alone");
    }
  }

  /** The states of every group, then of "none". @returns {Extremes[]} */
  #inputs(part, names) {
    const zeros = !KINDS[this.policy.kind].lists;
    const inputs = names.map((name, g) => {
      return groupExtremes(part, g, this.denominator(g), name, zeros);
    });
    const none = () => onlyState(product(integer(part.none), integer(D)), "no item");
    return "none" in part ? [...inputs, none()] : inputs;
  }

  /** The same of every part. @returns {Extremes[][]} */
  get #allInputs() {
    const names = this.groupSizes.map(() => "");
    this.#states ??= this.parts.map((part) => this.#inputs(part, names));
    return this.#states;
  }

  report(draws, items) {
    const held = KINDS[this.policy.kind].pads ? this.#sample(draws, items) : items[0];
    const group = this.groups.groupOf[held];
    const k = this.drawPart(draws, ({ chance, none }) => (held < 0 ? none : chance[group]));
    const chance = held < 0 ? 0 : this.parts[k].own[group]; // 0 where the group is silent, too
    return this.write(draws, k, held, chance > 0 && draws.next() < chance);
  }

  /** Padding-and-Sampling (the paper, Algorithm 1): one of max(|x|, padding) places; or -1. */
  #sample(draws, items) {
    return items[draws.below(Math.max(items.length, this.padding))] ?? -1;
  }

  speaks({ own, other }, g) {
    return own[g] + other[g] > 0;
  }

  chances(k, speaking) {
    const part = this.parts[k];
    const mine = speaking.map((g) => part.own[g] / D);
    return { mine, others: speaking.flatMap((g) => this.others(part, g)) };
  }

  /** The chances that an item of group g is named for people with other answers. */
  others({ other }, g) {
    return [other[g] / this.denominator(g)];
  }

  /** Per group; with `levels` per level, over the groups that it is protected from. */
  factors({ oneWay = false, levels = null } = {}) {
    const { groupSizes, padding } = this;
    return largestPerGroup(this.#allInputs.map((states) => {
      if (KINDS[this.policy.kind].pads) return samplingFactors(states, groupSizes, padding);
      return levels ? protectedFactors(states, oneWay, levels)
        : answerFactors(states, groupSizes, oneWay);
    }));
  }

  setFactor() {
    return this.#allInputs.map(overallExtremes)
      .map(({ high, low }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const counts = this.groupSizes.map(() => 0);
    for (const item of items) counts[this.groups.groupOf[item]] += 1;
    const places = Math.max(items.length, this.padding);
    counts.push(places - items.length);
    return this.#allInputs.map((states) => {
      const mean = (key) => quotient(counts.reduce((total, n, g) => {
        return n ? plus(total, product(integer(n), states[g][key])) : total;
      }, ZERO), integer(places));
      return farthest(mean("high"), mean("low"), overallExtremes(states));
    }).reduce(larger);
  }
}
