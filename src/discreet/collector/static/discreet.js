/**
 * discreet on the participant's device: verify a mechanism, perturb an answer, remember it, send
 * the report.
 *
 * One ES module for browsers and Node 20, without dependencies or a build step. It trusts nothing
 * that a server says: a Mechanism cannot exist unless its guarantee holds, checked here in
 * integers. Only `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { mechanism } = await client.describe("health-survey", { fingerprint });
 *     const prepared = client.prepare("health-survey", mechanism, "anemia");
 *     // show prepared.report
 *     await client.send(prepared);
 *
 * The sections follow the flow: errors, canonical JSON, policy, groups and parts, exact check,
 * randomness, encodings, mechanism, promises, ledger, client.
 */

const { freeze } = Object;
const D = 2 ** 32; // probabilities are integers over D; D and every numerator are exact as Numbers
const G = 2 ** 52; // so are the masses of a row of hits, over G

/**
 * Everything this module refuses; `code` is for programs, the message is one sentence for people.
 */
export class DiscreetError extends Error {
  /** @param {string} code @param {string} sentence @param {object} [details] further attributes */
  constructor(code, sentence, details = {}) {
    super(sentence);
    this.name = "DiscreetError";
    this.code = code;
    Object.assign(this, details);
  }
}

/** A value as it was written, short. @param {unknown} value */
function show(value) {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  const raw = typeof value === "string" ? JSON.stringify(value) : String(value);
  const text = raw.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}

// ---- sentences ----------------------------------------------------------------------------------

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const WEAK = 100; // a factor between two answers above which nobody is told that they are safe
const [FACTOR, CHANCE] = ["by at most a factor of {factor}.", "changes the chance of any report"];
const ODDS = "whoever sees your report can change their odds between";
const EACH = "Whole lists: each answer is protected on its own and the factors multiply, to at most"
  + " {few} for a list of {answers} against an empty one";
const OPEN = "The organiser chose not to protect which of";
const LEVELS = "answers of \"{first}\" and answers of \"{second}\" is yours: they are kept apart";
const SAME = "two answers of \"{first}\" is yours: they are kept apart";
const THROUGH = "only through others, by a factor of at most {factor}.";
const ONCE = "You already gave an earlier answer about";
const OFTEN = "You already gave {n} earlier answers about";
const TOGETHER = "the same items: together, whoever sees your reports can change their odds between"
  + ` {what} and any other answer ${FACTOR}`;
const CAUTION = "This is weak protection: one report can change the odds between {between} by up"
  + " to a factor of {factor}, so whoever sees yours may be almost sure what you answered.";
const caution = (between) => CAUTION.replace("{between}", between);
const TOGETHER_HAVING = "the same items: together, having or not having {what} changes the chance"
  + ` of your reports ${FACTOR}`;

/** Every sentence about promises and reports; a form per plural category where a number counts. */
export const ENGLISH = freeze({
  language: "en",
  odds: `${capital(ODDS)} {what} and any other answer ${FACTOR}`,
  having: `Having or not having {what} ${CHANCE} ${FACTOR}`,
  oddsOfLevel: `{level} ({items}): ${ODDS} this answer and any other ${FACTOR}`,
  havingOfLevel: `{level} ({items}): having or not having it ${CHANCE} ${FACTOR}`,
  more: "{items} and {n} more",
  anyTwoLists: `Whole lists: ${ODDS} any two lists of answers ${FACTOR}`,
  eachOfFew: `${EACH}.`,
  eachOfMany: `${EACH}, and to at most {many} for {n}.`,
  yourList: `Your whole list: ${ODDS} it and any other list ${FACTOR}`,
  yourListOfEach: `Your whole list is not protected as one: ${ODDS} it and an empty one ${FACTOR}`,
  noList: "You ticked nothing. Lists are not protected as one, only each answer on its own.",
  apart: `${OPEN} ${LEVELS} ${THROUGH}`,
  notApart: `${OPEN} ${LEVELS} not at all.`,
  sameApart: `${OPEN} ${SAME} ${THROUGH}`,
  sameNotApart: `${OPEN} ${SAME} not at all.`,
  already: freeze({ one: `${ONCE} ${TOGETHER}`, other: `${OFTEN} ${TOGETHER}` }),
  alreadyHaving: freeze({
    one: `${ONCE} ${TOGETHER_HAVING}`, other: `${OFTEN} ${TOGETHER_HAVING}`,
  }),
  alreadyLists: "Whole lists: together, whoever sees your reports can change their odds between any "
    + `two of them ${FACTOR}`,
  cautionOpen: "Some answers are not protected from each other: whoever sees your report may know "
    + "which of them is yours.",
  cautionAnswers: caution("two answers"),
  cautionHaving: caution("having and not having an answer"),
  cautionLists: caution("two lists of answers"),
  cautionEach: "Each answer is protected on its own, but a list of several answers is not: whoever "
    + "sees your report may be almost sure of the list as a whole.",
  answers: freeze({ one: "{n} answer", other: "{n} answers" }),
  none: "none",
  range: "{low} to {high}",
  fixed: "The report names {named} of {answers}, drawn at random: {chances}.",
  bits: "For each of {answers} it was drawn at random whether the report names it; it names "
    + "{named}: {chances}.",
  ticket: "The report is a number that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  hits: "The report is a row of numbers that stands for a random choice among {answers}; it names "
    + "{named}: {chances}.",
  nothing: "The report names no answer, whatever yours is.",
  chances: "{yours} is named with a chance of {mine}, one that is not yours with about {others}",
  own: "your own answer",
  ownOfThese: "your own answer, if it is one of these,",
  drawn: "one of yours, if one is drawn at random,",
  drawnOfThese: "one of yours, if one is drawn at random and is one of these,",
  yours: "one of yours",
  yoursOfThese: "one of yours, if it is one of these,",
  padded: freeze({
    one: "{chances}; if more than {n} is yours, {n} of them, drawn at random, counts as yours",
    other: "{chances}; if more than {n} are yours, {n} of them, drawn at random, count as yours",
  }),
  silent: "It says nothing about {n} of the answers.",
  kinds: "It is one of {k} kinds, drawn at random {by}.",
  silentKinds: "It says nothing about {n} of the answers, and is one of {k} kinds, drawn at random "
    + "{by}.",
  byAnswer: "with chances that depend on your answer",
  byNothing: "whatever your answers are",
});

let spoken = ENGLISH;

/**
 * Say all sentences in another language from now on: the same keys as ENGLISH, the same names in
 * braces.
 * @param {typeof ENGLISH} sentences
 */
export function speak(sentences = ENGLISH) {
  spoken = sentences;
}

/** A number, written in English, as the language writes it. */
function local(told) {
  const parts = new Intl.NumberFormat(spoken.language).formatToParts(12_345.6);
  const mark = (type) => parts.find((part) => part.type === type)?.value ?? "";
  return told.replace(/[.,]/g, (c) => mark(c === "." ? "decimal" : "group"));
}

/** A sentence with what stands in braces filled in. */
function say(key, values = {}) {
  const form = spoken[key];
  const plural = () => new Intl.PluralRules(spoken.language).select(values.n);
  const text = typeof form === "string" ? form : form[plural()] ?? form.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? count(values[name]) : values[name];
  });
}

const count = (n) => local(n.toLocaleString("en"));
const answers = (n) => say("answers", { n });

// ---- canonical JSON and fingerprint -------------------------------------------------------------

/**
 * JSON with sorted keys and no blanks: RFC 8785 restricted to texts, integers, true, false, null,
 * lists and objects.
 * @param {unknown} document
 * @returns {string}
 */
export function canonicalJson(document) {
  return canonical(document, DEEPEST);
}

const DEEPEST = 100; // lists within lists: a mechanism has 5; the stack must not end first

