import { checkCertificate } from "./check/certificate.js";
import { readFile, verified } from "./check/document.js";
import { readTerms } from "./check/exact.js";
import { checkPadding, checkShares, readGroups } from "./check/parts.js";
import { perturb, placesInAnswer } from "./device/perturb.js";
import { REASONS } from "./encodings/base.js";
import { readEncoding } from "./encodings/table.js";
import { DiscreetError, refused } from "./errors.js";
import { choice, object, table } from "./policy/fields.js";
import { KINDS } from "./policy/kinds.js";
import { quoted } from "./policy/labels.js";
import { readPolicy } from "./policy/policy.js";
import { Guarantee } from "./promises/guarantee.js";

const MECHANISM_KEYS = [
  "format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts",
];

/**
 * The public parameters that both sides share. For all inputs of levels i and j and every report y,
 * Pr(y | i) <= e^{r_ij} Pr(y | j), and for sets the same with the paper's budget of a set or, where
 * items are protected on their own, item by item: proved on construction, so an object of this
 * class is a checked promise.
 */
export class Mechanism {
  #guarantee;

  /**
   * Verify the content of a mechanism file.
   * @param {Uint8Array} bytes
   * @param {{fingerprint?: string | null}} [pinned] as for `from`
   * @returns {Promise<Mechanism>}
   */
  static async read(bytes, pinned = {}) {
    return Mechanism.from(readFile(bytes, "the mechanism"), pinned);
  }

  /**
   * Verify a mechanism document and the fingerprint that it carries.
   * @param {object} document the content of a mechanism file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an
   *   invitation
   * @returns {Promise<Mechanism>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { body, fingerprint } = await verified(document, "the mechanism", pinned);
    return new Mechanism(body, fingerprint);
  }

  /**
   * Use `Mechanism.from`: this checks all but the fingerprint.
   * @param {object} body frozen @param {string} fingerprint
   */
  constructor(body, fingerprint) {
    choice("format", body.format, ["discreet-mechanism/3"]);
    table(body, MECHANISM_KEYS, "the mechanism", ["certificate"]);
    if (typeof body.model !== "string" || !/^[a-z][a-z0-9]{0,19}$/.test(body.model)) {
      throw refused(`model is ${quoted(body.model)}, but must be a word of a-z and 0-9, up to 20`);
    }
    choice("prior", body.prior, ["uniform", "worst", "given"]);
    if ("certificate" in body) checkCertificate(body.certificate);
    const { policy, budgets } = readPolicy(body.policy);
    const { padding } = body;
    checkPadding(padding, policy);
    const groups = readGroups(body.groups, policy);
    const kind = KINDS[policy.kind];
    const encoding = readEncoding(body, { groups, policy, padding });
    checkShares(body.shares, encoding.shareCount);
    encoding.prove(readTerms(policy, budgets, body.groups));

    this.policy = policy;
    this.kind = kind;
    this.model = body.model;
    this.encoding = encoding;
    this.padding = padding;
    this.groups = body.groups;
    this.parts = encoding.parts;
    this.m = groups.m;
    this.reportSize = encoding.size;
    this.fingerprint = fingerprint;
    this.#guarantee = new Guarantee(policy, budgets, encoding, body.groups);
    Object.freeze(this);
  }

  // -- a report of one's own

  /**
   * One person's report, with secure randomness.
   * @param {string | number | Iterable<string | number>} answer an item (label or index), or for
   *   lists several
   * @returns {Uint8Array}
   */
  perturb(answer) {
    return perturb(this, answer);
  }

  /** The items of an answer, each once. Refuses an answer that is none. @returns {number[]} */
  places(answer) {
    return placesInAnswer(this, answer);
  }

  // -- reading a report

  /**
   * Why this is not a report of the mechanism, or null.
   * @param {Uint8Array} report
   * @returns {null | "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue"
   *   | "order"}
   */
  refusal(report) {
    if (!(report instanceof Uint8Array)) {
      const what = `a report is a Uint8Array, got ${quoted(report)}`;
      throw new DiscreetError("report", `${what}; pass the bytes that perturb made`);
    }
    return this.encoding.refusal(report);
  }

