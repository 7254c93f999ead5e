// Joined from the modules in discreet/ by `make js`: change those.

/**
 * discreet on the participant's device: verify a mechanism, perturb an answer, remember it, send
 * the report.
 *
 * One ES module for browsers and Node 20, without dependencies. It trusts nothing that a server
 * says: a Mechanism cannot exist unless its guarantee holds, checked here in integers. Only
 * `Client` uses the network.
 *
 *     const client = new Client("https://survey.example.org");
 *     const { mechanism } = await client.describe("health-survey", { fingerprint });
 *     const prepared = await client.prepare("health-survey", mechanism, "anemia");
 *     // show prepared.report
 *     await client.send(prepared);
 */

// ---- errors.js ----------------------------------------------------------------------------------

/** Every refusal; `code` is for programs, the message is one sentence for people. */
class DiscreetError extends Error {
  /** @param {string} code @param {string} sentence @param {object} [details] further attributes */
  constructor(code, sentence, details = {}) {
    super(sentence);
    this.name = "DiscreetError";
    this.code = code;
    Object.assign(this, details);
  }
}

/** The error for a mechanism that is not written as discreet writes one. */
function refused(sentence) {
  const next = "do not answer, and ask the organiser for a correct mechanism";
  return new DiscreetError("mechanism", `${sentence}; ${next}`);
}

/** The error for a mechanism whose guarantee does not hold. */
function violation(sentence, details) {
  const next = "the promise does not hold; do not answer, and tell the organiser";
  return new DiscreetError("guarantee", `${sentence}: ${next}`, details);
}

// ---- policy/labels.js ---------------------------------------------------------------------------

// Texts that people read. The rules and tables are those of policy/labels.py; tests/vectors
// compares the two. Unassigned code points are allowed, because which ones are unassigned depends
// on the age of the browser. So does the category of the format controls from U+13430, which are
// written out and refused. Invisible characters are refused too, except for the joiners and
// selectors that Persian, Indic scripts, Mongolian, CJK and emoji need.
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
const LONGEST_SAID = 300; // characters shown of a text that a stranger wrote
// Each word is a plain character, then the Greek, Cyrillic, Latin or punctuation characters that
// look like it.
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

/** A value as it was written, shortened. @param {unknown} value */
function quoted(value) {
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  const raw = typeof value === "string" ? JSON.stringify(value) : String(value);
  const text = raw.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}

/** Whether this is one line without control characters and invisible ones; any blanks. */
function isProse(text) {
  return typeof text === "string" && text.search(HIDDEN) < 0;
}

/** Whether this is prose with no other blank than the plain one. */
function isPrintable(text) {
  return isProse(text) && !/(?! )\p{Zs}/u.test(text);
}

/**
 * Make a stranger's text fit to be shown: one line of at most 300 characters, with U+FFFD in place
 * of control characters and invisible ones.
 * @param {string} text
 */
function cleaned(text) {
  const plain = text.replace(BLANKS, " ").trim().replace(HIDDEN, "\ufffd");
  const characters = Array.from(plain);
  if (characters.length <= LONGEST_SAID) return plain;
  return `${characters.slice(0, LONGEST_SAID - 1).join("")}…`;
}

/**
 * How a label looks to people. Two labels that share a look cannot be told apart. Looks leave out
 * invisible characters, the width and form of letters, case, and the number of blanks. The second
 * look also replaces letters and punctuation by the plain ones they resemble.
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

/** The same as Python's casefold, by steps that both languages have: "ß" becomes "ss". */
function folded(text) {
  const lower = text.toLowerCase().toUpperCase().toLowerCase().replaceAll("ς", "σ");
  return lower.normalize("NFKD").replace(BLANKS, " ").trim();
}

/** The text itself, if it can be a label. */
function label(text, what) {
  if (!isPrintable(text) || !text.replace(UNSEEN, "").trim()) {
    const allowed = "a non-empty text without control characters and those that nobody sees";
    throw refused(`${what} is ${quoted(text)}, but must be ${allowed}`);
  }
  return text;
}

/** The labels themselves, if people can tell them apart. */
function distinct(texts, what) {
  const [seen, byLook] = [new Set(), new Map()];
  for (const text of texts) {
    if (seen.has(label(text, what))) throw refused(`${what} ${quoted(text)} is named twice`);
    seen.add(text);
    for (const look of looks(text)) {
      const first = byLook.get(look) ?? text;
      if (first !== text) {
        throw refused(`the ${what}s ${quoted(first)} and ${quoted(text)} look the same`);
      }
      byLook.set(look, text);
    }
  }
  return texts;
}

// ---- check/document.js --------------------------------------------------------------------------

// The canonical form of a document, its fingerprint, and reading it from bytes.

/**
 * JSON with sorted keys and no blanks: RFC 8785 restricted to texts, integers, true, false, null,
 * lists and objects.
 * @param {unknown} document
 * @returns {string}
 */
function canonicalJson(document) {
  return canonical(document, DEEPEST);
}

const DEEPEST = 100; // lists within lists; a mechanism has 5, and the stack holds more than this

function canonical(value, depth) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return canonicalText(value);
  if (Number.isSafeInteger(value)) return String(value);
  if (typeof value !== "object") {
    const allowed = "only texts and integers up to 2^53 - 1 are allowed";
    throw refused(`the document holds ${quoted(value)}, but ${allowed}`);
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

const STORY = ["model", "prior", "certificate"]; // how it was designed; no promise depends on it

/**
 * SHA-256, in hexadecimal, of the canonical JSON of everything that promises and counts depend on.
 * @param {object} document
 * @returns {Promise<string>}
 */
async function computeFingerprint(document) {
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

const COMPARED = 32; // digits that people compare: too many for anybody to find two that share them

/** The digits of a fingerprint that people compare, in groups of four. @param {string} hash */
function shortFingerprint(hash) {
  return (hash.slice(0, COMPARED).match(/.{1,4}/gs) ?? []).join(" ");
}

function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/**
 * Parse JSON in UTF-8, with or without a byte-order mark. An object with a repeated key is refused:
 * readers would disagree about its value.
 */
function parse(bytes) {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  const value = JSON.parse(text);
  // in JSON the keys are exactly the strings before a colon
  const written = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:?/g) ?? [];
  if (written.filter((token) => token.endsWith(":")).length !== countKeys(value)) {
    throw new SyntaxError("a key is repeated");
  }
  return value;
}

function countKeys(value) {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((total, x) => total + countKeys(x), own);
}

// ---- policy/fields.js ---------------------------------------------------------------------------

// Strict reading of a document: each function returns the value itself, or refuses it.

function object(raw, where) {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    throw refused(`${where} is ${quoted(raw)}, but must be an object`);
  }
  return raw;
}

/** An object with exactly these keys, and perhaps some of the optional ones. */
function table(raw, keys, where, optional = []) {
  object(raw, where);
  const missing = keys.find((key) => !Object.hasOwn(raw, key));
  if (missing) throw refused(`${missing} is missing in ${where}`);
  const allowed = [...keys, ...optional];
  const unknown = Object.keys(raw).find((key) => !allowed.includes(key));
  if (unknown !== undefined) {
    const names = allowed.join(", ");
    throw refused(`${where} has the unknown key ${quoted(unknown)}, but may have ${names}`);
  }
  return raw;
}

function list(raw, where) {
  if (!Array.isArray(raw)) throw refused(`${where} is ${quoted(raw)}, but must be a list`);
  return raw;
}

function integers(raw, count, where) {
  if (list(raw, where).length !== count || !raw.every(Number.isInteger)) {
    throw refused(`${where} must be ${count} whole numbers, but is not`);
  }
  return raw;
}

function choice(key, value, allowed) {
  if (!allowed.includes(value)) {
    throw refused(`${key} is ${quoted(value)}, but must be one of ${allowed.join(", ")}`);
  }
  return value;
}

// ---- check/certificate.js -----------------------------------------------------------------------

// How good a design is; no promise depends on it.

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

// ---- policy/kinds.js ----------------------------------------------------------------------------

/**
 * The kinds of answer. `lists`: a person answers with a list of items. `pads`: the list is cut to a
 * padding and protected as a whole. `alone`: every item is protected on its own.
 */
const KINDS = Object.freeze({
  single: Object.freeze({ lists: false, pads: false, alone: false }),
  set: Object.freeze({ lists: true, pads: true, alone: false }),
  each: Object.freeze({ lists: true, pads: false, alone: true }),
});

// ---- check/exact.js -----------------------------------------------------------------------------

/*
 * The check of the guarantee, in exact integer arithmetic. Nothing here uses floating point: this
 * file is meant to be audited.
 *
 * Probabilities are integers over D = 2^32. A group of levels has in every part the chance of the
 * part, the chance `own` that a person's own item is named, and `other` over a denominator, the
 * chance that any other item is. Budgets become rationals at most e^epsilon, so what passes here
 * holds for the budget.
 *
 * What is proved, for every two inputs of levels i and j and every report y (the paper, Def. 2),
 * where r_ij is finite; r_ij and r_ji may differ:
 *
 *     Pr(y | i) <= e^{r_ij} Pr(y | j)
 *
 * Up to a factor common to all inputs, the probability of a report of one part given an item of a
 * group takes at most two values, its states:
 *
 *     named       chance own denominator / other
 *     not named   chance (D - own) denominator / (denominator - other)
 *     silent      chance D                           (own = other = 0: nothing is said of it)
 *     plain       chance D, and 0 for everybody else (own = D, other = 0: sent as it is)
 *
 * So it is enough to compare the largest state of every group with the smallest of every group. For
 * sets, "none" (an empty sample) is one more input, and always silent.
 *
 * A chance may be 0, and `own` may be D, where no budget forbids it: nobody of the group sends such
 * a report. 0 <= 0 holds, because neither of the two inputs sends it; a positive state against 0
 * fails. For sets every chance is positive, and `own` is below D.
 */

const D = 2 ** 32; // exact as a Number, and so is every numerator over it

// ---- rational numbers: a numerator and a positive denominator, not reduced

/** @typedef {[bigint, bigint]} Ratio */

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

/** The place of the value that no other is `before`. */
function foremost(values, before) {
  return values.reduce((best, value, k) => (before(value, values[best]) ? k : best), 0);
}

// ---- budgets as factors

const BITS = 80n; // of the fraction of an irrational bound: 2^48 times finer than a probability
const CEILING = 45n; // a larger budget counts as this one