function canonical(value, depth) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return canonicalText(value);
  if (Number.isSafeInteger(value)) return String(value);
  if (typeof value !== "object") {
    const allowed = "only texts and integers up to 2^53 - 1 are allowed";
    throw refused(`the document holds ${show(value)}, but ${allowed}`);
  }
  if (!depth) throw refused(`the document is nested more than ${DEEPEST} deep`);
  const within = (x) => canonical(x, depth - 1);
  if (Array.isArray(value)) return `[${Array.from(value, within).join(",")}]`;
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map((key) => `${canonicalText(key)}:${within(value[key])}`).join(",")}}`;
}

function canonicalText(text) {
  if (/\p{Surrogate}/u.test(text)) {
    throw refused("the document holds half of a surrogate pair, which is no text");
  }
  return JSON.stringify(text); // escapes exactly what RFC 8785 and Python escape
}

/** Python's order; JavaScript's own compares UTF-16 units, which puts U+1F642 before U+FFFD. */
function byCodePoint(first, second) {
  const [x, y] = [Array.from(first), Array.from(second)];
  const k = x.findIndex((character, place) => character !== y[place]);
  if (k < 0) return x.length - y.length;
  return k < y.length ? x[k].codePointAt(0) - y[k].codePointAt(0) : 1;
}

const STORY = ["model", "prior", "certificate"]; // how it was found: no promise depends on it

/**
 * SHA-256, in hexadecimal, of the canonical JSON of all that promise and counts depend on.
 * @param {object} document
 * @returns {Promise<string>}
 */
export async function fingerprint(document) {
  const covered = Object.entries(document).filter(([key]) => !STORY.includes(key));
  return sha256(canonicalJson(Object.fromEntries(covered)));
}

async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) {
    const why = "this page was not loaded over https, so the browser offers no SHA-256";
    throw new DiscreetError("crypto", `${why}; open it with https`);
  }
  return toHex(new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

const COMPARED = 32; // digits of a fingerprint that people compare: nobody finds two that share them

/** The digits of a fingerprint that people compare, in groups of four. @param {string} fingerprint */
export function shortFingerprint(fingerprint) {
  return (fingerprint.slice(0, COMPARED).match(/.{1,4}/gs) ?? []).join(" ");
}

function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// ---- policy: parsed once, strictly, into frozen objects -----------------------------------------

/**
 * @typedef {{name: string, budget: string, epsilon: number, count: number}} Level
 * @typedef {{levels: [string, string], budget: string, epsilon: number}} Pair
 *   not protected: "" and Infinity
 * @typedef {{name: string, question: string, input: "single" | "set", notion: "min" | "avg",
 *   protect: "set" | "item" | null, strict: boolean, items: readonly string[],
 *   levelOf: readonly number[], levels: readonly Level[], pairs: readonly Pair[]}} Policy
 *   protect: what of a set; strict: all pairs have the smallest budget
 * @typedef {[bigint, bigint]} Ratio  a numerator and a positive denominator
 * @typedef {{of: Ratio[], explicit: Map<number, Ratio | null>}} Factors
 *   at most e^eps per level; e^r at i * levels + j
 */

function refused(sentence) {
  const next = "do not answer, and ask the organiser for a correct mechanism";
  return new DiscreetError("mechanism", `${sentence}; ${next}`);
}

function object(raw, where) {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    throw refused(`${where} is ${show(raw)}, but must be an object`);
  }
  return raw;
}

/** The object itself, if it has exactly these keys. */
function table(raw, keys, where, optional = []) {
  object(raw, where);
  const missing = keys.find((key) => !Object.hasOwn(raw, key));
  if (missing) throw refused(`${missing} is missing in ${where}`);
  const known = [...keys, ...optional];
  const unknown = Object.keys(raw).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    const allowed = known.join(", ");
    throw refused(`${where} has the unknown key ${show(unknown)}, but may have ${allowed}`);
  }
  return raw;
}

function list(raw, where) {
  if (!Array.isArray(raw)) throw refused(`${where} is ${show(raw)}, but must be a list`);
  return raw;
}

function choice(key, value, allowed) {
  if (!allowed.includes(value)) {
    throw refused(`${key} is ${show(value)}, but must be one of ${allowed.join(", ")}`);
  }
  return value;
}

// Texts that people read: the same rules and tables as in policy.py, held together by
// tests/vectors. Code points that are not assigned yet may be used: which those are depends on the
// age of the browser, and so does the category of the format controls from U+13430, which may not.
// What shows nothing may not be used either, but for the joiners and selectors that Persian, Indic
// scripts, Mongolian, CJK and emoji are spelled with.
const SILENT = "\\u180b-\\u180d\\u180f\\u200c\\u200d\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
const EMPTY = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2065\\u2800\\u3164\\uffa0\\ufff0-\\ufff8"
  + "\\u{16fe4}\\u{1d159}\\u{e0000}-\\u{e00ff}\\u{e01f0}-\\u{e0fff}";
const FORMATS = "\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064"
  + "\\u2066-\\u206f\\ufeff\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}";
const CONTROLS = "\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}"
  + "\\u{13430}-\\u{1345f}";
const HIDDEN = new RegExp(`(?![${SILENT}])[${CONTROLS}${EMPTY}]`, "gu");
const UNSEEN = new RegExp(`[${SILENT}${EMPTY}${FORMATS}]`, "gu");
const BLANKS = /[\s\x1c-\x1f\x85]+/g;
const LONGEST_SAID = 300; // characters of what a stranger says
// Greek and Cyrillic letters, small capitals, a few of the rest of Latin, and punctuation, after
// the character that they look like.
const TWINS = (
  "A\u0391\u0410 B\u0392\u0412 C\u03f9\u0421 E\u0395\u0415 G\u050c H\u0397\u041d\u04ba "
  + "I\u0399\u0406\u04c0 J\u037f\u0408 K\u039a\u041a M\u039c\u041c\u03fa N\u039d "
  + "O\u039f\u041e P\u03a1\u0420 Q\u051a S\u0405 T\u03a4\u0422 V\u0474 W\u051c "
  + "X\u03a7\u0425 Y\u03a5\u0423\u04ae Z\u0396 a\u03b1\u0430\u0251\u1d00 "
  + "b\u0432\u0299\u044c c\u03f2\u0441\u1d04 d\u0501\u1d05 e\u03b5\u0435\u1d07 "
  + "g\u0261\u0262 h\u04bb\u029c\u043d i\u03b9\u0456\u0131\u026a "
  + "j\u03f3\u0458\u0237\u1d0a k\u03ba\u043a\u1d0b l\u04cf\u029f m\u043c\u1d0d "
  + "n\u03b7\u0274 o\u03bf\u043e\u1d0f p\u03c1\u0440\u1d18 q\u051b\ua7af r\u0433\u0280 "
  + "s\u0455\ua731 t\u03c4\u0442\u1d1b u\u03c5\u1d1c v\u03bd\u0475\u1d20 w\u051d\u1d21 "
  + "x\u03c7\u0445 y\u03b3\u0443\u028f\u04af 3\u0417\u0437 6\u0431 \u0413\u0393 "
  + "\u041f\u03a0 \u0424\u03a6 \u0444\u03c6 f\ua730 z\u1d22 "
  + "-\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u05be\u2796\u30fc "
  + "\u0027\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u02c8\u2032\u055a\ua78c\u00b4\u05f3 "
  + "\u0022\u201c\u201d\u201e\u201f\u02ba\u02ee /\u2044\u2215\u29f8\u2571\u27cb "
  + ":\u2236\ua789\u02d0\u0589\u05c3 ,\u201a ~\u223c\u2053 |\u2223\u01c0 !\u01c3 "
  + "*\u2217\u204e =\ua78a <\u2039\u02c2 >\u203a\u02c3 \u00b7\u2022\u2219\u22c5\u2027 "
  + "F\u03dc"
).split(" ");
const LETTER_OF = new Map(TWINS.flatMap(([letter, ...all]) => all.map((twin) => [twin, letter])));

/** One line without control characters and those that nobody sees; any blanks. */
function isProse(text) {
  return typeof text === "string" && text.search(HIDDEN) < 0;
}

/** The same with the plain blank alone. */
function isPrintable(text) {
  return isProse(text) && !/(?! )\p{Zs}/u.test(text);
}

/**
 * What a stranger says, fit to be shown: one line of at most 300 characters, U+FFFD in the place of
 * control characters and those that nobody sees.
 * @param {string} text
 */
export function cleaned(text) {
  const plain = text.replace(BLANKS, " ").trim().replace(HIDDEN, "\ufffd");
  const characters = Array.from(plain);
  if (characters.length <= LONGEST_SAID) return plain;
  return `${characters.slice(0, LONGEST_SAID - 1).join("")}…`;
}

/**
 * Two labels that share one of these are the same to people: without what nobody sees, width and
 * form of letters, case, and how many blanks there are; in the second, letters and punctuation are
 * replaced by the plain ones they look like.
 * @param {string} text
 * @returns {string[]}
 */
function looks(text) {
  if (!/[^\0-\x7f]/.test(text)) return [folded(text)];
  const seen = text.replace(UNSEEN, "");
  return [folded(seen.normalize("NFKD")), folded(latin(latin(seen).normalize("NFKD")))];
}

function latin(text) {
  return text.replace(/[^\0-\x7f]/gu, (c) => LETTER_OF.get(c) ?? c);
}

/** As Python's casefold, by steps that Python has too: "ß" is "ss". */
function folded(text) {
  const lower = text.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");
  return lower.normalize("NFKD").replace(BLANKS, " ").trim();
}

function label(text, what) {
  if (!isPrintable(text) || !text.replace(UNSEEN, "").trim()) {
    const allowed = "a non-empty text without control characters and those that nobody sees";
    throw refused(`${what} is ${show(text)}, but must be ${allowed}`);
  }
  return text;
}

/** Labels that people can tell apart. */
function distinct(texts, what) {
  const [seen, known] = [new Set(), new Map()];
  for (const text of texts) {
    if (seen.has(label(text, what))) throw refused(`${what} ${show(text)} is named twice`);
    seen.add(text);
    for (const look of looks(text)) {
      const first = known.get(look) ?? text;
      if (first !== text) {
        throw refused(`the ${what}s ${show(first)} and ${show(text)} look the same`);
      }
      known.set(look, text);
    }
  }
  return texts;
}

/** @returns {{policy: Policy, factors: Factors}} */
function readPolicy(raw) {
  const keys = ["name", "question", "input", "notion", "items", "level_of", "levels", "pairs"];
  const sets = object(raw, "the policy").input === "set";
  table(raw, sets ? [...keys, "protect", "strict"] : keys, "the policy", ["about"]);
  label(raw.name, "the policy's name");
  if (!isProse(raw.question)) {
    const allowed = "a text of one line, without control characters and those that nobody sees";
    throw refused(`question is ${show(raw.question)}, but must be ${allowed}`);
  }
  choice("input", raw.input, ["single", "set"]);
  choice("notion", raw.notion, ["min", "avg"]);
  const items = distinct(list(raw.items, "items"), "item");
  const rows = list(raw.levels, "levels").map((row) => table(row, ["name", "epsilon"], "a level"));
  const names = distinct(rows.map((row) => row.name), "level");
  const levelOf = list(raw.level_of, "level_of");
  const counts = names.map(() => 0);
  for (const k of levelOf) {
    if (!Number.isInteger(k) || !(k in counts)) {
      throw refused(`level_of holds ${show(k)}, but must hold places of levels, from 0`);
    }
    counts[k] += 1;
  }
  if (!items.length || levelOf.length !== items.length) {
    const what = `${items.length} items have ${levelOf.length} levels`;
    throw refused(`${what}, but need one each, and at least one item`);
  }
  if (counts.includes(0)) {
    const empty = names[counts.indexOf(0)];
    throw refused(`level ${show(empty)} has no items, but needs at least one`);
  }
  const budgets = rows.map(({ epsilon }) => readBudget(epsilon));
  const levels = rows.map((row, k) => {
    return freeze({
      name: row.name, budget: row.epsilon, epsilon: budgets[k].epsilon, count: counts[k],
    });
  });
  const { pairs, explicit } = readPairs(raw.pairs, names);
  const { name, question, input, notion } = raw;
  const policy = freeze({
    name, question, input, notion, ...readUnit(raw, sets), items, levelOf,
    levels: freeze(levels), pairs: freeze(pairs), about: freeze(readAbout(raw.about)),
  });
  return { policy, factors: { of: budgets.map(({ factor }) => factor), explicit } };
}

const [LINE, TEXT, LEAST, MOST] = [200, 4000, 50, 1e9]; // of `about`: characters, and reports

/** Who asks, what for, from when to when: what is said, each in its only spelling. */
function readAbout(raw) {
  if (raw === undefined) return {};
  const prose = (most, lines) => (text) => {
    return isProse(lines ? text?.replaceAll?.("\n", " ") : text) && text === text.trim()
      && text.replace(UNSEEN, "").trim() !== "" && Array.from(text).length <= most;
  };
  const time = (text) => {
    const known = /^(19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
    return typeof text === "string" && known.test(text) && !Number.isNaN(Date.parse(text))
      && new Date(text).toISOString() === text.replace("Z", ".000Z");
  };
  const allowed = {
    organiser: prose(LINE), contact: prose(LINE),
    purpose: prose(TEXT, true), consent: prose(TEXT, true),
    language: (tag) => typeof tag === "string" && /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/.test(tag),
    opens: time, closes: time,
    minimum: (n) => Number.isInteger(n) && n >= LEAST && n <= MOST,
    rehearsal: (is) => is === true,
  };
  const keys = Object.keys(table(raw, [], "about", Object.keys(allowed)));
  const wrong = keys.find((key) => !allowed[key](raw[key]));
  if (!keys.length || wrong || (raw.opens && raw.closes && raw.opens >= raw.closes)) {
    const what = wrong
      ? `${wrong} of about is ${show(raw[wrong])}` : "about is empty, or closes before it opens";
    throw refused(`${what}, but must be as discreet writes it`);
  }
  return raw;
}

/** What is protected of a set: all of it or every item on its own; only sets are asked for that. */
function readUnit({ protect, strict, pairs }, sets) {
  if (!sets) return { protect: null, strict: false };
  choice("protect", protect, ["set", "item"]);
  choice("strict", strict, [true, false]);
  if (protect === "item" && (strict || pairs.length)) {
    const what = strict ? "strict is true" : "there are budgets of pairs";
    throw refused(`protect is "item" and ${what}, but an item on its own has its level's budget`);
  }
  return { protect, strict };
}

function readPairs(raw, names) {
  const rows = list(raw, "pairs").map((row) => table(row, ["levels", "epsilon"], "a pair"));
  if (rows.length && names.length > 200) {
    throw refused(`${names.length} levels have explicit pairs, but at most 200 may`);
  }
  const [explicit, written] = [new Map(), new Map()];
  const pairs = rows.map(({ levels, epsilon: budget }) => {
    const places = list(levels, "levels of a pair").map((name) => names.indexOf(name));
    const both = levels.map(show).join(", ");
    if (places.length !== 2 || places.includes(-1)) {
      throw refused(`a pair names the levels ${both}, but must name two that exist`);
    }
    const { epsilon, factor } = budget === ""
      ? { epsilon: Infinity, factor: null } : readBudget(budget);
    const [i, j] = places;
    for (const key of [i * names.length + j, j * names.length + i]) {
      if ((written.get(key) ?? budget) !== budget) {
        throw refused(`the pair of levels ${both} has two budgets, but must have one`);
      }
      written.set(key, budget);
      explicit.set(key, factor);
    }
    return freeze({ levels, budget, epsilon });
  });
  return { pairs, explicit };
}

/**
 * A budget in its only spelling: a plain decimal, or ln(k) with k > 1 reduced.
 * @returns {{epsilon: number, factor: Ratio}}
 */
function readBudget(text) {
  const written = typeof text === "string" && text.length <= 100 ? text : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)$/.exec(written);
  if (log) {
    const [n, d] = [BigInt(log[1]), BigInt(log[2] ?? 1)];
    const reduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && reduced) {
      return { epsilon: Math.log(Number(n)) - Math.log(Number(d)), factor: [n, d] };
    }
  }
  // from 1e-29 to below 1e30
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(written);
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    const factor = expLower(BigInt(whole + fraction), 10n ** BigInt(fraction.length));
    return { epsilon: Number(written), factor };
  }
  const allowed = "a positive decimal or ln(k) with k > 1, as discreet writes it";
  throw refused(`epsilon is ${show(text)}, but must be ${allowed}`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}

// ---- groups and parts ---------------------------------------------------------------------------

/**
 * @typedef {readonly number[]} Numbers
 * @typedef {{chance: Numbers, own: Numbers, other: Numbers, none?: number}} Part  per group, over
 *   2^32 but for `other`, which is over the encoding's base; silent where own = other = 0
 * @typedef {{chance: number, active: Numbers, limit: number, rows: readonly Numbers[]}} HitsPart
 *   active: 0 or 1 per group; rows: of 1 to `padding` own items tau and the masses of the classes
 * @typedef {{m: number, of: Numbers, members: readonly Numbers[], rank: Numbers}} Groups
 *   the group of every item, the items of every group, and an item's place among those
 */

function integers(raw, count, where) {
  if (list(raw, where).length !== count || !raw.every(Number.isInteger)) {
    throw refused(`${where} must be ${count} whole numbers, but is not`);
  }
  return raw;
}

/** @param {Numbers} raw the group of every level @returns {Groups} */
function readGroups(raw, { levels, levelOf }) {
  let count = 0;
  for (const group of integers(raw, levels.length, "groups")) {
    if (group < 0 || group > count) {
      throw refused("groups are not numbered from 0 by first appearance");
    }
    count += group === count;
  }
  const of = levelOf.map((level) => raw[level]);
  const members = Array.from({ length: count }, () => []);
  const rank = of.map((group, item) => members[group].push(item) - 1);
  members.forEach(freeze);
  return freeze({ m: of.length, of: freeze(of), members: freeze(members), rank: freeze(rank) });
}

/** What share of the participants is expected in every group; only estimates use it. */
function checkShares(raw, count) {
  const ok = integers(raw, count, "shares").every((share) => share >= 0 && share <= D);
  if (!ok || raw.reduce((sum, share) => sum + share, 0) !== D) {
    throw refused("the shares are not numbers from 0 to 2^32 that sum to 2^32");
  }
}

/** A list of so many parts, of which nothing else is known yet. */
function partsOf(raw, most = 256) {
  const { length } = list(raw, "parts");
  if (length < 1 || length > most) {
    const allowed = most === 1 ? "1" : `1 to ${most}`;
    throw refused(`the mechanism has ${length} parts, but must have ${allowed}`);
  }
  return raw;
}

function checkPadding(padding, { input, protect }) {
  const [least, most] = input === "set" && protect === "set" ? [1, 65536] : [0, 0];
  if (!Number.isInteger(padding) || padding < least || padding > most) {
    const allowed = most ? `a whole number from ${least} to ${most}` : "0";
    throw refused(`padding is ${show(padding)}, but must be ${allowed}`);
  }
}

