// How a report names items. Nothing outside this folder knows one encoding from another. Each has
//   kind, its name in a file; keys, the parameters in its table there;
//   fits(context), and `needs`, what it needs if it does not fit;
//   readParts(raw, context), parts of the right shape;
//   prove(terms), the exact check, which throws unless every part keeps what the policy asks;
//   size, the bytes of a report; report(draws, items), a new one for the items of an answer;
//   refusal(report), why it is refused, or null;
//   partOf(report); named(report), the places of the items that it names;
//   meaning(k, named), what a report of part k that names so many items says, for people;
//   factors(), the promise of every group: by how much an answer of it, or (lists) having one of
//   its items or not, changes the chance of any report at most;
//   setFactor() and listFactor(items), the same between any two lists, and between one list and any
//   other; not where every item is protected on its own, because there the factors multiply.
import { KINDS } from "../policy/kinds.js";
import { digits, percentRange, say } from "../words.js";

/** @typedef {{groups: Groups, policy: Policy, padding: number}} Context */

/** Why bytes are not a report of a mechanism. */
export const REASONS = Object.freeze({
  length: "a report of this mechanism has {size} bytes",
  part: "the first byte names a part that the mechanism does not have",
  tail: "a bit beyond the last item is set",
  size: "the report names another number of items of a level than every report does",
  silent: "the report names an item of a level that its part says nothing about",
  ticket: "the number is beyond the last ticket",
  residue: "a coefficient is not below the prime",
  order: "the numbers of the items do not go up, or one is beyond the last item",
});

export class Encoding {
  static keys = [];

  /** @param {Context} context @param {readonly (Part | HitsPart | PicksPart)[]} parts */
  constructor({ groups, policy, padding }, parts) {
    Object.assign(this, { groups, policy, padding, parts });
    this.groupSizes = Object.freeze(groups.members.map(({ length }) => length));
  }

  /** How many shares a mechanism has: of every group, then of empty samples of lists. */
  get shareCount() {
    return this.groups.members.length + KINDS[this.policy.kind].lists;
  }

  /** The key of the sentence that describes a report. */
  get sentence() {
    return this.kind;
  }

  /** The part whose stretch of the cumulative chances a 32-bit integer falls into. */
  drawPart(draws, chanceIn) {
    const chances = this.parts.map(chanceIn);
    let k = 0;
    if (chances.length === 1) return k; // and nothing is drawn
    for (let draw = draws.next(); draw >= chances[k]; k++) draw -= chances[k];
    return k;
  }

  meaning(k, named) {
    const { parts, groupSizes, groups: { m } } = this;
    const speaking = groupSizes.flatMap((_, g) => (this.speaks(parts[k], g) ? [g] : []));
    const among = speaking.reduce((total, g) => total + groupSizes[g], 0);
    if (!among) return { mine: [0], others: [0], sentence: this.#addKinds(say("nothing"), 0) };
    const { mine, others } = this.chances(k, speaking);
    const yours = KINDS[this.policy.kind].lists ? this.yours : "own";
    const chances = this.addPadding(say("chances", {
      yours: say(among < m ? `${yours}OfThese` : yours),
      mine: percentRange(mine), others: percentRange(others),
    }));
    const first = say(this.sentence, {
      named: named ? digits(named) : say("none"), answers: say("answers", { n: among }), chances,
    });
    return { mine, others, sentence: this.#addKinds(first, m - among) };
  }

  /** Add how many answers the report is silent about, and how its part was drawn. */
  #addKinds(first, n) {
    const k = this.parts.length;
    const key = `${n ? "silent" : ""}${k > 1 ? "Kinds" : ""}`;
    if (!key) return first;
    return `${first} ${say(key === "Kinds" ? "kinds" : key, { n, k, by: say(this.by) })}`;
  }

  /** Add how a list longer than the padding is cut; nothing unless the encoding says so. */
  addPadding(chances) {
    return chances;
  }
}