/** A rational at most e^budget, and at most e^45; exactly k for ln(k). @returns {Ratio} */
function factorDown({ isLog, value: [n, d] }) {
  if (isLog) return [n, d];
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

// ---- what the policy asks of groups

/**
 * @typedef {{names: string[], least: (Ratio | null)[], zeros: boolean, isMutual: boolean,
 *   brokenPair: (inputs: Extremes[]) => Extremes[] | null}} Terms
 *   the name of every group's first level; at most e^eps of every group's smallest budget, null
 *   where it is open; whether chances may be 0, and budgets are the same both ways; two inputs that
 *   differ by more than their pair budget, or null
 */

/** @param {Policy} policy @param {Budgets} budgets @param {number[]} groupOf of every level
 *  @returns {Terms} */
function readTerms({ levels, kind, isMutual }, budgets, groupOf) {
  const { lists } = KINDS[kind];
  return { ...readBounds(levels, budgets, groupOf, lists), zeros: !lists, isMutual };
}

function readBounds(levels, budgets, groupOf, lists) {
  const [names, sizes] = [[], []];
  groupOf.forEach((group, k) => {
    if (group === names.length) names.push(levels[k].name);
    sizes[group] = (sizes[group] ?? 0) + levels[k].count;
  });
  const own = budgets.levels.map((budget) => (budget.epsilon < Infinity ? factorDown(budget) : null));
  if (budgets.strict) { // one factor for every pair, also for those without protection of their own
    const explicit = [...budgets.explicit.values()].filter((budget) => budget).map(factorDown);
    const least = names.map(() => [...own, ...explicit].reduce(smaller));
    return { names, least, brokenPair: onlyExtremes(brokenMinimum, least) };
  }
  const least = Array(names.length).fill(null);
  groupOf.forEach((group, level) => { least[group] = tighter(least[group], own[level]); });
  const closed = budgets.explicit.size ? undefined : CLOSED[budgets.notion];
  const lone = sizes.map((size) => size === 1 && !lists); // has no other answer to be told from
  const each = () => everyPair(pairSquares(budgets, groupOf, lone));
  const isJoined = budgets.notion === "scale" && names.length < levels.length;
  const brokenPair = closed && !isJoined ? onlyExtremes(closed, least, lone, budgets.cap) : each();
  return { names, least, brokenPair };
}

/**
 * At most e^{2 r} of every two groups, in this order, "none" last; null where nothing is protected.
 * @returns {(Ratio | null)[][]}
 */
function pairSquares({ levels, explicit, pair }, groupOf, lone) {
  const count = lone.length;
  const bounds = Array.from({ length: count + 1 }, () => Array(count + 1).fill(null));
  const each = [...levels, ...explicit.values()].filter((x) => x && x.epsilon < Infinity);
  const factors = new Map(each.map((budget) => [budget, factorDown(budget)]));
  const squareDown = (i, j) => pair(i, j)
    ?.map((budgets) => budgets.map((x) => factors.get(x)).reduce(product)).reduce(smaller) ?? null;
  groupOf.forEach((g, i) => groupOf.forEach((h, j) => {
    if (g !== h || !lone[g]) bounds[g][h] = tighter(bounds[g][h], squareDown(i, j));
  }));
  for (let g = 0; g < count; g++) {
    bounds[g][count] = bounds[g].slice(0, count).reduce(tighter);
    bounds[count][g] = bounds.slice(0, count).map((row) => row[g]).reduce(tighter);
  }
  return bounds;
}

// ---- the states of a part

/** Check the chances of the parts: they sum to 1, and only single answers may have a chance of 0. */
function checkChances(parts, { names, zeros }) {
  names.forEach((name, g) => {
    checkColumn(parts.map(({ chance }) => chance[g]), ` for level ${quoted(name)}`, zeros);
  });
  if ("none" in parts[0]) checkColumn(parts.map(({ none }) => none), " for no item");
  if (!parts.every(({ chance }) => chance.some((x) => x > 0))) {
    throw violation("nobody can use a part: every chance is 0");
  }
}

function checkColumn(chances, who = "", zeros = false) {
  if (!chances.every((chance) => chance > 0 || (zeros && chance === 0))) {
    throw violation(`a part's chance${who} is not positive`);
  }
  if (chances.reduce((total, chance) => total + chance, 0) !== D) {
    throw violation(`the chances of the parts${who} do not sum to 2^32`);
  }
}

/** @typedef {{high: Ratio, low: Ratio, name: string}} Extremes  the largest and smallest state */

/** @returns {Extremes} of an input with one state */
const onlyState = (state, name) => ({ high: state, low: state, name });

/** @returns {Extremes} of the items of group g, whose `other` is over the denominator */
function groupExtremes(part, g, denominator, name, zeros) {
  const [own, other] = [part.own[g], part.other[g]];
  const [chance, all, Q] = [part.chance[g], D, denominator].map(BigInt);
  if (own === 0 && other === 0) return onlyState([chance * all, 1n], name);
  if (!chance) throw violation(`level ${quoted(name)} cannot use a part that speaks about it`);
  if (zeros && own === D && other === 0) return { high: [chance * all, 1n], low: ZERO, name };
  // Without this the inequalities of sets can hold as 0 <= 0 while privacy is broken.
  if (!(own > 0 && (own < D || (zeros && own === D)) && other > 0 && other < denominator)) {
    const what = `own = ${own}/${D} and other = ${other}/${denominator} of level ${quoted(name)}`;
    throw violation(`${what} must both be 0 or both lie strictly between 0 and 1`);
  }
  const named = [chance * BigInt(own) * Q, BigInt(other)];
  const unnamed = [chance * (all - BigInt(own)) * Q, Q - BigInt(other)];
  return isLess(named, unnamed)
    ? { high: unnamed, low: named, name } : { high: named, low: unnamed, name };
}

/** Throw if two inputs of a part differ by more than their pair budget. @param {Terms} terms */
function checkPairs({ brokenPair }, inputs) {
  const broken = brokenPair(inputs);
  if (!broken) return;
  const levels = broken.map(({ name }) => name);
  const pair = `the pair of levels (${levels.map(quoted).join(", ")})`;
  throw violation(`${pair} is told apart by more than its pair budget`, { levels });
}

// ---- every pair of groups

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

/** The check of a part in O(groups); e is at most e^eps of every group, "none" has the smallest. */
function onlyExtremes(closed, e, lone = [], cap = 0) {
  const all = [...e, e.reduce(tighter)];
  return (inputs) => closed(inputs, all, lone, cap);
}

/** high_k <= e_k low_j for all j: only the two smallest lows matter. */
function brokenOneWay(inputs, e, lone) {
  const bottom = foremost(inputs, (x, y) => isLess(x.low, y.low));
  const others = inputs.filter((_, k) => k !== bottom);
  const second = others[foremost(others, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    const rival = k === bottom && lone[k] ? second : inputs[bottom];
    if (e[k] && rival && isLess(product(e[k], rival.low), input.high)) return [input, rival];
  }
  return null;
}

/** Neighbours, whose factors multiply to those of points further apart; with a cap, the extremes. */
function brokenScale(inputs, [step], lone, cap) {
  const isBroken = (x, y, e) => isLess(product(e, y.low), x.high);
  for (let k = 1; k < inputs.length; k++) {
    const [x, y] = [inputs[k - 1], inputs[k]];
    if (isBroken(x, y, step)) return [x, y];
    if (isBroken(y, x, step)) return [y, x];
  }
  if (!cap) return null;
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  const most = [step[0] ** BigInt(cap), step[1] ** BigInt(cap)];
  return isBroken(top, bottom, most) ? [top, bottom] : null;
}

/** high_k <= e_k low_j and high_i <= e_k low_k for all i, j: only the extremes matter. */
function brokenMinimum(inputs, e) {
  const top = inputs[foremost(inputs, (x, y) => isLess(y.high, x.high))];
  const bottom = inputs[foremost(inputs, (x, y) => isLess(x.low, y.low))];
  for (const [k, input] of inputs.entries()) {
    if (isLess(product(e[k], bottom.low), input.high)) return [input, bottom];
    if (isLess(product(e[k], input.low), top.high)) return [top, input];
  }
  return null;
}

/** high_i^2 / e_i <= e_j low_j^2 for all i, j: squares, so that no root is needed. */
function brokenAverage(inputs, e) {
  const highs = inputs.map(({ high }, k) => quotient(square(high), e[k]));
  const lows = inputs.map(({ low }, k) => product(square(low), e[k]));
  const i = foremost(highs, (x, y) => isLess(y, x));
  const j = foremost(lows, isLess);
  return isLess(lows[j], highs[i]) ? [inputs[i], inputs[j]] : null;
}

// Notions whose pairs need not be compared one by one; all others are.
const CLOSED = {
  min: brokenMinimum, avg: brokenAverage, "one-way": brokenOneWay, scale: brokenScale,
};

// ---- check/parts.js -----------------------------------------------------------------------------

// The integers of a mechanism: groups of levels, parts, and the padding of lists.

/**
 * @typedef {readonly number[]} Numbers
 * @typedef {{chance: Numbers, own: Numbers, other: Numbers, none?: number}} Part  per group, over
 *   2^32; `other` is over the encoding's denominator; silent where own = other = 0
 * @typedef {{chance: number, active: Numbers, limit: number, rows: readonly Numbers[]}} HitsPart
 *   active: 0 or 1 per group; rows: for 1 to `padding` own items, tau and the masses of the classes
 * @typedef {{m: number, groupOf: Numbers, members: readonly Numbers[], rank: Numbers}} Groups
 *   the group of every item, the items of every group, and the place of every item in its group
 */

/** @param {Numbers} raw the group of every level @returns {Groups} */
function readGroups(raw, { levels, levelOf }) {
  let count = 0;
  for (const group of integers(raw, levels.length, "groups")) {
    if (group < 0 || group > count) {
      throw refused("groups are not numbered from 0 by first appearance");
    }
    count += group === count;
  }
  const groupOf = levelOf.map((level) => raw[level]);
  const members = Array.from({ length: count }, () => []);
  const rank = groupOf.map((group, item) => members[group].push(item) - 1);
  members.forEach(Object.freeze);
  [groupOf, members, rank].forEach(Object.freeze);
  return Object.freeze({ m: groupOf.length, groupOf, members, rank });
}

/** Check the expected share of participants in every group; only estimates use it. */
function checkShares(raw, count) {
  const inRange = integers(raw, count, "shares").every((share) => share >= 0 && share <= D);
  if (!inRange || raw.reduce((sum, share) => sum + share, 0) !== D) {
    throw refused("the shares are not numbers from 0 to 2^32 that sum to 2^32");
  }
}

/** A list of at most so many parts; their content is not checked yet. */
function readPartList(raw, most = 256) {
  const { length } = list(raw, "parts");
  if (length < 1 || length > most) {
    const allowed = most === 1 ? "1" : `1 to ${most}`;
    throw refused(`the mechanism has ${length} parts, but must have ${allowed}`);
  }
  return raw;
}

function checkPadding(padding, { kind }) {
  const [least, most] = KINDS[kind].pads ? [1, 65536] : [0, 0];
  if (!Number.isInteger(padding) || padding < least || padding > most) {
    const allowed = most ? `a whole number from ${least} to ${most}` : "0";
    throw refused(`padding is ${quoted(padding)}, but must be ${allowed}`);
  }
}

// ---- device/randomness.js -----------------------------------------------------------------------

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

  /** A uniform subset of so many of these. */
  subset(values, wanted) {
    const left = [...values];
    for (let k = 0; k < wanted; k++) {
      const place = k + this.below(left.length - k);
      [left[k], left[place]] = [left[place], left[k]];
    }
    return left.slice(0, wanted);
  }
}

// ---- words.js -----------------------------------------------------------------------------------

// Every sentence about promises and reports, and the language in which the page says it.

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const [FACTOR, CHANCE] = ["by at most a factor of {factor}.", "changes the chance of any report"];
const ODDS = "whoever sees your report can change their odds between";
const RAISE = "Whoever sees your report can raise their odds that";
const small = (text) => text[0].toLowerCase() + text.slice(1);
const KNOWN = "by at most a factor of {factor}; that it is not may become known.";
const LOWERED = "by at most a factor of {factor}, and lower them by at most a factor of {fall}.";
const RAISES = "raises the chance of any report by at most a factor of {factor}; that you do not "
  + "have it may become known.";
const AWAY = "Whoever sees your report can change their odds between your answer and one that is";
const EACH = "Whole lists: each answer is protected on its own and the factors multiply, to at most"
  + " {few} for a list of {answers} against an empty one";
const CHOSE = "The organiser chose not to protect which of";
const LEVELS = "answers of \"{first}\" and answers of \"{second}\" is yours: they are kept apart";
const SAME = "two answers of \"{first}\" is yours: they are kept apart";
const THROUGH = "only through others, by a factor of at most {factor}.";
const ONCE = "You already gave an earlier answer about";
const OFTEN = "You already gave {n} earlier answers about";
const TOGETHER = "the same items: together, whoever sees your reports can change their odds between"
  + ` {what} and any other answer ${FACTOR}`;
const CAUTION = "This is weak protection: one report can change the odds between {between} by up"
  + " to a factor of {factor}, so whoever sees yours may be almost sure what you answered.";
const weakProtection = (between) => CAUTION.replace("{between}", between);
const TOGETHER_HAVING = "the same items: together, having or not having {what} changes the chance"
  + ` of your reports ${FACTOR}`;
const TOGETHER_ONE_WAY = "the same items: together, whoever sees your reports can raise their odds "
  + "that {what} is your answer by at most a factor of {factor}; that it is not may become known.";

/** Every sentence about promises and reports; a form per plural category where a number counts. */
const ENGLISH = Object.freeze({
  language: "en",
  odds: `${capital(ODDS)} {what} and any other answer ${FACTOR}`,
  having: `Having or not having {what} ${CHANCE} ${FACTOR}`,
  oddsOfLevel: `{level} ({items}): ${ODDS} this answer and any other ${FACTOR}`,
  havingOfLevel: `{level} ({items}): having or not having it ${CHANCE} ${FACTOR}`,
  oddsOneWayKnown: `${RAISE} {what} is your answer, against any other, ${KNOWN}`,
  oddsOneWayLowered: `${RAISE} {what} is your answer, against any other, ${LOWERED}`,
  oddsOfLevelOneWayKnown: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${KNOWN}`,
  oddsOfLevelOneWayLowered: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other, ${LOWERED}`,
  oddsOneWayProtected: `${RAISE} {what} is your answer, against any other that it is protected `
    + `from, ${KNOWN}`,
  oddsOfLevelOneWayProtected: `{level} ({items}): ${small(RAISE)} this is your answer, against any `
    + `other that it is protected from, ${KNOWN}`,
  havingOneWay: `Having {what} ${RAISES}`,
  havingOfLevelOneWay: `{level} ({items}): having it ${RAISES}`,
  oddsInBlock: `${capital(ODDS)} {what} and any other answer of its group ${FACTOR}`,
  oddsOfLevelInBlock: `{level} ({items}): ${ODDS} this answer and any other of this group ${FACTOR}`,
  oddsProtected: `${capital(ODDS)} {what} and any other answer that it is protected from ${FACTOR}`,
  oddsOfLevelProtected: `{level} ({items}): ${ODDS} this answer and any other that it is protected `
    + `from ${FACTOR}`,
  shown: "Your report may show {what} as it is.",
  shownOfLevel: "{level} ({items}): your report may show this answer as it is.",
  away: Object.freeze({
    one: `${AWAY} {n} step away ${FACTOR}`, other: `${AWAY} {n} steps away ${FACTOR}`,
  }),
  farAway: Object.freeze({
    one: `${AWAY} {n} step away or more ${FACTOR}`,
    other: `${AWAY} {n} steps away or more ${FACTOR}`,
  }),
  and: "{x} and {y}",
  more: "{items} and {n} more",
  anyTwoLists: `Whole lists: ${ODDS} any two lists of answers ${FACTOR}`,
  eachOfFew: `${EACH}.`,
  eachOfMany: `${EACH}, and to at most {many} for {n}.`,
  yourList: `Your whole list: ${ODDS} it and any other list ${FACTOR}`,
  yourListOfEach: `Your whole list is not protected as one: ${ODDS} it and an empty one ${FACTOR}`,
  noList: "You ticked nothing. Lists are not protected as one, only each answer on its own.",
  apart: `${CHOSE} ${LEVELS} ${THROUGH}`,
  notApart: `${CHOSE} ${LEVELS} not at all.`,
  sameApart: `${CHOSE} ${SAME} ${THROUGH}`,
  sameNotApart: `${CHOSE} ${SAME} not at all.`,
  already: Object.freeze({ one: `${ONCE} ${TOGETHER}`, other: `${OFTEN} ${TOGETHER}` }),
  alreadyHaving: Object.freeze({
    one: `${ONCE} ${TOGETHER_HAVING}`, other: `${OFTEN} ${TOGETHER_HAVING}`,
  }),
  alreadyOneWay: Object.freeze({
    one: `${ONCE} ${TOGETHER_ONE_WAY}`, other: `${OFTEN} ${TOGETHER_ONE_WAY}`,
  }),
  alreadyLists: "Whole lists: together, whoever sees your reports can change their odds between "
    + `any two of them ${FACTOR}`,
  cautionOpen: "Some answers are not protected from each other: whoever sees your report may know "
    + "which of them is yours.",
  cautionBlocks: "It may become known which group of answers yours is in; it is protected within its "
    + "group only.",
  cautionLacking: "That you do not have something may become known.",
  cautionShown: "Answers of {names} are not protected: your report may show such an answer as it is."
    + " That one of the other answers is not yours may become known.",
  cautionAnswers: weakProtection("two answers"),
  cautionHaving: weakProtection("having and not having an answer"),
  cautionLists: weakProtection("two lists of answers"),
  cautionEach: "Each answer is protected on its own, but a list of several answers is not: whoever "
    + "sees your report may be almost sure of the list as a whole.",
  answers: Object.freeze({ one: "{n} answer", other: "{n} answers" }),
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
  padded: Object.freeze({
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

let current = ENGLISH; // the sentences of the language in use

/**
 * Switch to another language. Its sentences have the keys of ENGLISH and the same placeholders.
 * @param {typeof ENGLISH} sentences
 */
function speak(sentences = ENGLISH) {
  current = sentences;
}

/** Rewrite an English number with the marks of the language in use. @param {string} written */
function localise(written) {
  const parts = new Intl.NumberFormat(current.language).formatToParts(12_345.6);
  const mark = (type) => parts.find((part) => part.type === type)?.value ?? "";
  return written.replace(/[.,]/g, (c) => mark(c === "." ? "decimal" : "group"));
}

/** The sentence with this key, its placeholders filled in. */
function say(key, values = {}) {
  const form = current[key];
  const plural = () => new Intl.PluralRules(current.language).select(values.n);
  const text = typeof form === "string" ? form : form[plural()] ?? form.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    return typeof values[name] === "number" ? digits(values[name]) : values[name];
  });
}

/** A whole number. */
const digits = (n) => localise(n.toLocaleString("en"));

const percent = (share) => localise(`${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`);

/** The smallest and the largest of these shares, in percent. */
function percentRange(shares) {
  const ends = [Math.min, Math.max].map((end) => shares.reduce((x, y) => end(x, y)));
  const [low, high] = ends.map(percent);
  return low === high ? low : say("range", { low, high });
}

// ---- encodings/base.js --------------------------------------------------------------------------

// How a report names items. Nothing outside this folder knows one encoding from another. Each has
//   kind, its name in a file; keys, the parameters in its table there;
//   fits(context), and `needs`, what it needs if it does not fit;
//   readParts(raw, context), parts of the right shape;
//   prove(terms), the exact check, which throws unless every part keeps what the policy asks;
//   size, the bytes of a report; report(draws, items), a new one for the items of an answer;
//   check(report), why it is refused, or null;
//   partOf(report); named(report), the places of the items that it names;
//   meaning(k, named), what a report of part k that names so many items says, for people;
//   factors(), the promise of every group: by how much an answer of it, or (lists) having one of
//   its items or not, changes the chance of any report at most;
//   setFactor() and listFactor(items), the same between any two lists, and between one list and any
//   other; not where every item is protected on its own, because there the factors multiply.

/** @typedef {{groups: Groups, policy: Policy, padding: number}} Context */

/** Why bytes are not a report of a mechanism. */
const REASONS = Object.freeze({
  length: "a report of this mechanism has {size} bytes",
  part: "the first byte names a part that the mechanism does not have",
  tail: "a bit beyond the last item is set",
  size: "the report names another number of items of a level than every report does",
  silent: "the report names an item of a level that its part says nothing about",
  ticket: "the number is beyond the last ticket",
  residue: "a coefficient is not below the prime",
});

class Encoding {
  static keys = [];

  /** @param {Context} context @param {readonly (Part | HitsPart)[]} parts */
  constructor({ groups, policy, padding }, parts) {
    Object.assign(this, { groups, policy, padding, parts });
    this.groupSizes = Object.freeze(groups.members.map(({ length }) => length));
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

// ---- check/factors.js ---------------------------------------------------------------------------

// How much a part that passed the check reveals, exactly.

/** A ratio as a double, however large its integers are. */
function toNumber([n, d]) {
  if (!d) return Infinity;
  const hexDigits = (x) => x.toString(16).length;
  const shift = 4 * (20 + hexDigits(d) - hexDigits(n));
  const scaled = shift > 0 ? (n << BigInt(shift)) / d : n / (d << BigInt(-shift));
  return Number(scaled) * 2 ** -shift;
}

/** @param {Extremes[]} inputs @returns {{high: Ratio, low: Ratio}} */
function overallExtremes(inputs) {
  return {
    high: inputs.map(({ high }) => high).reduce(larger),
    low: inputs.map(({ low }) => low).reduce(smaller),
  };
}

/** The largest ratio, either way, of a value between `bottom` and `top` to any other state. */
function farthest(top, bottom, { high, low }) {
  return larger(quotient(top, low), quotient(high, bottom));
}

/** Per group, the largest factor of any part. @param {Ratio[][]} parts @returns {Ratio[]} */
function largestPerGroup(parts) {
  return parts[0].map((_, g) => parts.map((factors) => factors[g]).reduce(larger));
}

/** x / y; [n, 0n], above every ratio, if only y is 0, and 1 if both are: then nobody sends it. */
const ratioOf = (x, y) => (x[0] || y[0] ? quotient(x, y) : ONE);

/**
 * Single answers, per group: the largest ratio between one of its items and any other; one way, of
 * its items over others.
 * @param {Extremes[]} states @returns {Ratio[]}
 */
function answerFactors(states, sizes, oneWay) {
  if (sizes.length === 1 && sizes[0] === 1) return [ONE];
  const lone = sizes.map((size) => size === 1);
  const highest = firstOfOthers(states.map(({ high }) => high), lone, isMore);
  const lowest = firstOfOthers(states.map(({ low }) => low), lone, isLess);
  return states.map(({ high, low }, g) => {
    return [ratioOf(high, lowest(g)), ...oneWay ? [] : [ratioOf(highest(g), low)]].reduce(larger, ONE);
  });
}

/**
 * The same per level, over the answers that it is protected from. levels: the group of every level
 * and the groups that budgets lead to from it; without any, everything may become known.
 * @param {Extremes[]} states @param {{group: number, near: Set<number>}[]} levels
 * @returns {Ratio[]}
 */
function protectedFactors(states, oneWay, levels) {
  return levels.map(({ group: g, near }) => {
    const { high, low } = states[g];
    const others = [...near].map((h) => states[h]);
    if (!others.length) return [1n, 0n];
    return others.flatMap((other) => {
      return [ratioOf(high, other.low), ...oneWay ? [] : [ratioOf(other.high, low)]];
    }).reduce(larger, ONE);
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
 * same list without it. In a list of up to l items the item takes the place of "none", beside l - 1
 * others. In a longer list it makes l places l + 1. The others are those that make the ratio
 * largest.
 * @param {Extremes[]} states the last of "none" @param {number} l the padding @returns {Ratio[]}
 */
function samplingFactors(states, sizes, l) {
  const { high: none } = states.at(-1);
  const rows = (key) => sizes.map((size, g) => ({ g, size, value: states[g][key] }));
  const [lows, highs] = [rows("low"), rows("high")];
  const beside = sumOfFirst([...lows, { g: -1, size: Infinity, value: none }], l - 1, isLess);
  const crowded = sizes.reduce((total, size) => total + size, 0) > l;
  const leastSum = crowded && sumOfFirst(lows, l, isLess);
  const mostSum = crowded && sumOfFirst(highs, l, isMore);
  const share = [BigInt(l), BigInt(l + 1)];
  return sizes.map((_, g) => {
    const { high, low } = states[g];
    const others = beside(g);
    const without = plus(others, none);
    const ratios = [quotient(plus(others, high), without), quotient(without, plus(others, low))];
    if (crowded) {
      const [least, most] = [leastSum(g), mostSum(g)];
      ratios.push(product(share, quotient(plus(least, high), least)));
      ratios.push(quotient(most, product(share, plus(most, low))));
    }
    return ratios.reduce(larger, ONE);
  });
}

/** A function of a group: the sum of the k foremost values of items without one of its items. */
function sumOfFirst(rows, k, before) {
  const sorted = [...rows].sort((x, y) => {
    return before(x.value, y.value) ? -1 : before(y.value, x.value) ? 1 : 0;
  });
  let [total, left, next] = [ZERO, k, null]; // next: the value that replaces a removed one
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

// ---- encodings/sampling.js ----------------------------------------------------------------------

/** Whether a part holds answers as they are. */
const isPlain = ({ own, other }) => own.some((x, g) => x === D && !other[g]);

/** Reports about one item of an answer: the only one, or one drawn at random from a padded list. */
class Sampling extends Encoding {
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

// ---- encodings/packed.js ------------------------------------------------------------------------

/** A bit per item, item k at byte k >> 3, bit k & 7; if there are several parts, the part first. */
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
    const { m, groupOf } = this.groups;
    if (report.length !== this.size) return "length";
    if (this.partOf(report) >= this.parts.length) return "part";
    if (m % 8 && report.at(-1) >> m % 8) return "tail";
    const counts = this.groupSizes.map(() => 0);
    for (const item of this.named(report)) counts[groupOf[item]] += 1;
    return this.misuse(this.parts[this.partOf(report)], counts);
  }

  named(report) {
    const named = [];
    for (let item = 0; item < this.groups.m; item++) {
      if (this.isNamed(report, item)) named.push(item);
    }
    return named;
  }

  isNamed(report, item) {
    return ((report[this.head + (item >> 3)] >> (item & 7)) & 1) === 1;
  }

  name(report, item) {
    report[this.head + (item >> 3)] |= 1 << (item & 7);
  }

  /** An empty report of part k. */
  start(k) {
    const report = new Uint8Array(this.size);
    if (this.head) report[0] = k;
    return report;
  }
}

// ---- encodings/bits.js --------------------------------------------------------------------------

/** Every item on its own, with chance other[g] / 2^32. */
class Bits extends Bitmap {
  kind = "bits";

  denominator() {
    return D;
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count && !other[g]) ? "silent" : null;
  }

  write(draws, k, held, own) {
    const { other } = this.parts[k];
    const report = this.start(k);
    this.groups.groupOf.forEach((g, item) => {
      const named = item === held ? own : other[g] > 0 && draws.next() < other[g];
      if (named) this.name(report, item);
    });
    return report;
  }
}

// ---- check/exact_sets.js ------------------------------------------------------------------------

/*
 * The check of counted hits and of items that are asked one by one, in exact integer arithmetic. It
 * is meant to be audited, as exact.js is; check/exact_sets.py has the proof.
 *
 * Hits: the report is a polynomial that names item i of an active group if its value at i + 1 is
 * below the limit T. For a person with j active items, N of them named, the chance of a report over
 * that of a uniform one depends on j and N alone: it is f[j][N].
 */

const MASS = 2 ** 52; // of a row of hits; every mass is exact as a Number
const LARGEST_PADDING = 64; // of hits

/** n over k. @returns {bigint} */
function binomial(n, k) {
  let ways = 1n;
  for (let j = 1; j <= Math.min(k, n - k); j++) ways = (ways * BigInt(n - j + 1)) / BigInt(j);
  return ways;
}

/** w_N = C(j, N) T^N (P - T)^(j - N): how many of the P^j values of j items name N of them. */
function hitWeights(j, limit, prime) {
  const [hit, miss] = [BigInt(limit), BigInt(prime - limit)];
  return Array.from({ length: j + 1 }, (_, n) => {
    return binomial(j, n) * hit ** BigInt(n) * miss ** BigInt(j - n);
  });
}

/** The classes N > tau, N = tau and N < tau of a row: mass, smallest N, weights, their sum. */
function hitClasses([tau, hi, mid, lo], weights) {
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
    const classes = hitClasses(row, hitWeights(j, limit, prime)).reverse(); // from N = 0 up
    f.push(classes.flatMap(({ mass, weights, total }) => {
      return Array(weights.length).fill([BigInt(mass) * all, BigInt(MASS) * total]);
    }));
  });
  return f;
}

/** Check that the masses are chances. */
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
    if (masses.some((mass) => mass < 0) || masses.reduce((sum, mass) => sum + mass) !== MASS) {
      throw violation(`the masses of ${row} are not numbers from 0 that sum to 2^52`);
    }
    if ((tau === n + 1 && hi) || (tau === 0 && lo)) {
      throw violation(`a class of ${row} that cannot occur has a mass`);
    }
  });
}

/**
 * The largest factor, either way, between any list and the same list without one item: an item that
 * the part speaks about (there are `spoken` of them), and a silent one. A list of more than s items
 * is a mean over its s-subsets, and a ratio of means is extreme at s + 1 items.
 */
function hitFactors(f, s, spoken, m) {
  const largest = { active: ONE, silent: ONE };
  const meet = (who, x, y) => {
    const ratio = quotient(x, y);
    largest[who] = [ratio, inverse(ratio)].reduce(larger, largest[who]);
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
  // from here on there are s + 1 items; if m <= s the loops are empty
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
  return largest;
}

/**
 * Check counted hits for any two lists, and for any item.
 * @param {Terms} terms @param {readonly HitsPart[]} parts @param {number[]} sizes of every group
 * @returns {{ends: Extremes[], all: Extremes, factors: Ratio[]}[]} of every part the extremes of
 *   f[j], those of all lists there are, and the factor of every group
 */
function checkHits({ names, least }, parts, prime, sizes) {
  checkColumn(parts.map(({ chance }) => chance));
  const m = sizes.reduce((total, size) => total + size, 0);
  return parts.map((part) => {
    checkRows(part, prime);
    const f = densities(part, prime);
    const s = part.rows.length;
    const ends = f.map((values) => overallExtremes(values.map((value) => onlyState(value))));
    checkLists(ends, least.reduce(smaller), least.filter((_, g) => part.active[g]).reduce(smaller));
    const spoken = countSpoken(part, sizes);
    const { active, silent } = hitFactors(f, s, spoken, m);
    const factors = part.active.map((x) => (x ? active : silent));
    checkItems(factors, least, names);
    return { ends, all: overallExtremes(ends.slice(0, Math.min(s, spoken) + 1)), factors };
  });
}

/** The number of items that a part speaks about. */
function countSpoken({ active }, sizes) {
  return sizes.reduce((total, size, g) => total + active[g] * size, 0);
}

/**
 * max f_j <= R_j LO and HI <= R_j min f_j with R_j = (j E_c + (s - j) E_1) / s: E_1 of the smallest
 * budget of all, E_c of the smallest of an active level.
 */
function checkLists(ends, smallest, smallestActive) {
  const s = ends.length - 1;
  const { high, low } = overallExtremes(ends);
  if (!low[0]) throw violation("a class of a row has mass 0, so that some reports are ruled out");
  ends.forEach((own, j) => {
    const sums = plus(product(integer(j), smallestActive), product(integer(s - j), smallest));
    const bound = quotient(sums, integer(s));
    if (isLess(product(bound, low), own.high) || isLess(product(bound, own.low), high)) {
      const who = `lists with ${j} of the answers that a part speaks about`;
      throw violation(`${who} are told apart from others by more than their budget`, { row: j });
    }
  });
}

/** Throw if having an item or not changes more than the budget of its level allows. */
function checkItems(factors, least, names) {
  names.forEach((name, g) => {
    if (!isLess(least[g], factors[g])) return;
    const what = `having or not having an item of level ${quoted(name)} changes a report's chance`;
    throw violation(`${what} by more than its budget`, { levels: [name] });
  });
}

/** Check items that are asked one by one. @param {Terms} terms @param {Part} part the only one */
function checkEach({ names, least, isMutual }, part) {
  const isInside = (x) => x > 0 && x < D;
  names.forEach((name, g) => {
    const [own, other] = [part.own[g], part.other[g]];
    if (!(isInside(own) || (!isMutual && own === D)) || !isInside(other)) {
      const what = `own = ${own}/${D} and other = ${other}/${D} of level ${quoted(name)}`;
      throw violation(`${what} must lie strictly between 0 and 1`);
    }
  });
  checkItems(eachFactors(part, isMutual), least, names);
}

/**
 * Per group, by how much having or not having one of its items changes any report's chance; unless
 * it is mutual, by how much having it raises the chance.
 */
function eachFactors({ own, other }, isMutual) {
  return own.map((_, g) => {
    const [a, b, all] = [own[g], other[g], D].map(BigInt);
    const [named, unnamed] = [[a, b], [all - a, all - b]];
    const ratios = isMutual ? [named, inverse(named), unnamed, inverse(unnamed)] : [named, unnamed];
    return ratios.reduce(larger);
  });
}

// ---- encodings/each.js --------------------------------------------------------------------------

/** Bits for lists in which every item is protected on its own: nothing is sampled. */
class Each extends Bits {
  static needs = "kind = \"each\"";
  kind = "each";
  sentence = "bits";
  yours = "yours";

  static fits({ policy }) {
    return KINDS[policy.kind].alone;
  }

  static readParts(raw, context) {
    return super.readParts(raw, context, 1);
  }

  prove(terms) {
    checkChances(this.parts, terms);
    checkEach(terms, this.parts[0]);
  }

  report(draws, items) {
    const [{ own, other }] = this.parts;
    const [mine, report] = [new Set(items), this.start(0)];
    this.groups.groupOf.forEach((g, item) => {
      if (draws.next() < (mine.has(item) ? own : other)[g]) this.name(report, item);
    });
    return report;
  }

  chances(k) {
    const { own, other } = this.parts[k];
    return { mine: own.map((x) => x / D), others: other.map((x) => x / D) };
  }

  factors() {
    return eachFactors(this.parts[0], this.policy.isMutual);
  }
}

// ---- encodings/fixed.js -------------------------------------------------------------------------

/** Exactly other[g] items of every group g, as a uniform subset. */
class Fixed extends Bitmap {
  kind = "fixed";

  denominator(g) {
    return this.groupSizes[g];
  }

  misuse({ other }, counts) {
    return counts.some((count, g) => count !== other[g]) ? "size" : null;
  }

  write(draws, k, held, own) {
    const { groupOf, members, rank } = this.groups;
    const report = this.start(k);
    if (own) this.name(report, held);
    this.parts[k].other.forEach((wanted, g) => {
      if (!wanted) return;
      const mine = groupOf[held] === g;
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

  /** If the own item is named, one place less is left for the others of its group. */
  others(part, g) {
    const size = this.groupSizes[g];
    const sameGroup = (part.other[g] - part.own[g] / D) / (size - 1);
    const elsewhere = size < this.groups.m || "none" in part;
    return elsewhere ? [sameGroup, ...super.others(part, g)] : [sameGroup];
  }
}

// ---- policy/notions.js --------------------------------------------------------------------------

/**
 * The notions: rules that give the budget of every ordered pair of levels from the levels' budgets.
 * `pair(i, j, terms)` lists levels; twice the budget of an answer of level i over one of level j is
 * the least of the sums of their budgets. null: not protected. `hits`: the check of counted hits
 * proves this notion. `mutual`: both directions are alike. `lists`: whole lists can be protected.
 */
const NOTIONS = Object.freeze({
  min: makeNotion((i, j) => [[i, i], [j, j]], { hits: true }),
  avg: makeNotion((i, j) => [[i, j]]),
  // an answer is protected by its own budget, whatever the other one is; levels may be open
  "one-way": makeNotion((i, j, { isOpen }) => (isOpen(i) ? null : [[i, i]]),
    { mutual: false, lists: false }),
  // which level an answer is in becomes known
  blocks: makeNotion((i, j) => (i === j ? [[i, i]] : null), { lists: false }),
  // every level is a point, in their order; a budget per step between two points
  scale: makeNotion((i, j, { cap }) => {
    const steps = Math.min(Math.abs(i - j), cap || Infinity);
    return steps ? [Array(2 * steps).fill(i)] : null; // a point has one answer
  }, { lists: false }),
});

function makeNotion(pair, { hits = false, mutual = true, lists = true } = {}) {
  return Object.freeze({ pair, hits, mutual, lists });
}

// ---- encodings/arithmetic.js --------------------------------------------------------------------

// Arithmetic modulo a prime.

/**
 * A uniform polynomial with these values at these points: Newton's form, with uniform coefficients
 * where the points leave a choice.
 * @param {number[]} points all different @param {number[]} free uniform coefficients
 * @returns {number[]} coefficients, the constant first
 */
function interpolate(points, values, free, prime) {
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

/** x^n, exact below 2^53; everything it is compared with is far smaller. */
function power(x, n) {
  return n ? x * power(x, n - 1) : 1;
}

function isPrime(q) {
  for (let k = 2; k * k <= q; k++) if (q % k === 0) return false;
  return q > 1;
}

// ---- encodings/hits.js --------------------------------------------------------------------------

/**
 * Counted hits: the report is a polynomial p of s + 2 coefficients mod a prime, and names item i of
 * an active group if p(i + 1) is below the limit T. Of at most s own items, of which j are active,
 * some number N is named: N > tau, N = tau or N < tau, with the masses of row j. Any s + 2 values
 * of a random p are independent and uniform, so a report's chance depends on j and N alone.
 */
class Hits extends Encoding {
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

  check(report) {
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
      const others = items.length - active;
      const drawn = Math.min(padding, items.length);
      const mean = (key) => { // over how many of the drawn items are active
        let total = ZERO;
        for (let j = Math.max(0, drawn - others); j <= Math.min(drawn, active); j++) {
          const ways = binomial(active, j) * binomial(others, drawn - j);
          total = plus(total, product([ways, 1n], ends[j][key]));
        }
        return quotient(total, [binomial(items.length, drawn), 1n]);
      };
      return farthest(mean("high"), mean("low"), all);
    }).reduce(larger);
  }
}

// ---- encodings/ticket.js ------------------------------------------------------------------------

/**
 * A 32-bit number whose digits in base q are the part and y_0, …, y_t. It names an item of group
 * g if the mark y_0 + y_1 c_1 + … + y_t c_t mod q is below other[g], where c is the item's code.
 * Two codes differ, so two marks are independent and uniform. The last part may be plain: its
 * digits are the place of an answer that nobody needs to hide.
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

  check(report) {
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

// ---- encodings/table.js -------------------------------------------------------------------------

// To add an encoding: a file in this folder, and its name here.
const ENCODINGS = { fixed: Fixed, bits: Bits, ticket: Ticket, hits: Hits, each: Each };

/** @param {object} body of a mechanism file @param {Context} context */
function readEncoding({ encoding: raw, parts }, context) {
  const kind = choice("encoding", object(raw, "the encoding").kind, Object.keys(ENCODINGS));
  const Named = ENCODINGS[kind];
  table(raw, ["kind", ...Named.keys], "the encoding");
  if (!Named.fits(context)) throw refused(`the encoding ${quoted(kind)} needs ${Named.needs}`);
  return Object.freeze(new Named(context, Named.readParts(parts, context), raw));
}

// ---- policy/about.js ----------------------------------------------------------------------------

const [LINE, TEXT] = [200, 4000]; // characters of a line, and of a longer text
const [LEAST, MOST] = [50, 1e9]; // reports before results are shown

const isText = (most, lines) => (text) => {
  return isProse(lines ? text?.replaceAll?.("\n", " ") : text) && text === text.trim()
    && text.replace(UNSEEN, "").trim() !== "" && Array.from(text).length <= most;
};

const isTime = (text) => {
  const pattern = /^(19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
  return typeof text === "string" && pattern.test(text) && !Number.isNaN(Date.parse(text))
    && new Date(text).toISOString() === text.replace("Z", ".000Z");
};

const ABOUT = {
  organiser: isText(LINE), contact: isText(LINE),
  purpose: isText(TEXT, true), consent: isText(TEXT, true),
  language: (tag) => typeof tag === "string" && /^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/.test(tag),
  opens: isTime, closes: isTime,
  minimum: (n) => Number.isInteger(n) && n >= LEAST && n <= MOST,
  rehearsal: (flag) => flag === true,
};

/** Who asks, what for, from when to when; each part is optional and has one spelling. */
function readAbout(raw) {
  if (raw === undefined) return {};
  const keys = Object.keys(table(raw, [], "about", Object.keys(ABOUT)));
  const wrong = keys.find((key) => !ABOUT[key](raw[key]));
  if (!keys.length || wrong || (raw.opens && raw.closes && raw.opens >= raw.closes)) {
    const what = wrong
      ? `${wrong} of about is ${quoted(raw[wrong])}` : "about is empty, or closes before it opens";
    throw refused(`${what}, but must be as discreet writes it`);
  }
  return raw;
}

// ---- policy/budgets.js --------------------------------------------------------------------------

/**
 * @typedef {{text: string, epsilon: number, isLog: boolean, value: [bigint, bigint]}} Budget
 *   value: epsilon itself, or k where epsilon = ln(k); a numerator and a positive denominator
 */

/** The budget of an open level: nothing is promised. */
const OPEN = Object.freeze({
  text: "open", epsilon: Infinity, isLog: false, value: Object.freeze([1n, 0n]),
});

/** A budget in its only spelling: a plain decimal, or ln(k), k > 1 reduced. @returns {Budget} */
function readBudget(raw) {
  const text = typeof raw === "string" && raw.length <= 100 ? raw : "";
  const log = /^ln\(([1-9]\d*)(?:\/([1-9]\d*))?\)$/.exec(text);
  if (log) {
    const [n, d] = [BigInt(log[1]), BigInt(log[2] ?? 1)];
    const isReduced = log[2] === undefined || (d > 1n && gcd(n, d) === 1n);
    if (n > d && isReduced) {
      const epsilon = Math.log(Number(n)) - Math.log(Number(d));
      return { text, epsilon, isLog: true, value: [n, d] };
    }
  }
  // from 1e-29 to below 1e30
  const decimal = /^(?!0$|0\.0{29})(0|[1-9]\d{0,29})(?:\.(\d*[1-9]))?$/.exec(text);
  if (decimal) {
    const [, whole, fraction = ""] = decimal;
    const value = [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
    return { text, epsilon: Number(text), isLog: false, value };
  }
  const allowed = "a positive decimal or ln(k) with k > 1, as discreet writes it";
  throw refused(`epsilon is ${quoted(raw)}, but must be ${allowed}`);
}

function gcd(x, y) {
  return y ? gcd(y, x % y) : x;
}

// ---- policy/policy.js ---------------------------------------------------------------------------

// A policy, parsed once and strictly into frozen objects.

/**
 * @typedef {{name: string, budget: string, epsilon: number, count: number}} Level
 * @typedef {{levels: [string, string], budget: string, epsilon: number, oneWay: boolean}} Pair
 *   not protected: "" and Infinity; oneWay: of the first level over the second alone
 * @typedef {{name: string, question: string, kind: string, notion: string, strict: boolean,
 *   cap: number, isMutual: boolean, items: readonly string[], levelOf: readonly number[],
 *   levels: readonly Level[], pairs: readonly Pair[], about: object,
 *   totals: readonly Total[]}} Policy
 *   strict: all pairs have the smallest budget; cap: of a scale, in steps, or 0; isMutual: every
 *   pair is protected in both directions alike
 * @typedef {{name: string, items: readonly string[]}} Total  a sum of items that has a name
 * @typedef {{levels: Budget[], explicit: Map<number, Budget | null>, notion: string,
 *   strict: boolean, cap: number, pair: (i: number, j: number) => Budget[][] | null}} Budgets
 *   twice the budget of an answer of level i over one of level j is the least of the sums of
 *   `pair`; null where the pair is not protected
 */

const MOST_LEVELS = 200; // with explicit pairs, or as blocks
const MOST_POINTS = 50; // of a scale
const POLICY_KEYS = ["name", "question", "kind", "notion", "items", "level_of", "levels", "pairs"];

/** @returns {{policy: Policy, budgets: Budgets}} */
function readPolicy(raw) {
  const pads = KINDS[object(raw, "the policy").kind]?.pads; // an unknown kind is refused below
  const more = [...pads ? ["strict"] : [], ...raw.notion === "scale" ? ["cap"] : []];
  table(raw, [...POLICY_KEYS, ...more], "the policy", ["about", "totals"]);
  label(raw.name, "the policy's name");
  if (!isProse(raw.question)) {
    const allowed = "a text of one line, without control characters and those that nobody sees";
    throw refused(`question is ${quoted(raw.question)}, but must be ${allowed}`);
  }
  choice("kind", raw.kind, Object.keys(KINDS));
  choice("notion", raw.notion, Object.keys(NOTIONS));
  const items = distinct(list(raw.items, "items"), "item");
  const rows = list(raw.levels, "levels").map((row) => table(row, ["name", "epsilon"], "a level"));
  const names = distinct(rows.map((row) => row.name), "level");
  const levelOf = list(raw.level_of, "level_of");
  const counts = countItems(levelOf, names, items);
  const own = rows.map(({ epsilon }) => (epsilon === OPEN.text ? OPEN : readBudget(epsilon)));
  const levels = own.map(({ text, epsilon }, k) => {
    return Object.freeze({ name: names[k], budget: text, epsilon, count: counts[k] });
  });
  const { pairs, explicit } = readPairs(raw.pairs, names);
  if (raw.notion === "scale") checkScale(raw);
  const { name, question, kind, notion } = raw;
  const strict = readStrict(raw);
  const cap = raw.cap ?? 0;
  const isMutual = NOTIONS[notion].mutual && !pairs.some(({ oneWay }) => oneWay);
  const policy = Object.freeze({
    name, question, kind, notion, strict, cap, isMutual, items, levelOf, levels: Object.freeze(levels),
    pairs: Object.freeze(pairs), about: Object.freeze(readAbout(raw.about)),
    totals: Object.freeze(readTotals(raw, items)),
  });
  checkNotion(policy, own);
  const terms = { cap, isOpen: (i) => own[i] === OPEN };
  const pair = (i, j) => pairBudgets(own, explicit, notion, terms, i, j);
  return { policy, budgets: { levels: own, explicit, notion, strict, cap, pair } };
}

/** Refuse open levels, one-way pairs, blocks and scales where they cannot be kept. */
function checkNotion({ kind, notion, levels, pairs, isMutual }, own) {
  const { pads, alone, lists } = KINDS[kind];
  const open = own.filter((budget) => budget === OPEN).length;
  if (open && (notion !== "one-way" || lists)) {
    throw refused("a level is open, which goes with the notion one-way and single answers only");
  }
  if (open === own.length && !pairs.length) throw refused("every level is open");
  if (pads && (!NOTIONS[notion].lists || !isMutual)) {
    throw refused(`the notion ${quoted(notion)} or a one-way pair cannot protect whole lists`);
  }
  if (alone && (notion === "blocks" || notion === "scale")) {
    throw refused(`the notion ${quoted(notion)} is about two answers, and items stand alone here`);
  }
  if (notion === "blocks" && levels.length > MOST_LEVELS) {
    throw refused(`${levels.length} levels are blocks, but at most ${MOST_LEVELS} may be`);
  }
}

/** Refuse a scale whose levels are not its items, in their order and of one budget. */
function checkScale({ items, level_of: levelOf, levels, pairs, cap }) {
  const m = items.length;
  const lone = levels.length === m && levels.every(({ name, epsilon }, k) => {
    return levelOf[k] === k && name === items[k] && epsilon === levels[0].epsilon;
  });
  if (!lone || pairs.length || m < 2 || m > MOST_POINTS) {
    throw refused(`a scale has 2 to ${MOST_POINTS} items, a level each, of one budget and in order`);
  }
  if (!Number.isInteger(cap) || cap < 0 || cap >= m) {
    throw refused(`cap is ${quoted(cap)}, but must be a number of steps from 1 to ${m - 1}, or 0`);
  }
}

/** The number of items of every level. */
function countItems(levelOf, names, items) {
  const counts = names.map(() => 0);
  for (const k of levelOf) {
    if (!Number.isInteger(k) || !(k in counts)) {
      throw refused(`level_of holds ${quoted(k)}, but must hold places of levels, from 0`);
    }
    counts[k] += 1;
  }
  if (!items.length || levelOf.length !== items.length) {
    const what = `${items.length} items have ${levelOf.length} levels`;
    throw refused(`${what}, but need one each, and at least one item`);
  }
  if (counts.includes(0)) {
    const empty = names[counts.indexOf(0)];
    throw refused(`level ${quoted(empty)} has no items, but needs at least one`);
  }
  return counts;
}

function pairBudgets(own, explicit, notion, terms, i, j) {
  const given = explicit.get(i * own.length + j);
  if (given !== undefined) return given && [[given, given]];
  return NOTIONS[notion].pair(i, j, terms)?.map((places) => places.map((k) => own[k])) ?? null;
}

/** Whether all pairs have the smallest budget; only sets that are protected as a whole say so. */
function readStrict({ kind, strict, pairs }) {
  const { pads, alone } = KINDS[kind];
  if (pads) return choice("strict", strict, [true, false]);
  if (alone && pairs.length) {
    const what = `kind is "${kind}" and there are budgets of pairs`;
    throw refused(`${what}, but an item on its own has its level's budget`);
  }
  return false;
}

/** Sums of items that have a name; results show them. */
function readTotals({ kind, totals }, items) {
  if (totals === undefined) return [];
  const rows = list(totals, "totals").map((row) => table(row, ["name", "items"], "a total"));
  if (!rows.length) throw refused("totals is empty, but must name some or be left out");
  if (KINDS[kind].lists) {
    throw refused(`kind is "${kind}" and there are totals, but a person may hold several items`);
  }
  distinct([...items, ...rows.map(({ name }) => name)], "item or total");
  const known = new Set(items);
  return rows.map(({ name, items: summed }) => {
    const strange = distinct(list(summed, "items of a total"), "item").find((x) => !known.has(x));
    if (strange !== undefined || !summed.length) {
      throw refused(`the total ${quoted(name)} must name some of the items, each once`);
    }
    return Object.freeze({ name, items: Object.freeze([...summed]) });
  });
}

/** The explicit pair budgets; also by place, at i * levels + j. */
function readPairs(raw, names) {
  const rows = list(raw, "pairs").map((row) => {
    return table(row, ["levels", "epsilon"], "a pair", ["one_way"]);
  });
  if (rows.length && names.length > MOST_LEVELS) {
    throw refused(`${names.length} levels have explicit pairs, but at most ${MOST_LEVELS} may`);
  }
  const [explicit, written] = [new Map(), new Map()];
  const pairs = rows.map(({ levels, epsilon: text, one_way: direction }) => {
    const places = list(levels, "levels of a pair").map((name) => names.indexOf(name));
    const both = levels.map(quoted).join(", ");
    if (places.length !== 2 || places.includes(-1)) {
      throw refused(`a pair names the levels ${both}, but must name two that exist`);
    }
    const budget = text === "" ? null : readBudget(text);
    const [i, j] = places;
    const oneWay = direction === true;
    if (direction !== undefined && (!oneWay || i === j)) {
      throw refused(`one_way of the pair ${both} must be true, and of two levels, or left out`);
    }
    const ways = [i * names.length + j, ...oneWay ? [] : [j * names.length + i]];
    for (const key of ways) {
      if ((written.get(key) ?? text) !== text) {
        throw refused(`the pair of levels ${both} has two budgets, but must have one`);
      }
      written.set(key, text);
      explicit.set(key, budget);
    }
    return Object.freeze({ levels, budget: text, epsilon: budget?.epsilon ?? Infinity, oneWay });
  });
  return { pairs, explicit };
}

// ---- promises/rounding.js -----------------------------------------------------------------------

// Factors as people read them: rounded up, exactly, so that the promise stays true.

/**
 * A factor, from its square.
 * @param {Ratio} squared
 * @returns {{factor: number, text: string}}
 */
function roundUp([n, d]) {
  if (!d) return { factor: Infinity, text: "more than any number" };
  const hundredths = rootUp(10_000n * n, d);
  if (hundredths < 100_000n) {
    const factor = Number(hundredths) / 100;
    return { factor, text: String(factor) };
  }
  const whole = rootUp(n, d);
  const near = Number(whole);
  const factor = near < Infinity && BigInt(near) < whole ? near * (1 + Number.EPSILON) : near;
  if (whole >= 10n ** 9n) return { factor, text: powerOfTen(whole) };
  return { factor, text: String(whole).replace(/\B(?=(\d{3})+$)/g, ",") };
}

/** A whole number as two digits, rounded up, times a power of ten. */
function powerOfTen(whole) {
  const exponent = String(whole).length - 1;
  const unit = 10n ** BigInt(exponent - 1);
  const lead = Number((whole + unit - 1n) / unit);
  if (lead === 100) return `1.0 × 10^${exponent + 1}`;
  return `${Math.floor(lead / 10)}.${lead % 10} × 10^${exponent}`;
}

/** The same for a factor that was computed in floats: with a margin above their error. */
function roundUpFloat(factor) {
  const x = factor * (1 + 1e-12);
  if (x === Infinity) return { factor: x, text: "more than any number" };
  const fine = 2 ** 40;
  const ratio = x < 2 ** 53 ? [BigInt(Math.ceil(x * fine)), BigInt(fine)] : [BigInt(x), 1n];
  return roundUp(square(ratio));
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

// ---- promises/paths.js --------------------------------------------------------------------------

// Pairs of levels that the policy leaves out: they may still be protected through other levels.

/** The budget that binds every level: its own, or the smallest of all if the policy is strict. */
function effectiveBudgets({ levels, pairs, strict }) {
  const own = levels.map(({ epsilon }) => epsilon);
  if (!strict) return own;
  const least = [...own, ...pairs.map(({ epsilon }) => epsilon)].reduce((x, y) => Math.min(x, y));
  return own.map(() => least);
}

/** The pair budgets of every two levels, and the shortest paths along them. */
function shortestPaths(levels, { pair }) {
  const half = (budgets) => budgets.reduce((sum, { epsilon }) => sum + epsilon, 0) / 2;
  const edges = levels.map((_, i) => levels.map((__, j) => {
    return pair(i, j)?.map(half).reduce((x, y) => Math.min(x, y)) ?? Infinity;
  }));
  const paths = edges.map((row) => [...row]);
  levels.forEach((_, k) => paths.forEach((row) => row.forEach((x, j) => {
    row[j] = Math.min(x, row[k] + paths[k][j]);
  })));
  return { edges, paths };
}

/**
 * What is said of the pairs that the policy leaves out, with the bound that they still have through
 * other levels: the shortest path of pair budgets.
 */
function unprotectedPairs({ levels, pairs, strict }, budgets) {
  const open = strict ? [] : pairs.filter(({ budget, oneWay }) => !budget && !oneWay);
  if (!open.length) return [];
  const place = new Map(levels.map(({ name }, k) => [name, k]));
  const { edges, paths } = shortestPaths(levels, budgets);
  return open.flatMap(({ levels: [first, second] }) => {
    const [i, j] = [place.get(first), place.get(second)];
    if (i === j && levels[i].count === 1) return [];
    const { factor, text } = factorAlong(budgets, edges, paths, i, j);
    const keys = i === j ? ["sameApart", "sameNotApart"] : ["apart", "notApart"];
    const key = keys[paths[i][j] < Infinity ? 0 : 1];
    const sentence = say(key, { first, second, factor: localise(text) });
    return [{ level: null, items: 0, examples: [], factor, sentence }];
  });
}

/** At most the factor between two levels: along the shortest path, each step at least e^r. */
function factorAlong(budgets, edges, paths, i, j) {
  const bound = Math.exp(paths[i][j]);
  let [squared, here] = [ONE, i];
  for (let steps = 0; bound < Infinity && steps < edges.length; steps++) {
    const ways = edges[here].map((budget, k) => budget + paths[k][j]);
    const next = foremost(ways, (x, y) => x < y);
    const direct = edges[here][j] <= ways[next];
    squared = product(squared, squareUp(budgets, here, direct ? j : next));
    if (direct) return roundUp(squared);
    here = next;
  }
  return roundUpFloat(bound); // no bound, or budgets too small for floats to tell from 0
}

/** At least e^{2 r} of two levels. @returns {Ratio} */
function squareUp({ pair }, i, j) {
  return pair(i, j).map((budgets) => budgets.map(factorUp).reduce(product)).reduce(smaller);
}

/**
 * The group of every level, and the groups that budgets lead to from it; null where every pair is
 * protected, apart from open levels.
 */
function protectedGroups({ levels, kind, notion, pairs, strict }, budgets, groupOf) {
  const mayHaveGaps = notion === "blocks" || (!strict && pairs.some(({ budget }) => !budget));
  if (!mayHaveGaps) return null;
  const { paths } = shortestPaths(levels, budgets);
  const isGap = (path, i, j) => path === Infinity && levels[i].epsilon < Infinity
    && (i !== j || levels[i].count > 1 || KINDS[kind].lists);
  const hasGaps = paths.some((row, i) => row.some((path, j) => isGap(path, i, j)));
  if (notion !== "blocks" && !hasGaps) return null;
  return groupOf.map((group, i) => {
    const isNear = (j) => paths[i][j] < Infinity && (i !== j || levels[i].count > 1);
    return { group, near: new Set(groupOf.filter((_, j) => isNear(j))) };
  });
}

/** A rational at least e^budget, for a budget up to 710; exactly k for ln(k). @returns {Ratio} */
function factorUp({ isLog, value: [n, d] }) {
  if (isLog) return [n, d];
  // the Taylor sum has at most 2,000 terms, and each is less than 2^-80 e^x too small
  const margin = [(1n << 60n) + 1n, 1n << 60n];
  return product(taylor(n, d), margin);
}

// ---- promises/whole.js --------------------------------------------------------------------------

// What is promised about whole answers: one answer, a list protected as a whole, or item by item.

const [FEW, SEVERAL] = [5, 20]; // answers of a list for which the factors are multiplied
const WEAK = 100; // the largest factor between two answers that is not called weak

/** The warning with this key if the factor is above WEAK, otherwise "". @param {Ratio} ratio */
function weakness(ratio, key) {
  if (!isLess([BigInt(WEAK), 1n], ratio)) return "";
  return say(key, { factor: localise(roundUp(square(ratio)).text) });
}

/**
 * Per kind, given the encoding and the exact factor of every group:
 *   keys of the sentences about one answer, about one of a level, and of the warning;
 *   epsilon, the largest log-ratio of any report between two whole answers;
 *   caution, a warning about whole lists, or "";
 *   promises, what is said about whole lists;
 *   promiseFor(items), the promise for one list.
 */
const WHOLE_ANSWERS = {
  single: {
    keys: { one: "odds", level: "oddsOfLevel", caution: "cautionAnswers" },
    epsilon: (encoding, ratios) => logarithms(ratios).reduce((x, y) => Math.max(x, y)),
    caution: () => "",
    promises: () => [],
    promiseFor() {
      const what = "this question takes one answer, so there is no list to promise something for";
      throw new DiscreetError("answer", `${what}; ask for the promise of its level`);
    },
  },
  set: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    epsilon: (encoding) => Math.log(toNumber(encoding.setFactor())),
    caution: (encoding) => weakness(encoding.setFactor(), "cautionLists"),
    promises: (encoding) => [sentenceWith("anyTwoLists", encoding.setFactor())],
    promiseFor: (encoding, ratios, items) => sentenceWith("yourList", encoding.listFactor(items)),
  },
  each: {
    keys: { one: "having", level: "havingOfLevel", caution: "cautionHaving" },
    epsilon: sumOfAll,
    caution: (encoding, ratios) => {
      return sumOfAll(encoding, ratios) > Math.log(WEAK) ? say("cautionEach") : "";
    },
    promises: (encoding, ratios) => [multiplied(encoding, ratios)],
    promiseFor({ groups: { groupOf } }, ratios, items) {
      const ratio = items.reduce((total, item) => product(total, ratios[groupOf[item]]), ONE);
      return sentenceWith(items.length ? "yourListOfEach" : "noList", ratio);
    },
  },
};

const logarithms = (ratios) => ratios.map((ratio) => Math.log(toNumber(ratio)));

function sentenceWith(key, ratio) {
  const { factor, text } = roundUp(square(ratio));
  return { factor, sentence: say(key, { factor: localise(text) }) };
}

/** Every item on its own: the log-ratio between an empty list and one of all items. */
function sumOfAll({ groupSizes, groups: { m } }, ratios) {
  return largestValues(logarithms(ratios), groupSizes, m, (x, y) => y - x)
    .reduce((total, [epsilon, n]) => total + n * epsilon, 0);
}

/** The promise where items are protected on their own: for lists of the most revealing ones. */
function multiplied({ groupSizes, groups: { m } }, ratios) {
  const falling = (x, y) => (isLess(x, y) ? 1 : isLess(y, x) ? -1 : 0);
  const most = (k) => {
    const factors = largestValues(ratios, groupSizes, k, falling);
    return roundUp(square(factors.reduce((total, [[n, d], copies]) => {
      return product(total, [n ** BigInt(copies), d ** BigInt(copies)]);
    }, ONE)));
  };
  const [few, several] = [most(Math.min(m, FEW)), most(Math.min(m, SEVERAL))];
  const sentence = say(m > FEW ? "eachOfMany" : "eachOfFew", {
    few: localise(few.text), many: localise(several.text),
    answers: say("answers", { n: Math.min(m, FEW) }), n: Math.min(m, SEVERAL),
  });
  return { factor: several.factor, sentence };
}

/** The k largest values of items, of which group g has sizes[g]; each with its number. */
function largestValues(values, sizes, k, falling) {
  const order = values.map((value, g) => [value, sizes[g]]);
  order.sort(([x], [y]) => falling(x, y));
  let left = k;
  return order.flatMap(([value, size]) => {
    const n = Math.min(left, size);
    left -= n;
    return n ? [[value, n]] : [];
  });
}

// ---- promises/guarantee.js ----------------------------------------------------------------------

const EXAMPLES = 3; // items of a level that its promise names

/** What a checked mechanism promises, in numbers and in words. */
class Guarantee {
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

  levelEpsilons() {
    const epsilons = logarithms(this.#exact);
    return this.#groupOf.map((group) => epsilons[group]);
  }

  wholeEpsilon() {
    const { kind, isMutual } = this.#policy;
    if (KINDS[kind].lists && !isMutual) return Infinity; // that an item is lacking may become known
    return this.#whole.epsilon(this.#encoding, this.#eitherWay);
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
    if (this.#policy.notion === "scale") {
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
      return `${key}OneWay${this.#fall(level) === Infinity ? "Known" : "Lowered"}`;
    }
    if (notion === "blocks") return `${key}InBlock`;
    return this.#protected ? `${key}Protected` : key;
  }

  /** How far the odds of a level's answer can fall. */
  #fall(level) {
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
    if (this.#policy.notion === "scale") return this.#distances();
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
    return this.#whole.promiseFor(this.#encoding, this.#exact, items);
  }

  caution() {
    const { notion, kind, levels, isMutual } = this.#policy;
    const found = [];
    if (notion === "blocks") found.push(say("cautionBlocks"));
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

// ---- mechanism.js -------------------------------------------------------------------------------

const MECHANISM_KEYS = [
  "format", "policy", "model", "prior", "encoding", "padding", "groups", "shares", "parts",
];

/**
 * The public parameters that both sides share. For all inputs of levels i and j and every report y,
 * Pr(y | i) <= e^{r_ij} Pr(y | j), and for sets the same with the paper's budget of a set or, where
 * items are protected on their own, item by item: proved on construction, so an object of this
 * class is a checked promise.
 */
class Mechanism {
  #guarantee;

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
    const got = await computeFingerprint(body);
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
    const body = JSON.parse(text, (_, value) => Object.freeze(value));
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
    checkShares(body.shares, groups.members.length + kind.lists);
    const encoding = readEncoding(body, { groups, policy, padding });
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
    return this.encoding.report(new Draws(), this.places(answer));
  }

  /** The items of an answer, each once: of a single one a list with it. @returns {number[]} */
  places(answer) {
    if (!this.kind.lists) return [this.#index(answer)];
    if (typeof answer === "string" || typeof answer?.[Symbol.iterator] !== "function") {
      const what = `this question takes a list of items, got ${quoted(answer)}`;
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
      throw new DiscreetError("answer", `${quoted(item)} is not an item; ${next}`);
    }
    if (Number.isInteger(item) && item >= 0 && item < this.m) return item;
    const allowed = `the label of an item or its index from 0 to ${this.m - 1}`;
    const what = `an answer is ${allowed}, got ${quoted(item)}`;
    throw new DiscreetError("answer", `${what}; choose an item`);
  }

  // -- reading a report

  /**
   * Why this is not a report of the mechanism, or null.
   * @param {Uint8Array} report
   * @returns {null | "length" | "part" | "tail" | "size" | "silent" | "ticket" | "residue"}
   */
  check(report) {
    if (!(report instanceof Uint8Array)) {
      const what = `a report is a Uint8Array, got ${quoted(report)}`;
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

// ---- device/ledger.js ---------------------------------------------------------------------------

// What this device has already sent, and to whom.

/**
 * @typedef {{origin: string, name: string, fingerprint: string, id: string, report: string,
 *   items: string[],
 *   budgets: {levels: (number | null)[], levelOf: number[], whole: number | null, oneWay: boolean},
 *   state: "shown" | "leaving" | "counted"}}
 *   Entry  in hexadecimal; never the answer, never a time. A report is first shown to its sender
 *   alone, then it may have left, then the collector has acknowledged it. A budget of null has no
 *   limit; oneWay: the levels' budgets are of raised odds alone
 * @typedef {{entry: Entry, shared: string[]}} Overlap  the labels are the new question's
 * @typedef {{item: string, epsilon: number, factor: number, sentence: string}} Summed
 */

const LEDGER = "discreet-ledger/3";
const SETTLE = 150; // milliseconds in which tabs see what one of them wrote
const STATES = ["shown", "leaving", "counted"];

/** Run work while no other tab of this browser does: two tabs must not both draw a report. */
async function locked(work) {
  const locks = globalThis.navigator?.locks;
  // async: Node 24 never releases a lock whose work throws at once
  return locks ? locks.request(LEDGER, async () => work()) : work();
}

/**
 * Averaging over repeats is the classic attack. So the same question always gets the same report,
 * and the budgets of different questions about the same items add up.
 */
class Ledger {
  #storage;
  #shared; // with other tabs
  #key;

  /**
   * @param {{getItem: Function, setItem: Function}} [storage] the browser's localStorage unless
   *   given
   * @param {number} [person] people who share a device each have a ledger of their own
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
    return this.#read().find(isFor(origin, name, fingerprint)) ?? null;
  }

  /**
   * Earlier answers to other collections that share an item, however its label is spelled.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @returns {Overlap[]}
   */
  overlaps(origin, name, mechanism) {
    const here = mechanism.policy.items.map(looks);
    return this.#sentElsewhere(origin, name, mechanism.fingerprint).flatMap((entry) => {
      const there = new Set(entry.items.flatMap(looks));
      const shared = mechanism.policy.items.filter((_, k) => here[k].some((x) => there.has(x)));
      return shared.length ? [{ entry, shared }] : [];
    });
  }

  /**
   * The shared item with the largest sum of budgets, the new question included; null without
   * overlaps.
   * @param {Mechanism} mechanism @param {Overlap[]} overlaps
   * @returns {Summed | null}
   */
  summed(mechanism, overlaps) {
    if (!overlaps.length) return null;
    const spent = overlaps.map(({ entry }) => spentBy(entry));
    const { kind: { lists }, policy: { items, levelOf } } = mechanism;
    const own = mechanism.levelEpsilons();
    const total = items.map((item, k) => {
      const itemLooks = looks(item);
      const earlier = spent.flatMap((byLook) => {
        const budgets = itemLooks.flatMap((look) => byLook.get(look) ?? []);
        return budgets.length ? [Math.max(...budgets)] : [];
      });
      return earlier.length ? earlier.reduce((sum, x) => sum + x, own[levelOf[k]]) : -Infinity;
    });
    const worst = foremost(total, (x, y) => x > y);
    const { factor, text } = roundUpFloat(Math.exp(total[worst]));
    const oneWay = !mechanism.policy.isMutual || overlaps.some(({ entry }) => entry.budgets.oneWay);
    const sentences = [say(oneWay ? "alreadyOneWay" : lists ? "alreadyHaving" : "already", {
      n: overlaps.length, what: `"${items[worst]}"`, factor: localise(text),
    })];
    if (lists) {
      const whole = overlaps.reduce((sum, { entry }) => sum + stored(entry.budgets.whole),
        mechanism.wholeEpsilon());
      const { text: wholeText } = roundUpFloat(Math.exp(whole));
      sentences.push(say("alreadyLists", { factor: localise(wholeText) }));
    }
    const sentence = sentences.join(" ");
    return { item: items[worst], epsilon: total[worst], factor, sentence };
  }

  /**
   * The sum of the budgets of whole answers over all other collections, and their number. It counts
   * every collection, whatever it asks about, because labels can be rewritten.
   * @returns {{epsilon: number, earlier: number}}
   */
  total(origin, name, fingerprint) {
    const others = this.#sentElsewhere(origin, name, fingerprint);
    const epsilon = others.reduce((sum, { budgets }) => sum + stored(budgets.whole), 0);
    return { epsilon, earlier: others.length };
  }

  /**
   * Write a report down before anybody sees it. If this collection has an entry already, that entry
   * counts.
   * @param {string} origin @param {string} name @param {Mechanism} mechanism
   * @param {Uint8Array} report @param {Uint8Array} id
   * @returns {Entry}
   */
  reserve(origin, name, mechanism, report, id) {
    const entries = this.#read();
    const earlier = entries.find(isFor(origin, name, mechanism.fingerprint));
    if (earlier) return earlier;
    const { policy: { items, levelOf }, fingerprint } = mechanism;
    const finite = (epsilon) => (epsilon < Infinity ? epsilon : null);
    const budgets = {
      levels: mechanism.levelEpsilons().map(finite), levelOf,
      whole: finite(mechanism.wholeEpsilon()), oneWay: !mechanism.policy.isMutual,
    };
    const entry = {
      origin, name, fingerprint, id: toHex(id), report: toHex(report), items, budgets,
      state: "shown",
    };
    this.#write([...entries, entry]);
    return entry;
  }

  /**
   * Wait, inside the lock, until every other tab sees what was written. Tabs keep copies of
   * localStorage, which catch up a little later than the lock is handed on.
   */
  async settled() {
    if (this.#shared) await new Promise((resolve) => { setTimeout(resolve, SETTLE); });
  }

  /** The report is about to leave, or the collector has acknowledged it. */
  mark(origin, name, fingerprint, state) {
    const same = isFor(origin, name, fingerprint);
    this.#write(this.#read().map((entry) => (same(entry) ? { ...entry, state } : entry)));
  }

  /** The entries of other collections whose report may have left. @returns {Entry[]} */
  #sentElsewhere(origin, name, fingerprint) {
    const same = isFor(origin, name, fingerprint);
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
    } catch { /* refused below */ }
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

/** The part of an entry that is sent. @param {Entry} entry */
const sendable = (name, mechanism, { id, report }) => {
  return { name, mechanism, id: fromHex(id), report: fromHex(report) };
};

/** A budget that is stored: null has no limit. */
const stored = (epsilon) => epsilon ?? Infinity;

function isFor(origin, name, fingerprint) {
  return (entry) => {
    return entry.origin === origin && entry.name === name && entry.fingerprint === fingerprint;
  };
}

/** The budget of every look of an item; the larger one if two labels share a look. */
function spentBy({ items, budgets: { levels, levelOf } }) {
  const byLook = new Map();
  items.forEach((item, k) => looks(item).forEach((look) => {
    byLook.set(look, Math.max(byLook.get(look) ?? 0, stored(levels[levelOf[k]])));
  }));
  return byLook;
}

function isEntry({ origin, name, fingerprint, id, report, items, budgets, state }) {
  const texts = Array.isArray(items) && items.length > 0
    && [origin, name, fingerprint, ...items].every((text) => typeof text === "string");
  const { levels, levelOf, whole, oneWay } = budgets;
  const numbers = Array.isArray(levels) && typeof oneWay === "boolean"
    && [...levels, whole].every((x) => x === null || (Number.isFinite(x) && x >= 0));
  const placed = Array.isArray(levelOf) && levelOf.length === items.length
    && levelOf.every((k) => Number.isInteger(k) && k in levels);
  const bytes = /^[0-9a-f]{32}$/.test(id) && /^([0-9a-f]{2})+$/.test(report);
  return texts && numbers && placed && bytes && STATES.includes(state);
}

// ---- device/limits.js ---------------------------------------------------------------------------

// Limits that a person sets on what a question may reveal.

/** The limit itself, if it is one. */
function readLimit(most) {
  if (typeof most !== "number" || !(most > 0)) {
    throw new DiscreetError("answer", `maxTotal is a positive number, got ${quoted(most)}`);
  }
  return most;
}

/**
 * Refuse a mechanism that may reveal more about an item than the person allows. One-way protection
 * is refused unless the person accepts it by name; then open levels are not compared, unless the
 * person names one of their items.
 */
function checkBudgets(mechanism, limits, oneWay = false) {
  const { items, levelOf, levels, isMutual } = mechanism.policy;
  if (!isMutual && !oneWay) {
    const what = "answers here are protected one way only: that one is not yours may become known";
    throw new DiscreetError("pinned", `${what}; do not answer, or accept that (oneWay)`);
  }
  const entries = limits?.constructor === Object ? Object.entries(limits) : [];
  const given = entries.length ? entries : null;
  const pinned = new Map(); // by every look of its item; the smaller of two pins counts
  for (const [item, most] of given ?? [["", limits]]) {
    if (typeof most !== "number" || !(most > 0)) {
      throw new DiscreetError("answer", `maxEpsilon is a positive number, got ${quoted(most)}`);
    }
    for (const look of looks(item)) pinned.set(look, Math.min(pinned.get(look) ?? Infinity, most));
  }
  const here = new Set(items.flatMap(looks));
  const unknown = given?.find(([item]) => !looks(item).some((look) => here.has(look)));
  if (unknown) {
    const what = `${quoted(unknown[0])}, for which you pinned a budget, is not an item here`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  }
  const allowed = (item) => (given
    ? Math.min(...looks(item).map((look) => pinned.get(look) ?? Infinity)) : limits);
  const budgets = mechanism.levelBudgets();
  items.forEach((item, k) => {
    const isCompared = given || levels[levelOf[k]].epsilon < Infinity;
    const budget = isCompared ? budgets[levelOf[k]] : 0;
    if (!(budget > allowed(item) + 1e-9)) return;
    const what = `${quoted(item)} has the budget ${brief(budget)} here, above the `
      + `${brief(allowed(item))} that you allow`;
    throw new DiscreetError("pinned", `${what}; do not answer`);
  });
}

/** A budget in four digits. */
const brief = (x) => String(Number(x.toPrecision(4)));

// ---- device/network.js --------------------------------------------------------------------------

// The only part that talks to a server.

const LATER = new Set([408, 425, 429]); // refusals after which the same request is sent again
const LONGEST = 20_000; // milliseconds of one attempt, and of one pause

/**
 * The JSON that the collector answers. Retried while it is away or busy, with growing pauses that
 * depend on nothing but its answers.
 */
async function requestJson(url, options, { fetch, server, patience, pause, waiting }) {
  const end = performance.now() + patience;
  let why = "it cannot be reached"; // or its last answer
  for (let growing = pause; ; growing *= 2) {
    let asked = 0; // the pause that the collector asks for
    try {
      const left = Math.min(LONGEST, end - performance.now());
      const signal = AbortSignal.timeout(Math.ceil(Math.max(1, left)));
      const response = await fetch(url, {
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
    const wait = Math.min(LONGEST, Math.max(asked, growing * (0.5 + Math.random())));
    if (performance.now() + wait > end) {
      const what = `the collector at ${cleaned(server)} does not take the request (${why})`;
      const next = options.body
        ? "try again later: the same report will be sent" : "try again later";
      throw new DiscreetError("network", `${what}; ${next}`);
    }
    waiting(wait);
    await sleep(wait);
  }
}

/** Wait so many milliseconds, or less if the network comes back. */
function sleep(wait) {
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

// ---- device/client.js ---------------------------------------------------------------------------

/**
 * @typedef {{name: string, mechanism: Mechanism, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean, overlaps: Overlap[], summed: Summed | null, maxTotal: number}} Prepared
 *   what will be sent if `send` is called
 * @typedef {{accepted: number, duplicates: number, id: Uint8Array, report: Uint8Array,
 *   repeated: boolean}} Receipt
 */

const STATES_OF_COLLECTION = ["upcoming", "open", "closed"];
const LATE = 3_600_000; // milliseconds after a question's end at which it is closed for certain

/**
 * Fetches a mechanism, verifies it, and uploads one perturbed report, once. Requests depend on
 * nothing but the report.
 */
class Client {
  #fetch;

  /**
   * @param {string} url where the collector is
   * @param {{fetch?: typeof fetch, ledger?: Ledger, origin?: string, patience?: number,
   *   pause?: number, maxTotal?: number, waiting?: (milliseconds: number) => void}} [options]
   *   patience: milliseconds after which retries end; pause: before the first retry; maxTotal: caps
   *   the sum of the budgets over all collections in the ledger, whatever they ask about; waiting:
   *   called when an attempt has failed, with the milliseconds until the next
   */
  constructor(url, {
    fetch = globalThis.fetch, ledger = new Ledger(), origin, patience = 60_000, pause = 500,
    maxTotal = Infinity, waiting = () => {},
  } = {}) {
    this.waiting = waiting;
    this.maxTotal = readLimit(maxTotal);
    this.#fetch = (...args) => fetch(...args);
    this.url = url.replace(/\/+$/, "");
    this.ledger = ledger;
    this.origin = origin ?? new URL(url).origin;
    this.patience = patience;
    this.pause = pause;
  }

  /**
   * The collection's mechanism, verified. Only two words of the collector are used beside it: the
   * state, until the question's own end, and what the collector keeps.
   * @param {string} name
   * @param {{fingerprint?: string | null, maxEpsilon?: number | Record<string, number>,
   *   oneWay?: boolean}} [pins]
   *   the only fingerprint to accept; the largest budget to accept, of all items or of each by its
   *   label; with it, whether one-way protection is accepted
   * @returns {Promise<{mechanism: Mechanism, state: "upcoming" | "open" | "closed",
   *   keeps: "counts" | "reports"}>}
   */
  async describe(name, { fingerprint: pinned, maxEpsilon, oneWay = false } = {}) {
    const { mechanism: document, state, keeps } = await this.#request(this.#path(name), {});
    if (!STATES_OF_COLLECTION.includes(state)) {
      const what = `the collection's state is ${quoted(state)}`
        + ", but must be upcoming, open or closed";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const mechanism = await Mechanism.from(document, { fingerprint: pinned });
    if (mechanism.policy.name !== name) {
      const what = `the link is for ${quoted(name)}, but the question there is called `
        + quoted(mechanism.policy.name);
      const next = "a link of your own could tell who you are: do not answer, and compare the whole"
        + " link with somebody else's";
      throw new DiscreetError("pinned", `${what}; ${next}`);
    }
    if (maxEpsilon !== undefined) checkBudgets(mechanism, maxEpsilon, oneWay);
    const { opens, closes } = mechanism.policy.about;
    if (state === "upcoming" && !opens) {
      const what = "the collector says that the question has not opened, which has no such time";
      throw new DiscreetError("server", `${what}; check the address`);
    }
    const over = closes && Date.now() > Date.parse(closes) + LATE;
    return {
      mechanism, state: over ? "closed" : state,
      keeps: keeps === "counts" ? "counts" : "reports", // unless it says so, it may keep reports
    };
  }

  /**
   * Perturb an answer and write the report down; nothing is sent yet. A report is drawn once: if
   * the collection has one already, that report is given again, whatever the answer, which may then
   * be left out.
   * @param {string} name @param {Mechanism} mechanism
   * @param {{agree?: boolean | number, maxTotal?: number}} [options] agree: to the summed budget of
   *   overlapping questions, or of so many of them; maxTotal, here or of the client, is not lifted
   *   by it
   * @returns {Promise<Prepared>}
   */
  async prepare(name, mechanism, answer, { agree = false, maxTotal = Infinity } = {}) {
    const most = Math.min(readLimit(maxTotal), this.maxTotal);
    const { ledger } = this; // somebody else may take over the client meanwhile
    if (answer !== undefined) mechanism.places(answer); // refuses what is not an answer
    return locked(async () => {
      const earlier = ledger.find(this.origin, name, mechanism.fingerprint);
      const agreed = agree === true ? Infinity : Number(agree);
      const overlaps = earlier && earlier.state !== "shown"
        ? [] : this.#consented(ledger, name, mechanism, most, agreed);
      if (!earlier) {
        const id = globalThis.crypto.getRandomValues(new Uint8Array(16));
        ledger.reserve(this.origin, name, mechanism, mechanism.perturb(answer), id);
        await ledger.settled();
      }
      const entry = ledger.find(this.origin, name, mechanism.fingerprint);
      return Object.freeze({
        ...sendable(name, mechanism, entry), repeated: earlier !== null, overlaps,
        summed: ledger.summed(mechanism, overlaps), maxTotal: most,
      });
    });
  }

  /**
   * The report that was on its way when something went wrong, so that it may have arrived or not.
   * Send it again; its id makes sure that it is counted once.
   * @param {string} name @param {Mechanism} mechanism
   * @returns {Prepared | null}
   */
  unsent(name, mechanism) {
    const entry = this.ledger.find(this.origin, name, mechanism.fingerprint);
    if (entry?.state !== "leaving") return null;
    return Object.freeze({
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
    const { ledger } = this; // somebody else may take over the client meanwhile
    const entry = await locked(() => {
      const reserved = ledger.reserve(this.origin, name, mechanism, report, id);
      if (reserved.state === "shown") {
        this.#consented(ledger, name, mechanism, maxTotal, overlaps.length);
        ledger.mark(this.origin, name, mechanism.fingerprint, "leaving");
      }
      return reserved;
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

  /** Refuse overlaps without consent, and a sum of budgets above the person's limit. */
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

  #request(url, options) {
    const { url: server, patience, pause, waiting } = this;
    return requestJson(url, options, { fetch: this.#fetch, server, patience, pause, waiting });
  }
}

export {
  Client, DiscreetError, ENGLISH, Ledger, Mechanism, canonicalJson, cleaned,
  computeFingerprint as fingerprint, locked, shortFingerprint, speak,
};