function checkCertificate(raw) {
  table(raw, ["value", "lower_bound", "note"], "the certificate");
  const { value, lower_bound: bound, note } = raw;
  if (!isDecimal(value) || !(bound === "" || isDecimal(bound))) {
    throw refused("value and lower_bound of the certificate must be decimals of at most 12 digits");
  }
  if (bound !== "" && Number(bound) > Number(value)) {
    throw refused("the certificate claims less error than its own lower bound");
  }
  if (!isPrintable(note) || Array.from(note).length > 400) {
    const allowed = "a text of at most 400 characters, none of them a control character";
    throw refused(`the certificate's note must be ${allowed}`);
  }
}

function isDecimal(text) {
  const plain = /^(0|[1-9][0-9]{0,29})(\.[0-9]{0,29}[1-9])?$/;
  if (typeof text !== "string" || !plain.test(text)) return false;
  return text.replace(".", "").replace(/^0+|0+$/g, "").length <= 12;
}

// ---- the exact check ----------------------------------------------------------------------------
// For every two inputs of levels i and j and every report y (the paper, Def. 2):
//     Pr(y | i) <= e^{r_ij} Pr(y | j)
// Up to a factor common to all inputs, the probability of a report of one part takes at most two
// values given an input, its states: one if the report names the item held, one if not. BigInt
// throughout; e^eps is replaced by a rational at most as large, so what passes here holds for the
// budget.

const BITS = 80n; // of the fraction of an irrational bound: 2^48 times finer than a probability
const CEILING = 45n; // a larger budget counts as this one

/** A rational at most e^(n/d), and of a large budget at most e^45. @returns {Ratio} */
function expLower(n, d) {
  return n > CEILING * d ? taylor(CEILING, 1n) : taylor(n, d);
}

/** A rational at most e^(n/d): the Taylor series with every term rounded down. @returns {Ratio} */
function taylor(n, d) {
  let total = 1n << BITS;
  for (let term = total, k = 1n; term; k += 1n) {
    term = (term * n) / (d * k);
    total += term;
  }
  return [total, 1n << BITS];
}

const [ZERO, ONE] = [[0n, 1n], [1n, 1n]];
const integer = (n) => [BigInt(n), 1n];
const product = (x, y) => [x[0] * y[0], x[1] * y[1]];
const quotient = (x, y) => [x[0] * y[1], x[1] * y[0]];
const inverse = ([n, d]) => [d, n];
const square = (x) => product(x, x);
const isLess = (x, y) => x[0] * y[1] < y[0] * x[1];
const isMore = (x, y) => isLess(y, x);
const smaller = (x, y) => (isLess(y, x) ? y : x);
const larger = (x, y) => (isLess(x, y) ? y : x);
/** The smaller of two bounds, either of which may be missing. */
const tighter = (x, y) => (x && y ? smaller(x, y) : (x ?? y));

function plus(x, y) {
  return x[1] === y[1] ? [x[0] + y[0], x[1]] : [x[0] * y[1] + y[0] * x[1], x[1] * y[1]];
}

/** A ratio as a double, however large its integers are. */
function toNumber([n, d]) {
  const digits = (x) => x.toString(16).length;
  const shift = 4 * (20 + digits(d) - digits(n));
  const scaled = shift > 0 ? (n << BigInt(shift)) / d : n / (d << BigInt(-shift));
  return Number(scaled) * 2 ** -shift;
}

/** The place of the value that no other is `before`. */
function foremost(values, before) {
  return values.reduce((best, value, k) => (before(value, values[best]) ? k : best), 0);
}

function violation(sentence, details) {
  const next = "the promise does not hold; do not answer, and tell the organiser";
  return new DiscreetError("guarantee", `${sentence}: ${next}`, details);
}

/**
 * @typedef {{names: string[], least: Ratio[], apart: (inputs: Extremes[]) => Extremes[] | null}}
 *   Terms  what the policy asks of groups: of each its first level's name and at most e^eps of its
 *   smallest budget; two inputs that are told apart by more than their pair budget, or null
 */

/** @param {Factors} factors @param {Numbers} groupOf of every level @returns {Terms} */
function termsOf(policy, factors, groupOf) {
  const names = [];
  groupOf.forEach((group, k) => { if (group === names.length) names.push(policy.levels[k].name); });
  if (policy.strict) { // one factor for every pair, the unprotected ones among them
    const all = [...factors.of, ...[...factors.explicit.values()].filter((x) => x)];
    const least = names.map(() => all.reduce(smaller));
    return { names, least, apart: onlyExtremes("min", least) };
  }
  const least = groupFactors(factors.of, groupOf, names.length);
  const apart = policy.pairs.length
    ? everyPair(pairSquares(policy, factors, groupOf, names.length))
    : onlyExtremes(policy.notion, least);
  return { names, least, apart };
}

/** Without this a part that some inputs never use would tell them apart for sure. */
function checkChances(parts, names) {
  names.forEach((name, g) => {
    checkColumn(parts.map(({ chance }) => chance[g]), ` for level ${show(name)}`);
  });
  if ("none" in parts[0]) checkColumn(parts.map(({ none }) => none), " for no item");
}

function checkColumn(chances, who = "") {
  if (!chances.every((chance) => chance > 0)) {
    throw violation(`a part's chance${who} is not positive`);
  }
  if (chances.reduce((total, chance) => total + chance, 0) !== D) {
    throw violation(`the chances of the parts${who} do not sum to 2^32`);
  }
}

/** @typedef {{high: Ratio, low: Ratio, name: string}} Extremes  the largest and smallest state */

/** @returns {Extremes} of an input with one state */
const alone = (state, name) => ({ high: state, low: state, name });

/** @returns {Extremes} of the items of group g, whose `other` is over base */
function extremesOf(part, g, base, name) {
  const [own, other] = [part.own[g], part.other[g]];
  const [chance, all, Q] = [part.chance[g], D, base].map(BigInt);
  if (own === 0 && other === 0) return alone([chance * all, 1n], name);
  // Without this the inequalities can hold as 0 <= 0 while privacy is broken.
  if (!(own > 0 && own < D && other > 0 && other < base)) {
    const what = `own = ${own}/${D} and other = ${other}/${base} of level ${show(name)}`;
    throw violation(`${what} must both be 0 or both lie strictly between 0 and 1`);
  }
  const named = [chance * BigInt(own) * Q, BigInt(other)];
  const unnamed = [chance * (all - BigInt(own)) * Q, Q - BigInt(other)];
  return isLess(named, unnamed)
    ? { high: unnamed, low: named, name } : { high: named, low: unnamed, name };
}

/** The factor of a group's smallest budget. @returns {Ratio[]} */
function groupFactors(of, groupOf, count) {
  const least = Array(count).fill(null);
  groupOf.forEach((group, level) => { least[group] = tighter(least[group], of[level]); });
  return least;
}

/**
 * The check of a part in O(groups), where all pairs have the notion's budgets; "none" has the
 * smallest budget.
 * @param {Ratio[]} e at most e^eps of every group
 * @returns {(inputs: Extremes[]) => Extremes[] | null} two inputs that are told apart too well
 */
function onlyExtremes(notion, e) {
  const all = [...e, e.reduce(smaller)];
  return notion === "avg" ? (inputs) => averages(inputs, all) : (inputs) => minima(inputs, all);
}

/** high_k <= e_k low_j and high_i <= e_k low_k for all i, j: only the extremes matter. */
function minima(inputs, e) {
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    if (isLess(product(e[k], bottom.low), input.high)) return [input, bottom];
    if (isLess(product(e[k], input.low), top.high)) return [top, input];
  }
  return null;
}

/** high_i^2 / e_i <= e_j low_j^2 for all i, j: squares, so that no root is needed. */
function averages(inputs, e) {
  const highs = inputs.map(({ high }, k) => quotient(square(high), e[k]));
  const lows = inputs.map(({ low }, k) => product(square(low), e[k]));
  const i = foremost(highs, (x, y) => isLess(y, x));
  const j = foremost(lows, isLess);
  return isLess(lows[j], highs[i]) ? [inputs[i], inputs[j]] : null;
}

/**
 * At most e^{2 r} of every two groups, "none" last; null where nothing is protected.
 * @returns {(Ratio | null)[][]}
 */
function pairSquares(policy, factors, groupOf, count) {
  const bounds = Array.from({ length: count + 1 }, () => Array(count + 1).fill(null));
  groupOf.forEach((g, i) => groupOf.forEach((h, j) => {
    bounds[g][h] = tighter(bounds[g][h], levelSquare(policy, factors, i, j));
  }));
  for (let g = 0; g < count; g++) {
    bounds[g][count] = bounds[count][g] = bounds[g].slice(0, count).reduce(tighter);
  }
  return bounds;
}

/** At most e^{2 r_ij} of two levels; under `avg` 2 r = eps_i + eps_j. */
function levelSquare(policy, factors, i, j) {
  const given = factors.explicit.get(i * policy.levels.length + j);
  if (given !== undefined) return given && square(given);
  const [x, y] = [factors.of[i], factors.of[j]];
  return policy.notion === "avg" ? product(x, y) : square(smaller(x, y));
}

/** The check of a part by every pair of groups. */
function everyPair(bounds) {
  return (inputs) => {
    const highs = inputs.map(({ high }) => square(high));
    const lows = inputs.map(({ low }) => square(low));
    for (let g = 0; g < inputs.length; g++) {
      for (let h = 0; h < inputs.length; h++) {
        const bound = bounds[g][h];
        if (bound && isLess(product(bound, lows[h]), highs[g])) return [inputs[g], inputs[h]];
      }
    }
    return null;
  };
}

// What a part that passed does tell, exactly.

/** @param {Extremes[]} inputs @returns {{high: Ratio, low: Ratio}} */
function endsOf(inputs) {
  return {
    high: inputs.map(({ high }) => high).reduce(larger),
    low: inputs.map(({ low }) => low).reduce(smaller),
  };
}

/** The largest ratio, either way, of what lies between `bottom` and `top` to all that there is. */
function farthest(top, bottom, { high, low }) {
  return larger(quotient(top, low), quotient(high, bottom));
}

/** Throws if having an item or not changes more than the budget of its level allows. */
function checkItems(factors, least, names) {
  names.forEach((name, g) => {
    if (!isLess(least[g], factors[g])) return;
    const what = `having or not having an item of level ${show(name)} changes a report's chance`;
    throw violation(`${what} by more than its budget`, { levels: [name] });
  });
}

/**
 * Single answers, per group: the largest ratio between one of its items and any other.
 * @param {Extremes[]} states @returns {Ratio[]}
 */
function answerFactors(states, sizes) {
  if (sizes.length === 1 && sizes[0] === 1) return [ONE];
  const lone = sizes.map((size) => size === 1);
  const highest = firstOfOthers(states.map(({ high }) => high), lone, isMore);
  const lowest = firstOfOthers(states.map(({ low }) => low), lone, isLess);
  return states.map(({ high, low }, g) => {
    return larger(quotient(high, lowest(g)), quotient(highest(g), low));
  });
}

/** A function of a group: the foremost value of another input; its own, if it has two items. */
function firstOfOthers(values, lone, before) {
  const top = foremost(values, before);
  const rest = values.filter((_, k) => k !== top);
  const second = rest.length ? rest[foremost(rest, before)] : values[top];
  return (g) => (g === top && lone[g] ? second : values[top]);
}

/**
 * Padding-and-Sampling, per group: the largest ratio between any list with one of its items and the
 * same list without. Of up to l items one takes the place of "none", beside l - 1 others; beyond,
 * it makes l places l + 1. The others are those at which that counts most.
 * @param {Extremes[]} states the last of "none" @param {number} l the padding @returns {Ratio[]}
 */
function samplingFactors(states, sizes, l) {
  const { high: none } = states.at(-1);
  const rows = (key) => sizes.map((size, g) => ({ g, size, value: states[g][key] }));
  const [lows, highs] = [rows("low"), rows("high")];
  const beside = sumOfFirst([...lows, { g: -1, size: Infinity, value: none }], l - 1, isLess);
  const crowded = sizes.reduce((total, size) => total + size, 0) > l;
  const least = crowded && sumOfFirst(lows, l, isLess);
  const most = crowded && sumOfFirst(highs, l, isMore);
  const share = [BigInt(l), BigInt(l + 1)];
  return sizes.map((_, g) => {
    const { high, low } = states[g];
    const others = beside(g);
    const without = plus(others, none);
    const found = [quotient(plus(others, high), without), quotient(without, plus(others, low))];
    if (crowded) {
      const [few, many] = [least(g), most(g)];
      found.push(product(share, quotient(plus(few, high), few)));
      found.push(quotient(many, product(share, plus(many, low))));
    }
    return found.reduce(larger, ONE);
  });
}

/** A function of a group: the sum of the k foremost values of items without one of its items. */
function sumOfFirst(rows, k, before) {
  const sorted = [...rows].sort((x, y) => {
    return before(x.value, y.value) ? -1 : before(y.value, x.value) ? 1 : 0;
  });
  let [total, left, next] = [ZERO, k, null]; // next: the value that takes the place of one
  const taken = new Map();
  for (const { g, size, value } of sorted) {
    if (!left) {
      next ??= value;
      break;
    }
    const n = Math.min(left, size);
    total = plus(total, product(integer(n), value));
    taken.set(g, value);
    left -= n;
    if (n < size) next = value;
  }
  const minus = ([n, d]) => [-n, d];
  return (g) => (taken.has(g) ? plus(total, plus(next, minus(taken.get(g)))) : total);
}

