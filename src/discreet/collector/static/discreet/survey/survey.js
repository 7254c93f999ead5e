// What people are invited to. Its fingerprint is what an invitation pins.
import { computeFingerprint, covered, readFile, verified } from "../check/document.js";
import { ONE, isLess, product, square } from "../check/exact.js";
import { logarithm } from "../check/factors.js";
import { Draws } from "../device/randomness.js";
import { DiscreetError, refused } from "../errors.js";
import { Mechanism } from "../mechanism.js";
import { choice, list, object, table } from "../policy/fields.js";
import { distinct, label, quoted } from "../policy/labels.js";
import { roundUp } from "../promises/rounding.js";
import { weakness } from "../promises/whole.js";
import { localise, say } from "../words.js";
import { readAbout } from "./about.js";
import { cellsOf, checkCross } from "./crosses.js";
import { readPublic } from "./public.js";
import { readTranslations } from "./translations.js";

const SURVEY_KEYS = ["format", "name", "answers", "questions"];
const [MOST_QUESTIONS, MOST_PUBLIC, MOST_GROUPS] = [100, 8, 10_000];
const LONGEST_NAME = 200; // characters

/**
 * @typedef {{name: string, mechanism: Mechanism, of: readonly [string, string] | null}} Question
 *   of: the two questions that it crosses
 */

/**
 * One or more questions, how many of them each device answers, and what is asked openly. For any
 * two whole records of answers, whatever is drawn, the chance of everything that is sent differs by
 * at most the factor that `promise` states: computed exactly from the questions, so an object of
 * this class is a checked promise.
 */
export class Survey {
  /**
   * Verify the content of a survey file.
   * @param {Uint8Array} bytes
   * @param {{fingerprint?: string | null}} [pinned] as for `from`
   * @returns {Promise<Survey>}
   */
  static async read(bytes, pinned = {}) {
    return Survey.from(readFile(bytes, "the survey"), pinned);
  }

  /**
   * Verify a survey document and the fingerprint that it carries.
   * @param {object} document the content of a survey file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an
   *   invitation
   * @returns {Promise<Survey>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { body, fingerprint } = await verified(document, "the survey", pinned, withoutStories);
    const questions = await Promise.all(list(body.questions, "questions").map(readQuestion));
    return new Survey(body, questions, fingerprint);
  }

  /**
   * Use `Survey.from`: this checks all but the fingerprint.
   * @param {object} body frozen @param {Question[]} questions @param {string} fingerprint
   */
  constructor(body, questions, fingerprint) {
    choice("format", body.format, ["discreet-survey/1"]);
    table(body, SURVEY_KEYS, "the survey", ["about", "public", "translations"]);
    const count = questions.length;
    if (!count || count > MOST_QUESTIONS) {
      throw refused(`there are ${count} questions, but must be 1 to ${MOST_QUESTIONS}`);
    }
    if (!Number.isInteger(body.answers) || body.answers < 1 || body.answers > count) {
      throw refused(`answers is ${quoted(body.answers)}, but must be from 1 to ${count}`);
    }
    const openly = readOpenly(body);
    checkNames(body.name, questions, openly);
    for (const question of questions) {
      if (question.of) checkOf(question, questions);
    }
    const itemsOf = (rows) => Object.fromEntries(rows);
    this.name = body.name;
    this.about = Object.freeze(readAbout(body.about));
    this.answers = body.answers;
    this.questions = Object.freeze(questions);
    this.openly = Object.freeze(openly);
    this.translations = readTranslations(body.translations, {
      questions: itemsOf(questions.filter(({ of }) => !of)
        .map(({ name, mechanism }) => [name, mechanism.policy.items])),
      openly: itemsOf(openly.map(({ name, items }) => [name, items])),
    });
    if (Object.hasOwn(this.translations, this.about.language ?? "")) {
      throw refused("the survey is translated into the language that it is in");
    }
    this.fingerprint = fingerprint;
    Object.freeze(this);
  }

