import { ONE, larger, square } from "../check/exact.js";
import { KINDS } from "../policy/kinds.js";
import { NOTIONS } from "../policy/notions.js";
import { capital, localise, say } from "../words.js";
import { effectiveBudgets, factorUp, protectedGroups, unprotectedPairs } from "./paths.js";
import { roundUp, roundUpFloat } from "./rounding.js";
import { WHOLE_ANSWERS, logarithms, weakness } from "./whole.js";

const EXAMPLES = 3; // items of a level that its promise names

/** What a checked mechanism promises, in numbers and in words. */
export class Guarantee {
  #policy;
  #budgets;
  #encoding;
  #groupOf; // of every level
  #whole; // what is promised about whole answers
  // computed when first needed
  #ratios; // per group the promise for an answer, exactly
  #bothWays; // the same either way
  #near; // per level the groups that it is protected from, or null
  #rounded; // per level the promise as people read it

  /** @param {Policy} policy @param {Budgets} budgets @param {Encoding} encoding proved */
  constructor(policy, budgets, encoding, groupOf) {
    [this.#policy, this.#budgets, this.#encoding] = [policy, budgets, encoding];
    [this.#groupOf, this.#whole] = [groupOf, WHOLE_ANSWERS[policy.kind]];
  }

  /** What is told of every group, of its answers over others where protection is one-way. */
  get #exact() {
    this.#ratios ??= this.#encoding.factors({ oneWay: !this.#policy.isMutual });
    return this.#ratios;
  }

  /** The same either way. */
  get #eitherWay() {
    this.#bothWays ??= this.#policy.isMutual ? this.#exact : this.#encoding.factors();
    return this.#bothWays;
  }