// ---- randomness ---------------------------------------------------------------------------------

/** Uniform integers from Web Crypto, exactly: by rejection, never by a float or a plain modulo. */
class Draws {
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

  /** So many of these, every such subset alike. */
  some(list, wanted) {
    const left = [...list];
    for (let k = 0; k < wanted; k++) {
      const place = k + this.below(left.length - k);
      [left[k], left[place]] = [left[place], left[k]];
    }
    return left.slice(0, wanted);
  }
}

// ---- encodings: how a report names items --------------------------------------------------------
// The only place that knows one encoding from another. Each has
//   kind; keys, those of its table in a file; fits(context), and what it needs if it does not;
//   readParts(raw, context), parts of the right shape;
//   prove(terms), the exact check: throws unless every part keeps what the policy asks;
//   size, of a report in bytes; report(draws, items), a new one for the items of an answer;
//   check(report), why it is refused, or null;
//   partOf(report); named(report), the places of the items that it names;
//   meaning(k, named), what a report of part k that names so many items says, for people;
//   factors(), the promise of every group: by how much an answer of it, or (sets) having one of its
//   items or not, changes the chance of any report at most;
//   setFactor() and listFactor(items), the same between any two lists, and between one list and any
//   other; not where every item is protected on its own: there the factors multiply.

/** @typedef {{groups: Groups, policy: Policy, padding: number}} Context */

class Encoding {
  static keys = [];

  /** @param {Context} context @param {readonly (Part | HitsPart)[]} parts */
  constructor({ groups, policy, padding }, parts) {
    Object.assign(this, { groups, policy, padding, parts });
  }

  /** The part whose stretch of the cumulative chances a 32-bit integer falls into. */
  drawPart(draws, chanceOf) {
    const chances = this.parts.map(chanceOf);
    let k = 0;
    if (chances.length === 1) return k; // and nothing is drawn
    for (let draw = draws.next(); draw >= chances[k]; k++) draw -= chances[k];
    return k;
  }

  meaning(k, named) {
    const { parts, groups: { m, members } } = this;
    const speaking = members.flatMap((_, g) => (this.speaks(parts[k], g) ? [g] : []));
    const among = speaking.reduce((total, g) => total + members[g].length, 0);
    if (!among) return { mine: [0], others: [0], sentence: this.#kinds(say("nothing"), 0) };
    const { mine, others } = this.chances(k, speaking);
    const yours = this.policy.input === "single" ? "own" : this.yours;
    const chances = this.padded(say("chances", {
      yours: say(among < m ? `${yours}OfThese` : yours), mine: range(mine), others: range(others),
    }));
    const names = { named: named ? count(named) : say("none"), answers: answers(among), chances };
    const first = say(this.kind === "each" ? "bits" : this.kind, names);
    return { mine, others, sentence: this.#kinds(first, m - among) };
  }

  /** What else there is to say of a report: whom it is silent about, and how its kind is drawn. */
  #kinds(first, n) {
    const k = this.parts.length;
    const key = `${n ? "silent" : ""}${k > 1 ? "Kinds" : ""}`;
    if (!key) return first;
    return `${first} ${say(key === "Kinds" ? "kinds" : key, { n, k, by: say(this.by) })}`;
  }

  padded(chances) {
    return chances;
  }
}

/** Reports one item of an answer: the only one, or one of a padded set, drawn at random. */
class Sampling extends Encoding {
  samples = true;
  static needs = "sets that are protected as a whole, or single answers";
  by = "byAnswer";
  yours = "drawn";
  #states; // per part, once asked for

  static fits({ policy }) {
    return policy.protect !== "item";
  }

  /** @returns {readonly Part[]} */
  static readParts(raw, { groups, policy }, most = 256) {
    const keys = ["chance", "own", "other"];
    const sets = policy.input === "set"; // then there is an input "none"
    for (const part of partsOf(raw, most)) {
      table(part, sets ? [...keys, "none"] : keys, "a part");
      for (const key of keys) integers(part[key], groups.members.length, `${key} of a part`);
      if (sets) integers([part.none], 1, "none of a part");
    }
    return raw;
  }

  prove({ names, apart }) {
    checkChances(this.parts, names);
    for (const part of this.parts) {
      const broken = apart(this.#inputs(part, names));
      if (!broken) continue;
      const levels = broken.map(({ name }) => name);
      const pair = `the pair of levels (${levels.map(show).join(", ")})`;
      throw violation(`${pair} is told apart by more than its pair budget`, { levels });
    }
  }

  /** The states of every group, then of "none". @returns {Extremes[]} */
  #inputs(part, names) {
    const inputs = names.map((name, g) => extremesOf(part, g, this.base(g), name));
    const none = () => alone(product(integer(part.none), integer(D)), "no item");
    return "none" in part ? [...inputs, none()] : inputs;
  }

  /** The same of every part. @returns {Extremes[][]} */
  get #all() {
    const names = this.groups.members.map(() => "");
    this.#states ??= this.parts.map((part) => this.#inputs(part, names));
    return this.#states;
  }

  report(draws, items) {
    const held = this.policy.input === "set" ? this.#sample(draws, items) : items[0];
    const group = this.groups.of[held];
    const k = this.drawPart(draws, ({ chance, none }) => (held < 0 ? none : chance[group]));
    const chance = held < 0 ? 0 : this.parts[k].own[group]; // 0 where the group is silent, too
    return this.write(draws, k, held, chance > 0 && draws.next() < chance);
  }

  /** Padding-and-Sampling (the paper, Algorithm 1): one of max(|x|, padding) places; or -1. */
  #sample(draws, items) {
    return items[draws.below(Math.max(items.length, this.padding))] ?? -1;
  }

  speaks({ other }, g) {
    return other[g] > 0;
  }

  chances(k, speaking) {
    const part = this.parts[k];
    const mine = speaking.map((g) => part.own[g] / D);
    return { mine, others: speaking.flatMap((g) => this.others(part, g)) };
  }

  /** The chances that an item of group g is named for people with other answers. */
  others({ other }, g) {
    return [other[g] / this.base(g)];
  }

  factors() {
    const sizes = this.groups.members.map(({ length }) => length);
    const each = this.policy.input === "set"
      ? this.#all.map((states) => samplingFactors(states, sizes, this.padding))
      : this.#all.map((states) => answerFactors(states, sizes));
    return sizes.map((_, g) => each.map((found) => found[g]).reduce(larger));
  }

  setFactor() {
    return this.#all.map(endsOf).map(({ high, low }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const counts = this.groups.members.map(() => 0);
    for (const item of items) counts[this.groups.of[item]] += 1;
    const places = Math.max(items.length, this.padding);
    counts.push(places - items.length);
    return this.#all.map((states) => {
      const mean = (key) => quotient(counts.reduce((total, n, g) => {
        return n ? plus(total, product(integer(n), states[g][key])) : total;
      }, ZERO), integer(places));
      return farthest(mean("high"), mean("low"), endsOf(states));
    }).reduce(larger);
  }
}

/** A bit per item, item k at byte k >> 3, bit k & 7; in front the part, if there are several. */
class Bitmap extends Sampling {
  constructor(context, parts) {
    super(context, parts);
    this.head = parts.length > 1 ? 1 : 0;
    this.size = this.head + Math.ceil(this.groups.m / 8);
  }

  partOf(report) {
    return this.head ? report[0] : 0;
  }

  check(report) {
    const { m, of, members } = this.groups;
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    if (m % 8 && report.at(-1) >> m % 8) return "tail";
    const counts = members.map(() => 0);
    for (const item of this.named(report)) counts[of[item]] += 1;
    return this.misuse(this.parts[this.partOf(report)], counts);
  }

  named(report) {
    const found = [];
    for (let item = 0; item < this.groups.m; item++) {
      if (this.isNamed(report, item)) found.push(item);
    }
    return found;
  }

  isNamed(report, item) {
    return ((report[this.head + (item >> 3)] >> (item & 7)) & 1) === 1;
  }

  name(report, item) {
    report[this.head + (item >> 3)] |= 1 << (item & 7);
  }

  start(k) {
    const report = new Uint8Array(this.size);
    if (this.head) report[0] = k;
    return report;
  }
}

/** Exactly other[g] items of every group g, as a uniform subset. */
class Fixed extends Bitmap {
  kind = "fixed";

  base(g) {
    return this.groups.members[g].length;
  }

  misuse({ other }, counts) {
    return counts.some((found, g) => found !== other[g]) ? "size" : null;
  }

  write(draws, k, held, own) {
    const { of, members, rank } = this.groups;
    const report = this.start(k);
    if (own) this.name(report, held);
    this.parts[k].other.forEach((wanted, g) => {
      if (!wanted) return;
      const mine = of[held] === g;
      const skipped = mine ? rank[held] : members[g].length; // the held item is drawn already
      const other = (place) => members[g][place + (place >= skipped)];
      this.#subset(draws, report, other, members[g].length - mine, wanted - (mine && own));
    });
    return report;
  }

  /** Name a uniform subset of `wanted` of n items (Floyd's algorithm). */
  #subset(draws, report, item, n, wanted) {
    for (let end = n - wanted; end < n; end++) {
      const drawn = item(draws.below(end + 1));
      this.name(report, this.isNamed(report, drawn) ? item(end) : drawn);
    }
  }

  /** An own item that is named takes a place from the others of its group. */
  others(part, g) {
    const { length } = this.groups.members[g];
    const sameGroup = (part.other[g] - part.own[g] / D) / (length - 1);
    const elsewhere = length < this.groups.m || "none" in part;
    return elsewhere ? [sameGroup, ...super.others(part, g)] : [sameGroup];
  }
}

/** Every item on its own, with chance other[g] / 2^32. */
class Bits extends Bitmap {
  kind = "bits";

  base() {
    return D;
  }

  misuse({ other }, counts) {
    return counts.some((found, g) => found && !other[g]) ? "silent" : null;
  }

  write(draws, k, held, own) {
    const { other } = this.parts[k];
    const report = this.start(k);
    this.groups.of.forEach((g, item) => {
      const named = item === held ? own : other[g] > 0 && draws.next() < other[g];
      if (named) this.name(report, item);
    });
    return report;
  }
}

/** Bits for sets of which every item is protected on its own: nothing is sampled. */
class Each extends Bits {
  static needs = "protect = \"item\"";
  kind = "each";
  yours = "yours";

  static fits({ policy }) {
    return policy.protect === "item";
  }

  static readParts(raw, context) {
    return super.readParts(raw, context, 1);
  }

  prove({ names, least }) {
    checkChances(this.parts, names);
    const [{ own, other }] = this.parts;
    const inside = (x) => x > 0 && x < D;
    names.forEach((name, g) => {
      if (!inside(own[g]) || !inside(other[g])) {
        const what = `own = ${own[g]}/${D} and other = ${other[g]}/${D} of level ${show(name)}`;
        throw violation(`${what} must lie strictly between 0 and 1`);
      }
    });
    checkItems(this.factors(), least, names);
  }

  report(draws, items) {
    const [{ own, other }] = this.parts;
    const [mine, report] = [new Set(items), this.start(0)];
    this.groups.of.forEach((g, item) => {
      if (draws.next() < (mine.has(item) ? own : other)[g]) this.name(report, item);
    });
    return report;
  }

  chances(k) {
    const { own, other } = this.parts[k];
    return { mine: own.map((x) => x / D), others: other.map((x) => x / D) };
  }

  factors() {
    const [{ own, other }] = this.parts;
    return own.map((_, g) => {
      const [a, b, all] = [own[g], other[g], D].map(BigInt);
      const [named, unnamed] = [[a, b], [all - b, all - a]];
      return [named, inverse(named), unnamed, inverse(unnamed)].reduce(larger);
    });
  }
}

/**
 * A 32-bit number whose digits in base q are the part and y_0, …, y_t. It names an item of group
 * g if the mark y_0 + y_1 c_1 + … + y_t c_t mod q is below other[g], where c is the item's code.
 * Two codes differ, so two marks are independent and uniform.
 */