  /** A bit per item: 1 where the report names it. @param {Uint8Array} report */
  bits(report) {
    const bits = new Uint8Array(this.m);
    for (const item of this.#read(report).named) bits[item] = 1;
    return bits;
  }

  /**
   * What a report means: its part, the places of the items that it names, a sentence on that, and
   * the chances in it: of an item to be named where it is one's own (`mine`), and where it is not.
   * @param {Uint8Array} report
   * @returns {{part: number, named: number[], mine: number[], others: number[], sentence: string}}
   */
  meaning(report) {
    const { part, named } = this.#read(report);
    return { part, named, ...this.encoding.meaning(part, named.length) };
  }

  #read(report) {
    const reason = this.refusal(report);
    if (reason) {
      const why = REASONS[reason].replace("{size}", this.reportSize);
      const what = `this is not a report of the mechanism (${reason}): ${why}`;
      throw new DiscreetError("report", `${what}; perturb the answer again`);
    }
    return { part: this.encoding.partOf(report), named: this.encoding.named(report) };
  }

  // -- what is promised: promises/guarantee.js

  /**
   * Per level, the largest log-ratio of any report: between an answer of the level and any other
   * answer, or for lists between having and not having one of its items.
   * @returns {number[]}
   */
  levelEpsilons() {
    return this.#guarantee.levelEpsilons();
  }

  /**
   * The largest log-ratio of any report between any two answers. Where the items of a list are
   * protected on their own, between an empty list and one of all items.
   * @returns {number}
   */
  wholeEpsilon() {
    return this.#guarantee.wholeEpsilon();
  }

  /** The factor between any two answers, exactly; its denominator is 0 where there is no limit. */
  wholeRatio() {
    return this.#guarantee.wholeRatio();
  }

  /** By how much odds of protected answers can rise, exactly, where only that has a limit. */
  raisedRatio() {
    return this.#guarantee.raisedRatio();
  }

  /**
   * By how much in all a report can raise the odds of a protected answer; of items on their own, of
   * all of them. Where both directions are protected alike, what `wholeEpsilon` says.
   * @returns {number}
   */
  raiseEpsilon() {
    return this.#guarantee.raiseEpsilon();
  }

  /**
   * Per level what counts against a limit: the log-ratio that is realised for one of its answers.
   * For lists no less than the level's budget, which a list may use up, and no less than what is
   * realised between two lists where that is above all budgets.
   * @returns {number[]}
   */
  levelBudgets() {
    return this.#guarantee.levelBudgets();
  }

  /**
   * The promise for an answer, as a sentence.
   * @param {number} level the place of its level in the policy
   * @param {string} what how the sentence calls the answer
   */
  promise(level, what) {
    return this.#guarantee.promise(level, what);
  }

  /** The factor of a level's promise, rounded up, so that it stays true. @param {number} level */
  factor(level) {
    return this.#guarantee.factor(level).factor;
  }

  /**
   * The factor between an answer of a level and any answers of these others.
   * @param {number} level @param {number[]} others
   */
  factorAgainst(level, others) {
    return this.#guarantee.factorAgainst(level, others);
  }

  /** The same for how far the odds of its answers can fall. @param {number} level */
  fall(level) {
    return this.#guarantee.fall(level);
  }

  /**
   * What a participant reads: one entry per level, then (level null) one about whole lists, if the
   * question takes them, and one per pair of levels that is not protected. `factor` and the number
   * in the sentence are rounded up, so that they stay true.
   * @returns {{level: string | null, items: number, examples: string[], factor: number,
   *   sentence: string, whole?: true}[]}
   */
  promises() {
    return this.#guarantee.promises();
  }

  /**
   * A warning that replaces every sentence that reassures: where one report can change the odds
   * between two answers by more than 100, or a pair of answers is not protected at all; otherwise
   * "".
   * @returns {string}
   */
  caution() {
    return this.#guarantee.caution();
  }

  /**
   * The promise for one person's whole list; for lists only.
   * @param {Iterable<string | number>} answer
   * @returns {{factor: number, sentence: string}}
   */
  promiseOf(answer) {
    return this.#guarantee.promiseFor(this.kind.lists ? this.places(answer) : []);
  }
}