  /** The question of a survey that has one. @returns {Question} */
  get only() {
    if (this.questions.length > 1) {
      const names = this.questions.map(({ name }) => quoted(name)).join(", ");
      throw new DiscreetError("answer", `the survey has several questions; name one: ${names}`);
    }
    return this.questions[0];
  }

  /** The mechanism of a survey of one question. */
  get mechanism() {
    return this.only.mechanism;
  }

  /** @param {string} name @returns {Question} */
  question(name) {
    const found = this.questions.find((question) => question.name === name);
    if (found) return found;
    const names = this.questions.map((question) => quoted(question.name)).join(", ");
    const what = `${quoted(name)} is not a question of this survey`;
    throw new DiscreetError("answer", `${what}; it asks ${names}`);
  }

  /** The questions that one device answers: a uniform subset, whatever the answers. */
  draw() {
    return new Draws().subset(this.questions, this.answers);
  }

  /** Bytes between the id and the report in a frame. */
  get frontSize() {
    return Number(this.questions.length > 1) + this.openly.length;
  }

  /** These bytes, for a question and the places of the public answers. */
  front(question, group) {
    const number = this.questions.length > 1 ? [this.questions.indexOf(question)] : [];
    return Uint8Array.from([...number, ...group]);
  }

  // -- what is promised about everything that one person sends