class Ticket extends Sampling {
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
      throw refused(`a ticket of q = ${show(q)}, t = ${show(t)} does not fit ${what}`);
    }
    Object.assign(this, { q, t, tickets: power(q, t + 1) });
  }

  base() {
    return this.q;
  }

  check(report) {
    if (report.length !== this.size) return "length";
    return number(report) < this.parts.length * this.tickets ? null : "ticket";
  }

  partOf(report) {
    return Math.floor(number(report) / this.tickets);
  }

  named(report) {
    const { q, t, groups } = this;
    const { other } = this.parts[this.partOf(report)];
    const y = [];
    for (let rest = number(report); y.length <= t; rest = Math.floor(rest / q)) y.unshift(rest % q);
    const [first, ...others] = y;
    const found = [];
    groups.of.forEach((g, item) => { // of a silent group other is 0, and no mark is below
      if ((first + this.#sum(others, item)) % q < other[g]) found.push(item);
    });
    return found;
  }

  write(draws, k, held, own) {
    const { q, t } = this;
    const threshold = held < 0 ? 0 : this.parts[k].other[this.groups.of[held]];
    // A silent group draws every ticket alike: an own mark would tell its items apart.
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

/**
 * Counted hits: the report is a polynomial p of s + 2 coefficients mod a prime, and names item i of
 * an active group if p(i + 1) is below the limit T. Of at most s own items, of which j are active,
 * some number N is named: N > tau, N = tau or N < tau, with the masses of row j. Any s + 2 values
 * of a random p are independent and uniform, so a report's chance depends on j and N alone.
 */
class Hits extends Encoding {
  static keys = ["prime"];
  static needs = "sets that are protected as a whole, with notion = \"min\", no budgets of pairs "
    + "and a padding up to 64";
  kind = "hits";
  by = "byNothing";
  yours = "yours";
  #known = new Map(); // the classes of a part and a number of items, once asked for
  #proved = []; // per part what the check computed

  static fits({ policy: { protect, strict, notion, pairs }, padding }) {
    return protect === "set" && notion === "min" && (strict || !pairs.length) && padding <= 64;
  }

  /** @returns {readonly HitsPart[]} */
  static readParts(raw, { groups, padding }) {
    for (const part of partsOf(raw)) {
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
      throw refused(`prime of the encoding is ${show(prime)}, but must be ${allowed}`);
    }
    const width = prime < 2 ** 16 ? 2 : 4;
    Object.assign(this, { prime, width, size: 1 + (this.padding + 2) * width });
  }

  // -- a report

  report(draws, items) {
    const { prime, padding, groups: { of } } = this;
    const k = this.drawPart(draws, ({ chance }) => chance);
    const { active, limit } = this.parts[k];
    // all levels alike, before anything looks at them: otherwise the promise for sets fails
    const kept = items.length > padding ? draws.some(items, padding) : items;
    const own = kept.filter((item) => active[of[item]]);
    const named = this.#drawNamed(draws, k, own.length);
    const values = own.map((_, place) => {
      return named.includes(place) ? draws.below(limit) : limit + draws.below(prime - limit);
    });
    const free = Array.from({ length: padding + 2 - own.length }, () => draws.below(prime));
    return this.#pack(k, through(own.map((item) => item + 1), values, free, prime));
  }

  /** Which of j own items are named, by their places: first how many by the row, then which. */
  #drawNamed(draws, k, j) {
    if (!j) return [];
    const classes = this.#classes(k, j);
    let [mass, c] = [draws.mass(), 0];
    for (; mass >= classes[c].mass; c++) mass -= classes[c].mass;
    const { first, weights, total } = classes[c];
    let n = 0;
    for (let weight = draws.belowBig(total); weight >= weights[n]; n++) weight -= weights[n];
    return draws.some(Array.from({ length: j }, (_, place) => place), first + n);
  }

  #classes(k, j) {
    const key = 65 * k + j; // a padding is at most 64
    const { limit, rows } = this.parts[k];
    if (!this.#known.has(key)) {
      this.#known.set(key, classesOf(rows[j - 1], weightsOf(j, limit, this.prime)));
    }
    return this.#known.get(key);
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

  check(report) {
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    return this.#coefficients(report).some((value) => value >= this.prime) ? "residue" : null;
  }

  partOf(report) {
    return report[0];
  }

  named(report) {
    const { prime, groups: { of } } = this;
    const { active, limit } = this.parts[this.partOf(report)];
    const falling = this.#coefficients(report).reverse();
    const found = [];
    of.forEach((g, item) => {
      if (!active[g]) return;
      let value = 0;
      for (const x of falling) value = (times(value, item + 1, prime) + x) % prime;
      if (value < limit) found.push(item);
    });
    return found;
  }

  speaks({ active }, g) {
    return active[g] === 1;
  }

  chances(k) {
    const mine = Array.from({ length: this.#reach(k) }, (_, j) => this.#own(k, j + 1));
    return { mine, others: [this.parts[k].limit / this.prime] };
  }

  padded(chances) {
    const { padding, groups: { m } } = this;
    return m <= padding ? chances : say("padded", { chances, n: padding });
  }

  /** The chance that one of j active own items is named. */
  #own(k, j) {
    return this.#classes(k, j).reduce((total, { mass, first, weights, total: all }) => {
      if (!weights.length) return total;
      const hits = weights.reduce((sum, weight, n) => sum + BigInt(first + n) * weight, 0n);
      return total + (mass / G) * toNumber([hits, all]);
    }, 0) / j;
  }

  // -- the check, and what it computes

  prove({ names, least }) {
    checkColumn(this.parts.map(({ chance }) => chance));
    for (const [k, part] of this.parts.entries()) {
      checkRows(part, this.prime);
      const f = densities(part, this.prime);
      const ends = f.map((values) => endsOf(values.map((value) => alone(value))));
      const spoken = least.filter((_, g) => part.active[g]);
      this.#checkEnds(ends, least.reduce(smaller), spoken.reduce(smaller));
      const { active, silent } = hitsFactors(f, this.padding, this.#spoken(k), this.groups.m);
      const factors = part.active.map((x) => (x ? active : silent));
      checkItems(factors, least, names);
      this.#proved[k] = { ends, all: endsOf(ends.slice(0, this.#reach(k) + 1)), factors };
    }
  }

  /** max f_j <= R_j LO and HI <= R_j min f_j with R_j = (j E_c + (s - j) E_1) / s. */
  #checkEnds(ends, all, spoken) {
    const s = this.padding;
    const { high, low } = endsOf(ends);
    if (!low[0]) throw violation("a class of a row has mass 0, so that some reports are ruled out");
    ends.forEach((own, j) => {
      const sums = plus(product(integer(j), spoken), product(integer(s - j), all));
      const bound = quotient(sums, integer(s));
      if (isLess(product(bound, low), own.high) || isLess(product(bound, own.low), high)) {
        const who = `lists with ${j} of the answers that a part speaks about`;
        throw violation(`${who} are told apart from others by more than their budget`, { row: j });
      }
    });
  }

  /** How many items a part speaks about. */
  #spoken(k) {
    return this.groups.of.reduce((total, g) => total + this.parts[k].active[g], 0);
  }

  /** How many of them a list that is reported can hold. */
  #reach(k) {
    return Math.min(this.padding, this.#spoken(k));
  }

  factors() {
    const each = this.#proved.map(({ factors }) => factors);
    return this.groups.members.map((_, g) => each.map((found) => found[g]).reduce(larger));
  }

  setFactor() {
    return this.#proved.map(({ all: { high, low } }) => quotient(high, low)).reduce(larger);
  }

  listFactor(items) {
    const { padding: s, groups: { of }, parts } = this;
    return this.#proved.map(({ ends, all }, k) => {
      const active = items.filter((item) => parts[k].active[of[item]]).length;
      const others = items.length - active;
      const drawn = Math.min(s, items.length);
      const mean = (key) => { // over the numbers of active items among those that are drawn
        let total = ZERO;
        for (let j = Math.max(0, drawn - others); j <= Math.min(drawn, active); j++) {
          const ways = chosen(active, j) * chosen(others, drawn - j);
          total = plus(total, product([ways, 1n], ends[j][key]));
        }
        return quotient(total, [chosen(items.length, drawn), 1n]);
      };
      return farthest(mean("high"), mean("low"), all);
    }).reduce(larger);
  }
}

/** w_N = C(j, N) T^N (P - T)^(j - N): how many of the P^j values of j items name N of them. */
function weightsOf(j, limit, prime) {
  const [hit, miss] = [BigInt(limit), BigInt(prime - limit)];
  return Array.from({ length: j + 1 }, (_, n) => {
    return chosen(j, n) * hit ** BigInt(n) * miss ** BigInt(j - n);
  });
}

/** The classes N > tau, N = tau and N < tau of a row: mass, smallest N, weights, their sum. */
function classesOf([tau, hi, mid, lo], weights) {
  const part = (mass, first, end) => {
    const own = weights.slice(first, end);
    return { mass, first, weights: own, total: own.reduce((sum, weight) => sum + weight, 0n) };
  };
  return [part(hi, tau + 1), part(mid, tau, tau + 1), part(lo, 0, tau)];
}

/** f[j][N]: a report's chance over that of a uniform one, if N of j own items are named. */
function densities({ limit, rows }, prime) {
  const f = [[ONE]];
  rows.forEach((row, n) => {
    const j = n + 1;
    const all = BigInt(prime) ** BigInt(j);
    const classes = classesOf(row, weightsOf(j, limit, prime)).reverse(); // from N = 0 up
    f.push(classes.flatMap(({ mass, weights, total }) => {
      return Array(weights.length).fill([BigInt(mass) * all, BigInt(G) * total]);
    }));
  });
  return f;
}

/** Masses that are chances: otherwise what is compared below would not be a mechanism. */
function checkRows({ limit, rows }, prime) {
  if (!(limit > 0 && limit < prime)) {
    throw violation(`limit = ${limit} of a part must lie strictly between 0 and ${prime}`);
  }
  rows.forEach(([tau, ...masses], n) => {
    const row = `row ${n + 1} of a part`;
    if (!(tau >= 0 && tau <= n + 1)) {
      throw violation(`tau = ${tau} in ${row} must lie between 0 and ${n + 1}`);
    }
    const [hi, , lo] = masses;
    if (masses.some((mass) => mass < 0) || masses.reduce((sum, mass) => sum + mass) !== G) {
      throw violation(`the masses of ${row} are not numbers from 0 that sum to 2^52`);
    }
    if ((tau === n + 1 && hi) || (tau === 0 && lo)) {
      throw violation(`a class of ${row} that cannot occur has a mass`);
    }
  });
}

/**
 * Exactly the largest factor, either way, between any list and the same without one item: of the
 * `spoken` items that a part speaks about, and of the others. A list of more than s items is a mean
 * over its s-subsets, and a ratio of means is extreme at s + 1 items.
 */
function hitsFactors(f, s, spoken, m) {
  const found = { active: ONE, silent: ONE };
  const meet = (who, x, y) => {
    const ratio = quotient(x, y);
    found[who] = [ratio, inverse(ratio)].reduce(larger, found[who]);
  };
  const mixed = (who, own, terms) => { // (own + sum) / (s + 1) own
    const sum = terms.reduce((total, [n, value]) => {
      return n ? plus(total, product(integer(n), value)) : total;
    }, own);
    meet(who, sum, product(integer(s + 1), own));
  };
  for (let j = 1; j <= Math.min(s, spoken); j++) {
    for (let n = 0; n < j; n++) for (const h of [0, 1]) meet("active", f[j][n + h], f[j - 1][n]);
  }
  // from here on there are s + 1 items: no such a if m <= s
  for (let a = Math.max(0, s - (m - spoken)); a <= Math.min(s, spoken - 1); a++) {
    for (let n = 0; n <= a; n++) {
      for (const h of [0, 1]) {
        const [same, next] = [f[a], f[a + 1] ?? []];
        const terms = [[n, same[n - 1 + h]], [a - n, same[n + h]], [s - a, next[n + h]]];
        mixed("active", same[n], terms);
      }
    }
  }
  for (let a = Math.max(0, s - (m - spoken) + 1); a <= Math.min(s, spoken); a++) {
    for (let n = 0; n <= a; n++) {
      const [same, less] = [f[a], f[a - 1] ?? []];
      mixed("silent", same[n], [[n, less[n - 1]], [a - n, less[n]], [s - a, same[n]]]);
    }
  }
  return found;
}

/**
 * A polynomial with these values at these points, all such alike: Newton's form, from uniform
 * coefficients of what the points leave open.
 * @param {number[]} points different @param {number[]} free uniform coefficients
 * @returns {number[]} from the constant up
 */
function through(points, values, free, prime) {
  const slopes = [...values]; // divided differences
  for (let gap = 1; gap < points.length; gap++) {
    for (let k = points.length - 1; k >= gap; k--) {
      const [rise, run] = [slopes[k] - slopes[k - 1], points[k] - points[k - gap]];
      slopes[k] = times((rise + prime) % prime, reciprocal((run + prime) % prime, prime), prime);
    }
  }
  return points.reduceRight((poly, point, k) => {
    const next = [slopes[k], ...poly]; // poly (x - point) + slope
    poly.forEach((x, n) => { next[n] = (next[n] + prime - times(x, point, prime)) % prime; });
    return next;
  }, free);
}

/** x y mod a prime below 2^31, exactly: 16 bits of y at a time keep every product below 2^53. */
function times(x, y, prime) {
  return (((x * (y >>> 16)) % prime) * 2 ** 16 + x * (y & 0xffff)) % prime;
}

/** 1 / x mod a prime, 0 < x < prime: Euclid's algorithm. */
function reciprocal(x, prime) {
  let [r, next, t, step] = [prime, x, 0, 1];
  while (next) {
    const n = Math.floor(r / next);
    [r, next, t, step] = [next, r - n * next, step, t - n * step];
  }
  return t < 0 ? t + prime : t;
}

/** x^n, exact below 2^53, which is far beyond everything it is compared with. */
function power(x, n) {
  return n ? x * power(x, n - 1) : 1;
}

function isPrime(q) {
  for (let k = 2; k * k <= q; k++) if (q % k === 0) return false;
  return q > 1;
}

/** n over k. @returns {bigint} */
function chosen(n, k) {
  let ways = 1n;
  for (let j = 1; j <= Math.min(k, n - k); j++) ways = (ways * BigInt(n - j + 1)) / BigInt(j);
  return ways;
}