  /** Per level its group and those that it is protected from; null if it is from all others. */
  get #protected() {
    if (this.#near === undefined) {
      this.#near = protectedGroups(this.#policy, this.#budgets, this.#groupOf);
    }
    return this.#near;
  }

  /** Per level, over the answers that each is protected from. */
  get #promised() {
    const { isMutual, kind } = this.#policy;
    const levels = KINDS[kind].lists ? null : this.#protected;
    if (!levels) return this.#groupOf.map((g) => this.#exact[g]);
    return this.#encoding.factors({ oneWay: !isMutual, levels });
  }

  /** The factor of a level, rounded up. @returns {{factor: number, text: string}} */
  factor(level) {
    this.#rounded ??= this.#promised.map((ratio) => roundUp(square(ratio)));
    return this.#rounded[level];
  }

  /** The same between an answer of a level and any answers of these others. */
  factorAgainst(level, others) {
    const row = { group: this.#groupOf[level], near: new Set(others.map((k) => this.#groupOf[k])) };
    const [ratio] = this.#encoding.factors({ levels: [row] });
    return roundUp(square(ratio)).factor;
  }

  levelEpsilons() {
    const epsilons = logarithms(this.#exact);
    return this.#groupOf.map((group) => epsilons[group]);
  }

  wholeEpsilon() {
    const { kind, isMutual } = this.#policy;
    if (KINDS[kind].lists && !isMutual) return Infinity; // that an item is lacking may become known
    return this.#whole.epsilon(this.#encoding, this.#eitherWay);
  }

  wholeRatio() {
    const { kind, isMutual } = this.#policy;
    if (KINDS[kind].lists && !isMutual) return [1n, 0n];
    return this.#whole.ratio(this.#encoding, this.#eitherWay);
  }

  /** How far odds can rise, of protected answers, where only that has a limit; else wholeRatio. */
  raisedRatio() {
    const { kind, isMutual } = this.#policy;
    if (isMutual) return this.wholeRatio();
    if (KINDS[kind].lists) return this.#whole.ratio(this.#encoding, this.#exact);
    return this.#promised.filter(([, d]) => d).reduce(larger, ONE);
  }

  raiseEpsilon() {
    const { kind, isMutual, levels } = this.#policy;
    if (isMutual) return this.wholeEpsilon();
    if (KINDS[kind].lists) return this.#whole.epsilon(this.#encoding, this.#exact);
    const told = this.levelEpsilons().filter((_, k) => levels[k].epsilon < Infinity);
    return told.length ? told.reduce((x, y) => Math.max(x, y)) : Infinity;
  }

  levelBudgets() {
    const { lists, pads } = KINDS[this.#policy.kind];
    const realised = this.levelEpsilons();
    if (!lists) return realised;
    const own = effectiveBudgets(this.#policy);
    const whole = pads ? this.wholeEpsilon() : 0;
    const excess = whole > own.reduce((x, y) => Math.max(x, y)) + 1e-9 ? whole : 0;
    return realised.map((epsilon, k) => Math.max(epsilon, own[k], excess));
  }

  promise(level, what) {
    const { factor, text } = this.factor(level);
    if (NOTIONS[this.#policy.notion].ordered) {
      return this.#distances().map(({ sentence }) => sentence).join(" ");
    }
    if (factor === Infinity) return say("shown", { what });
    return capital(say(this.#key("one", level), this.#values(level, { what, factor: text })));
  }

  /** The key of the sentence about one answer, or about one of a level, that is true here. */
  #key(place, level) {
    const { kind, notion, isMutual } = this.#policy;
    const key = this.#whole.keys[place];
    if (KINDS[kind].lists) return isMutual ? key : `${key}OneWay`;
    if (!isMutual) {
      if (this.#protected) return `${key}OneWayProtected`;
      return `${key}OneWay${this.fall(level) === Infinity ? "Known" : "Lowered"}`;
    }
    if (!NOTIONS[notion].complete) return `${key}InBlock`;
    return this.#protected ? `${key}Protected` : key;
  }

  /** How far the odds of a level's answer can change in either direction. */
  fall(level) {
    return roundUp(square(this.#eitherWay[this.#groupOf[level]])).factor;
  }

  #values(level, { factor, ...more }) {
    const values = { ...more, factor: localise(factor) };
    if (this.#policy.isMutual || KINDS[this.#policy.kind].lists) return values;
    const fall = logarithms(this.#eitherWay)[this.#groupOf[level]];
    return { ...values, fall: localise(roundUpFloat(Math.exp(fall)).text) };
  }

  promises() {
    const whole = this.#whole.promises(this.#encoding, this.#exact).map((promise) => {
      return { level: null, items: 0, examples: [], ...promise, whole: true };
    });
    const open = unprotectedPairs(this.#policy, this.#budgets);
    if (NOTIONS[this.#policy.notion].ordered) return this.#distances();
    return [...this.#levelPromises(), ...whole, ...open];
  }

  /** Of a scale: for neighbours, for two steps, and for the largest distance that counts. */
  #distances() {
    const { items, cap } = this.#policy;
    const most = cap || items.length - 1;
    const [n, d] = factorUp(this.#budgets.levels[0]);
    return [...new Set([1, Math.min(2, most), most])].map((steps) => {
      const step = [n ** BigInt(steps), d ** BigInt(steps)];
      const { factor, text } = roundUp(square(step));
      const key = steps === cap ? "farAway" : "away";
      const sentence = say(key, { n: steps, factor: localise(text) });
      return { level: null, items: 0, examples: [], factor, sentence };
    });
  }

  #levelPromises() {
    const { levels, items, levelOf } = this.#policy;
    const examples = levels.map(() => []);
    items.forEach((item, i) => {
      if (examples[levelOf[i]].length < EXAMPLES) examples[levelOf[i]].push(item);
    });
    return levels.map(({ name, count }, k) => {
      const n = count - examples[k].length;
      const listed = examples[k].map((item) => `"${item}"`).join(", ");
      const { factor, text } = this.factor(k);
      const who = { level: name, items: n ? say("more", { items: listed, n: String(n) }) : listed };
      const sentence = factor === Infinity ? say("shownOfLevel", who)
        : say(this.#key("level", k), this.#values(k, { ...who, factor: text }));
      return { level: name, items: count, examples: examples[k], factor, sentence };
    });
  }

  promiseFor(items) {
    return this.#whole.promiseFor(this.#encoding, this.#exact, items, this.#policy.isMutual);
  }

  caution() {
    const { notion, kind, levels, isMutual } = this.#policy;
    const found = [];
    if (!NOTIONS[notion].complete) found.push(say("cautionBlocks"));
    else if (kind === "each" && !isMutual) found.push(say("cautionLacking"));
    else if (this.#protected) found.push(say("cautionOpen"));
    const shown = levels.filter(({ epsilon }) => epsilon === Infinity);
    if (shown.length) {
      const names = shown.map(({ name }) => `"${name}"`).reduce((x, y) => say("and", { x, y }));
      found.push(say("cautionShown", { names }));
    }
    const finite = [...this.#promised, ...KINDS[kind].lists ? [] : this.#eitherWay]
      .filter(([, d]) => d);
    found.push(weakness(finite.reduce(larger, ONE), this.#whole.keys.caution));
    return found.filter((text) => text).join(" ")
      || this.#whole.caution(this.#encoding, this.#exact);
  }
}