  /** The factor, exactly; its denominator is 0 where there is no limit. */
  get #ratio() {
    return this.#productOf((mechanism) => mechanism.wholeRatio());
  }

  #productOf(factorOf) {
    return productOf(this.questions, this.answers, factorOf);
  }

  /** The same as a budget. */
  epsilon() {
    return logarithm(this.#ratio);
  }

  /** @param {string[]} [names] as for `openPromise` @returns {{factor: number, sentence: string}} */
  promise(names) {
    const ratio = this.#ratio;
    const { factor, text } = roundUp(square(ratio));
    const sentence = ratio[1] ? say("everything", { factor: localise(text) })
      : say("everythingKnown");
    return { factor, sentence: [sentence, this.openPromise(names)].filter((text) => text).join(" ") };
  }

  /**
   * Public answers are outside every promise; "" where there are none.
   * @param {string[]} names what the public questions are called
   */
  openPromise(names = this.openly.map(({ name }) => name)) {
    if (!names.length) return "";
    const quotes = names.map((what) => say("quoted", { what }));
    return say("openlySent", { names: quotes.reduce((x, y) => say("and", { x, y })) });
  }

  /**
   * What everything that is sent tells of the answer to one question, where that is more than its
   * own report tells; otherwise "". @param {string} name
   */
  answerPromise(name) {
    const about = this.questions.filter((one) => one.name === name || one.of?.includes(name));
    const ratio = productOf(about, this.answers, (mechanism) => mechanism.wholeRatio());
    const own = this.question(name);
    const more = this.answers > 1 && isLess(own.mechanism.wholeRatio(), ratio);
    if (!more && !about.some((one) => one.of && this.#tellsMore(one, own))) return "";
    return say("answerTogether", { factor: localise(roundUp(square(ratio)).text) });
  }

  /**
   * Whether a crossed report can tell more of an answer than the promise of its level: a mechanism
   * may keep less than its budgets allow, and another one use all of them.
   */
  #tellsMore({ of, mechanism }, own) {
    const [rows, columns] = of.map((one) => this.question(one).mechanism.policy.items.length);
    const levels = cellsOf(of.indexOf(own.name), rows, columns)
      .map((cells) => new Set(cells.map((place) => mechanism.policy.levelOf[place])));
    const counts = mechanism.policy.levels.map((_, k) => levels.filter((all) => all.has(k)).length);
    const seen = new Set(); // answers that are alike
    return levels.some((mine, k) => {
      const others = [...counts.keys()].filter((other) => counts[other] > Number(mine.has(other)));
      const level = own.mechanism.policy.levelOf[k];
      const key = JSON.stringify([level, [...mine].sort(), others]);
      if (seen.has(key)) return false;
      seen.add(key);
      const limit = own.mechanism.factor(level);
      return [...mine].some((one) => mechanism.factorAgainst(one, others) > limit);
    });
  }

  /** What the device draws; "" where everyone answers everything. */
  drawn() {
    const [asked, n] = [this.answers, this.questions.length];
    if (asked === n) return "";
    return say("drawnQuestions", { asked: String(asked), of: String(n), n: n - asked });
  }

  /** A warning that replaces every sentence that reassures; "" where none is needed. */
  caution() {
    if (this.questions.length === 1) return this.mechanism.caution();
    const each = this.questions.map(({ name, mechanism }) => [name, mechanism.caution()]);
    const found = each.filter(([, caution]) => caution).map((row) => row.join(": "));
    const together = this.#productOf((mechanism) => mechanism.raisedRatio());
    if (this.answers > 1 || !found.length) {
      const isLimited = !isLess(together, this.#ratio);
      found.push(weakness(together, isLimited ? "cautionEverything" : "cautionEverythingRaised"));
    }
    return found.filter((text) => text).join(" ");
  }
}

/** Of the largest factors of some questions, as many as one device answers. */
function productOf(questions, answers, factorOf) {
  const ratios = questions.map(({ mechanism }) => factorOf(mechanism));
  ratios.sort((x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0));
  return ratios.slice(0, answers).reduce(product, ONE);
}

/** What the fingerprint covers: not how the mechanisms were found. */
const withoutStories = (body) => {
  const { questions } = body;
  return Array.isArray(questions) ? { ...body, questions: questions.map(withoutStory) } : body;
};

const withoutStory = (row) => {
  const mechanism = row?.mechanism;
  return typeof mechanism === "object" && mechanism && !Array.isArray(mechanism)
    ? { ...row, mechanism: covered(mechanism) } : row;
};

/** @returns {Promise<Question>} */
async function readQuestion(row) {
  table(row, ["name", "mechanism"], "a question", ["of"]);
  const { name, mechanism: body, of = null } = row;
  object(body, "a mechanism");
  if ("of" in row && (list(of, "of").length !== 2 || of[0] === of[1])) {
    throw refused(`of is ${quoted(of)}, but must name two questions`);
  }
  const mechanism = new Mechanism(body, await computeFingerprint(body));
  return Object.freeze({ name, mechanism, of });
}

function readOpenly({ public: rows }) {
  if (rows === undefined) return [];
  const openly = list(rows, "public").map(readPublic);
  const groups = openly.reduce((n, { items }) => n * items.length, 1);
  if (!openly.length || openly.length > MOST_PUBLIC || groups > MOST_GROUPS) {
    const allowed = `1 to ${MOST_PUBLIC}, with at most ${MOST_GROUPS} groups`;
    throw refused(`there are ${openly.length} public questions, but must be ${allowed}`);
  }
  return openly;
}

function checkNames(name, questions, openly) {
  const names = [...questions, ...openly].map((question) => question.name);
  for (const text of [name, ...names]) {
    label(text, "name");
    if (Array.from(text).length > LONGEST_NAME || text !== text.trim()) {
      throw refused(`name is ${quoted(text)}, but must have at most ${LONGEST_NAME} characters`);
    }
  }
  const strange = distinct(names, "question").find((text) => text.includes(":"));
  if (strange) throw refused(`the name ${quoted(strange)} of a question must not have a colon`);
}

function checkOf({ name, mechanism, of }, questions) {
  const [first, second] = of.map((one) => questions.find((q) => q.name === one && !q.of));
  if (!first || !second) throw refused(`${quoted(name)} crosses questions that there are not`);
  checkCross(name, mechanism.policy, first.mechanism.policy, second.mechanism.policy);
}