/** The 4-byte little-endian integer. */
function number(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
}

const ENCODINGS = { fixed: Fixed, bits: Bits, ticket: Ticket, hits: Hits, each: Each };

/** @param {object} body of a mechanism file @param {Context} context */
function readEncoding({ encoding: raw, parts }, context) {
  const kind = choice("encoding", object(raw, "the encoding").kind, Object.keys(ENCODINGS));
  const Kind = ENCODINGS[kind];
  table(raw, ["kind", ...Kind.keys], "the encoding");
  if (!Kind.fits(context)) throw refused(`the encoding ${show(kind)} needs ${Kind.needs}`);
  return freeze(new Kind(context, Kind.readParts(parts, context), raw));
}

// ---- mechanism ----------------------------------------------------------------------------------

const KEYS = [
  "format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts",
];

/**
 * The JSON value of UTF-8 bytes, which may have a byte-order mark; throws for anything else, and
 * where an object has a key twice: of two values every reader takes another one.
 */
function parse(bytes) {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const value = JSON.parse(text);
  // in JSON a string before a colon is a key, and every key is one
  const written = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:?/g) ?? [];
  if (written.filter((token) => token.endsWith(":")).length !== countKeys(value)) {
    throw new SyntaxError("a key is there twice");
  }
  return value;
}

function countKeys(value) {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((total, x) => total + countKeys(x), own);
}

/**
 * The public parameters that both sides share. For all inputs of levels i and j and every report y,
 * Pr(y | i) <= e^{r_ij} Pr(y | j), and for sets the same with the paper's budget of a set or, where
 * items are protected on their own, item by item: proved on construction, so an object of this
 * class is a checked promise.
 */
export class Mechanism {
  #ratios; // per group the promise for an answer, exactly, once asked for
  #factors; // the same as people read it

  /**
   * Verify the content of a mechanism file.
   * @param {Uint8Array} bytes
   * @param {{fingerprint?: string | null}} [pinned] as for `from`
   * @returns {Promise<Mechanism>}
   */
  static async read(bytes, pinned = {}) {
    let document;
    try {
      document = parse(bytes);
    } catch {
      throw refused("the mechanism file is not JSON in UTF-8");
    }
    return Mechanism.from(document, pinned);
  }

  /**
   * Verify a mechanism document and the fingerprint that it carries.
   * @param {object} document the content of a mechanism file
   * @param {{fingerprint?: string | null}} [pinned] the only fingerprint to accept, from an
   *   invitation
   * @returns {Promise<Mechanism>}
   */
  static async from(document, { fingerprint: pinned } = {}) {
    const { fingerprint: claimed, ...body } = object(document, "the mechanism");
    const text = canonicalJson(body);
    const got = await fingerprint(body);
    const short = (value) => `${shortFingerprint(cleaned(String(value)))}…`;
    if (claimed !== got) {
      const change = "it was changed after it was made; get it again from the organiser";
      const what = `the content has fingerprint ${short(got)} but says ${short(claimed)}`;
      throw new DiscreetError("fingerprint", `${what}: ${change}`);
    }
    if (pinned != null && pinned !== got) {
      const next = "do not answer, and ask who invited you";
      const what = `the invitation is for fingerprint ${short(pinned)} but this is ${short(got)}`;
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    return new Mechanism(text, got);
  }

  /**
   * Use `Mechanism.from`: this checks all but the fingerprint.
   * @param {string} text canonical JSON @param {string} fingerprint
   */
  constructor(text, fingerprint) {
    // a copy that nobody can change after the check
    const body = JSON.parse(text, (_, value) => freeze(value));
    choice("format", body.format, ["discreet-mechanism/2"]);
    table(body, KEYS, "the mechanism", ["certificate"]);
    if (typeof body.model !== "string" || !/^[a-z][a-z0-9]{0,19}$/.test(body.model)) {
      throw refused(`model is ${show(body.model)}, but must be a word of a-z and 0-9, up to 20`);
    }
    choice("prior", body.prior, ["uniform", "worst", "given"]);
    if ("certificate" in body) checkCertificate(body.certificate);
    const { policy, factors } = readPolicy(body.policy);
    const { padding } = body;
    checkPadding(padding, policy);
    const groups = readGroups(body.groups, policy);
    checkShares(body.shares, groups.members.length + (policy.input === "set"));
    const encoding = readEncoding(body, { groups, policy, padding });
    encoding.prove(termsOf(policy, factors, body.groups));

    this.policy = policy;
    this.model = body.model;
    this.encoding = encoding;
    this.padding = padding;
    this.groups = body.groups;
    this.parts = encoding.parts;
    this.m = groups.m;
    this.reportSize = encoding.size;
    this.fingerprint = fingerprint;
    freeze(this);
  }

  // -- a report of one's own

  /**
   * One person's report, with secure randomness.
   * @param {string | number | Iterable<string | number>} answer an item (label or index), or for
   *   set input several
   * @returns {Uint8Array}
   */
  perturb(answer) {
    return this.encoding.report(new Draws(), this.places(answer));
  }

  /** The items of an answer, each once: of a single one a list with it. @returns {number[]} */
  places(answer) {
    if (this.policy.input === "single") return [this.#index(answer)];
    if (typeof answer === "string" || typeof answer?.[Symbol.iterator] !== "function") {
      const what = `this question takes a list of items, got ${show(answer)}`;
      throw new DiscreetError("answer", `${what}; give a list, be it empty`);
    }
    return [...new Set(Array.from(answer, (item) => this.#index(item)))];
  }

  #index(item) {
    const { items } = this.policy;
    if (typeof item === "string") {
      const place = items.indexOf(item);
      if (place >= 0) return place;
      const next = `choose one of the ${this.m} items of the question`;
      throw new DiscreetError("answer", `${show(item)} is not an item; ${next}`);
    }
    if (Number.isInteger(item) && item >= 0 && item < this.m) return item;
    const allowed = `the label of an item or its index from 0 to ${this.m - 1}`;
    throw new DiscreetError("answer", `an answer is ${allowed}, got ${show(item)}; choose an item`);
  }

  // -- reading a report

  /**
   * Why this is not a report of the mechanism, or null.
   * @param {Uint8Array} report
   * @returns {null | "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue"}
   */
  check(report) {
    if (!(report instanceof Uint8Array)) {
      const what = `a report is a Uint8Array, got ${show(report)}`;
      throw new DiscreetError("report", `${what}; pass the bytes that perturb made`);
    }
    return this.encoding.check(report);
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
    const reason = this.check(report);
    if (reason) {
      const what = `this is not a report of the mechanism (${reason})`;
      throw new DiscreetError("report", `${what}; perturb the answer again`);
    }
    return { part: this.encoding.partOf(report), named: this.encoding.named(report) };
  }

  // -- what is promised, in numbers and in words

  /**
   * Per level, the largest log-ratio of any report: between an answer of the level and any other
   * answer (single input), or between having and not having one of its items (set input).
   * @returns {number[]}
   */
  levelEpsilons() {
    const epsilons = this.#exact.map((ratio) => Math.log(toNumber(ratio)));
    return this.groups.map((group) => epsilons[group]);
  }

  /**
   * The largest log-ratio of any report between any two answers. Where the items of a set are
   * protected on their own, between an empty list and one of the 20 items that tell most.
   * @returns {number}
   */
  wholeEpsilon() {
    if (this.policy.protect === "set") return Math.log(toNumber(this.encoding.setFactor()));
    const epsilons = this.#exact.map((ratio) => Math.log(toNumber(ratio)));
    const most = this.policy.protect === "item" ? this.m : 1;
    return largestOf(epsilons, this.#sizes, most, (x, y) => y - x)
      .reduce((total, [epsilon, n]) => total + n * epsilon, 0);
  }

  /**
   * The promise for an answer, as a sentence.
   * @param {number} level the place of its level in the policy
   * @param {string} what how the sentence calls the answer
   */
  promise(level, what) {
    const factor = local(this.#factor(level).told);
    return capital(say(this.policy.input === "set" ? "having" : "odds", { what, factor }));
  }

  /** The factor of a level's promise, rounded up, so that it stays true. @param {number} level */
  factor(level) {
    return this.#factor(level).factor;
  }

  get #exact() {
    this.#ratios ??= this.encoding.factors();
    return this.#ratios;
  }

  get #sizes() {
    return this.encoding.groups.members.map(({ length }) => length);
  }

  #factor(level) {
    this.#factors ??= this.#exact.map((ratio) => rounded(square(ratio)));
    return this.#factors[this.groups[level]];
  }

  /**
   * What a participant is told: one entry per level, then (level null) one about whole lists, if
   * the question takes them, and one per pair of levels that is not protected. `factor` and the
   * number in the sentence are rounded up, so that they stay true.
   * @returns {{level: string | null, items: number, examples: string[], factor: number,
   *   sentence: string, whole?: true}[]}
   */
  promises() {
    const { policy } = this;
    const examples = policy.levels.map(() => []);
    policy.items.forEach((item, i) => {
      if (examples[policy.levelOf[i]].length < 3) examples[policy.levelOf[i]].push(item);
    });
    const protectedOnes = policy.levels.map(({ name, count: size }, k) => {
      const n = size - examples[k].length;
      const listed = examples[k].map((item) => `"${item}"`).join(", ");
      const items = n ? say("more", { items: listed, n: String(n) }) : listed;
      const { factor, told } = this.#factor(k);
      const key = policy.input === "set" ? "havingOfLevel" : "oddsOfLevel";
      const sentence = say(key, { level: name, items, factor: local(told) });
      return { level: name, items: size, examples: examples[k], factor, sentence };
    });
    return [...protectedOnes, ...this.#wholeLists(), ...unprotected(policy)];
  }

  /**
   * A warning in place of any sentence that reassures: where one report can change the odds between
   * two answers by more than 100, or a pair of answers is not protected at all; "" where neither is
   * so.
   * @returns {string}
   */
  caution() {
    const { input, protect } = this.policy;
    if (unprotected(this.policy).some(({ factor }) => factor === Infinity)) {
      return say("cautionOpen");
    }
    const weak = (ratio, key) => {
      if (!isLess([BigInt(WEAK), 1n], ratio)) return "";
      return say(key, { factor: local(rounded(square(ratio)).told) });
    };
    const own = weak(this.#exact.reduce(larger), input === "set" ? "cautionHaving" : "cautionAnswers");
    if (own) return own;
    if (protect === "set") return weak(this.encoding.setFactor(), "cautionLists");
    const lists = protect === "item" && this.wholeEpsilon() > Math.log(WEAK);
    return lists ? say("cautionEach") : "";
  }

  /**
   * Per level what counts against a limit: the log-ratio that is realised for one of its answers.
   * For lists no less than the level's budget, which a list may use up, and no less than what is
   * realised between two lists where that is above all budgets.
   * @returns {number[]}
   */
  levelBudgets() {
    const realised = this.levelEpsilons();
    if (this.policy.input === "single") return realised;
    const binding = bindingBudgets(this.policy);
    const lists = this.policy.protect === "set" ? this.wholeEpsilon() : 0;
    const excess = lists > binding.reduce((x, y) => Math.max(x, y)) + 1e-9 ? lists : 0;
    return realised.map((epsilon, k) => Math.max(epsilon, binding[k], excess));
  }

  #wholeLists() {
    const { protect } = this.policy;
    if (!protect) return [];
    const { factor, sentence } = protect === "set"
      ? anyTwo(this.encoding.setFactor()) : multiplied(this.#exact, this.#sizes, this.m);
    return [{ level: null, items: 0, examples: [], factor, sentence, whole: true }];
  }

  /**
   * The promise for one person's whole list; set input only.
   * @param {Iterable<string | number>} answer
   * @returns {{factor: number, sentence: string}}
   */
  promiseOf(answer) {
    const { protect } = this.policy;
    if (!protect) {
      const what = "this question takes one answer, so there is no list to promise something for";
      throw new DiscreetError("answer", `${what}; ask for the promise of its level`);
    }
    const items = this.places(answer);
    const group = (item) => this.encoding.groups.of[item];
    const ratio = protect === "set"
      ? this.encoding.listFactor(items)
      : items.reduce((total, item) => product(total, this.#exact[group(item)]), ONE);
    const { factor, told } = rounded(square(ratio));
    const key = protect === "set" ? "yourList" : items.length ? "yourListOfEach" : "noList";
    return { factor, sentence: say(key, { factor: local(told) }) };
  }
}

// ---- promises: computed from the checked integers, for people to read ---------------------------

const [FEW, MANY] = [5, 20]; // answers of a list that people are told about

/** The promise for any two lists. @param {Ratio} ratio */
function anyTwo(ratio) {
  const { factor, told } = rounded(square(ratio));
  return { factor, sentence: say("anyTwoLists", { factor: local(told) }) };
}

/** The promise where items are protected on their own: for lists of those that tell most. */
function multiplied(ratios, sizes, m) {
  const most = (k) => {
    const each = largestOf(ratios, sizes, k, (x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0));
    return rounded(square(each.reduce((total, [[n, d], copies]) => {
      return product(total, [n ** BigInt(copies), d ** BigInt(copies)]);
    }, ONE)));
  };
  const [few, many] = [most(Math.min(m, FEW)), most(Math.min(m, MANY))];
  const sentence = say(m > FEW ? "eachOfMany" : "eachOfFew", {
    few: local(few.told), many: local(many.told), answers: answers(Math.min(m, FEW)),
    n: Math.min(m, MANY),
  });
  return { factor: many.factor, sentence };
}

/** The so many largest values of items, of which group g has sizes[g]: each with its number. */
function largestOf(values, sizes, most, falling) {
  const order = values.map((value, g) => [value, sizes[g]]);
  order.sort(([x], [y]) => falling(x, y));
  let left = most;
  return order.flatMap(([value, size]) => {
    const n = Math.min(left, size);
    left -= n;
    return n ? [[value, n]] : [];
  });
}

const percent = (share) => local(`${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);

function range(shares) {
  const ends = [Math.min, Math.max].map((end) => shares.reduce((x, y) => end(x, y)));
  const [low, high] = ends.map(percent);
  return low === high ? low : say("range", { low, high });
}

/** The budget that binds every level: its own, or the smallest of all if the policy is strict. */
function bindingBudgets({ levels, pairs, strict }) {
  const own = levels.map(({ epsilon }) => epsilon);
  if (!strict) return own;
  const least = [...own, ...pairs.map(({ epsilon }) => epsilon)].reduce((x, y) => Math.min(x, y));
  return own.map(() => least);
}

/** The pair budgets of every two levels, and the shortest paths along them. */
function shortestPaths({ levels, pairs, notion }) {
  const place = new Map(levels.map(({ name }, k) => [name, k]));
  const paths = levels.map((x) => levels.map((y) => {
    return notion === "min" ? Math.min(x.epsilon, y.epsilon) : (x.epsilon + y.epsilon) / 2;
  }));
  for (const { levels: [first, second], epsilon } of pairs) {
    const [i, j] = [place.get(first), place.get(second)];
    paths[i][j] = paths[j][i] = epsilon;
  }
  const edges = paths.map((row) => [...row]);
  levels.forEach((_, k) => paths.forEach((row) => row.forEach((x, j) => {
    row[j] = Math.min(x, row[k] + paths[k][j]);
  })));
  return { place, edges, paths };
}

/**
 * What the policy leaves out, with the bound that it still has through other levels: the shortest
 * path of pair budgets.
 */
function unprotected(policy) {
  const { levels, pairs, strict } = policy;
  const open = strict ? [] : pairs.filter(({ budget }) => !budget);
  if (!open.length) return [];
  const { place, edges, paths: r } = shortestPaths(policy);
  return open.flatMap(({ levels: [first, second] }) => {
    if (first === second && levels[place.get(first)].count === 1) return [];
    const [i, j] = [place.get(first), place.get(second)];
    const bound = r[i][j];
    const { factor, told } = along(policy, edges, r, i, j);
    const keys = first === second ? ["sameApart", "sameNotApart"] : ["apart", "notApart"];
    const key = keys[bound < Infinity ? 0 : 1];
    const sentence = say(key, { first, second, factor: local(told) });
    return [{ level: null, items: 0, examples: [], factor, sentence }];
  });
}

/**
 * At most what tells two levels apart through others: the budgets along the shortest path, each as
 * a rational at least e^r.
 */
function along(policy, edges, paths, i, j) {
  const bound = Math.exp(paths[i][j]);
  let [squared, here] = [[1n, 1n], i];
  for (let steps = 0; bound < Infinity && steps < edges.length; steps++) {
    const ways = edges[here].map((budget, k) => budget + paths[k][j]);
    const next = foremost(ways, (x, y) => x < y);
    const direct = edges[here][j] <= ways[next];
    squared = product(squared, squareUp(policy, here, direct ? j : next));
    if (direct) return rounded(squared);
    here = next;
  }
  return roundedFloat(bound); // budgets too small to be told from none, or no number at all
}

/** At least e^{2 r} of two levels. @returns {Ratio} */
function squareUp({ levels, pairs, notion }, i, j) {
  const both = [levels[i].name, levels[j].name];
  const given = pairs.find(({ levels: [x, y] }) => {
    return (x === both[0] && y === both[1]) || (x === both[1] && y === both[0]);
  });
  if (given) return square(factorUp(given.budget));
  if (notion === "avg") return product(factorUp(levels[i].budget), factorUp(levels[j].budget));
  return square(factorUp(levels[levels[j].epsilon < levels[i].epsilon ? j : i].budget));
}

/** A rational at least e^budget, for a budget up to 710; exactly k for ln(k). @returns {Ratio} */
function factorUp(budget) {
  if (budget.startsWith("ln")) return readBudget(budget).factor;
  const [whole, fraction = ""] = budget.split(".");
  // of the Taylor sum's 2,000 terms each is less than 2^-80 e^x too small
  const more = [(1n << 60n) + 1n, 1n << 60n];
  return product(taylor(BigInt(whole + fraction), 10n ** BigInt(fraction.length)), more);
}

/**
 * A factor as people read it, from its square: rounded up, exactly, so that the promise stays true.
 * @param {Ratio} squared
 * @returns {{factor: number, told: string}}
 */
function rounded([n, d]) {
  const hundredths = rootUp(10_000n * n, d);
  if (hundredths < 100_000n) {
    const factor = Number(hundredths) / 100;
    return { factor, told: String(factor) };
  }
  const whole = rootUp(n, d);
  const near = Number(whole);
  const factor = near < Infinity && BigInt(near) < whole ? near * (1 + Number.EPSILON) : near;
  if (whole >= 10n ** 9n) return { factor, told: powerOfTen(whole) };
  return { factor, told: String(whole).replace(/\B(?=(\d{3})+$)/g, ",") };
}

/** A whole number as two digits, rounded up, times a power of ten. */
function powerOfTen(whole) {
  const power = String(whole).length - 1;
  const unit = 10n ** BigInt(power - 1);
  const lead = Number((whole + unit - 1n) / unit);
  if (lead === 100) return `1.0 × 10^${power + 1}`;
  return `${Math.floor(lead / 10)}.${lead % 10} × 10^${power}`;
}

/** The same for a factor that was computed in floats: with a margin above their error. */
function roundedFloat(factor) {
  const x = factor * (1 + 1e-12);
  if (x === Infinity) return { factor: x, told: "more than any number" };
  const fine = 2 ** 40;
  const ratio = x < 2 ** 53 ? [BigInt(Math.ceil(x * fine)), BigInt(fine)] : [BigInt(x), 1n];
  return rounded(square(ratio));
}

/** The least integer whose square is at least n / d. */
function rootUp(n, d) {
  const least = (n + d - 1n) / d;
  let root = 1n << BigInt(2 * least.toString(16).length); // above the root; Newton's steps down
  for (;;) {
    const next = (root + least / root) >> 1n;
    if (next >= root) break;
    root = next;
  }
  return root * root < least ? root + 1n : root;
}

// ---- ledger: what this device has already told, and to whom -------------------------------------

/**
 * @typedef {{origin: string, name: string, fingerprint: string, id: string, report: string,
 *   items: string[], budgets: {levels: number[], levelOf: number[], whole: number},
 *   state: "shown" | "leaving" | "counted"}}
 *   Entry  in hexadecimal; never the answer, never a time; a report is shown to its sender alone,
 *   then may have left, then the collector has it for certain
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new question's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const LEDGER = "discreet-ledger/3";
const SETTLE = 150; // milliseconds in which tabs see what one of them wrote
const STATES = ["shown", "leaving", "counted"];

/** Run work while no other tab of this browser does: two of them must not both draw a report. */
export async function locked(work) {
  const locks = globalThis.navigator?.locks;
  // async: Node 24 never releases a lock whose work throws at once
  return locks ? locks.request(LEDGER, async () => work()) : work();
}

/**
 * Averaging over repeats is the classic attack, so the same question gets the same report, and what
 * is told adds up.
 */
export class Ledger {
  #storage;
  #shared; // with other tabs
  #key;

  /**
   * @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless
   *   given
   * @param {number} [person] several people may share a device: each has a ledger of her own
   */
  constructor(storage, person = 1) {
    // late: reading it may throw where storage is blocked
    this.#storage = () => storage ?? globalThis.localStorage;
    this.#shared = !storage;
    this.#key = person === 1 ? LEDGER : `${LEDGER}/${person}`;
  }

  /** Whether a ledger of this person is in the browser's storage. @param {number} person */
  static isKept(person) {
    return globalThis.localStorage.getItem(`${LEDGER}/${person}`) !== null;
  }

  /** The entry of exactly this collection, or null. @returns {Entry | null} */
  find(origin, name, fingerprint) {
    return this.#read().find(isOf(origin, name, fingerprint)) ?? null;
  }

  /**
   * Earlier answers to other collections that share an item, however its label is spelled.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @returns {Overlap[]}
   */
  overlaps(origin, name, mechanism) {
    const here = mechanism.policy.items.map(looks);
    return this.#told(origin, name, mechanism.fingerprint).flatMap((entry) => {
      const known = new Set(entry.items.flatMap(looks));
      const shared = mechanism.policy.items.filter((_, k) => here[k].some((x) => known.has(x)));
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item about which most would be told in all, the new question included; null without
   * overlaps.
   * @param {Mechanism} mechanism @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(mechanism, overlaps) {
    if (!overlaps.length) return null;
    const spent = overlaps.map(({ entry }) => spentBy(entry));
    const { items, levelOf, input } = mechanism.policy;
    const own = mechanism.levelEpsilons();
    const total = items.map((item, k) => {
      const own_ = looks(item);
      const each = spent.flatMap((known) => {
        const found = own_.filter((look) => known.has(look)).map((look) => known.get(look));
        return found.length ? [Math.max(...found)] : [];
      });
      return each.length ? each.reduce((sum, x) => sum + x, own[levelOf[k]]) : -Infinity;
    });
    const worst = foremost(total, (x, y) => x > y);
    const { factor, told } = roundedFloat(Math.exp(total[worst]));
    const sentences = [say(input === "set" ? "alreadyHaving" : "already", {
      n: overlaps.length, what: `"${items[worst]}"`, factor: local(told),
    })];
    if (input === "set") {
      const whole = overlaps.reduce((sum, { entry }) => sum + entry.budgets.whole,
        mechanism.wholeEpsilon());
      const lists = roundedFloat(Math.exp(whole)).told;
      sentences.push(say("alreadyLists", { factor: local(lists) }));
    }
    const sentence = sentences.join(" ");
    return { item: items[worst], epsilon: total[worst], factor, sentence };
  }

  /**
   * The sum of the budgets of whole answers over all collections but this one, whatever they ask
   * about, and their number: labels can be rewritten, a sum cannot.
   * @returns {{epsilon: number, earlier: number}}
   */
  total(origin, name, fingerprint) {
    const others = this.#told(origin, name, fingerprint);
    const epsilon = others.reduce((sum, { budgets }) => sum + budgets.whole, 0);
    return { epsilon, earlier: others.length };
  }

  /**
   * Write a report down before anybody sees it; if this collection has an entry already, that one
   * counts.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @param {Uint8Array} report @param {Uint8Array} id
   * @returns {Entry}
   */
  reserve(origin, name, mechanism, report, id) {
    const entries = this.#read();
    const earlier = entries.find(isOf(origin, name, mechanism.fingerprint));
    if (earlier) return earlier;
    const { policy: { items, levelOf }, fingerprint } = mechanism;
    const budgets = {
      levels: mechanism.levelEpsilons(), levelOf, whole: mechanism.wholeEpsilon(),
    };
    const entry = {
      origin, name, fingerprint, id: toHex(id), report: toHex(report), items, budgets,
      state: "shown",
    };
    this.#write([...entries, entry]);
    return entry;
  }

  /**
   * After a write, inside the lock: until every other tab sees it. Tabs keep copies of
   * localStorage that catch up with each other a little later than the lock is handed on.
   */
  async settled() {
    if (this.#shared) await new Promise((resolve) => { setTimeout(resolve, SETTLE); });
  }

  /** The report is about to leave, or the collector has acknowledged it. */
  mark(origin, name, fingerprint, state) {
    const same = isOf(origin, name, fingerprint);
    this.#write(this.#read().map((entry) => (same(entry) ? { ...entry, state } : entry)));
  }

  /** What was only shown on this device has told nobody anything. @returns {Entry[]} */
  #told(origin, name, fingerprint) {
    const same = isOf(origin, name, fingerprint);
    return this.#read().filter((entry) => !same(entry) && entry.state !== "shown");
  }

  /** @returns {Entry[]} */
  #read() {
    let text;
    try {
      text = this.#storage().getItem(this.#key);
    } catch (error) {
      const what = `the ledger cannot be read (${error.message}), so nothing is sent`;
      throw new DiscreetError("ledger", `${what}; let it be stored`);
    }
    if (text == null) return [];
    try {
      const { entries, ...more } = JSON.parse(text);
      const shape = Array.isArray(entries) && !Object.keys(more).length;
      if (shape && entries.every(isEntry)) return entries;
    } catch { /* said below */ }
    const what = `the ledger stored as "${this.#key}" is damaged, so nothing is sent`;
    const next = "restore it, or remove it if you accept that earlier answers are forgotten";
    throw new DiscreetError("ledger", `${what}; ${next}`);
  }

  #write(entries) {
    try {
      this.#storage().setItem(this.#key, JSON.stringify({ entries }));
    } catch (error) {
      const what = `the ledger cannot be written (${error.message}), so nothing is sent`;
      const next = "make room, or leave the private window";
      throw new DiscreetError("ledger", `${what}; ${next}`);
    }
  }
}

/** What is sent of an entry. @param {Entry} entry */
const sendable = (name, mechanism, { id, report }) => {
  return { name, mechanism, id: fromHex(id), report: fromHex(report) };
};

function isOf(origin, name, fingerprint) {
  return (entry) => {
    return entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
  };
}

/** The budget of every look of an item; the larger, where two labels are one item. */
function spentBy({ items, budgets: { levels, levelOf } }) {
  const found = new Map();
  items.forEach((item, k) => looks(item).forEach((look) => {
    found.set(look, Math.max(found.get(look) ?? 0, levels[levelOf[k]]));
  }));
  return found;
}

function isEntry({ origin, name, fingerprint, id, report, items, budgets, state }) {
  const texts = Array.isArray(items) && items.length > 0
    && [origin, name, fingerprint, ...items].every((text) => typeof text === "string");
  const { levels, levelOf, whole } = budgets;
  const known = Array.isArray(levels)
    && [...levels, whole].every((epsilon) => Number.isFinite(epsilon) && epsilon >= 0);
  const placed = Array.isArray(levelOf) && levelOf.length === items.length
    && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && known && placed && bytes && STATES.includes(state);
}

// ---- client: the only part that talks to a server -----------------------------------------------

/**
 * @typedef {{name: string, mechanism: Mechanism, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean, overlaps: Overlap[], summed: Summed | null, maxTotal: number}} Prepared
 *   what will be sent, if `send` is called
 * @typedef {{accepted: number, duplicates: number, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean}} Receipt
 */

const LATER = new Set([408, 425, 429]); // refusals that ask for the same again
// milliseconds of one attempt, and of a pause, whatever the collector asks for
const LONGEST = 20_000;
const LATE = 3_600_000; // milliseconds after its end that a question is closed, whoever says what

/**
 * Fetches a mechanism, verifies it, and uploads one perturbed report, once. Requests are a function
 * of the report alone.
 */
export class Client {
  #fetch;

  /**
   * @param {string} url where the collector is
   * @param {{fetch?: typeof fetch, ledger?: Ledger, origin?: string, patience?: number,
   *   pause?: number, maxTotal?: number, waiting?: (milliseconds: number) => void}} [options]
   *   patience: milliseconds after which retries end; pause: before the first retry; maxTotal: caps
   *   the sum of the budgets over all collections in the ledger, whatever they ask about; waiting:
   *   is told when an attempt has failed, and how long it is until the next
   */
  constructor(url, {
    fetch = globalThis.fetch, ledger = new Ledger(), origin, patience = 60_000, pause = 500,
    maxTotal = Infinity, waiting = () => {},
  } = {}) {
    this.waiting = waiting;
    this.maxTotal = limit(maxTotal);
    this.#fetch = (...args) => fetch(...args);
    this.url = url.replace(/\/+$/, "");
    this.ledger = ledger;
    this.origin = origin ?? new URL(url).origin;
    this.patience = patience;
    this.pause = pause;
  }

  /**
   * The collection's mechanism, verified. Of what else the collector says only two words are used:
   * its state, until the question's own end, and what it keeps.
   * @param {string} name
   * @param {{fingerprint?: string | null, maxEpsilon?: number | Record<string, number>}} [pins]
   *   the only fingerprint to accept; the largest budget to accept, of all items or of each by its
   *   label
   * @returns {Promise<{mechanism: Mechanism, state: "upcoming" | "open" | "closed",
   *   keeps: "counts" | "reports"}>}
   */
  async describe(name, { fingerprint: pinned, maxEpsilon } = {}) {
    const { mechanism, state, keeps } = await this.#request(this.#path(name), {});
    if (!["upcoming", "open", "closed"].includes(state)) {
      const what = `the collection's state is ${show(state)}, but must be upcoming, open or closed`;
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const found = await Mechanism.from(mechanism, { fingerprint: pinned });
    if (found.policy.name !== name) {
      const what = `the link is for ${show(name)}, but the question there is called `
        + show(found.policy.name);
      const next = "a link of your own could tell who you are: do not answer, and compare the whole"
        + " link with somebody else's";
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    if (maxEpsilon !== undefined) checkBudgets(found, maxEpsilon);
    const { opens, closes } = found.policy.about;
    if (state === "upcoming" && !opens) {
      const what = "the collector says that the question has not opened, which has no such time";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const over = closes && Date.now() > Date.parse(closes) + LATE;
    return {
      mechanism: found, state: over ? "closed" : state,
      keeps: keeps === "counts" ? "counts" : "reports", // whoever says nothing may keep everything
    };
  }

  /**
   * Perturb an answer and write the report down; nothing is sent yet. It is drawn once: a
   * collection whose report has been prepared gives it again, whatever the answer, which may then
   * be left out.
   * @param {string} name @param {Mechanism} mechanism
   * @param {{agree?: boolean | number, maxTotal?: number}} [options] agree: to the summed budget of
   *   overlapping questions, or of so many of them; maxTotal, here or of the client, is not lifted
   *   by it
   * @returns {Promise<Prepared>}
   */
  async prepare(name, mechanism, answer, { agree = false, maxTotal = Infinity } = {}) {
    const most = Math.min(limit(maxTotal), this.maxTotal);
    const { ledger } = this; // of who answers, whoever comes meanwhile
    if (answer !== undefined) mechanism.places(answer); // refuses an answer that is none
    return locked(async () => {
      const earlier = ledger.find(this.origin, name, mechanism.fingerprint);
      const overlaps = earlier && earlier.state !== "shown"
        ? [] : this.#consented(ledger, name, mechanism, most, agree === true ? Infinity : Number(agree));
      if (!earlier) {
        const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
        ledger.reserve(this.origin, name, mechanism, mechanism.perturb(answer), id);
        await ledger.settled();
      }
      const entry = ledger.find(this.origin, name, mechanism.fingerprint);
      return freeze({
        ...sendable(name, mechanism, entry), repeated: earlier !== null, overlaps,
        summed: ledger.summed(mechanism, overlaps), maxTotal: most,
      });
    });
  }

  /**
   * The report that was on its way when something went wrong: nobody knows whether it arrived. Send
   * it again; its id makes sure that it is counted once.
   * @param {string} name @param {Mechanism} mechanism
   * @returns {Prepared | null}
   */
  unsent(name, mechanism) {
    const entry = this.ledger.find(this.origin, name, mechanism.fingerprint);
    if (entry?.state !== "leaving") return null;
    return freeze({
      ...sendable(name, mechanism, entry), repeated: true, overlaps: [], summed: null,
      maxTotal: Infinity,
    });
  }

  /**
   * Upload the report, again and again while the collector is away: it is counted once.
   * @param {Prepared} prepared
   * @returns {Promise<Receipt>}
   */
  async send({ name, mechanism, id, report, repeated, overlaps, maxTotal }) {
    const { ledger } = this; // of who sends, whoever comes meanwhile
    const entry = await locked(() => {
      const known = ledger.reserve(this.origin, name, mechanism, report, id);
      if (known.state === "shown") {
        this.#consented(ledger, name, mechanism, maxTotal, overlaps.length);
        ledger.mark(this.origin, name, mechanism.fingerprint, "leaving");
      }
      return known;
    });
    const { accepted, duplicates } = await this.#request(`${this.#path(name)}/reports`, {
      method: "POST",
      headers: {
        "Content-Type": "application/octet-stream",
        "Discreet-Mechanism": mechanism.fingerprint,
      },
      body: fromHex(entry.id + entry.report),
    });
    if (accepted + duplicates !== 1) {
      const what = "the collector did not say that it has the report";
      throw new DiscreetError("server", `${what}; send it again later`);
    }
    try {
      await locked(() => ledger.mark(this.origin, name, mechanism.fingerprint, "counted"));
    } catch {
      // the entry stays "leaving": then the same bytes may be sent again, and are counted once
    }
    const other = entry.id !== toHex(id);
    return {
      accepted, duplicates, id: fromHex(entry.id), report: fromHex(entry.report),
      repeated: repeated || other,
    };
  }

  /** Prepare and send. @returns {Promise<Receipt>} */
  async answer(name, mechanism, answer, options = {}) {
    return this.send(await this.prepare(name, mechanism, answer, options));
  }

  /** Refuse what the person has not agreed to, or what would tell more in all than she allows. */
  #consented(ledger, name, mechanism, most, agreed) {
    this.#checkTotal(ledger, name, mechanism, most);
    const overlaps = ledger.overlaps(this.origin, name, mechanism);
    if (overlaps.length <= agreed) return overlaps;
    const summed = ledger.summed(mechanism, overlaps);
    const sentence = `${summed.sentence.slice(0, -1)}; answer only if you agree to that.`;
    throw new DiscreetError("overlap", sentence, { summed, overlaps });
  }

  #checkTotal(ledger, name, mechanism, most) {
    const spent = ledger.total(this.origin, name, mechanism.fingerprint);
    const epsilon = spent.epsilon + mechanism.wholeEpsilon();
    if (!(epsilon > most + 1e-9)) return;
    const before = spent.earlier === 1 ? "an earlier answer" : `${spent.earlier} earlier answers`;
    const what = spent.earlier ? `this answer and ${before} together have` : "this answer has";
    const allowed = `above the ${brief(most)} that you allow in all`;
    const sentence = `${what} the budget ${brief(epsilon)}, ${allowed}`;
    const next = "it is not sent, even if you agree";
    throw new DiscreetError("total", `${sentence}; ${next}`, { epsilon, limit: most });
  }

  #path(name) {
    return `${this.url}/v1/collections/${encodeURIComponent(name)}`;
  }

  /**
   * The JSON that the collector answers; retried while it is away or busy, with growing pauses that
   * depend on nothing said.
   */
  async #request(url, options) {
    const end = performance.now() + this.patience;
    let why = "it cannot be reached"; // or what it said last
    for (let pause = this.pause; ; pause *= 2) {
      let asked = 0;
      try {
        const left = Math.min(LONGEST, end - performance.now());
        const signal = AbortSignal.timeout(Math.ceil(Math.max(1, left)));
        const response = await this.#fetch(url, {
          ...options, signal, credentials: "omit", referrerPolicy: "no-referrer",
          cache: "no-store", redirect: "manual",
        });
        const bytes = await response.arrayBuffer();
        const final = response.status < 500 && !LATER.has(response.status);
        if (final) return readAnswer(response, bytes);
        why = `it answers ${response.status}`;
        asked = 1000 * (Number(response.headers.get("Retry-After")) || 0);
      } catch (error) {
        if (error instanceof DiscreetError) throw error;
      }
      const wait = Math.min(LONGEST, Math.max(asked, pause * (0.5 + Math.random())));
      if (performance.now() + wait > end) {
        const what = `the collector at ${cleaned(this.url)} does not take the request (${why})`;
        const next = options.body
          ? "try again later: the same report will be sent" : "try again later";
        throw new DiscreetError("network", `${what}; ${next}`);
      }
      this.waiting(wait);
      await paused(wait);
    }
  }
}

/** So many milliseconds, or less if the network comes back. */
function paused(wait) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.("online", done);
      resolve();
    };
    const timer = setTimeout(done, wait);
    globalThis.addEventListener?.("online", done);
  });
}

function limit(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxTotal is a positive number, got ${show(most)}`);
  }
  return most;
}

/** Refuse a mechanism that may tell more of an item than the person allows. */
function checkBudgets(mechanism, limits) {
  const { items, levelOf } = mechanism.policy;
  const entries = limits?.constructor === Object ? Object.entries(limits) : [];
  const given = entries.length ? entries : null;
  const pinned = new Map(); // by every look of its item; of two pins the smaller counts
  for (const [item, most] of given ?? [["", limits]]) {
    if (typeof most !== "number" || !(most > 0)) {
      throw new DiscreetError("answer", `maxEpsilon is a positive number, got ${show(most)}`);
    }
    for (const look of looks(item)) pinned.set(look, Math.min(pinned.get(look) ?? Infinity, most));
  }
  const here = new Set(items.flatMap(looks));
  const unknown = given?.find(([item]) => !looks(item).some((look) => here.has(look)));
  if (unknown) {
    const what = `${show(unknown[0])}, for which you pinned a budget, is not an item here`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
  const allowed = (item) => (given
    ? Math.min(...looks(item).map((look) => pinned.get(look) ?? Infinity)) : limits);
  const budgets = mechanism.levelBudgets();
  items.forEach((item, k) => {
    const budget = budgets[levelOf[k]];
    if (!(budget > allowed(item) + 1e-9)) return;
    const what = `${show(item)} has the budget ${brief(budget)} here, above the `
      + `${brief(allowed(item))} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  });
}

const brief = (x) => String(Number(x.toPrecision(4)));

function readAnswer(response, bytes) {
  let body;
  try {
    body = parse(bytes);
  } catch { /* judged below */ }
  if (response.ok && typeof body === "object" && body !== null) return body;
  if (response.ok) {
    const what = "the collector did not answer in JSON";
    throw new DiscreetError("server", `${what}; check the address and the network`);
  }
  if (response.status < 400) {
    const what = "the collector names another address";
    throw new DiscreetError("server", `${what}; use it if you trust it`);
  }
  const detail = typeof body?.detail === "string" ? cleaned(body.detail) : "";
  const sentence = detail || `the collector refuses with ${response.status}`;
  throw new DiscreetError("refused", sentence, { status: response.status });
}
